"""Damaged tables that we still read hold the same numbers for pyarrow.

Usage: mutations.py FOLDER, after

    SHAFER_MUTATIONS=1000 SHAFER_MUTATIONS_KEEP=FOLDER cargo test -p shafer-data --test mutations damaged_arrays
"""

import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

def parquet(path):
    # Other columns are not read, and may be damaged.
    schema = pq.read_schema(path)
    return pq.read_table(path, columns=[field.name for field in schema if is_list(field) or pa.types.is_floating(field.type)])


def is_list(column):
    return pa.types.is_list(column.type) and pa.types.is_floating(column.type.value_type)


READERS = {
    ".parquet": parquet,
    ".arrow": lambda path: pa.ipc.open_file(path).read_all(),
    ".arrows": lambda path: pa.ipc.open_stream(path).read_all(),
}


def numbers(table):
    """The rows of the only column of lists, or of all numeric columns."""
    table.validate(full=True)
    for column in table.columns:
        if is_list(column):
            return np.array(column.to_pylist(), "f8")
    floats = [column.to_numpy() for column in table.columns if pa.types.is_floating(column.type)]
    return np.stack(floats, axis=1).astype("f8")


findings, checked = [], 0
for path in sorted(Path(sys.argv[1]).iterdir()):
    if path.suffix not in READERS:
        continue
    ours = np.load(f"{path}.npy")
    checked += 1
    try:
        theirs = numbers(READERS[path.suffix](path))
    except (pa.ArrowException, OSError, ValueError) as problem:
        findings.append(f"{path.name}: {str(problem).splitlines()[0]}")
        continue
    # The length of rows that are not there is not known.
    if (ours.size or theirs.size) and not (ours.shape == theirs.shape and np.array_equal(ours, theirs, equal_nan=True)):
        findings.append(f"{path.name}: other numbers")
print("\n".join(findings))
print(f"{checked} damaged tables are still read, {len(findings)} of them not so by pyarrow {pa.__version__}")
sys.exit(bool(findings))
