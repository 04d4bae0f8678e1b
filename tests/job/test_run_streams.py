"""Streams: the same matches as a batch, and going on where the last run stopped."""

from __future__ import annotations

import datetime as dt
import os
import signal
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet
import pytest

from cepheid.job import Outcome, RunError, parse_job, run_job
from cepheid.job.outcome import MicroBatch
from cepheid.job.report import page
from cepheid.local.signals import Stop
from tests.job.test_run import START, Watcher, expected, made_events, plain, same
from tests.spark.long import long

pytest.importorskip("pyspark.sql", reason="needs PySpark: pip install '.[spark]'")
if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.usefixtures("spark")


def write(folder: Path, table: pa.Table, files: int) -> None:
    (folder / "events").mkdir(exist_ok=True)
    size = table.num_rows // files
    start = len(list((folder / "events").iterdir()))
    for number in range(files):
        part = table.slice(number * size, size)
        path = folder / "events" / f"{start + number:03d}.parquet"
        pa.parquet.write_table(part, path)
        os.utime(path, (10**9 + start + number,) * 2)  # a stream takes the oldest file first


def run(
    folder: Path,
    sink: str = "{format: none}",
    *,
    engine: str = "allowed_lateness: 1 second",
    more: str = "trigger: available_now",
    **rest: Any,
) -> Outcome:
    text = f"""
mode: stream
source: {{format: parquet, path: events, max_files: 1}}
patterns: rules.cep
engine: {{{engine}}}
sink: {sink}
spark: {{master: "local[1]"}}
{more}
"""
    return run_job(parse_job(text, folder=folder), **rest)


def test_the_same_as_a_batch_in_two_runs(patterns: Path, tmp_path: Path) -> None:
    table = made_events()
    more = "checkpoint: state\ntrigger: available_now"
    write(tmp_path, table.slice(0, 100), 2)
    first = run(tmp_path, "{format: parquet, path: out}", more=more)
    assert (first.events, len(first.batches) >= 2) == (100, True)
    write(tmp_path, table.slice(100), 1)
    second = run(tmp_path, "{format: parquet, path: out}", more=more, explained=True)
    wanted = expected(patterns, table)
    assert same(pa.parquet.read_table(tmp_path / "out").to_pylist(), wanted)
    assert first.matches + second.matches == len(wanted)
    assert second.events == 100
    assert len(second.first) == min(second.matches, 20) > 0
    assert same(list(second.first), [row for row in wanted if plain(row) in set(map(plain, second.first))])
    assert min(row["end"] for row in second.first) >= START + dt.timedelta(seconds=100)
    assert second.explanation is not None
    assert second.explanation.events == 200
    assert "Events in a second" in page(second)


def test_what_became_of_files_of_earlier_runs_does_not_matter(patterns: Path, tmp_path: Path) -> None:
    """Somebody may have put them away."""
    table = made_events()
    more = "checkpoint: state\ntrigger: available_now"
    write(tmp_path, table.slice(0, 100), 1)
    run(tmp_path, "{format: parquet, path: out, partition_by: pattern}", more=more)
    for file in (tmp_path / "out").rglob("*.parquet"):
        file.unlink()
    write(tmp_path, table.slice(100), 1)
    second = run(tmp_path, "{format: parquet, path: out, partition_by: pattern}", more=more)
    assert second.matches > 0
    assert (tmp_path / "out" / "pattern=up").is_dir()
    assert len(second.first) == min(second.matches, 20)


class Tidy(Watcher):
    """Puts away what was written as soon as it is there."""

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self.folder = folder

    def micro_batch(self, batch: MicroBatch) -> None:
        for file in self.folder.glob("*.parquet"):
            file.unlink()


def test_matches_that_cannot_be_shown_are_no_failure(patterns: Path, tmp_path: Path) -> None:
    write(tmp_path, made_events(), 1)
    more = "checkpoint: state\ntrigger: available_now"
    outcome = run(tmp_path, "{format: parquet, path: out}", more=more, watcher=Tidy(tmp_path / "out"))
    assert outcome.matches > 0
    assert list(outcome.first) == []
    assert outcome.notes[0].startswith("The first matches could not be read: ")


@long
def test_a_workload_is_known_again(tmp_path: Path) -> None:
    (tmp_path / "rules.cep").write_text(
        "PATTERN SEQ(Login a, Transfer b) PARTITION BY account WITHIN 1 minute", encoding="utf-8"
    )
    text = """
mode: stream
source: {workload: card_payments, events: 500, files: 2}
patterns: rules.cep
engine: {allowed_lateness: 1 second}
sink: {format: parquet, path: out}
checkpoint: state
trigger: available_now
spark: {master: "local[1]"}
"""
    first = run_job(parse_job(text, folder=tmp_path))
    second = run_job(parse_job(text, folder=tmp_path))
    assert (first.events, first.late) == (500, 0)
    assert (second.events, second.late, second.matches) == (0, 0, 0)


@long
def test_the_console(patterns: Path, tmp_path: Path) -> None:
    table = made_events()
    write(tmp_path, table, 2)
    watcher = Watcher()
    outcome = run(tmp_path, "{format: console, rows: 1000}", watcher=watcher)
    assert same(watcher.printed, expected(patterns, table))
    assert outcome.matches == len(watcher.printed)
    assert list(outcome.first) == watcher.printed[:20]


@long
def test_examples_where_nothing_is_kept(patterns: Path, tmp_path: Path) -> None:
    write(tmp_path, made_events(), 2)
    outcome = run(tmp_path)
    assert outcome.matches_of.keys() == {"up", "pair"}
    assert outcome.first_note == "The earliest match of each micro-batch."
    assert 1 <= len(outcome.first) <= len(outcome.batches)
    assert outcome.first[0]["pattern"] in ("up", "pair")


def test_what_was_done_until_it_failed(patterns: Path, tmp_path: Path) -> None:
    write(tmp_path, made_events(), 2)
    (tmp_path / "events" / "002.parquet").write_text("no such thing", encoding="utf-8")
    os.utime(tmp_path / "events" / "002.parquet", (2 * 10**9,) * 2)
    with pytest.raises(RunError) as caught:
        run(tmp_path, "{format: parquet, path: out}", more="checkpoint: state\ntrigger: available_now", explained=True)
    outcome = caught.value.outcome
    assert outcome is not None
    assert (outcome.events, outcome.failed) == (200, str(caught.value))
    assert outcome.matches > 0
    assert len(outcome.first) == 20
    assert "Why it failed" in page(outcome)


def test_an_error_of_ours_is_said_in_our_words_alone(patterns: Path, tmp_path: Path) -> None:
    write(tmp_path, made_events(), 1)
    patterns.write_text("PATTERN AND(A a, B b) WITHIN 1 day", encoding="utf-8")
    with pytest.raises(RunError) as caught:
        run(tmp_path, engine="allowed_lateness: 1 second, max_partial_matches: 1")
    text = str(caught.value)
    assert "LimitError: more than 1 partial matches over " in text.splitlines()[0]
    assert not any(word in text for word in ("Traceback", "Streaming Query", "Logical Plan"))


def test_events_that_are_gone_are_no_failure(patterns: Path, tmp_path: Path) -> None:
    write(tmp_path, made_events(), 1)
    outcome = run(tmp_path, watcher=Tidy(tmp_path / "events"), explained=True)
    assert outcome.events == 200
    assert outcome.explanation is not None
    assert outcome.explanation_note.startswith("The plan that the patterns alone suggest")


class Impatient(Watcher):
    """Asks to stop when the first micro-batch is done."""

    def __init__(self) -> None:
        super().__init__()
        self.seen = 0

    def micro_batch(self, batch: MicroBatch) -> None:
        self.seen += 1


def test_it_stops_when_asked(
    patterns: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, spark: SparkSession
) -> None:
    write(tmp_path, made_events(), 1)
    watcher = Impatient()
    monkeypatch.setattr(Stop, "asked", property(lambda self: watcher.seen > 0))
    outcome = run(tmp_path, more="", watcher=watcher)
    assert outcome.stopped
    assert outcome.events == 200
    assert "stopping" in watcher.phases
    assert spark.streams.active == []


@long
def test_it_stops_after_a_while(patterns: Path, tmp_path: Path) -> None:
    write(tmp_path, made_events(), 1)
    started = time.perf_counter()
    outcome = run(tmp_path, more="run_for: 1 second")
    assert not outcome.stopped
    assert time.perf_counter() - started < 60


def test_a_rate(tmp_path: Path) -> None:
    (tmp_path / "rules.cep").write_text(
        "PATTERN SEQ(T0 a, T1 b) WHERE b.n = a.n + 1 WITHIN 1 minute RETURN a.n", encoding="utf-8"
    )
    text = """
mode: stream
source: {format: rate, rows_per_second: 50, select: [timestamp AS ts, "concat('T', value % 2) AS type", value AS n]}
patterns: rules.cep
engine: {allowed_lateness: 1 second}
sink: {format: memory, name: from_rate}
spark: {master: "local[1]"}
"""
    watcher = Until(1)
    outcome = run_job(parse_job(text, folder=tmp_path), watcher)
    assert outcome.stopped
    assert outcome.matches > 0
    assert [row["n"] for row in outcome.first] == list(range(0, 2 * len(outcome.first), 2))


class Until(Watcher):
    """Sends the signal of Ctrl-C when some matches were found."""

    def __init__(self, matches: int) -> None:
        super().__init__()
        self._left = matches

    def micro_batch(self, batch: MicroBatch) -> None:
        self._left -= batch.matches
        if self._left <= 0 and threading.current_thread() is threading.main_thread():
            self._left = 10**9
            os.kill(os.getpid(), signal.SIGINT)
