"""Matching a whole table on one machine."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from cepheid.adapt.adapting import Migration
from cepheid.adapt.every import CheckEvery
from cepheid.adapt.policies import Policy
from cepheid.engine.engine import Engine
from cepheid.engine.ingest import EventColumns, without_views
from cepheid.engine.planning import Share
from cepheid.engine.sample import estimate_all
from cepheid.engine.session import Session
from cepheid.language.pattern import Pattern, with_names
from cepheid.local.events import as_table
from cepheid.pattern.check import check
from cepheid.pattern.normal import Branch
from cepheid.pattern.read import patterns_in
from cepheid.stats.estimates import Estimates

BATCH = 65_536
"""Events in a batch, if not said: enough for the kernels, few enough for the caches."""


def match(
    patterns: str | Pattern | Iterable[str | Pattern],
    events: Any,
    *,
    time: str = "ts",
    type: str | None = "type",
    tie_breaker: str | None = None,
    planner: str = "auto",
    order: Sequence[str] | None = None,
    statistics: Mapping[Branch, Estimates] | None = None,
    batch_size: int | None = None,
    negation: str = "auto",
    adapt: Policy | bool | str | None = None,
    check_every: CheckEvery = None,
    migrate: Migration = "rebuild",
    share: Share = None,
    max_partial_matches: int = 100_000_000,
    progress: Callable[[int], object] | None = None,
) -> pa.Table:
    """All matches of patterns in a table of events, a row each.

    ``patterns``: text, a pattern, or several of either. ``events``: an Arrow table or reader, a pandas or polars frame,
    a list of dictionaries, or the path of a Parquet, Arrow, CSV or JSON lines file. ``time``, ``type`` and
    ``tie_breaker`` name its columns; ``type=None`` says that every event has every type.

    ``planner``: ``"pattern_order"``, ``"rate"``, ``"greedy"``, ``"dp_left"`` (chains), ``"zstream"``, ``"dp_bushy"``
    (trees), ``"dynamic"`` (an order found anew for each event) or ``"auto"``; ``order=["c", "a", "b"]`` forces a chain.
    ``statistics`` replaces the estimates that are otherwise taken from a sample of the events. ``negation`` says when
    negated events are looked for: ``"first_chance"`` where a partial match can be dropped for them, ``"post"`` when it
    is complete, or ``"auto"``. ``adapt`` lets the plan follow the data: ``True``, or a policy such as
    ``cepheid.Invariant()``; ``check_every`` says how often it is asked: after a number of events, after a time such as
    ``"10 minutes"``, or, if not said, so often that it takes about a hundredth of the time. ``migrate`` says how a new
    plan takes over. ``share``: how several patterns share work: ``"none"``, ``"maximal"``, ``"reorder"``, ``"prefix"``
    or a ``cepheid.Sharing``. None of these changes the result. ``batch_size``: how many events are pushed at once;
    where plans follow the data and it is not said, as many as come between two looks. ``progress`` is called with the
    number of events of each batch that is done.

    >>> import cepheid
    >>> events = [{"ts": 1, "type": "A", "x": 5}, {"ts": 2, "type": "B", "x": 7}, {"ts": 9, "type": "B", "x": 8}]
    >>> table = cepheid.match("PATTERN SEQ(A a, B b) WHERE a.x < b.x WITHIN 5 RETURN b.x - a.x AS gain", events)
    >>> table.to_pylist()
    [{'pattern': 'pattern_1', 'start': 1, 'end': 2, 'gain': 2}]
    """
    engine, table = prepare(
        patterns, events, time=time, type=type, tie_breaker=tie_breaker, planner=planner, order=order,
        statistics=statistics, negation=negation, adapt=adapt, check_every=check_every, migrate=migrate,
        share=share, max_partial_matches=max_partial_matches,
    )  # fmt: skip
    return run(engine.open(), table, time, batch_size, progress)


def prepare(
    patterns: str | Pattern | Iterable[str | Pattern],
    events: Any,
    *,
    time: str = "ts",
    type: str | None = "type",
    tie_breaker: str | None = None,
    planner: str = "auto",
    order: Sequence[str] | None = None,
    statistics: Mapping[Branch, Estimates] | None = None,
    negation: str = "auto",
    adapt: Policy | bool | str | None = None,
    check_every: CheckEvery = None,
    migrate: Migration = "rebuild",
    share: Share = None,
    max_partial_matches: int = 100_000_000,
) -> tuple[Engine, pa.Table]:
    """An engine with plans for these events, and the events in the order of time. Options as for :func:`match`."""
    columns = EventColumns(time, type, tie_breaker)
    table = as_table(events)
    table = in_order(table.cast(without_views(table.schema)), time)
    named = with_names(patterns_in(patterns))
    check(named, table.schema, time=time, type=type, tie_breaker=tie_breaker)
    estimates = dict(statistics or {})
    if not estimates and planner != "pattern_order" and order is None:
        estimates = estimate_all(named, table, columns)
    engine = Engine(
        named, columns, planner, order, estimates, max_partial_matches, negation, adapt, check_every, migrate, share
    )
    return engine, table


def run(
    session: Session,
    table: pa.Table,
    time: str,
    batch_size: int | None = None,
    progress: Callable[[int], object] | None = None,
) -> pa.Table:
    """Push a table that is sorted by time through a session, and close it."""
    if batch_size is not None and batch_size < 1:
        raise ValueError(f"batch_size is 1 or more, got {batch_size}")
    size = batch_size or session.push_size(BATCH)
    found = []
    for start in range(0, max(table.num_rows, 1), size):
        batch = table.slice(start, size)
        found.append(session.push(batch, watermark=batch[time][-1] if batch.num_rows else None))
        if progress is not None:
            progress(batch.num_rows)
    found.append(session.close())
    return pa.concat_tables(found)


def in_order(table: pa.Table, time: str) -> pa.Table:
    """Sorted by time, so that what is behind can be forgotten. A table that is sorted already is left as it is."""
    if time not in table.column_names or table.num_rows < 2:
        return table
    times = table[time]
    if times.null_count:
        return table  # the engine says what is wrong
    sorted_already = pc.all(pc.less_equal(times.slice(0, len(times) - 1), times.slice(1))).as_py()
    return table if sorted_already else table.take(pc.sort_indices(times))
