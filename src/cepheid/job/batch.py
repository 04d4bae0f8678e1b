"""A job that reads all events, writes all matches and ends."""

from __future__ import annotations

import datetime as dt
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cepheid.job import sql
from cepheid.job.description import Job, ShownSink, Workload
from cepheid.job.environment import resolved
from cepheid.job.explaining import plan_and_funnel
from cepheid.job.outcome import Outcome
from cepheid.job.sinks import where_to, write_batch
from cepheid.job.sources import open_events, prepare
from cepheid.job.timeline import extent_of, timeline_of, with_matches
from cepheid.job.watch import Watcher
from cepheid.language.pattern import Pattern

if TYPE_CHECKING:
    from cepheid.spark.pyspark_names import DataFrame, SparkSession

POLL = 0.2


def run_batch(
    spark: SparkSession,
    job: Job,
    patterns: Sequence[Pattern],
    scratch: Path,
    watcher: Watcher,
    *,
    show: int,
    explained: bool,
) -> Outcome:
    from cepheid.spark import match

    began = dt.datetime.now(dt.timezone.utc)
    watcher.phase("making events" if isinstance(job.source, Workload) else "reading events")
    prepare(job, scratch)
    events = open_events(spark, job, scratch, streaming=False)
    started = time.perf_counter()
    with _progress(spark, watcher):
        watcher.phase("matching")
        found = match(patterns, events, **match_options(job)).persist()
        try:
            write_batch(found, job)
            counts = {row["pattern"]: row["count"] for row in found.groupBy("pattern").count().collect()}
            seconds = time.perf_counter() - started
            watcher.phase("counting events")
            extent = extent_of(events, job.events.time)
            first = first_of(found, show)
            timeline = timeline_of(events, extent) if explained else None
            if timeline is not None:
                timeline = with_matches(timeline, found)
        finally:
            if not (isinstance(job.sink, ShownSink) and job.sink.format == "memory"):
                found.unpersist()
    matches = sum(counts.values())
    if isinstance(job.sink, ShownSink) and job.sink.format == "console":
        watcher.matches(first[: job.sink.rows], max(matches - job.sink.rows, 0))
    explanation, note = None, ""
    if explained:
        watcher.phase("explaining the plan")
        explanation, note = plan_and_funnel(job, patterns, events, extent, timeline)
    return Outcome(
        job, patterns, began, seconds, extent.count, matches, counts, first, timeline=timeline, explanation=explanation,
        explanation_note=note, where=where_to(job),
    )  # fmt: skip


def match_options(job: Job) -> dict[str, Any]:
    """What the description says about matching, as ``cepheid.spark.match`` takes it."""
    return {
        "time": job.events.time,
        "type": job.events.type,
        "tie_breaker": job.events.tie_breaker,
        "shards": job.engine.shards,
        "allowed_lateness": job.engine.allowed_lateness,
        "late_events": None if job.engine.late_events is None else job.place(resolved(job.engine.late_events)),
        "planner": job.engine.planner,
        "order": job.engine.order,
        "negation": job.engine.negation,
        "adapt": job.engine.adapting,
        "check_every": job.engine.check_every,
        "migrate": job.engine.migrate,
        "share": job.engine.sharing,
        "shed": job.engine.shedding,
        "max_partial_matches": job.engine.max_partial_matches,
    }


def first_of(found: DataFrame, most: int) -> list[Mapping[str, Any]]:
    """The matches that end first, and of those that end together always the same."""
    others = [field.name for field in found.schema if _has_order(field.dataType)]
    order = dict.fromkeys(["end", "start", "pattern", *others])
    return list(found.orderBy(*map(sql.name, order)).limit(most).toArrow().to_pylist())


def _has_order(type_: Any) -> bool:
    """Whether Spark can sort by values of a type: not where there is a map or a variant in them."""
    inner = [field.dataType for field in getattr(type_, "fields", ())] + [getattr(type_, "elementType", None)]
    return type_.typeName() not in ("map", "variant") and all(_has_order(part) for part in inner if part is not None)


@contextmanager
def _progress(spark: SparkSession, watcher: Watcher) -> Iterator[None]:
    """Tells how many tasks are done while others wait for them. Not known on Spark Connect."""
    try:
        tracker = spark.sparkContext.statusTracker()
    except Exception:  # what a session on a server raises has changed between versions
        yield
        return
    done = threading.Event()

    def look() -> None:
        while not done.wait(POLL):
            stages = [tracker.getStageInfo(stage) for stage in tracker.getActiveStageIds()]
            running = [stage for stage in stages if stage is not None]
            if running:
                watcher.tasks(sum(s.numCompletedTasks for s in running), sum(s.numTasks for s in running))

    thread = threading.Thread(target=look, daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()
