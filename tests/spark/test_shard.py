"""A shard that is lost at any moment and made again from what it wrote down goes on as if nothing had happened."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from dataclasses import replace
from typing import Any
from unittest import mock

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

pytest.importorskip("pyspark.sql", reason="needs PySpark: pip install '.[spark]'")

import cepheid
from cepheid.engine.engine import Engine
from cepheid.engine.ingest import EventColumns
from cepheid.language.pattern import Pattern, with_names
from cepheid.spark import shard as shards
from cepheid.spark.pack import from_bytes, to_bytes
from cepheid.spark.part import Job
from cepheid.spark.record import Record, StateError
from cepheid.spark.shard import Shard
from cepheid.spark.task import UserFunction
from tests.contracts.test_engine_is_exact import Case, canonical, expected, schema
from tests.strategies import patterns, patterns_with_streams

END = 10**15
EVENTS = pa.schema({"ts": pa.int64(), "type": pa.string(), "x": pa.int64(), "k": pa.string()})


class Store:
    """What a stateful operator keeps of a shard, and the shard itself, which may be lost."""

    def __init__(self) -> None:
        self.record: str | None = None
        self.log: dict[int, bytes] = {}
        self.snapshots: dict[str, bytes] = {}
        self.live: Shard | None = None
        self.rows: list[dict[str, Any]] = []
        self.late: list[dict[str, Any]] = []
        self.batch = 0

    def push(self, job: Job, events: pa.Table, watermark: int | None) -> None:
        if self.live is None and self.record is not None:
            record = Record.from_json(self.record)
            log = [self.log[number] for number in range(record.first, record.next)]
            assert set(self.snapshots) == set(record.snapshots)
            self.live = Shard.restored(job, record, log, self.snapshots)
        self.live = self.live or Shard(job)
        self.batch += 1
        outcome = self.live.push([to_bytes(events)] if events.num_rows else [], watermark, str(self.batch))
        self.record = outcome.record
        if outcome.entry is not None:
            self.log[outcome.entry[0]] = outcome.entry[1]
        for number in outcome.dropped:
            del self.log[number]
        for name, snapshot in outcome.snapshots.items():
            if snapshot is None:
                del self.snapshots[name]
            else:
                self.snapshots[name] = snapshot
        self.rows += [row for packed in outcome.matches for row in from_bytes(packed)[0].to_pylist()]
        assert outcome.counts["kept bytes"] == sum(map(len, [*self.log.values(), *self.snapshots.values()]))
        if outcome.late is not None:
            self.late += from_bytes(outcome.late)[0].to_pylist()

    def lose(self) -> None:
        self.live = None


def job_of(found: Sequence[Pattern], events: pa.Schema, columns: EventColumns | None = None, shards: int = 4) -> Job:
    engine = Engine(with_names(found), columns or EventColumns())
    return Job(engine, events, engine.output_schema(events), shards)


def milliseconds(time: Any) -> int:
    if isinstance(time, dt.datetime):
        return int((time - dt.datetime(1970, 1, 1)) / dt.timedelta(milliseconds=1))
    return int(time)


@settings(max_examples=settings().max_examples // 3)
@given(patterns_with_streams(patterns()), st.data())
def test_losing_it_at_any_moment_changes_nothing(case: Case, data: st.DataObject) -> None:
    pattern, events, options = case
    table = pa.Table.from_pylist(events, schema(pattern))
    job = job_of([pattern], table.schema, EventColumns(tie_breaker=options["tie_breaker"]))
    order: list[int] = data.draw(st.permutations(range(len(events))))
    store = Store()
    # With so little room for the log, snapshots are written all the time.
    with mock.patch.object(shards, "MOST_ENTRIES", data.draw(st.sampled_from([0, 1, 64]))):
        while order:
            size: int = data.draw(st.sampled_from([3, 1, 2, 0]))
            behind = min(milliseconds(events[place]["ts"]) for place in order)
            watermark = behind if data.draw(st.booleans()) else None
            chosen, order = order[:size], order[size:]
            if data.draw(st.booleans()):
                store.lose()
            store.push(job, table.take(pa.array(chosen, pa.int64())), watermark)
        store.lose()
        store.push(job, table.slice(0, 0), END)
    assert store.live is not None
    # Where events are counted, no watermark says that no more will come.
    store.rows += [row for part in store.live._parts for row in part.session.close().to_pylist()]
    assert canonical(store.rows) == expected(case)
    assert not store.late
    if all(part.reach is not None for part in store.live._parts):
        assert not store.log


FOLLOWED = "NAME followed PATTERN SEQ(A a, B b) WITHIN 10"
ALONE = "NAME alone PATTERN SEQ(A a, NOT(C c), B b) WITHIN 10"
USED = "NAME used PATTERN SEQ(A a, B b) USING skip_till_any CONSUME WITHIN 10"
LAST = 160
NEAR = "NAME near PATTERN SEQ(A a, B b) WITHIN 3 events"


def some_events(times: Sequence[int]) -> pa.Table:
    return pa.Table.from_pylist(
        [{"ts": time, "type": "ABC"[time % 7 % 3], "x": time % 5, "k": "pq"[time % 2]} for time in times], EVENTS
    )


def run(texts: Sequence[str], store: Store, start: int, end: int) -> None:
    job = job_of([cepheid.parse(text) for text in texts], EVENTS)
    for time in range(start, end, 2):
        store.push(job, some_events([time, time + 1]), time - 1)


@pytest.mark.parametrize("small", [True, False])
def test_patterns_come_and_go_between_runs(monkeypatch: pytest.MonkeyPatch, small: bool) -> None:
    if small:
        monkeypatch.setattr(shards, "MOST_ENTRIES", 2)
    store = Store()
    run([FOLLOWED, ALONE, USED], store, 0, 40)
    store.lose()
    run([ALONE, NEAR, USED], store, 40, 80)  # followed goes, near comes
    store.lose()
    run([FOLLOWED, USED, NEAR], store, 80, 120)  # alone goes, followed comes back
    store.lose()
    run([FOLLOWED, USED, NEAR], store, 120, LAST)
    job = job_of([cepheid.parse(text) for text in (FOLLOWED, USED, NEAR)], EVENTS)
    store.push(job, EVENTS.empty_table(), END)

    def matched(text: str, start: int, end: int) -> list[dict[str, Any]]:
        return cepheid.match(text, some_events(range(start, end))).to_pylist()

    found: dict[str, list[dict[str, Any]]] = {}
    for row in store.rows:
        found.setdefault(row["pattern"], []).append({k: v for k, v in row.items() if v is not None})
    assert canonical(found["used"]) == canonical(matched(USED, 0, LAST))
    assert canonical(found["near"]) == canonical(matched(NEAR, 40, LAST))
    assert canonical(found["followed"]) == canonical(matched(FOLLOWED, 0, 40) + matched(FOLLOWED, 80, LAST))
    # The last watermark that this one saw is 77: what was not decided then is not reported.
    decided = [row for row in matched(ALONE, 0, 80) if row["end"] < 77]
    assert canonical(found["alone"]) == canonical(decided)


def test_added_patterns_join_the_others_when_the_log_is_all_theirs() -> None:
    store = Store()
    run([FOLLOWED], store, 0, 40)
    store.lose()
    run([FOLLOWED, ALONE], store, 40, 42)
    assert store.live is not None
    assert len(store.live._parts) == 2
    run([FOLLOWED, ALONE], store, 42, 100)
    store.lose()
    run([FOLLOWED, ALONE], store, 100, 102)
    assert len(store.live._parts) == 1


def test_the_log_is_no_longer_than_the_window() -> None:
    store = Store()
    lengths = []
    for start in range(0, 400, 20):
        run([FOLLOWED, ALONE], store, start, start + 20)
        lengths.append(len(store.log))
    assert max(lengths) == lengths[2] <= 13


@pytest.mark.parametrize(
    ("job", "said"),
    [
        (job_of([cepheid.parse(FOLLOWED)], EVENTS, shards=8), "pass shards=4"),
        (job_of([cepheid.parse(FOLLOWED)], EVENTS, EventColumns(tie_breaker="x")), "were ts, type, None, and now are ts, type, x"),
        (job_of([cepheid.parse(FOLLOWED)], EVENTS.set(2, pa.field("x", pa.float64()))), "'x' is double, and there it is int64"),
        (job_of([cepheid.parse(FOLLOWED)], EVENTS.append(pa.field("y", pa.int8()))), "they have no such column in the events .* for followed"),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_refused(job: Job, said: str) -> None:
    store = Store()
    run([FOLLOWED], store, 0, 10)
    store.lose()
    with pytest.raises(StateError, match=said):
        store.push(job, job.events.empty_table(), None)


def test_a_column_that_only_other_patterns_need_may_come() -> None:
    store = Store()
    short = "NAME short PATTERN SEQ(A a, B b) WITHIN 10 RETURN a.ts AS at"
    first = job_of([cepheid.parse(short)], pa.schema({"ts": pa.int64(), "type": pa.string()}))
    store.push(first, some_events(range(20)).select(["ts", "type"]), None)
    store.lose()
    more = "NAME more PATTERN SEQ(A a, B b) WITHIN 10 RETURN b.x AS x"
    second = job_of(
        [cepheid.parse(short), cepheid.parse(more)], pa.schema({"ts": pa.int64(), "type": pa.string(), "x": pa.int64()})
    )
    store.push(second, some_events(range(20, 40)).select(["ts", "type", "x"]), 19)
    wanted = (
        cepheid.match(short, some_events(range(40))).to_pylist()
        + cepheid.match(more, some_events(range(20, 40))).to_pylist()
    )
    assert canonical([{k: v for k, v in row.items() if v is not None} for row in store.rows]) == canonical(wanted)


def test_late_events_are_set_aside() -> None:
    store = Store()
    job = job_of([cepheid.parse(FOLLOWED)], EVENTS)
    store.push(job, some_events([1, 8]), None)
    store.push(job, some_events([3, 4, 5, 6]), 5)
    assert [row["ts"] for row in store.late] == [3, 4]


def test_a_state_of_another_format_is_refused() -> None:
    with pytest.raises(StateError, match="another version of Cepheid"):
        Record.from_json('{"format": 99}')


def test_each_query_has_functions_of_its_own() -> None:
    cepheid.register_function("at_least", lambda x, y: y - x >= 1, returns="boolean")
    pattern = cepheid.parse("PATTERN SEQ(A a, B b) WHERE at_least(a.x, b.x) WITHIN 10 RETURN b.x AS y")
    stores = [(Store(), replace(job_of([pattern], EVENTS), functions=functions_of(least))) for least in (1, 3)]
    events = pa.Table.from_pylist([{"ts": 1, "type": "A", "x": 0, "k": "p"}], EVENTS)
    for store, job in stores:
        store.push(job, events, None)
    events = pa.Table.from_pylist([{"ts": 2 + x, "type": "B", "x": x, "k": "p"} for x in (1, 4)], EVENTS)
    for store, job in stores:
        store.push(job, events, None)
    assert [[row["y"] for row in store.rows] for store, _ in stores] == [[1, 4], [4]]


def functions_of(least: int) -> tuple[UserFunction, ...]:
    return (UserFunction("at_least", lambda x, y: y - x >= least, "boolean"),)
