"""Torn apart in any way that a job may choose, the events give the matches of the whole, each once."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cepheid.engine.engine import Engine
from cepheid.engine.ingest import EventColumns
from cepheid.language import syntax as s
from cepheid.language.pattern import Pattern, with_names
from cepheid.local.match import match
from cepheid.pattern.normalise import normalise
from tests.contracts.test_engine_is_exact import Case, canonical, schema
from tests.strategies import patterns, patterns_with_streams, streams

pytest.importorskip("pyspark.sql", reason="needs PySpark: pip install 'cepheid[spark]'")

from cepheid.spark.columns import arrow_schema, needed_columns, spark_schema
from cepheid.spark.groups import shared_attributes
from cepheid.spark.slices import Slices, can_be_sliced, cut, reach_of
from cepheid.spark.task import CELL, Task

sliceable = patterns().filter(lambda p: can_be_sliced(normalise(p)))


@st.composite
def long_streams(draw: Any) -> Case:
    """A pattern, and a stream that is longer than its window."""
    pattern, events, options = draw(patterns_with_streams(sliceable))
    timestamps = pattern.window.kind is s.WindowKind.TIME
    for _ in range(draw(st.integers(0, 3))):
        more = draw(streams(types=[e["type"] for e in events] or ["A"], timestamps=timestamps, most=4))
        last = max((e["ts"] for e in events), default=None)
        later = 0 if last is None else ticks(last) - draw(st.integers(0, 2)) - (ticks(START) if timestamps else 0)
        shift = dt.timedelta(microseconds=later) if timestamps else later
        events = [*events, *({**e, "ts": e["ts"] + shift, "seq": e["seq"] + len(events)} for e in more)]
    return pattern, events, options


START = dt.datetime(2024, 1, 1)


def ticks(time: Any) -> int:
    return time if isinstance(time, int) else int((time - dt.datetime(1970, 1, 1)) / dt.timedelta(microseconds=1))


def task(pattern: Pattern, options: dict[str, Any], **more: Any) -> Task:
    """As a job makes it: only the columns that are needed, times in UTC."""
    columns = schema(pattern)
    engine = Engine(with_names([pattern]), EventColumns(tie_breaker=options["tie_breaker"]))
    needed = needed_columns(engine, [normalise(pattern)], columns)
    found = arrow_schema(spark_schema(engine.output_schema(columns)))
    return Task(engine, pa.schema([columns.field(name) for name in needed]), found, **more)


def in_order(work: Task, events: list[dict[str, Any]], cells: list[tuple[int, ...]] | None = None) -> pa.Table:
    """The rows as Spark sends them: of each of their cells, sorted by time."""
    rows = [(e, cell) for place, e in enumerate(events) for cell in (cells[place] if cells else (0,))]
    rows.sort(key=lambda row: row[0]["ts"])
    table = pa.Table.from_pylist([{n: e[n] for n in work.events.names} for e, _ in rows], work.events)
    return table.append_column(CELL, pa.array([cell for _, cell in rows], pa.int32()))


def run(work: Task, table: pa.Table, size: int) -> list[dict[str, Any]]:
    return [row for batch in work.run(table.to_batches(max_chunksize=size)) for row in batch.to_pylist()]


def regions_of(slices: Slices, time: int) -> tuple[int, ...]:
    """Which slices read a time."""
    return next(cells for end, cells in slices.regions() if end is None or time < end)


@given(long_streams(), st.integers(1, 6), st.booleans())
def test_slices_of_time(case: Case, count: int, together: bool) -> None:
    """Each match is found by the slice that it belongs to, and by no other; whether slices share a worker or not."""
    pattern, events, options = case
    times = sorted(ticks(e["ts"]) for e in events)
    slices = cut(times, count, count, reach_of([normalise(pattern)]))
    assert all(low < high for low, high in zip(slices.borders, slices.borders[1:], strict=False))
    work = task(pattern, options, cells={place: slices.span(place) for place in range(len(slices))})
    cells = [regions_of(slices, ticks(e["ts"])) for e in events]
    table = in_order(work, events, cells)
    parts = (
        [table]
        if together
        else [
            table.filter(pa.array([c == place for c in table[CELL].to_pylist()], pa.bool_()))
            for place in range(len(slices))
        ]
    )
    found = [row for part in parts for row in run(work, part, 3)]
    assert canonical(found) == canonical(
        match(pattern, pa.Table.from_pylist(events, schema(pattern)), **options).to_pylist()
    )


@given(patterns_with_streams(), st.integers(2, 3))
def test_shards_by_what_all_events_of_a_match_share(case: Case, shards: int) -> None:
    pattern, events, options = case
    keys = sorted(shared_attributes(normalise(pattern)))
    work = task(pattern, options)
    values = [tuple("NaN" if e[key] != e[key] else str(e[key]) for key in keys) for e in events]
    found: list[dict[str, Any]] = []
    for shard in range(shards):
        mine = [e for e, value in zip(events, values, strict=True) if sum(map(ord, "".join(value))) % shards == shard]
        found += run(work, in_order(work, mine), 2)
    assert canonical(found) == canonical(
        match(pattern, pa.Table.from_pylist(events, schema(pattern)), **options).to_pylist()
    )


def test_of_what_conditions_make_equal() -> None:
    def shared(text: str) -> set[str]:
        import cepheid

        return set(shared_attributes(normalise(cepheid.parse(text))))

    assert shared("PATTERN SEQ(A a, B b, C c) WHERE a.k = b.k AND b.k = c.k WITHIN 5") == {"k"}
    assert shared("PATTERN SEQ(A a, B b, C c) WHERE a.k = b.k WITHIN 5") == set()
    assert shared("PATTERN SEQ(A a, KL(B b)) WHERE a.k = b.k PARTITION BY x WITHIN 5") == {"k", "x"}
    assert shared("PATTERN KL(B b) WHERE b.k = 'p' WITHIN 5") == set()
    assert shared("PATTERN SEQ(A a, NOT(C c), B b) WHERE a.k = b.k WITHIN 5") == set()
    assert shared("PATTERN SEQ(A a, NOT(C c), B b) WHERE a.k = b.k AND c.k = b.k WITHIN 5") == {"k"}
    assert shared("PATTERN SEQ(A a, NOT(C c)) WHERE c.k = a.k WITHIN 5") == {"k"}
    assert shared("PATTERN SEQ(A a, OR(B b, C c)) WHERE a.k = b.k AND a.k = c.k AND a.x = b.x WITHIN 5") == {"k"}
    assert shared("PATTERN SEQ(A a, B b) USING skip_till_next WHERE a.k = b.k WITHIN 5") == set()
    assert shared("PATTERN SEQ(A a, B b) WHERE a.k = b.k WITHIN 5 events") == set()
