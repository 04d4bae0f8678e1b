"""What is sent from the first half of a batch job to the second."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

pytest.importorskip("pyspark.sql", reason="needs PySpark: pip install '.[spark]'")

from cepheid.spark.routes import Route
from cepheid.spark.sender import PARCEL, ROW, Lane, Sender
from cepheid.spark.task import _parcels

SCHEMA = pa.schema({"ts": pa.int64(), "text": pa.string()})


def sent(rows: int, size: int) -> list[pa.RecordBatch]:
    events = pa.record_batch({"ts": np.arange(rows), "text": ["x" * size] * rows}, schema=SCHEMA)
    return list(Sender((Lane((0, 1), SCHEMA, 0, None, None, Route(False), (7,)),)).run([events]))


def test_large_parcels_count_as_many_rows() -> None:
    """Spark hands 10,000 rows on at a time, whatever their size."""
    found = sent(20_000, 2_000)
    assert len(found) > 3
    for batch in found:
        (parcel,) = [value for value in batch.column(2) if value.is_valid]
        assert len(parcel.as_buffer()) < 1.5 * PARCEL
        assert 0 <= len(parcel.as_buffer()) - (batch.num_rows - 1) * ROW < ROW
        assert set(batch.column(0).to_pylist()) == {7}


def test_the_empty_rows_are_not_handed_on() -> None:
    found = sent(20_000, 2_000)
    assert len(list(_parcels(found))) == len(found) < sum(batch.num_rows for batch in found)


def test_small_parcels_are_one_row() -> None:
    assert [batch.num_rows for batch in sent(10, 10)] == [1]
