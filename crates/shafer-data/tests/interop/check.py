"""What we write is read by NumPy, SciPy, safetensors and pyarrow, and what they write by us.

Usage: check.py CONVERT, where CONVERT is the program of examples/convert.rs.
"""

import json
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

import ml_dtypes
import numpy as np
import pyarrow as pa
import pyarrow.feather as feather
import pyarrow.parquet as pq
import scipy.sparse as sparse
from numpy.lib import format as npy_format
from safetensors import safe_open
from safetensors.numpy import load_file, save_file

CONVERT = sys.argv[1]
TEMPORARY = tempfile.TemporaryDirectory()
FOLDER = Path(TEMPORARY.name)
RNG = np.random.default_rng(1)
checks = 0


def convert(source, target, stdin=None):
    with open(stdin, "rb") if stdin else open("/dev/null", "rb") as pipe:
        done = subprocess.run([CONVERT, str(source), str(target)], stdin=pipe, capture_output=True)
    assert done.returncode == 0, (source, done.stderr.decode())


def same(found, expected, what):
    global checks
    checks += 1
    assert found.shape == expected.shape, (what, found.shape, expected.shape)
    assert np.array_equal(found, expected), what


def sparse_rows(rows, classes, dtype):
    dense = RNG.random((rows, classes)) * (RNG.random((rows, classes)) < 0.2)
    return dense.astype(dtype)


def npz_members(path):
    """Name, type, shape, order and flags of every member, and its values, as they lie there."""
    members = []
    with zipfile.ZipFile(path) as archive:
        assert archive.testzip() is None
        for info in archive.infolist():
            with archive.open(info) as member:
                array = npy_format.read_array(member)
            about = (info.filename, info.compress_type, info.extract_version, info.external_attr)
            members.append((about, array.dtype.str, array.shape, array.tobytes()))
    return members


def ours_read_by_them(dense):
    """`dense` is written in each format from a plain .npy."""
    source = FOLDER / "source.npy"
    np.save(source, dense)
    if dense.dtype == ml_dtypes.bfloat16:
        source = f"{source}:bfloat16"
    # NumPy has no bf16 and SciPy no f16: those come back as f32.
    in_numpy = dense.astype("f4") if dense.dtype == ml_dtypes.bfloat16 else dense
    in_scipy = dense if dense.dtype in ("f4", "f8") else dense.astype("f4")

    target = FOLDER / "ours.npy"
    convert(source, target)
    found = np.load(target)
    same(found, in_numpy, "npy")
    assert found.dtype == in_numpy.dtype

    target, reference = FOLDER / "ours.npz", FOLDER / "theirs.npz"
    convert(source, target)
    matrix = sparse.load_npz(target)
    same(matrix.toarray(), in_scipy, "npz")
    sparse.save_npz(reference, sparse.csr_matrix(in_scipy), compressed=False)
    assert npz_members(target) == npz_members(reference), "not as scipy.sparse.save_npz writes it"

    target = FOLDER / "ours.safetensors"
    convert(source, target)
    tensors = load_file(target)
    with safe_open(target, framework="np") as file:
        metadata = file.metadata()
    assert metadata["format"] == "csr"
    shape = json.loads(metadata["shape"])
    assert tensors["values"].dtype == dense.dtype
    parts = (tensors["values"].astype(in_scipy.dtype), tensors["indices"], tensors["indptr"])
    same(sparse.csr_matrix(parts, shape=shape).toarray(), in_scipy, "safetensors")

    target = FOLDER / "ours.parquet"
    convert(source, target)
    table = pq.read_table(target)
    assert table.column_names == ["indices", "values"]
    metadata = table.schema.metadata
    assert metadata[b"shafer.classes"] == str(dense.shape[1]).encode()
    kept = table["values"].combine_chunks()
    assert table["indices"].type.value_type == pa.int32()
    # There is no bfloat16 in tables, and it is read as the single precision that it is written as.
    assert kept.type.value_type == pa.from_numpy_dtype(in_numpy.dtype)
    lists = table["indices"].combine_chunks()
    assert lists.offsets.equals(kept.offsets)
    back = np.zeros_like(in_numpy)
    rows = np.repeat(np.arange(len(dense)), np.diff(lists.offsets.to_numpy()))
    back[rows, lists.values.to_numpy()] = kept.values.to_numpy(zero_copy_only=False)
    same(back, in_numpy, "parquet")

    target = FOLDER / "ours.csv"
    convert(source, target)
    assert target.read_text().startswith("row,class,probability\n")
    triples = np.loadtxt(target, delimiter=",", skiprows=1, ndmin=2)
    rows, classes = triples[:, 0].astype(int), triples[:, 1].astype(int)
    back = np.zeros(dense.shape)
    back[rows, classes] = triples[:, 2]
    same(back.astype(dense.dtype), dense, "csv")


def theirs_read_by_us(array):
    """Whatever the file, converting it to .npy gives `array`, seen as rows."""
    rows = array.reshape(-1, array.shape[-1])
    expected = rows.astype("f4") if array.dtype == ml_dtypes.bfloat16 else rows
    target = FOLDER / "back.npy"
    suffix = ":bfloat16" if array.dtype == ml_dtypes.bfloat16 else ""

    def check(source, what, stdin=None):
        convert(source, target, stdin)
        same(np.load(target), expected, what)

    path = FOLDER / "theirs.npy"
    for order in "CF":
        np.save(path, np.asarray(array, order=order))
        check(f"{path}{suffix}", f"npy in {order} order")
        check(f"-{suffix}", f"npy in {order} order from a pipe", path)
        for save in (np.savez, np.savez_compressed):
            archive = FOLDER / "theirs.npz"
            save(archive, logits=np.asarray(array, order=order), labels=np.arange(3))
            check(f"{archive}:logits{suffix}", f"{save.__name__} in {order} order")
            check(f"{archive}:bfloat16" if suffix else archive, "the only float array of an npz")
            check(f"-:logits{suffix}", "npz from a pipe", archive)
    if array.dtype.isnative:
        path = FOLDER / "theirs.safetensors"
        save_file({"logits": np.ascontiguousarray(array), "labels": np.arange(3)}, path)
        check(path, "safetensors")
        check(f"{path}:logits", "safetensors by name")
        check("-", "safetensors from a pipe", path)
    if array.dtype == "f8" and array.ndim == 2:
        path = FOLDER / "theirs.csv"
        for header in ("", ",".join(f"class {i}" for i in range(array.shape[1]))):
            np.savetxt(path, array, delimiter=",", fmt="%.17g", header=header, comments="")
            check(path, "csv")
            check("-", "csv from a pipe", path)


def tables(rows):
    """The same rows as tables of every kind, and the name to add for what is not the only column."""
    flat = pa.array(rows.ravel())
    number, length = flat.type, rows.shape[1]
    fixed = pa.FixedSizeListArray.from_arrays(flat, length)
    others = {
        "id": pa.array(range(len(rows)), pa.int64()),
        "name": [f"row {i}" for i in range(len(rows))],
        "view": pa.array([f"a longer name of the row {i}" for i in range(len(rows))], pa.string_view()),
        "pair": pa.array([{"a": i, "b": [i]} for i in range(len(rows))]),
        "label": pa.array(["odd" if i % 2 else "even" for i in range(len(rows))]).dictionary_encode(),
        "missing": pa.nulls(len(rows)),
    }
    yield "list", "", pa.table({**others, "logits": fixed.cast(pa.list_(number))})
    yield "large list", "", pa.table({"logits": fixed.cast(pa.large_list(number)), "id": others["id"]})
    yield "fixed-size list", "", pa.table({"logits": fixed, "name": others["name"]})
    # What is sliced begins in the middle of its values.
    longer = pa.concat_arrays([fixed.slice(0, 1), fixed, fixed.slice(0, 1)])
    cut = longer.cast(pa.list_(number)).slice(1, len(rows))
    yield "sliced list", "", pa.table({"logits": cut})
    required = pa.schema(
        [pa.field("logits", pa.list_(pa.field("element", number, nullable=False)), nullable=False)]
    )
    yield "required list", "", pa.table([cut], schema=required)
    yield "one of two", ":logits", pa.table({"prior": fixed, "logits": fixed, "loss": rows[:, 0]})
    if length < 600:
        columns = {f"class {i}": rows[:, i] for i in range(length)}
        yield "columns", "", pa.table({"id": others["id"], **columns, "name": others["name"]})


def number_leaves(table):
    """The names under which Parquet stores the numbers: all but those of `others` above."""
    path = FOLDER / "names.parquet"
    pq.write_table(table, path)
    schema = pq.ParquetFile(path).schema
    names = [schema.column(i).path for i in range(len(schema))]
    return [name for name in names if name.startswith(("logits", "class", "prior", "loss"))]


def tables_read_by_us(rows):
    target = FOLDER / "back.npy"
    third = max(1, len(rows) // 3)

    def check(path, what, suffix):
        convert(f"{path}{suffix}", target)
        same(np.load(target), rows, what)

    for what, suffix, table in tables(rows):
        # Parquet has no columns of nothing.
        stored = table.drop_columns(["missing"]) if "missing" in table.column_names else table
        path = FOLDER / "theirs.parquet"
        for options in (
            {"compression": "none"},
            {"compression": "snappy", "row_group_size": third},
            {"compression": "gzip", "data_page_version": "2.0"},
            {"compression": "zstd", "row_group_size": third, "use_dictionary": False},
            {"compression": "lz4", "data_page_size": 4000, "write_page_checksum": True},
            {"compression": "none", "data_page_version": "2.0", "data_page_size": 1000},
            {"use_dictionary": False, "use_byte_stream_split": number_leaves(stored)},
            {"compression": "zstd", "version": "1.0", "data_page_size": 1000},
        ):
            pq.write_table(stored, path, **options)
            check(path, f"{what} in Parquet, {options}", suffix)
        convert(f"-{suffix}", target, path)
        same(np.load(target), rows, f"{what} in Parquet from a pipe")
        for compression in (None, "lz4", "zstd"):
            options = pa.ipc.IpcWriteOptions(compression=compression)
            for kind, ending, batch in (
                (pa.ipc.new_file, "arrow", third),
                (pa.ipc.new_file, "ipc", len(rows)),
                (pa.ipc.new_stream, "arrows", third),
            ):
                path = FOLDER / f"theirs.{ending}"
                with kind(path, table.schema, options=options) as writer:
                    writer.write_table(table, max_chunksize=batch)
                check(path, f"{what} in .{ending}, {compression}", suffix)
            convert(f"-{suffix}", target, path)
            same(np.load(target), rows, f"{what} as a stream from a pipe")
        path = FOLDER / "theirs.feather"
        feather.write_feather(table, path)
        check(path, f"{what} in Feather", suffix)


for dtype, shapes in (
    ("f2", ((50, 7),)),
    ("f4", ((1, 1), (50, 7), (1000, 130), (7, 20_000))),
    ("f8", ((50, 7), (300, 13))),
):
    for shape in shapes:
        rows = RNG.standard_normal(shape).astype(dtype)
        tables_read_by_us(rows)
        # Few different numbers are stored as places in a dictionary.
        tables_read_by_us(np.round(rows, 1))

for dtype in ("f2", ml_dtypes.bfloat16, "f4", "f8"):
    for rows, classes in ((1, 1), (7, 5), (1000, 37), (3, 300_000)):
        dense = sparse_rows(rows, classes, dtype)
        dense[0, 0] = 0.5
        ours_read_by_them(dense)
    for shape in ((5, 7), (2, 3, 4), (1000, 513), (3, 1, 20_000)):
        theirs_read_by_us(RNG.standard_normal(shape).astype(dtype))
for dtype in (">f2", ">f4", ">f8"):
    theirs_read_by_us(RNG.standard_normal((50, 11)).astype(dtype))

print(f"{checks} arrays agree (NumPy {np.__version__}, pyarrow {pa.__version__})")
