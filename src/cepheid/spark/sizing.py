"""What is estimated before a DataFrame is matched: how many rows there are, and where and when they crowd."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

EVERY = 1_000
"""One row in so many is looked at: of fifty thousand rows of a key, fifty, give or take seven."""
ENOUGH = 20
"""So many of them for each part of the work are enough to see how the rest is spread."""
STEPS = 8
"""So many times are asked for, for each slice that is wanted."""


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


def about(rows: DataFrame, wanted: Column) -> int:
    """How many ``wanted`` rows there are, judged by a sample."""
    return EVERY * rows.filter(_some(EVERY, wanted)).count()


def _some(every: int, wanted: Column) -> Column:
    """Of one of so many rows whether it is wanted. The lot comes first: few rows are asked, and Spark still reads only
    files with such rows."""
    return (F.rand(seed=0) * F.lit(every) < F.lit(1.0)) & wanted


def crowds(
    rows: DataFrame, wanted: Column, key: Column, time: Column, parts: int, fewest: int
) -> tuple[int, dict[int, Crowd]]:
    """How many ``wanted`` rows there are, and the keys, by their numbers, with more than the share of a part and
    ``fewest``.

    Judged by a sample: one job, in the JVM, that reads the keys and the times and brings few of them here. Where there
    are so few that they say little, all rows are looked at instead, in another.
    """
    for every in (EVERY, 1):
        chosen = wanted if every == 1 else _some(every, wanted)
        # A missing time is an error, which is raised where the rows are handled.
        taken = rows.filter(chosen).select(key.alias("key"), time.alias("time")).toArrow().drop_null()
        if taken.num_rows >= ENOUGH * parts:
            break
    total = every * taken.num_rows
    numbers, counts = np.unique(taken["key"].to_numpy(), return_counts=True)
    heavy = every * counts > max(total / parts, fewest)
    ticks = taken["time"].cast(pa.int64())
    found = {}
    for number, count in zip(numbers[heavy].tolist(), counts[heavy].tolist(), strict=True):
        times = np.sort(ticks.filter(pc.equal(taken["key"], number)).to_numpy())
        steps = np.linspace(0, count - 1, STEPS * parts + 1).round().astype(np.int64)
        found[number] = Crowd(every * count, times[steps].tolist())
    return total, found
