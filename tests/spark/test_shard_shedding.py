"""A shard that sheds: armed it changes nothing, under overload it drops what it may, and it can be lost at any moment."""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest

pytest.importorskip("pyspark.sql", reason="needs PySpark: pip install '.[spark]'")

import cepheid
from cepheid.engine.engine import Engine
from cepheid.shed.pace import Pace
from cepheid.shed.strategies import STRATEGIES, Strategy
from cepheid.spark import shard as shards
from cepheid.spark.pack import from_bytes, to_bytes
from cepheid.spark.part import Job
from cepheid.spark.record import Record
from cepheid.spark.shard import Shard

EVENTS = pa.schema({"ts": pa.int64(), "type": pa.string(), "x": pa.int64()})
TEXTS = (
    "NAME often PATTERN SEQ(A a, B b, C c) WHERE a.x < b.x AND b.x < c.x WITHIN 60 RETURN a.ts AS one, c.ts AS two",
    "NAME used PATTERN SEQ(A a, B b) USING skip_till_any CONSUME WITHIN 30 RETURN a.ts AS one, b.ts AS two",
    "NAME alarm PATTERN SEQ(B b, C c) WHERE b.x = c.x WITHIN 40 RETURN b.ts AS one, c.ts AS two NEVER SHED",
)
BATCH = 200


class Fixed(Pace):
    """Drops a share that is known beforehand, from a micro-batch on, in pieces of 50 events."""

    def __init__(self, ratio: float) -> None:
        super().__init__(1.0, 0.8)
        self._wanted = ratio

    def pieces(self, cut: float, events: int) -> Iterator[tuple[int, int]]:
        self.ratio = self._wanted
        yield from ((start, min(50, events - start)) for start in range(0, max(events, 1), 50))


class Store:
    """What a stateful operator keeps of a shard, and the shard itself."""

    def __init__(self) -> None:
        self.record: str | None = None
        self.log: dict[int, bytes] = {}
        self.kept: dict[str, bytes] = {}
        self.live: Shard | None = None
        self.rows: list[dict[str, Any]] = []
        self.counts: Counter[str] = Counter()
        self.batch = 0

    def push(self, job: Job, pace: Pace | None) -> None:
        if self.live is None and self.record is not None:
            record = Record.from_json(self.record)
            assert set(self.kept) == set(record.snapshots)
            log = [self.log[number] for number in range(record.first, record.next)]
            self.live = Shard.restored(job, record, log, self.kept)
        self.live = self.live or Shard(job)
        first = self.batch * BATCH
        self.batch += 1
        outcome = self.live.push(
            [to_bytes(made_events(first, BATCH))], first or None, str(self.batch), pace, time.time()
        )
        self.record = outcome.record
        if outcome.entry is not None:
            self.log[outcome.entry[0]] = outcome.entry[1]
        for number in outcome.dropped:
            del self.log[number]
        for name, value in outcome.snapshots.items():
            if value is None:
                del self.kept[name]
            else:
                self.kept[name] = value
        self.rows += [row for packed in outcome.matches for row in from_bytes(packed)[0].to_pylist()]
        self.counts.update(outcome.counts)


def made_events(first: int, count: int) -> pa.Table:
    times = range(first, first + count)
    return pa.table(
        [list(times), ["ABC"[t * 7919 % 11 % 3] for t in times], [t * t % 17 for t in times]], schema=EVENTS
    )


def job_of(shed: Strategy | None) -> Job:
    engine = Engine([cepheid.parse(text) for text in TEXTS], shed=shed)
    return Job(engine, EVENTS, engine.output_schema(EVENTS), 1)


def of(store: Store, name: str) -> Counter[tuple[int, int]]:
    return Counter((row["one"], row["two"]) for row in store.rows if row["pattern"] == name)


@pytest.fixture(scope="module")
def unshed() -> Store:
    store = Store()
    for _ in range(20):
        store.push(job_of(None), None)
    return store


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shards, "MOST_ENTRIES", 3)


@pytest.mark.parametrize("name", STRATEGIES)
def test_armed_changes_nothing(unshed: Store, name: str) -> None:
    store, job = Store(), job_of(STRATEGIES[name](latency_bound="1 hour", observations=500, weights={"used": 3}))
    pace = Pace(3600, 0.8)
    for number in range(20):
        if number % 6 == 5:
            store.live = None
        store.push(job, pace)
    for text in TEXTS:
        pattern = text.split()[1]
        assert of(store, pattern) == of(unshed, pattern) != Counter()
    assert not any(store.counts[name] for name in ("dropped events", "dropped pairs", "lost matches"))


@pytest.mark.parametrize("name", STRATEGIES)
def test_overload(unshed: Store, name: str) -> None:
    store, job = Store(), job_of(STRATEGIES[name](observations=500))
    for number in range(20):
        if number % 6 == 5:
            store.live = None
        store.push(job, Fixed(0.0 if number < 6 else 0.6))
    assert of(store, "alarm") == of(unshed, "alarm")
    assert not of(store, "often") - of(unshed, "often")  # nothing is made up, and nothing is told twice
    assert sum(of(store, "often").values()) < sum(of(unshed, "often").values())
    dropped = ("dropped events", "dropped pairs", "dropped partial matches")
    assert sum(store.counts[name] for name in dropped) > 0
    assert store.counts["lost matches"] > 0
    assert any(from_bytes(entry)[1].get("dropping") == "0.600" for entry in store.log.values())


def test_what_was_learned_survives() -> None:
    store, job = Store(), job_of(cepheid.HSpice(observations=500))
    for _ in range(10):
        store.push(job, Fixed(0.0))
    assert store.record is not None
    assert json.loads(store.record)["models"]
    store.live = None
    store.push(job, Fixed(0.5))
    assert store.live is not None
    assert all(part.session.shedding()["ready"] for part in store.live._parts)
    assert store.counts["dropped pairs"] > 0
    assert store.counts["dropped events"] == 0  # events are dropped at random only where nothing is known


def test_with_and_without_on_one_checkpoint(unshed: Store) -> None:
    store, armed = Store(), job_of(cepheid.CostAware(observations=500))
    for number in range(20):
        if number in (4, 10, 16):
            store.live = None
        sheds = number < 4 or 10 <= number < 16
        store.push(armed if sheds else job_of(None), Fixed(0.0) if sheds else None)
    for text in TEXTS:
        assert of(store, text.split()[1]) == of(unshed, text.split()[1])
    assert not any(name.startswith("model") for name in store.kept)
