"""How events and matches are spread over the time that they carry."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from cepheid.job import sql
from cepheid.job.outcome import Timeline

if TYPE_CHECKING:
    from cepheid.spark.pyspark_names import DataFrame

STRETCHES = 120
_ROUND = [
    number * scale
    for scale in (1, 1_000, 1_000_000)
    for number in (1, 2, 5, 10, 20, 50, 100, 200, 500)
] + [
    number * 1_000_000
    for number in (1_000, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14_400, 21_600, 43_200, 86_400, 604_800)
]  # fmt: skip


@dataclass(frozen=True, slots=True)
class Extent:
    """How many events there are, and their first and last time, None if there are none. ``ticks``: time in SQL."""

    count: int
    first: int | None
    last: int | None
    ticks: str
    moments: bool


def extent_of(events: DataFrame, time: str) -> Extent:
    """One pass over the column of times; what has kept its counts, as Parquet does, is not even read."""
    kind = events.schema[time].dataType.typeName()
    ticks = sql.ticks(time, kind)
    found = events.selectExpr(f"{ticks} AS t").selectExpr("count(*) AS n", "min(t) AS first", "max(t) AS last").first()
    assert found is not None
    return Extent(found["n"], found["first"], found["last"], ticks, kind.startswith("timestamp"))


def timeline_of(events: DataFrame, extent: Extent) -> Timeline | None:
    """Events in each of about a hundred stretches of time."""
    if extent.first is None or extent.last is None:
        return None
    width = width_of(extent.last - extent.first)
    first = extent.first // width * width
    empty = Timeline(first, width, extent.moments, (0,) * (int(extent.last - first) // width + 1))
    return replace(empty, events=_counted(events, extent.ticks, empty))


def with_matches(timeline: Timeline, found: DataFrame) -> Timeline:
    """The same with the matches that end in each stretch."""
    ticks = sql.ticks("end", found.schema["end"].dataType.typeName())
    return replace(timeline, matches=_counted(found, ticks, timeline))


def width_of(span: int) -> int:
    """A round length that cuts a span of microseconds into about a hundred.

    >>> width_of(86_400_000_000) // 60_000_000
    15
    """
    wanted = span / STRETCHES
    return next((width for width in sorted(_ROUND) if width >= wanted), max(int(wanted), 1))


def _counted(rows: DataFrame, ticks: str, timeline: Timeline) -> tuple[int, ...]:
    place = f"CAST(({ticks} - {timeline.first}L) DIV {timeline.width}L AS INT) AS place"
    counts = [0] * len(timeline.events)
    for row in rows.selectExpr(place).groupBy("place").count().collect():
        if row["place"] is not None and 0 <= row["place"] < len(counts):
            counts[row["place"]] = row["count"]
    return tuple(counts)
