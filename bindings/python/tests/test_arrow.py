"""Columns of lists of pyarrow, polars and DuckDB: results, and that values are not copied on the way in."""

import needs
import numpy as np
import pytest

import shafer
from shafer import _core

pa = needs.module("pyarrow", "pyarrow")
pl = needs.module("polars", "polars")
duckdb = needs.module("duckdb", "duckdb")

ROWS = [[4.0, 3.5, 0.0], [1.0, 1.0], None, [0.5]]
DENSE = [None if row is None else shafer.evidential(row).tolist() for row in ROWS]
CLASSES = [[0, 1], [0, 1], None, [0]]


def test_pyarrow():
    for kind in (pa.list_(pa.float64()), pa.large_list(pa.float32()), pa.list_(pa.float16())):
        column = pa.array(ROWS, kind)
        result = shafer.sparsify(column)
        assert isinstance(result, pa.Array) and result.type == kind
        for found, expected in zip(result.to_pylist(), DENSE):
            assert found == (None if expected is None else pytest.approx(expected, abs=1e-3))
        classes, p = shafer.sparsify(column, sparse=True)
        assert classes.to_pylist() == CLASSES and p.type.value_type == kind.value_type
        assert [row and len(row) for row in p.to_pylist()] == [2, 2, None, 1]
    fixed = pa.array([[1.0, 2.0], None, [0.0, 0.0]], pa.list_(pa.float64(), 2))
    assert shafer.evidential(fixed).to_pylist() == [[0.0, 1.0], None, [0.5, 0.5]]
    chunks = pa.chunked_array([pa.array(ROWS[:2]), pa.array(ROWS[2:], pa.list_(pa.float64()))])
    result = shafer.sparsify(chunks, "softmax")
    assert isinstance(result, pa.ChunkedArray) and result.num_chunks == 2
    table = shafer.sparsify(pa.table({"z": pa.array(ROWS)}))
    assert isinstance(table, pa.Table) and table.column("z").to_pylist() == DENSE
    table = shafer.sparsify(pa.table({"z": pa.array(ROWS)}), sparse=True)
    batch = shafer.sparsify(pa.record_batch({"z": pa.array(ROWS)}))
    assert isinstance(batch, pa.Table) and batch.column("z").to_pylist() == DENSE
    assert table.column_names == ["class", "p"] and table.column("class").to_pylist() == CLASSES


def test_polars():
    series = pl.Series("z", ROWS)
    result = shafer.sparsify(series)
    assert isinstance(result, pl.Series) and result.name == "z" and result.to_list() == DENSE
    classes, p = shafer.sparsify(series, sparse=True)
    assert classes.to_list() == CLASSES and p.list.len().to_list() == [2, 2, None, 1]
    frame = shafer.sparsify(pl.DataFrame({"z": ROWS}))
    assert isinstance(frame, pl.DataFrame) and frame["z"].to_list() == DENSE


def test_duckdb():
    connection = duckdb.connect()
    relation = connection.sql("select [4.0::double, 3.5, 0.0] as z union all select [1.0, 1.0]")
    result = shafer.sparsify(relation)
    assert connection.sql("select sum(len(z)) from result").fetchall() == [(5,)]
    assert sorted(pa.table(result).column("z").to_pylist()) == sorted(DENSE[:2])
    with pytest.raises(ValueError, match="the table has 2 columns; pass one with lists of logits: z"):
        shafer.sparsify(connection.sql("select 1 as id, [4.0::double] as z"))


def test_values_are_not_copied_on_the_way_in():
    values = np.random.default_rng(0).standard_normal(30_000)
    column = pa.FixedSizeListArray.from_arrays(pa.array(values), 10)
    address = column.values.buffers()[1].address
    # pyarrow does not copy NumPy's memory either, so this is where NumPy has it.
    assert address == values.ctypes.data
    assert _core.arrow_addresses(column) == [address]
    lists = column.cast(pa.list_(pa.float64()))
    assert _core.arrow_addresses(lists) == [lists.values.buffers()[1].address]
    # polars, without rechunking: its own memory, which pyarrow sees at the same address.
    series = pl.Series([[1.0, 2.0], [3.0]])
    seen = series.to_arrow().values.buffers()[1].address
    assert _core.arrow_addresses(series) == [seen] == _core.arrow_addresses(series)
    # DuckDB hands over new memory for each query: what it hands over is what is read.
    relation = duckdb.sql("select [1.0::double, 2.0] as z from range(5000)")
    reader = pa.RecordBatchReader.from_stream(relation)
    batches = list(reader)
    expected = [batch.column(0).values.buffers()[1].address for batch in batches]
    assert _core.arrow_addresses(pa.Table.from_batches(batches)) == expected


def test_errors():
    with pytest.raises(ValueError, match="the logits are Int64, but must be lists of f16, f32 or f64"):
        shafer.sparsify(pa.array([1, 2]))
    with pytest.raises(ValueError, match="row 1, column 0 is null; write -inf for a masked class"):
        shafer.sparsify(pa.array([[1.0], [None]], pa.list_(pa.float64())))
    with pytest.raises(ValueError, match="row 0 is empty"):
        shafer.sparsify(pa.array([[]], pa.list_(pa.float64())))
    two = pa.chunked_array([pa.array([[1.0]]), pa.array([[float("nan")]])])
    with pytest.raises(ValueError, match=r"row 0, column 0: logit is NaN.*in the chunk that begins at row 1"):
        shafer.sparsify(two)
    for option in ({"axis": 0}, {"mask": [True]}, {"out": np.zeros(3)}):
        with pytest.raises(ValueError, match=next(iter(option))):
            shafer.sparsify(pa.array([[1.0]]), **option)
    assert shafer.sparsify(pa.array([], pa.list_(pa.float64()))).to_pylist() == []
    empty = pa.chunked_array([], pa.list_(pa.float64()))
    assert shafer.sparsify(empty).to_pylist() == []
