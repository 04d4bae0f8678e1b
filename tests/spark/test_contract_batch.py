"""Torn apart in any way that a job may choose, the events give the matches of the whole, each once."""

from __future__ import annotations

import datetime as dt
import random
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cepheid.engine.engine import Engine
from cepheid.engine.ingest import EventColumns
from cepheid.language import syntax as s
from cepheid.language.pattern import with_names
from cepheid.local.match import match
from cepheid.pattern.normalise import normalise
from tests.contracts.test_engine_is_exact import Case, canonical, schema
from tests.spark.long import ALL
from tests.strategies import patterns, patterns_with_streams, streams

pytest.importorskip("pyspark.sql", reason="needs PySpark: pip install '.[spark]'")

from cepheid.spark.columns import arrow_schema, needed_columns, spark_schema
from cepheid.spark.groups import shared_attributes
from cepheid.spark.routes import EVERYTHING, Route
from cepheid.spark.sender import Lane, Sender
from cepheid.spark.slices import can_be_sliced, cut, reach_of
from cepheid.spark.task import Receiver, Task
from cepheid.spark.type_numbers import MOST_NUMBERED, types_by_number

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


def matched(case: Case, route: Route, hashes: list[int] | None, size: int, seed: int) -> list[dict[str, Any]]:
    """What a job does, without Spark: rows in pieces to parcels, parcels by their part of the work, parts to matches."""
    pattern, events, options = case
    columns = schema(pattern)
    engine = Engine(with_names([pattern]), EventColumns(tie_breaker=options["tie_breaker"]))
    needed = needed_columns(engine, [normalise(pattern)], columns)
    some = pa.schema([columns.field(name) for name in needed])
    table = pa.Table.from_pylist(events, columns).select(needed)
    if hashes is not None:
        table = table.append_column("hash", pa.array(hashes, pa.int64()))
    parts = range(len(route.spans))
    addresses = tuple(7 * part for part in parts)
    lane = Lane(
        tuple(range(len(needed))),
        some,
        needed.index("ts"),
        None if hashes is None else len(needed),
        None,
        route,
        addresses,
    )
    types = types_by_number(engine, [normalise(pattern)], columns)
    stamped = seed % 2 == 0
    if types:
        place = needed.index("type")
        table = table.filter(pc.is_in(table["type"], pa.array(types)))  # as Spark does, ahead of it
        lane = lane.with_types(place, types, stamped)
        numbers = pc.index_in(table["type"], pa.array(types)).cast(pa.int8())
        table = table.set_column(place, "type", _stamps(table["ts"], numbers) if stamped else numbers)
    pieces = [table.slice(start, size).to_batches() for start in range(0, max(len(table), 1), size)]
    parcels = [parcel for piece in pieces for batch in Sender((lane,)).run(piece) for parcel in batch.to_pylist()]
    random.Random(seed).shuffle(parcels)
    task = Task(engine, lane.events, arrow_schema(spark_schema(engine.output_schema(columns))))
    receiver = Receiver({address: (task, span) for address, span in zip(addresses, route.spans, strict=True)})
    found = []
    # Two of the parts share a worker.
    for mine in [addresses[:2], *((address,) for address in addresses[2:])]:
        rows = sorted((parcel for parcel in parcels if parcel["part"] in mine), key=lambda parcel: parcel["first"])
        sent = pa.RecordBatch.from_pylist(
            rows, pa.schema({"part": pa.int64(), "first": pa.int64(), "events": pa.binary()})
        )
        found += [row for batch in receiver.run([sent]) for row in batch.to_pylist()]
    return found


def _stamps(times: pa.ChunkedArray, numbers: pa.ChunkedArray) -> pa.ChunkedArray:
    return pc.add(pc.multiply(times.cast(pa.int64()), MOST_NUMBERED), numbers.cast(pa.int64()))


def whole(case: Case) -> list[str]:
    pattern, events, options = case
    return canonical(match(pattern, pa.Table.from_pylist(events, schema(pattern)), **options).to_pylist())


@settings(max_examples=300 if ALL else 60)
@given(long_streams(), st.integers(1, 6), st.integers(1, 8), st.integers(0, 3))
def test_slices_of_time(case: Case, count: int, size: int, seed: int) -> None:
    """Each match is found by the slice that it belongs to, and by no other."""
    pattern, events, _ = case
    times = sorted(ticks(e["ts"]) for e in events)
    slices = cut(times, count, count, reach_of([normalise(pattern)]))
    assert sorted(set(slices.borders)) == list(slices.borders)
    route = Route(False, slices={EVERYTHING: slices}) if len(slices) > 1 else Route(False)
    assert canonical(matched(case, route, None, size, seed)) == whole(case)


@settings(max_examples=300 if ALL else 60)
@given(patterns_with_streams(), st.integers(1, 3), st.integers(1, 3), st.booleans(), st.integers(1, 8))
def test_shards_by_what_all_events_of_a_match_share(
    case: Case, shards: int, count: int, heavy: bool, size: int
) -> None:
    """The events of a key are together; those of a key with many rows may be sliced."""
    pattern, events, _ = case
    normal = normalise(pattern)
    keys = sorted(shared_attributes(normal))
    values = [tuple("NaN" if e[key] != e[key] else str(e[key]) for key in keys) for e in events]
    numbers = {value: place - 2 for place, value in enumerate(sorted(set(values)))}
    hashes = [numbers[value] for value in values]
    slices = {}
    if heavy and can_be_sliced(normal):
        for key in sorted(set(hashes))[:2]:
            times = sorted(ticks(e["ts"]) for e, mine in zip(events, hashes, strict=True) if mine == key)
            slices[key] = cut(times, count, count, reach_of([normal]))
    route = Route(True, shards, {key: some for key, some in slices.items() if len(some) > 1})
    assert canonical(matched(case, route, hashes, size, 0)) == whole(case)


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
