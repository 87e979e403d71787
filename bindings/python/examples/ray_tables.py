"""Sparse distributions of a table of logits, by Ray Data on one machine or a cluster.

    pip install "ray[data]"
    python ray_tables.py 'logits/' sparse/                 # this machine
    python ray_tables.py 'logits/' sparse/ 10.0.0.1:6379   # the cluster of that head node; it has shafer on each node

A task whose node is lost runs again on another, and gives the same rows.
"""

import sys

import pyarrow as pa
import ray
import shafer


def sparsify(table: pa.Table) -> pa.Table:
    """The lists of logits of a batch as lists of kept classes and of their probabilities."""
    classes, p = shafer.sparsify(table["logits"].combine_chunks(), sparse=True)
    table = table.drop_columns(["logits"])
    return table.append_column("class", pa.array(classes)).append_column("p", pa.array(p))


def main(source: str, target: str, address: str | None = None) -> None:
    ray.init(address=address, ignore_reinit_error=True)
    rows = ray.data.read_parquet(source)
    rows = rows.map_batches(sparsify, batch_format="pyarrow", batch_size=4096)
    rows.write_parquet(target)


if __name__ == "__main__":
    main(*sys.argv[1:])
