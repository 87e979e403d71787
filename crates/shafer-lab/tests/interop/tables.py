"""Tables of pyarrow, polars and DuckDB go through `shafer sparsify`, and come back the same but for the logits.

Usage: tables.py SHAFER, where SHAFER is the program.
"""

import datetime
import decimal
import subprocess
import sys
import tempfile
from pathlib import Path

import duckdb
import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

SHAFER = sys.argv[1]
TEMPORARY = tempfile.TemporaryDirectory()
FOLDER = Path(TEMPORARY.name)
ROWS = 60
RNG = np.random.default_rng(1)
LOGITS = RNG.normal(size=(ROWS, 7)).astype("f4")
FIXTURES = Path(__file__).resolve().parents[3] / "shafer-data/tests/fixtures/tables"
checks = 0


def nulled(values):
    """Every seventh is null."""
    return [None if i % 7 == 3 else value for i, value in enumerate(values)]


def columns():
    """An array of every type, by name."""
    n = range(ROWS)
    utc = datetime.timezone.utc
    times = [datetime.datetime(2026, 1, 1, tzinfo=utc) + datetime.timedelta(hours=i, microseconds=i) for i in n]
    naive = [time.replace(tzinfo=None) for time in times]
    whole = [time.replace(microsecond=0) for time in naive]
    days = [datetime.date(1960, 1, 1) + datetime.timedelta(days=400 * i) for i in n]
    words = [f"word {i % 5} {'long ' * (i % 4)}" for i in n]
    blobs = [word.encode() for word in words]
    yield "null", pa.nulls(ROWS)
    yield "bool", pa.array(nulled([i % 2 == 0 for i in n]))
    for kind in ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"):
        yield kind, pa.array(nulled([i % 100 for i in n]), kind)
    for kind in ("float16", "float32", "float64"):
        yield kind, pa.array(nulled([np.float16(i / 4) for i in n]), kind)
    for kind in (pa.string(), pa.large_string(), pa.string_view()):
        yield str(kind), pa.array(nulled(words), kind)
    for kind in (pa.binary(), pa.large_binary(), pa.binary_view()):
        yield str(kind), pa.array(nulled(blobs), kind)
    yield "fixed binary", pa.array(nulled([bytes([i, 2, 3]) for i in n]), pa.binary(3))
    yield "date32", pa.array(nulled(days), pa.date32())
    yield "date64", pa.array(nulled(days), pa.date64())
    for unit in ("s", "ms"):
        yield f"time32 {unit}", pa.array(nulled(whole), pa.timestamp(unit)).cast(pa.timestamp(unit)).cast(pa.time32(unit))
    for unit in ("us", "ns"):
        yield f"time64 {unit}", pa.array(nulled(naive), pa.timestamp(unit)).cast(pa.time64(unit))
    for unit in ("s", "ms", "us", "ns"):
        yield f"timestamp {unit}", pa.array(nulled(whole), pa.timestamp(unit))
        for zone in ("UTC", "Europe/Berlin", "+02:30"):
            yield f"timestamp {unit} {zone}", pa.array(nulled(whole), pa.timestamp(unit, zone))
        yield f"duration {unit}", pa.array(nulled([1000 * i for i in n]), pa.duration(unit))
    month = [pa.MonthDayNano([i, 2 * i, 3 * i]) for i in n]
    yield "interval", pa.array(nulled(month), pa.month_day_nano_interval())
    numbers = [decimal.Decimal(i) / 100 for i in n]
    for kind in (pa.decimal32(7, 2), pa.decimal64(15, 2), pa.decimal128(30, 2), pa.decimal256(60, 2)):
        yield str(kind), pa.array(nulled(numbers), kind)
    lists = [[i] * (i % 4) for i in n]
    for of in (pa.list_, pa.large_list, pa.list_view, pa.large_list_view):
        yield f"{of(pa.int32())}", pa.array(nulled(lists), of(pa.int32()))
    zoned = pa.array(nulled(whole), pa.timestamp("s", "Europe/Berlin"))
    spans = pa.array(range(ROWS + 1), pa.int32())
    yield "list of zoned seconds", pa.ListArray.from_arrays(spans, zoned)
    yield "list of date64", pa.ListArray.from_arrays(spans, pa.array(nulled(days), pa.date64()))
    yield "struct of zoned seconds", pa.StructArray.from_arrays(
        [pa.array(words), zoned, pa.array(nulled(days), pa.date64())], names=["word", "time", "day"]
    )
    yield "map to zoned seconds", pa.MapArray.from_arrays(spans, pa.array(words), zoned)
    yield "fixed list", pa.array(nulled([[i, i + 1] for i in n]), pa.list_(pa.int16(), 2))
    yield "list of lists", pa.array(nulled([[[word], None, []] for word in words]))
    yield "struct", pa.array(nulled([{"a": i, "b": {"c": [str(i)]}} for i in n]))
    yield "list of structs", pa.array(nulled([[{"a": i, "b": None}] * (i % 3) for i in n]))
    yield "map", pa.array(nulled([[(f"k{i}", i)] for i in n]), pa.map_(pa.string(), pa.int64()))
    for index in (pa.int8(), pa.int32(), pa.int64()):
        yield f"dictionary {index}", pa.array(nulled(words)).dictionary_encode().cast(pa.dictionary(index, pa.string()))
    yield "dictionary of numbers", pa.array(nulled([i % 3 for i in n])).dictionary_encode()
    yield "nested dictionary", pa.StructArray.from_arrays(
        [pa.array(nulled(words)).dictionary_encode()], names=["word"]
    )
    yield "run ends", pa.RunEndEncodedArray.from_arrays(pa.array([20, 60], pa.int32()), pa.array(["a", "b"]))
    kinds = pa.array([i % 2 for i in n], pa.int8())
    both = [pa.array(list(n)), pa.array(words)]
    yield "sparse union", pa.UnionArray.from_sparse(kinds, both)
    yield "dense union", pa.UnionArray.from_dense(kinds, pa.array([i // 2 for i in n], pa.int32()), both)
    yield "uuid", pa.array([bytes([i] * 16) for i in n], pa.uuid())
    yield "json", pa.array([f'{{"a": {i}}}' for i in n], pa.json_())
    yield "bool8", pa.array([i % 2 for i in n], pa.int8()).cast(pa.bool8())
    yield "tensor", pa.FixedShapeTensorArray.from_numpy_ndarray(RNG.normal(size=(ROWS, 2, 3)))


def logits(kind):
    fixed = pa.FixedSizeListArray.from_arrays(pa.array(LOGITS.ravel()), LOGITS.shape[1])
    return fixed if kind == "fixed" else fixed.cast(kind)


def sparsify(source, target, *more):
    command = [SHAFER, "sparsify", source, "-o", f"{target}/", "--column", "logits", "--quiet", *more]
    done = subprocess.run([str(word) for word in command], capture_output=True)
    return done.returncode, done.stderr.decode().strip()


def expected(logits=LOGITS):
    """The evidential transform: softmax of the logits above their mean."""
    for row in logits.astype("f8"):
        kept = np.flatnonzero(row > row.mean())
        p = np.exp(row[kept] - row.max())
        yield kept, p / p.sum()


def same_logits(column, before, what):
    logits = np.array(before.to_pylist(), "f4")
    for found, (kept, p) in zip(column.to_pylist(), expected(logits), strict=True):
        assert [entry["class"] for entry in found] == kept.tolist(), what
        assert np.allclose([entry["p"] for entry in found], p, atol=1e-6), what


def plain(column):
    """Row groups may have different dictionaries of the same values."""
    return column.to_pylist() if pa.types.is_dictionary(column.type) else column


def same(before, after, what):
    """All columns but the logits are equal, with their types, order and metadata."""
    global checks
    assert after.column_names == before.column_names, what
    for name in before.column_names:
        if name == "logits":
            same_logits(after[name], before[name], what)
            continue
        field, found = before.schema.field(name), after.schema.field(name)
        assert found.equals(field, check_metadata=False), (what, name, field, found)
        assert plain(after[name]) == plain(before[name]), (what, name, after[name], before[name])
        after[name].validate(full=True)
        checks += 1
    for key, value in (before.schema.metadata or {}).items():
        assert after.schema.metadata[key] == value, (what, key)


def read(path):
    if path.suffix == ".parquet":
        return pq.read_table(path)
    kind = pa.ipc.open_stream if path.suffix == ".arrows" else pa.ipc.open_file
    with kind(path) as reader:
        return reader.read_all()


def instants(table):
    """Spark's times of 96 bits are instants, and come back as microseconds in UTC, which Spark reads."""
    if b"org.apache.spark.version" not in (table.schema.metadata or {}):
        return table
    micros = table["time"].cast(pa.timestamp("us")).cast(pa.timestamp("us", "UTC"))
    return table.set_column(table.schema.get_field_index("time"), "time", micros)


def through(table, ending, write, what):
    source, target = FOLDER / f"in.{ending}", FOLDER / "out"
    (target / source.name).unlink(missing_ok=True)
    write(table, source)
    code, message = sparsify(source, target)
    assert code == 0, (what, message)
    same(instants(read(source)), read(target / source.name), what)


def parquet(**options):
    return lambda table, path: pq.write_table(table, path, **options)


def ipc(kind, compression):
    def write(table, path):
        options = pa.ipc.IpcWriteOptions(compression=compression)
        with kind(path, table.schema, options=options) as writer:
            writer.write_table(table, max_chunksize=23)

    return write


def pyarrow_tables():
    refused = []
    every = dict(columns())
    for name, array in every.items():
        table = pa.table({"id": pa.array(range(ROWS)), "other": array, "logits": logits(pa.list_(pa.float32()))})
        table = table.replace_schema_metadata({"origin": "model 7"})
        try:
            through(table, "parquet", parquet(row_group_size=25), f"{name} in Parquet")
        except (pa.ArrowNotImplementedError, pa.ArrowInvalid, pa.ArrowTypeError) as problem:
            # pyarrow itself does not write it.
            refused.append(f"{name} ({str(problem).splitlines()[0]})")
        for kind, ending in ((pa.ipc.new_file, "arrow"), (pa.ipc.new_stream, "arrows")):
            for compression in (None, "lz4", "zstd"):
                through(table, ending, ipc(kind, compression), f"{name} in .{ending}, {compression}")
    print("not written to Parquet by pyarrow:", "; ".join(refused) or "none")
    for kind in (pa.list_(pa.float32()), pa.large_list(pa.float32()), "fixed"):
        plain = {name: every[name] for name in ("int64", "string", "map", "struct", "fixed list")}
        table = pa.table({**plain, "logits": logits(kind), "last": every["dictionary int32"]})
        for options in (
            {"compression": "none"},
            {"compression": "snappy", "data_page_version": "2.0"},
            {"compression": "gzip"},
            {"compression": "brotli"},
            {"compression": "zstd", "use_dictionary": False},
            {"compression": "lz4", "write_page_index": True, "write_page_checksum": True},
            {"version": "1.0"},
            {"store_schema": False},
        ):
            through(table, "parquet", parquet(**options), f"logits of {kind}, {options}")


def polars_tables():
    frame = pl.DataFrame(
        {
            "id": range(ROWS),
            "word": pl.Series([f"w{i % 4}" for i in range(ROWS)], dtype=pl.Categorical),
            "time": pl.datetime_range(
                datetime.datetime(2026, 1, 1), datetime.datetime(2026, 1, 1, 0, ROWS - 1), "1m",
                time_zone="Europe/Berlin", eager=True,
            ),
            "nested": [{"a": i, "b": [str(i)]} for i in range(ROWS)],
            "logits": pl.Series(LOGITS.tolist(), dtype=pl.List(pl.Float32)),
            "amount": pl.Series([decimal.Decimal(i) / 4 for i in range(ROWS)], dtype=pl.Decimal(12, 2)),
        }
    )
    for compression in ("uncompressed", "snappy", "gzip", "brotli", "lz4", "zstd"):
        through(frame, "parquet", lambda f, path: f.write_parquet(path, compression=compression), f"polars, {compression}")
    for compression in ("uncompressed", "lz4", "zstd"):
        through(frame, "arrow", lambda f, path: f.write_ipc(path, compression=compression), f"polars, .arrow, {compression}")
    # Polars reads what we write.
    back = pl.read_parquet(FOLDER / "out" / "in.parquet")
    assert back.drop("logits").equals(frame.drop("logits"))


def duckdb_tables():
    with duckdb.connect() as db:
        db.register("logits", pa.table({"i": range(ROWS), "logits": logits(pa.list_(pa.float32()))}))
        db.execute(
            "CREATE TABLE t AS SELECT i AS id, 'w' || i % 4 AS word, TIMESTAMP '2026-01-01' + INTERVAL (i) HOUR AS time,"
            " {'a': i, 'b': [i, i]} AS nested, MAP {'k': i} AS map, logits, i / 4::DECIMAL(9, 2) AS amount,"
            " uuid() AS uuid FROM logits ORDER BY i"
        )
        for compression in ("uncompressed", "snappy", "gzip", "brotli", "lz4_raw", "zstd"):
            for version in ("v1", "v2"):
                write = f"COPY t TO '{{}}' (FORMAT parquet, COMPRESSION {compression}, PARQUET_VERSION {version})"
                through(None, "parquet", lambda _, path: db.execute(write.format(path)), f"DuckDB, {compression}, {version}")
        found = db.execute(f"SELECT count(*), sum(len(logits)) FROM '{FOLDER}/out/in.parquet'").fetchone()
        assert found == (ROWS, sum(len(kept) for kept, _ in expected()))


def fixtures():
    """What the scripts beside them have written with pyarrow, polars, DuckDB and Spark."""
    for name in ("pages.parquet", "stream.arrows", "polars.parquet", "polars.arrow", "duckdb.parquet", "spark.parquet"):
        through(None, name.split(".")[1], lambda _, path: path.write_bytes((FIXTURES / name).read_bytes()), name)


def int96_tables():
    """Times of 96 bits, which Spark and old programs write."""
    times = pa.array(nulled([datetime.datetime(1700 + 9 * i, 1, 1, 12, 30, 1, i) for i in range(ROWS)]), pa.timestamp("ns"))
    table = pa.table({"time": times, "logits": logits(pa.list_(pa.float32()))})
    through(table, "parquet", parquet(use_deprecated_int96_timestamps=True), "times of 96 bits")


pyarrow_tables()
polars_tables()
duckdb_tables()
int96_tables()
fixtures()
print(f"{checks} columns agree (pyarrow {pa.__version__}, polars {pl.__version__}, DuckDB {duckdb.__version__})")
