"""A job on a terminal: a line while it runs, a summary when it is done."""

from __future__ import annotations

import datetime as dt
import time
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Any

from rich.console import Console
from rich.status import Status
from rich.table import Table
from rich.text import Text

from cepheid.job.cells import by_pattern, column, day_of, is_number
from cepheid.job.outcome import MicroBatch, Outcome

QUIET = 10.0
"""Where there is no terminal, seconds from one line to the next."""
STALE = 86_400.0
"""Newest events that are older than this are history that is read again: how far they lag says nothing."""


class Display:
    """Watches a job. On a terminal one line changes; elsewhere, as in a log, a line is added now and then."""

    def __init__(self, out: Console, err: Console) -> None:
        self._out = out
        self._err = err
        self._status: Status | None = None
        self._phase = ""
        self._events = self._matches = self._late = 0
        self._started = time.perf_counter()
        self._printed = 0.0

    def __enter__(self) -> Display:
        if self._err.is_terminal:
            self._status = self._err.status("")
            self._status.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._status is not None:
            self._status.stop()

    def phase(self, text: str) -> None:
        self._phase = text
        self._say(text, always=True)

    def tasks(self, done: int, total: int) -> None:
        self._say(f"{self._phase}: {done} of {total} tasks, {time.perf_counter() - self._started:.0f} s")

    def micro_batch(self, batch: MicroBatch) -> None:
        self._events += batch.events
        self._matches += batch.matches
        self._late += batch.late
        self._say(line_of(batch, self._events, self._matches, self._late, dt.datetime.now(dt.timezone.utc)))

    def matches(self, rows: Sequence[Mapping[str, Any]], more: int) -> None:
        show_matches(rows, self._out)
        if more:
            self._out.print(f"… and {more:,} more")

    def _say(self, text: str, *, always: bool = False) -> None:
        if self._status is not None:
            self._status.update(Text(text))
        elif always or time.perf_counter() - self._printed >= QUIET:
            self._printed = time.perf_counter()
            self._err.print(text, markup=False)


def line_of(batch: MicroBatch, events: int, matches: int, late: int, now: dt.datetime) -> str:
    """How a stream stands after a micro-batch.

    >>> at = dt.datetime(2024, 5, 17, 8, 0, tzinfo=dt.timezone.utc)
    >>> batch = MicroBatch(3, at, 0.5, 1000, 2, newest=at, behind=4, behind_unit="files", state_bytes=2_500_000)
    >>> line_of(batch, 4000, 9, 0, at + dt.timedelta(seconds=2))
    'micro-batch 3: 4,000 events, 2,000/s, 9 matches, lag 2.0 s, 4 files to read, state 2.5 MB, 0.50 s'
    """
    parts = [f"{events:,} events", f"{batch.rate:,.0f}/s", f"{matches:,} matches"]
    lag = None if batch.newest is None else (now - batch.newest).total_seconds()
    if lag is not None and 0 <= lag < STALE:
        parts.append(f"lag {lag:.1f} s")
    elif batch.watermark is not None:
        parts.append(f"at {batch.watermark:%Y-%m-%d %H:%M:%S}")
    if batch.behind:
        parts.append(f"{batch.behind:,} {batch.behind_unit} to read")
    if late:
        parts.append(f"{late:,} late")
    if batch.dropping:
        parts.append(f"drops {100 * batch.dropping:.0f} %")
    if batch.state_bytes:
        parts.append(f"state {batch.state_bytes / 1e6:.1f} MB")
    return f"micro-batch {batch.number}: {', '.join(parts)}, {batch.seconds:.2f} s"


def show_matches(rows: Sequence[Mapping[str, Any]], out: Console) -> None:
    """A table for each pattern, with the columns that it has. What happened on one day is told by the clock."""
    day = day_of(rows)
    for name, (columns, matches) in by_pattern(rows).items():
        table = Table(title=f"{name}{'' if day is None else f', {day}'}: the first matches", title_justify="left")
        cells = []
        for title in columns:
            values = [match.get(title) for match in matches]
            numbers = all(is_number(value) for value in values if value is not None)
            table.add_column(title, overflow="fold", justify="right" if numbers else "left")
            moments = day is not None and any(isinstance(value, dt.datetime) for value in values)
            cells.append([text.removeprefix(f"{day} ") if moments else text for text in column(values)])
        for row in zip(*cells, strict=True):
            table.add_row(*map(Text, row))
        out.print(table, markup=False)


def show_summary(outcome: Outcome, out: Console) -> None:
    """What came of a job, in a few lines."""
    if outcome.failed is not None:
        out.print(f"failed after {outcome.seconds:.1f} s; what is known until then:", style="bold red")
    took = f"{outcome.seconds:.1f} s ({outcome.rate:,.0f} events/s)"
    out.print(f"{_count(outcome.matches, 'match')} in {_count(outcome.events, 'event')}, {took}", style="bold")
    if len(outcome.matches_of) > 1:
        for name, count in sorted(outcome.matches_of.items(), key=lambda item: -item[1]):
            out.print(f"  {count:>12,}  {name}", markup=False)
    if outcome.batches:
        seconds = sorted(batch.seconds for batch in outcome.batches)
        out.print(
            f"{_count(outcome.batches[-1].number - outcome.batches[0].number + 1, 'micro-batch')}, half of them in "
            f"{seconds[len(seconds) // 2]:.2f} s or less, the longest {seconds[-1]:.2f} s"
        )
    if outcome.late:
        out.print(f"{_count(outcome.late, 'event')} came too late")
    _show_shedding(outcome, out)
    if outcome.stopped:
        out.print("stopped; a run with the same checkpoint goes on from here" if outcome.job.checkpoint else "stopped")
    if outcome.where is not None and outcome.matches:
        out.print(f"matches are in {outcome.where}", markup=False)
    for note in outcome.notes:
        out.print(note, markup=False)


def _show_shedding(outcome: Outcome, out: Console) -> None:
    shed = outcome.job.engine.shedding
    if shed is None:
        return
    dropping = sum(batch.dropping > 0 for batch in outcome.batches)
    if dropping:
        recall = outcome.matches / max(outcome.matches + outcome.lost, 1)
        out.print(f"work was dropped in {_count(dropping, 'micro-batch')}; recall about {100 * recall:.1f} %")
    overhead = outcome.batches[-1].overhead if outcome.batches else 0.0
    if 2 * overhead > shed.safety * shed.seconds:
        out.print(
            f"the latency bound of {shed.seconds:g} s cannot be kept: a micro-batch takes {overhead:.1f} s whatever is "
            "dropped, and an event may wait for two of them",
            style="yellow",
        )


def _count(count: int, word: str) -> str:
    return f"{count:,} {word}{'' if count == 1 else 'es' if word.endswith('ch') else 's'}"
