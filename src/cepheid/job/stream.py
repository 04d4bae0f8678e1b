"""A job that goes on: events as they come, matches as they are found, until somebody stops it."""

from __future__ import annotations

import datetime as dt
import json
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cepheid.job.batch import match_options
from cepheid.job.description import Job, Kafka, Workload
from cepheid.job.explaining import plan_alone, plan_and_funnel
from cepheid.job.first import First, Printer, example, first_matches, has_examples
from cepheid.job.history import History
from cepheid.job.outcome import Outcome
from cepheid.job.part import interval
from cepheid.job.quiet import no_log
from cepheid.job.sinks import start_stream, where_to
from cepheid.job.sources import can_be_read_again, open_events, prepare
from cepheid.job.spark_errors import in_a_line, said
from cepheid.job.timeline import extent_of, timeline_of
from cepheid.job.watch import Watcher
from cepheid.language.pattern import Pattern
from cepheid.local.signals import Stop

if TYPE_CHECKING:
    from cepheid.local.explain.explain import Explanation
    from cepheid.spark.pyspark_names import SparkSession, StreamingQuery

POLL = 0.25
PATIENCE = 10.0
"""Seconds that a micro-batch has to come to its end when the stream is to stop."""


def run_stream(
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
    from cepheid.spark.counting import counted_matches
    from cepheid.spark.pyspark_names import Py4JError, PySparkException

    began = dt.datetime.now(dt.timezone.utc)
    watcher.phase("making events" if isinstance(job.source, Workload) else "starting")
    prepare(job, scratch)
    names = [pattern.name or "" for pattern in patterns]
    printer = Printer(job, watcher, show)
    history = History()
    failed = None
    with Stop() as stop:
        found = match(patterns, open_events(spark, job, scratch, streaming=True), **match_options(job))
        first = first_matches(spark, job, found, printer, show)
        started = time.perf_counter()
        counted = counted_matches(found, names, example(found) if has_examples(job) else None)
        query = start_stream(counted, job, printer)
        watcher.phase("waiting for events")
        try:
            _follow(query, names, history, first, watcher, stop, _deadline(job, started), no_log(spark, job))
        except (PySparkException, Py4JError) as error:
            failed = said(error, job)
            with suppress(PySparkException, Py4JError):  # Java itself may be gone
                _take_last(query, names, history, first)
    seconds = time.perf_counter() - started
    shown, shown_note = first.taken()
    explanation, note = None, ""
    if explained:
        watcher.phase("explaining the plan")
        explanation, note = plan_alone(job, patterns) if failed else _explained(spark, job, patterns, scratch)
    return Outcome(
        job, patterns, began, seconds, history.events, history.matches, dict(history.matches_of), shown, shown_note,
        history.late, history.batches, None, explanation, note, stop.asked, where_to(job), history.lost,
        failed, () if first.trouble is None else (first.trouble,),
    )  # fmt: skip


def _follow(
    query: StreamingQuery,
    patterns: Sequence[str],
    history: History,
    first: First,
    watcher: Watcher,
    stop: Stop,
    deadline: float,
    quiet: AbstractContextManager[None],
) -> None:
    """Until the stream ends by itself, or is to be stopped. What it is torn out of, it does again next time."""
    ended = False
    last_call = float("inf")
    while not ended:
        ended = bool(query.awaitTermination(POLL))  # type: ignore[arg-type]  # a float is as good as an int
        before = history.count
        for progress in _news(query, history):
            batch = history.add(progress, patterns)
            if batch is not None:
                watcher.micro_batch(batch)
                first.seen(batch)
        now = time.perf_counter()
        if last_call == float("inf") and (stop.asked or now >= deadline):
            watcher.phase("stopping")
            last_call = now + PATIENCE
        idle = history.count > before or not query.status["isTriggerActive"]
        if not ended and last_call < float("inf") and (idle or now >= last_call):
            with quiet:
                query.stop()
            ended = True
    _take_last(query, patterns, history, first)


def _take_last(query: StreamingQuery, patterns: Sequence[str], history: History, first: First) -> None:
    """What was reported since it was last asked."""
    for progress in _news(query, history):
        batch = history.add(progress, patterns)
        if batch is not None:
            first.seen(batch)


def _news(query: StreamingQuery, history: History) -> Iterator[Mapping[str, Any]]:
    last = query.lastProgress
    if last is None or not history.is_new(_plain(last)):
        return
    yield from filter(history.is_new, map(_plain, query.recentProgress))


def _plain(progress: Any) -> Mapping[str, Any]:
    """As JSON has it, which is the same in all versions of Spark."""
    plain: Mapping[str, Any] = json.loads(progress.json) if hasattr(progress, "json") else progress
    return plain


def _deadline(job: Job, started: float) -> float:
    return float("inf") if job.run_for is None else started + interval(job.run_for).nanoseconds / 1e9


def _explained(spark: SparkSession, job: Job, patterns: Sequence[Pattern], scratch: Path) -> tuple[Explanation, str]:
    if not can_be_read_again(job):
        return plan_alone(job, patterns)
    try:
        events = open_events(spark, job, scratch, streaming=False)
        if isinstance(job.source, Kafka):  # to look for its beginning would be to read all of it
            return plan_and_funnel(job, patterns, events, None, None)
        extent = extent_of(events, job.events.time)
        return plan_and_funnel(job, patterns, events, extent, timeline_of(events, extent))
    except Exception as error:  # the stream has done its work, whatever became of its events
        explanation, note = plan_alone(job, patterns)
        return explanation, f"{note} {in_a_line(error, job)}"
