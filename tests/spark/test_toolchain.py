"""The Java, PySpark and pyarrow that set-up installed work together."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

import pytest

pytest.importorskip("pyspark.sql", reason="needs PySpark: pip install 'cepheid[spark]'")

from cepheid.spark import session

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


def test_a_session_that_runs_is_used_as_it_is(spark: SparkSession) -> None:
    before = {name: spark.conf.get(name) for name in ("spark.sql.session.timeZone", "spark.sql.shuffle.partitions")}
    spark.conf.set("spark.sql.session.timeZone", "Europe/Berlin")
    spark.conf.set("spark.sql.shuffle.partitions", "7")
    try:
        again = session(spark__sql__ansi__enabled=spark.conf.get("spark.sql.ansi.enabled"))
        assert again.conf.get("spark.sql.session.timeZone") == "Europe/Berlin"
        assert again.conf.get("spark.sql.shuffle.partitions") == "7"
        assert session(spark__sql__shuffle__partitions=3).conf.get("spark.sql.shuffle.partitions") == "3"
    finally:
        for name, value in before.items():
            spark.conf.set(name, str(value))
