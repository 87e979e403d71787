"""What we write is read by NumPy, SciPy and safetensors, and what they write by us.

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


for dtype in ("f2", ml_dtypes.bfloat16, "f4", "f8"):
    for rows, classes in ((1, 1), (7, 5), (1000, 37), (3, 300_000)):
        dense = sparse_rows(rows, classes, dtype)
        dense[0, 0] = 0.5
        ours_read_by_them(dense)
    for shape in ((5, 7), (2, 3, 4), (1000, 513), (3, 1, 20_000)):
        theirs_read_by_us(RNG.standard_normal(shape).astype(dtype))
for dtype in (">f2", ">f4", ">f8"):
    theirs_read_by_us(RNG.standard_normal((50, 11)).astype(dtype))

print(f"{checks} arrays agree (NumPy {np.__version__})")
