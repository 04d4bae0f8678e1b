"""What is measured before a DataFrame is matched: how many rows there are, and where and when they crowd."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from cepheid.engine.ingest import InputError
from cepheid.spark.routes import key_hash

BUCKETS = 4096
"""Keys are first counted in so many heaps, whatever their number."""
STEPS = 8
"""So many times are asked for, for each slice that is wanted."""
ACCURACY = 10_000
"""Times are wrong by no more than one in so many rows."""


@dataclass(frozen=True, slots=True)
class Crowd:
    """Rows that are matched together: how many, and times with equally many of them in between."""

    count: int
    times: Sequence[int]


def parallelism(spark: SparkSession) -> int:
    """How many tasks run at once."""
    try:
        return spark.sparkContext.defaultParallelism
    except (AttributeError, NotImplementedError, PySparkException):
        pass  # a Spark Connect session has no context
    # Without a context there is a way to ask: a range is made in so many partitions.
    return spark.range(10_000).select(F.spark_partition_id()).distinct().count()


def all_rows(rows: DataFrame, time: Column, name: str, slices: int) -> Crowd:
    """All rows as one crowd. One job, in the JVM."""
    found = rows.agg(
        F.count(F.lit(1)).alias("rows"), F.count(time).alias("timed"), _times(time, slices).alias("times")
    ).toArrow()
    count, timed = found["rows"][0].as_py(), found["timed"][0].as_py()
    if timed < count:
        raise InputError(
            f"{count - timed} of {count} events have no time: column {name!r} is NULL. Remove them, or give them one."
        )
    return Crowd(count, _ticks(pc.list_flatten(found["times"])))


def heavy_keys(
    rows: DataFrame, keys: Sequence[Column], time: Column, shards: int, fewest: int
) -> tuple[int, dict[int, Crowd]]:
    """How many rows there are, and the keys, by their hashes, with more than the share of a shard and ``fewest``.

    One job, in the JVM, that counts heaps of keys. Only where a heap is too large its keys are looked at, in another.
    """
    hashed = key_hash(keys)
    heap = F.pmod(hashed, F.lit(BUCKETS))
    heaps = rows.groupBy(heap.alias("heap")).agg(F.count(F.lit(1)).alias("rows")).toArrow()
    total = pc.sum(heaps["rows"]).as_py() or 0
    limit = max(total / shards, fewest)
    suspects = heaps.filter(pc.greater(heaps["rows"], limit))["heap"].to_pylist()
    if not suspects:
        return total, {}
    found = (
        rows.filter(heap.isin(suspects))
        .groupBy(hashed.alias("key"))
        .agg(F.count(F.lit(1)).alias("rows"), _times(time, shards).alias("times"))
        .filter(F.col("rows") > F.lit(limit))
        .toArrow()
    )
    crowds = zip(found["key"].to_pylist(), found["rows"].to_pylist(), found["times"], strict=True)
    return total, {key: Crowd(count, _ticks(times.values)) for key, count, times in sorted(crowds, key=lambda c: c[0])}


def _times(time: Column, slices: int) -> Column:
    steps = STEPS * slices
    shares = F.array(*(F.lit(step / steps) for step in range(steps + 1)))
    return F.percentile_approx(time, shares, ACCURACY)


def _ticks(times: pa.Array | pa.ChunkedArray) -> list[int]:
    found: list[int] = times.cast(pa.int64()).to_pylist()
    return found
