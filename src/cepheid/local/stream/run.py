"""``cepheid.run``: find patterns in a stream on one machine."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from cepheid.adapt.adapting import Migration
from cepheid.adapt.every import CheckEvery
from cepheid.adapt.policies import Policy
from cepheid.engine.engine import Engine
from cepheid.engine.ingest import EventColumns
from cepheid.engine.planning import Share
from cepheid.engine.sample import estimate_all
from cepheid.engine.warming import types_of, warm_up
from cepheid.language.pattern import Pattern, with_names
from cepheid.local.stream.metrics import Second
from cepheid.local.stream.queue import size_of
from cepheid.local.stream.rejected import OnBadLine
from cepheid.local.stream.result import StreamResult
from cepheid.local.stream.runner import Runner
from cepheid.local.stream.schema import Schema, schema_of
from cepheid.local.stream.sinks import Prepared, sink_of
from cepheid.local.stream.sources import Replay, source_of
from cepheid.local.stream.watermark import Lateness, Watermarks, seconds_of
from cepheid.pattern.check import check
from cepheid.pattern.normal import Branch
from cepheid.pattern.normalise import normalise
from cepheid.pattern.read import patterns_in
from cepheid.shed.strategies import checked_strategy
from cepheid.stats.estimates import Estimates

LEAST_BOUND = 0.02
"""A replayed table hands over the events of 5 ms at a time."""


def run(
    patterns: str | Pattern | Iterable[str | Pattern],
    source: Any,
    sink: Any = None,
    *,
    shed: Any = None,
    time: str = "ts",
    type: str | None = "type",
    tie_breaker: str | None = None,
    allowed_lateness: Lateness | None = None,
    schema: Schema | None = None,
    on_bad_line: OnBadLine = "fail",
    run_for: str | float | None = None,
    queue_size: int | None = None,
    planner: str = "auto",
    order: Sequence[str] | None = None,
    statistics: Mapping[Branch, Estimates] | None = None,
    negation: str = "auto",
    adapt: Policy | bool | str | None = None,
    check_every: CheckEvery = None,
    migrate: Migration = "rebuild",
    share: Share = None,
    max_partial_matches: int = 100_000_000,
    each_second: Callable[[Second], object] | None = None,
) -> StreamResult:
    """Find patterns in a stream on this machine, until the stream ends or somebody stops it with Ctrl-C.

    ``source``: a :class:`cepheid.Replay` of a table, ``"-"`` for lines of JSON on standard input, ``"tcp://host:port"``
    or ``"listen://host:port"`` for lines of JSON from a socket, ``"kafka://servers/topic"``, an iterable of Arrow
    tables, or a table or path, which comes as fast as it is taken. ``schema``: the columns of events that come as
    JSON, such as ``"ts timestamp, type string, x double"``. ``on_bad_line="skip"``: a line that is no event is left
    out and counted, and does not end the stream. ``sink``: a function that takes a table of matches, a list, the path
    of a folder (Parquet) or of a ``.jsonl`` file, ``"-"`` for lines of JSON on standard output, or
    ``"kafka://servers/topic"``; without one the matches are in the result.

    ``shed``: what to drop when events come faster than they can be matched, such as
    ``cepheid.HSpice(latency_bound="1 second")``; a word such as ``"hspice"`` stands for a strategy as it is if nobody
    says more. Without it a source that is too fast is held back by a queue of ``queue_size`` events (262,144 if not
    said), and nothing is lost. ``allowed_lateness``: how much older than the newest an event may be, such as
    ``"10 seconds"`` or, where times are numbers, a number. ``run_for``: stop after so many seconds.
    ``each_second`` is called with the metrics of every second. The other options are those of :func:`cepheid.match`.

    >>> import cepheid
    >>> events = [{"ts": 1, "type": "A", "x": 5}, {"ts": 2, "type": "B", "x": 7}, {"ts": 9, "type": "B", "x": 8}]
    >>> found = []
    >>> result = cepheid.run("PATTERN SEQ(A a, B b) WITHIN 5 RETURN b.x - a.x AS gain", events, found)
    >>> found
    [{'pattern': 'pattern_1', 'start': 1, 'end': 2, 'gain': 2}]
    >>> result.events, result.found, result.stopped
    (3, 1, False)
    """
    columns = EventColumns(time, type, tie_breaker)
    if each_second is not None and not callable(each_second):
        raise TypeError(f"each_second is a function that takes the metrics of a second; got {each_second!r}")
    lateness = 0 if allowed_lateness is None else allowed_lateness
    start = source_of(source, None if schema is None else schema_of(schema), on_bad_line)
    end = sink_of(sink)
    size = size_of(queue_size, shed)
    named = with_names(patterns_in(patterns))
    strategy = None if shed is None else checked_strategy(shed, [str(pattern.name) for pattern in named])
    if strategy is not None and isinstance(start, Replay) and not start.paced:
        raise ValueError(
            "a table that comes as fast as it is taken is never an overload: for shedding, say how fast it comes, "
            "with cepheid.Replay(table, rate=…) or speed=…"
        )
    if strategy is not None and strategy.seconds < LEAST_BOUND:
        raise ValueError(
            f"the latency_bound of a run is {1000 * LEAST_BOUND:.0f} milliseconds or more, since events come and are "
            f"matched some at a time; got {strategy.latency_bound!r}"
        )
    preview = start.preview(columns)
    if preview is not None:
        check(named, preview.schema, time=time, type=type, tie_breaker=tie_breaker)
        Watermarks(time, lateness).lateness(preview.schema.field(time).type)  # says what is wrong with it
    estimates = dict(statistics or {})
    if not estimates and preview is not None and preview.num_rows and planner != "pattern_order" and order is None:
        estimates = estimate_all(named, preview, columns)
    engine = Engine(
        named, columns, planner, order, estimates, max_partial_matches, negation, adapt, check_every, migrate, share,
        strategy,
    )  # fmt: skip
    if isinstance(end, Prepared):
        end.check()
    if strategy is not None:
        warm_up(engine, named, preview, columns)
    critical = [pattern for pattern in named if pattern.critical]
    everything = any(normalise(pattern).needs_every_event for pattern in critical)
    runner = Runner(
        engine.open(), start, end, columns, shed=strategy, critical=None if everything else types_of(critical),
        match_size=_match_size(named), allowed_lateness=lateness,
        queue_size=size, run_for=None if run_for is None else seconds_of(run_for, "run_for"),
        each_second=each_second,
    )  # fmt: skip
    result = runner.run()
    if result.late and allowed_lateness is None and isinstance(start, Replay):
        warnings.warn(
            f"{result.late:,} of {result.events:,} events came too late and were left out, since the events that are "
            f"replayed are not in the order of {time!r}: sort them, or say with allowed_lateness how much older than "
            "the newest an event may be",
            stacklevel=2,
        )
    return result


def _match_size(patterns: Sequence[Pattern]) -> float:
    """Events in a match, on average over the patterns; a variable that repeats counts once."""
    sizes = [len(branch.variables) for pattern in patterns for branch in normalise(pattern).branches]
    return sum(sizes) / len(sizes)
