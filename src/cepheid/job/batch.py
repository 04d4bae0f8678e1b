"""A job that reads all events, writes all matches and ends."""

from __future__ import annotations

import datetime as dt
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cepheid.job import sql
from cepheid.job.description import Job, Kafka, ShownSink, Workload
from cepheid.job.environment import resolved
from cepheid.job.explaining import plan_alone, plan_and_funnel
from cepheid.job.interruptible import interruptible
from cepheid.job.outcome import Outcome
from cepheid.job.sinks import where_to, write_batch
from cepheid.job.sources import open_events, prepare
from cepheid.job.spark_errors import in_a_line, said
from cepheid.job.timeline import extent_of, timeline_of, with_matches
from cepheid.job.watch import Watcher
from cepheid.language.pattern import Pattern
from cepheid.local.signals import Stop

if TYPE_CHECKING:
    from cepheid.local.explain.explain import Explanation
    from cepheid.spark.pyspark_names import DataFrame, SparkSession

POLL = 0.2


MEANWHILE = "Events that came to the topic while others were matched are counted too."


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
    """KeyboardInterrupt if it was stopped before all matches were written."""
    from cepheid.spark.pyspark_names import Py4JError, PySparkException

    watcher.phase("making events" if isinstance(job.source, Workload) else "reading events")
    prepare(job, scratch)
    batch = _Batch(spark, job, patterns, scratch, watcher, show, explained)
    with Stop() as stop:
        try:
            interruptible(spark, job, watcher, stop, batch.run)
        except KeyboardInterrupt:
            if not batch.written:
                raise
        except (PySparkException, Py4JError) as error:
            batch.know(failed=said(error, job))
            if explained:
                batch.know_plan(*plan_alone(job, patterns))
        if stop.asked and batch.written and not batch.done:
            batch.know(stopped=True, notes=["It was stopped before all about its events and matches was found out."])
    return batch.outcome


class _Batch:
    """A run, and what is known of its outcome so far."""

    def __init__(
        self, spark: SparkSession, job: Job, patterns: Sequence[Pattern], scratch: Path, watcher: Watcher, show: int,
        explained: bool,
    ) -> None:  # fmt: skip
        self._spark, self._job, self._patterns, self._scratch = spark, job, patterns, scratch
        self._watcher, self._show, self._explained = watcher, show, explained
        self._started = time.perf_counter()
        began = dt.datetime.now(dt.timezone.utc)
        self.outcome = Outcome(job, patterns, began, 0.0, 0, 0, {}, where=where_to(job))
        self.written = False  # all matches
        self.done = False

    def know(self, **more: Any) -> None:
        """``seconds`` end with the last match that was written."""
        seconds = self.outcome.seconds if self.written else time.perf_counter() - self._started
        self.outcome = replace(self.outcome, seconds=seconds, **more)

    def know_plan(self, explanation: Explanation, note: str) -> None:
        self.know(explanation=explanation, explanation_note=note)

    def run(self) -> None:
        from cepheid.spark import match

        job = self._job
        events = open_events(self._spark, job, self._scratch, streaming=False)
        self._started = time.perf_counter()
        with _progress(self._spark, self._watcher):
            self._watcher.phase("matching")
            found = match(self._patterns, events, **match_options(job)).persist()
            try:
                write_batch(found, job)
                counts = {row["pattern"]: row["count"] for row in found.groupBy("pattern").count().collect()}
                self.know(matches=sum(counts.values()), matches_of=counts)
                self.written = True
                try:
                    self._look_back(events, found)
                    self.done = True
                except Exception as error:  # the matches are written, whatever becomes of what is said of them
                    self.know(notes=[f"Not all could be found out about it: {in_a_line(error, job)}"])
            finally:
                if not (isinstance(job.sink, ShownSink) and job.sink.format == "memory"):
                    found.unpersist()

    def _look_back(self, events: DataFrame, found: DataFrame) -> None:
        """What there is to say about the matches and events."""
        job = self._job
        first = first_of(found, self._show)
        self.know(first=first)
        if isinstance(job.sink, ShownSink) and job.sink.format == "console":
            rows = job.sink.rows
            self._watcher.matches(first[:rows], max(self.outcome.matches - rows, 0))
        self._watcher.phase("counting events")
        extent = extent_of(events, job.events.time)
        self.know(events=extent.count, notes=[MEANWHILE] if grows(job) else [])
        if not self._explained:
            return
        timeline = timeline_of(events, extent)
        if timeline is not None:
            timeline = with_matches(timeline, found)
            self.know(timeline=timeline)
        self._watcher.phase("explaining the plan")
        self.know_plan(*plan_and_funnel(job, self._patterns, events, extent, timeline))


def grows(job: Job) -> bool:
    """Whether a second look at the events sees more of them than the first."""
    return isinstance(job.source, Kafka) and job.source.ending == "latest"


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
