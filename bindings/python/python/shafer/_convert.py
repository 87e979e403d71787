"""What is not yet an array of NumPy of a native floating-point type: converted, computed, and given back as its kind.

The compiled module handles arrays of NumPy directly and calls this one for everything else.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from shafer import _core


def _is(value: Any, library: str, name: str) -> bool:
    """Whether a value is of a class of a library. If the library is not imported, it cannot be."""
    kind = getattr(sys.modules.get(library), name, None)
    return kind is not None and isinstance(value, kind)


def _is_bfloat16(dtype: np.dtype[Any]) -> bool:
    return bool(dtype.name == "bfloat16")


def array(value: Any, what: str = "the logits") -> np.ndarray[Any, Any]:
    """An array of NumPy of a native floating-point type, without a copy where it is one."""
    if isinstance(value, np.ma.MaskedArray):
        raise TypeError(f"{what} are a masked array; pass mask=~x.mask and x.data instead")
    if isinstance(value, np.ndarray):
        result = np.asarray(value)
    elif _is(value, "torch", "Tensor"):
        raise TypeError(f"{what} are a tensor of torch; this function takes arrays of NumPy")
    elif hasattr(value, "__array__") or not hasattr(value, "__dlpack__"):
        result = np.asarray(value)
    else:
        result = np.from_dlpack(value)
    kind = result.dtype.kind
    if kind in "iu":
        result = result.astype(np.float64)
    elif kind == "f" and result.dtype.itemsize in (2, 4, 8):
        native = result.dtype.newbyteorder("=")
        result = result.astype(native, copy=not result.flags.aligned)
    elif not _is_bfloat16(result.dtype):
        raise TypeError(
            f"{what} are of type {result.dtype}, but must be float16, bfloat16, float32 or float64"
        )
    strange = any(stride % result.itemsize for stride in result.strides)
    if strange or not result.flags.aligned:
        result = result.copy()
    return result


def mask(value: Any, shape: list[int], axis: int) -> np.ndarray[Any, Any]:
    """A mask as booleans in C order: one for each class, or one for each logit."""
    if _is(value, "torch", "Tensor"):
        value = value.detach().cpu().numpy()
    result = np.asarray(value)
    if result.dtype != np.bool_:
        raise TypeError(f"mask is of type {result.dtype}, but must be bool")
    classes = shape[axis]
    if result.shape == (classes,):
        return np.ascontiguousarray(result)
    try:
        return np.ascontiguousarray(np.broadcast_to(result, shape))
    except ValueError:
        raise ValueError(
            f"mask has the shape {list(result.shape)}, but the logits have {shape}; it needs their shape, or an entry "
            f"for each of the {classes} classes"
        ) from None


def csr_array(values: Any, indices: Any, pointers: Any, rows: int, classes: int) -> Any:
    """Compressed rows as SciPy has them, without a copy."""
    try:
        from scipy.sparse import csr_array
    except ImportError as error:
        raise ImportError("sparse=True needs SciPy: pip install scipy") from error
    result = csr_array((values, indices, pointers), shape=(rows, classes), copy=False)
    # Known, and slow to find out.
    result.has_sorted_indices = True
    result.has_canonical_format = True
    return result


def sparsify(
    logits: Any,
    method: str,
    *,
    axis: int,
    temperature: float,
    mask: Any,
    out: Any,
    sparse: bool,
    threads: int | None,
) -> Any:
    """`shafer.sparsify` for all that is not an array of NumPy."""
    options = {"axis": axis, "temperature": temperature, "mask": mask, "threads": threads}
    of_torch, of_jax = _is(logits, "torch", "Tensor"), _is(logits, "jax", "Array")
    if (of_torch or of_jax) and out is not None:
        raise TypeError("out is for arrays of NumPy; leave it out to get a new tensor")
    if of_torch:
        if sparse:
            return _core.sparsify(_torch_array(logits), method, sparse=True, **options)
        import shafer.torch

        return shafer.torch.sparsify(logits, method, dim=axis, temperature=temperature, mask=mask)
    if of_jax and not sparse:
        import shafer.jax

        return shafer.jax.sparsify(logits, method, axis=axis, temperature=temperature, mask=mask)
    arrow = hasattr(logits, "__arrow_c_array__") or hasattr(logits, "__arrow_c_stream__")
    # A DataFrame of numbers is an array.
    if arrow and type(logits).__module__.partition(".")[0] != "pandas":
        return _arrow(logits, method, axis, temperature, mask, out, sparse, threads)
    converted = array(logits)
    result = _core.sparsify(converted, method, out=out, sparse=sparse, **options)
    if sparse or out is not None or isinstance(logits, (np.ndarray, list, tuple)):
        return result
    return _as_kind_of(logits, result)


def _torch_array(tensor: Any) -> np.ndarray[Any, Any]:
    import torch

    tensor = tensor.detach().cpu()
    if tensor.dtype == torch.bfloat16:
        return np.asarray(tensor.to(torch.float32).numpy())
    return np.asarray(tensor.numpy())


def _as_kind_of(value: Any, result: np.ndarray[Any, Any]) -> Any:
    """The result as an array of the library that the value is of, by the array API; NumPy's if it has none."""
    namespace = getattr(value, "__array_namespace__", None)
    if namespace is None:
        return result
    library = namespace()
    try:
        return library.from_dlpack(result)
    except (AttributeError, BufferError, TypeError, ValueError):
        return library.asarray(result)


def _arrow(
    column: Any,
    method: str,
    axis: int,
    temperature: float,
    mask: Any,
    out: Any,
    sparse: bool,
    threads: int | None,
) -> Any:
    if axis != -1:
        raise ValueError(f"axis is {axis}, but the classes of a column of lists are along its last axis, -1")
    if mask is not None:
        raise ValueError("mask is for arrays; in a column of lists, write -inf for a masked class")
    if out is not None:
        raise ValueError("out is for arrays of NumPy; a new column is returned")
    result = _core.sparsify_arrow(column, method, temperature, sparse, threads)
    if isinstance(result, tuple):
        return tuple(_as_column_of(column, part) for part in result)
    return _as_column_of(column, result)


def _as_column_of(column: Any, result: Any) -> Any:
    """The result as an object of the library that the column is of; any object of Arrow's for others."""
    if _is(column, "pyarrow", "Array"):
        return sys.modules["pyarrow"].array(result)
    if _is(column, "pyarrow", "ChunkedArray"):
        # Chunks come as the only column of a table.
        return sys.modules["pyarrow"].table(result).column(0)
    if any(_is(column, "pyarrow", name) for name in ("Table", "RecordBatch", "RecordBatchReader")):
        return sys.modules["pyarrow"].table(result)
    if _is(column, "polars", "Series"):
        return sys.modules["polars"].DataFrame(result).to_series().rename(column.name)
    if _is(column, "polars", "DataFrame"):
        return sys.modules["polars"].DataFrame(result)
    return result
