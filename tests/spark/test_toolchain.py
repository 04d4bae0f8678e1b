"""The Java, PySpark and pyarrow that set-up installed work together."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import SparkSession


def test_rows_come_back_unchanged_from_python_workers(spark: SparkSession) -> None:
    def identity(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield from batches

    rows = [(1, "one"), (2, None), (3, "drei ≠ zwei")]
    frame = spark.createDataFrame(rows, "id long, name string")
    back = frame.mapInArrow(identity, frame.schema).orderBy("id").collect()
    assert [tuple(row) for row in back] == rows
