"""``cepheid stream``: a stream on this machine, with a line that says how it goes."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
from rich.console import Console
from rich.status import Status
from rich.text import Text

from cepheid.cli.files import check_drawing, check_output
from cepheid.language.pattern import Pattern
from cepheid.local.stream.metrics import Second
from cepheid.local.stream.result import StreamResult
from cepheid.local.stream.run import run
from cepheid.local.stream.runner import StreamError
from cepheid.local.stream.sources import Source
from cepheid.local.stream.watermark import LatenessError

QUIET = 10.0
"""Where there is no terminal, seconds from one line to the next."""


def run_stream(
    patterns: list[Pattern],
    source: Source,
    output: str | None,
    columns: dict[str, Any],
    options: dict[str, Any],
    metrics: Path | None,
    plot: Path | None,
    out: Console,
    err: Console,
) -> None:
    """``out`` is for matches, if they go to standard output; what is said about the run then goes to ``err``."""
    check_output("--metrics", metrics, METRICS)
    check_drawing("--plot", plot)
    told = err if output == "-" else out
    shown = _Shown(out) if output is None else None
    try:
        with _Line(err, options.get("shed") is not None) as line:
            result = run(
                patterns, source, shown if output is None else output, each_second=line.second, **columns, **options
            )
    except StreamError as error:
        _summary(error.result, told)
        try:
            _write_outputs(error.result, metrics, plot)
        except Exception as other:  # the error to end with is the stream's
            err.print(f"{other}", markup=False)
        raise
    except LatenessError as error:
        raise ValueError(f"--lateness: {error}") from None
    _summary(result, told)
    if output not in (None, "-"):
        told.print(f"matches are in {output}", markup=False)
    _write_outputs(result, metrics, plot)


def _write_outputs(result: StreamResult, metrics: Path | None, plot: Path | None) -> None:
    if metrics is not None:
        METRICS[metrics.suffix.lower()](result.metrics, metrics)
    if plot is not None:
        result.plot(plot)


METRICS: Mapping[str, Callable[[pa.Table, Path], object]] = {
    ".csv": pa.csv.write_csv,
    ".parquet": pa.parquet.write_table,
}


def line_of(second: Second, shedding: bool) -> str:
    """How a stream stands after a second.

    >>> second = Second(3, 1000, 900, 2, 0.0101, 0.02, 0.05, 130, 45.0, 0.25, 0, 500, 0, 0, 0.97, 0.0)
    >>> line_of(second, True)
    'second 3: 1,000 events in, 900 matched, 2 matches, latency 10/20/50 ms, 130 waiting, drops 25 %, recall about 97 %'
    """
    parts = [f"{second.events_in:,} events in", f"{second.events_out:,} matched", f"{second.matches:,} matches"]
    if second.latency_p50 is not None:
        latencies = (second.latency_p50, second.latency_p99 or 0, second.latency_max or 0)
        parts.append(f"latency {'/'.join(f'{1000 * found:.0f}' for found in latencies)} ms")
    parts.append(f"{second.queue:,} waiting")
    if shedding:
        parts.append(f"drops {100 * second.ratio:.0f} %")
        if second.dropped_from_queue:
            parts.append(f"{second.dropped_from_queue:,} left out of the queue")
        if second.estimated_recall is not None:
            parts.append(f"recall about {100 * second.estimated_recall:.0f} %")
    return f"second {second.second}: {', '.join(parts)}"


class _Line:
    """On a terminal one line changes; elsewhere, as in a log, a line is added now and then."""

    def __init__(self, err: Console, shedding: bool) -> None:
        self._err = err
        self._shedding = shedding
        self._status: Status | None = None
        self._said = time.perf_counter()

    def __enter__(self) -> _Line:
        if self._err.is_terminal:
            self._status = self._err.status("waiting for events")
            self._status.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._status is not None:
            self._status.stop()

    def second(self, second: Second) -> None:
        text = line_of(second, self._shedding)
        if self._status is not None:
            self._status.update(Text(text))
        elif time.perf_counter() - self._said >= QUIET:
            self._said = time.perf_counter()
            self._err.print(text, markup=False)


class _Shown:
    """Matches are printed, as many as somebody reads."""

    MOST = 20

    def __init__(self, out: Console) -> None:
        from cepheid.local.stream.sinks import json_lines

        self._lines: Callable[[pa.Table], Any] = json_lines
        self._out = out
        self._left = self.MOST

    def write(self, matches: pa.Table) -> None:
        if not self._left:
            return
        for line in self._lines(matches.slice(0, self._left)):
            self._out.print(line, markup=False)
        self._left -= min(self._left, matches.num_rows)
        if not self._left:
            self._out.print("… more are only counted; -o writes all of them")

    def close(self) -> None: ...


def _summary(result: StreamResult, out: Console) -> None:
    rate = result.events / result.seconds if result.seconds else 0.0
    out.print(f"{result.found:,} matches in {result.events:,} events, {result.seconds:.1f} s ({rate:,.0f} events/s)")
    if result.latency["max"] is not None:
        named = ", ".join(f"{name} {1000 * (value or 0):,.1f} ms" for name, value in result.latency.items())
        bound = result.latency_bound
        kept = "" if bound is None else f"; the bound is {1000 * bound:,.0f} ms"
        out.print(f"latency: {named}{kept}")
    followed = result.report.get("adaptation")
    if followed:
        out.print(f"{followed['checks']:,} looks at the statistics, {followed['changed']:,} changes of plan")
    dropped = result.report.get("shedding")
    if dropped:
        counts = {what: dropped.get(f"{what} dropped", 0) for what in ("events", "pairs", "partial matches")}
        said = ", ".join(f"{count:,} {what}" for what, count in counts.items() if count) or "nothing"
        last = result.metrics.slice(result.metrics.num_rows - 1).to_pylist()[0] if result.metrics.num_rows else {}
        recall, wrong = last.get("estimated_recall"), last.get("estimated_false_positives")
        out.print(
            f"dropped: {said}"
            + ("" if recall is None else f"; recall about {100 * recall:.1f} %")
            + ("" if wrong is None else f", false positives about {wrong:,.0f}")
        )
    if result.dropped_from_queue:
        out.print(f"left out of the queue, as the last resort: {result.dropped_from_queue:,} events")
    if result.rejected:
        out.print(f"{result.rejected:,} lines were no events, and were left out")
    if result.late:
        out.print(
            f"{result.late:,} events came too late and were left out: "
            "say a longer --lateness, or have them come in the order of time"
        )
    if result.stopped:
        out.print("stopped before the end of the stream")
