"""The plan of a job's patterns, and what came of it in a sample of its events."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from cepheid.engine.engine import Engine
from cepheid.job.description import Job
from cepheid.job.outcome import Timeline
from cepheid.job.timeline import Extent
from cepheid.language.pattern import Pattern
from cepheid.language.problems import CepheidError
from cepheid.local.explain.explain import Explanation, explain

if TYPE_CHECKING:
    from cepheid.spark.pyspark_names import DataFrame

SAMPLE = 500_000
"""Events at most that are looked at on this machine."""
PARTIAL = 5_000_000
"""Partial matches at most that a join may make of them."""


def plan_alone(job: Job, patterns: Sequence[Pattern]) -> tuple[Explanation, str]:
    note = "The plan that the patterns alone suggest: no events were looked at."
    return explain(patterns, **_options(job)), note


def plan_and_funnel(
    job: Job, patterns: Sequence[Pattern], events: DataFrame, extent: Extent | None, timeline: Timeline | None
) -> tuple[Explanation, str]:
    """The plan with what a sample of the events made of it, and what sample that was.

    Matching a sample of single events would find nothing: the sample is the beginning of the stream, all events of it.
    """
    table, note = _beginning(job, patterns, events, extent, timeline)
    if not table.num_rows:
        return plan_alone(job, patterns)
    try:
        found = explain(patterns, table, max_partial_matches=PARTIAL, **_options(job))
    except (CepheidError, ValueError, MemoryError) as error:
        explanation, _ = plan_alone(job, patterns)
        reason = str(error).partition("\n")[0]
        return explanation, f"The plan that the patterns alone suggest: it was not run on a sample. {reason}"
    return found, note


def _beginning(
    job: Job, patterns: Sequence[Pattern], events: DataFrame, extent: Extent | None, timeline: Timeline | None
) -> tuple[pa.Table, str]:
    if extent is not None and extent.count <= SAMPLE:
        note = f"All {extent.count:,} events were run through this plan on one machine, to count."
    elif extent is not None and timeline is not None:
        end = _cut(timeline)
        if end is not None:
            events = events.where(f"{extent.ticks} < {end}L")
        note = "Counted on one machine in the first {0:,} of " + f"{extent.count:,} events: numbers are theirs."
    else:
        note = "Counted on one machine in a sample of {0:,} events: numbers are theirs."
    table = _without_zones(events.select(*_needed(job, patterns, events)).limit(SAMPLE).toArrow())
    return table, note.format(table.num_rows)


def _cut(timeline: Timeline) -> int | None:
    """Up to when there are not too many events; None if the first stretch of time has too many already."""
    total = 0
    for place, count in enumerate(timeline.events):
        total += count
        if total > SAMPLE:
            return timeline.start(place) if place else None
    return None


def _needed(job: Job, patterns: Sequence[Pattern], events: DataFrame) -> list[str]:
    from cepheid.engine.ingest import EventColumns
    from cepheid.spark.columns import arrow_schema

    columns = EventColumns(job.events.time, job.events.type, job.events.tie_breaker)
    names = Engine(patterns, columns).needed_columns(arrow_schema(events.schema))
    return ["`" + name.replace("`", "``") + "`" for name in names]


def _without_zones(table: pa.Table) -> pa.Table:
    """In UTC, whatever the zone of the session."""
    fields = [
        field.with_type(pa.timestamp("us", tz="UTC")) if pa.types.is_timestamp(field.type) and field.type.tz else field
        for field in table.schema
    ]
    return table.cast(pa.schema(fields))


def _options(job: Job) -> dict[str, Any]:
    return {
        "time": job.events.time,
        "type": job.events.type,
        "tie_breaker": job.events.tie_breaker,
        "planner": job.engine.planner,
        "order": job.engine.order,
        "negation": job.engine.negation,
        "share": job.engine.sharing,
    }
