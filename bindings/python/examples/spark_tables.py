"""Sparse distributions of a table of logits, by Spark on one machine or a cluster.

    pip install pyspark        # and a Java runtime
    spark-submit spark_tables.py 'logits/' sparse/

Every worker has shafer. A task whose worker is lost runs again on another, and gives the same rows.
"""

import sys
from collections.abc import Iterator

import pyarrow as pa
import shafer
from pyspark.sql import SparkSession
from pyspark.sql.types import ArrayType, IntegerType, StructType


def sparsify(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The lists of logits of each batch as lists of kept classes and of their probabilities."""
    for batch in batches:
        classes, p = shafer.sparsify(batch["logits"], sparse=True)
        others = batch.drop_columns(["logits"])
        names = [*others.schema.names, "class", "p"]
        yield pa.RecordBatch.from_arrays([*others.columns, pa.array(classes), pa.array(p)], names)


def main(source: str, target: str) -> None:
    spark = SparkSession.builder.appName("shafer").getOrCreate()
    rows = spark.read.parquet(source)
    kind = rows.schema["logits"].dataType
    columns = StructType([field for field in rows.schema if field.name != "logits"])
    columns = columns.add("class", ArrayType(IntegerType())).add("p", kind)
    rows.mapInArrow(sparsify, columns).write.mode("overwrite").parquet(target)


if __name__ == "__main__":
    main(*sys.argv[1:])
