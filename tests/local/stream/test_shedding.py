"""The runner with each strategy: nothing changes without an overload, and what must not be shed is not."""

from __future__ import annotations

import math
from typing import Any

import pyarrow as pa
import pytest

import cepheid
from cepheid.local.stream.queue import Chunk, EventQueue
from cepheid.local.stream.relief import LastResort

STRATEGIES = ["HSpice", "ESpice", "PSpice", "WeightedSampling", "CostAware"]
pytestmark = pytest.mark.skipif("HSpice" not in cepheid.__all__, reason="needs the strategies")

PATTERN = "NAME up PATTERN SEQ(A a, B b, C c) WHERE a.x < b.x AND b.x < c.x WITHIN 12 RETURN a.x AS x"
COUNT = 4_000
EVENTS = pa.table(
    {
        "ts": range(COUNT),
        "type": ["ABCD"[n * 7 % 11 % 4] for n in range(COUNT)],
        "x": [int(50 + 50 * math.sin(n * n)) for n in range(COUNT)],
    }
)


def rows(table: pa.Table) -> list[tuple[Any, ...]]:
    return sorted(tuple(row.values()) for row in table.to_pylist())


@pytest.mark.parametrize("name", STRATEGIES)
def test_armed_without_overload_is_exact(name: str) -> None:
    strategy = getattr(cepheid, name)(latency_bound="30 seconds")
    result = cepheid.run(PATTERN, cepheid.Replay(EVENTS, rate=8_000), shed=strategy)
    assert rows(result.matches) == rows(cepheid.match(PATTERN, EVENTS))
    assert result.dropped_from_queue == 0
    assert result.metrics["ratio"].to_pylist() == [0.0] * result.metrics.num_rows
    assert result.metrics["estimated_recall"].to_pylist()[-1] == 1.0
    assert result.latency_bound == 30.0


@pytest.mark.parametrize("name", STRATEGIES)
def test_under_overload_what_comes_out_is_right(name: str) -> None:
    """All at once with a bound that cannot be kept: much is dropped, and what is found is among the true matches."""
    strategy = getattr(cepheid, name)(latency_bound="20 ms")
    result = cepheid.run(PATTERN, cepheid.Replay(EVENTS, rate=1e7), shed=strategy)
    assert set(rows(result.matches)) <= set(rows(cepheid.match(PATTERN, EVENTS)))


def test_a_critical_pattern_loses_nothing() -> None:
    """Not even by the last resort, and although its events are late."""
    critical = "NAME alarm PATTERN SEQ(A a, B b) WHERE a.x = b.x WITHIN 5 RETURN a.ts AS at NEVER SHED"
    both = [critical, PATTERN]
    result = cepheid.run(both, cepheid.Replay(EVENTS, rate=1e7), shed=cepheid.HSpice(latency_bound="20 ms"))
    assert result.matches is not None
    found = [row["at"] for row in result.matches.to_pylist() if row["pattern"] == "alarm"]
    wanted = [row["at"] for row in cepheid.match(both, EVENTS).to_pylist() if row["pattern"] == "alarm"]
    assert sorted(found) == sorted(wanted)


@pytest.mark.parametrize("pattern", ["SEQ(A a, B b) USING strict WITHIN 50", "SEQ(A a, B b) WITHIN 2 events"])
def test_where_any_event_matters_to_a_critical_pattern_all_stay(pattern: str) -> None:
    text = f"NAME alarm PATTERN {pattern} RETURN a.ts AS at NEVER SHED"
    result = cepheid.run(text, cepheid.Replay(EVENTS, rate=1e7), shed=cepheid.HSpice(latency_bound="20 ms"))
    assert result.matches is not None
    assert rows(result.matches) == rows(cepheid.match(text, EVENTS))
    assert result.dropped_from_queue == 0


def test_events_that_stay_are_not_looked_at_again() -> None:
    """Else a long queue of them would keep the engine from its work."""
    queue, resort = EventQueue(None), LastResort(1.0, 0.8, "type", ["A"])
    for number in range(100):
        queue.put(Chunk(pa.table({"ts": [number, number], "type": ["A", "B"]}), came=number / 1000))
    assert resort.relieve(queue, 2.0, 1000.0) == 100
    assert queue.waited(2.0) == 2.0
    assert queue.waited(2.0, at_stake=True) == 0.0
    untouched = queue.take(10)
    assert all(chunk.stays for chunk in untouched)
    queue.put(Chunk(pa.table({"ts": [100, 100], "type": ["A", "B"]}), came=2.0))
    assert resort.relieve(queue, 2.1, 1000.0) == 0  # what can be left out has just come
    assert resort.relieve(queue, 4.0, 1000.0) == 1
    assert [chunk.events["type"].to_pylist() for chunk in queue.take(1000)] == [["A"]] * 91


def test_a_bound_that_cannot_be_kept_is_refused() -> None:
    with pytest.raises(ValueError, match="20 milliseconds or more"):
        cepheid.run(PATTERN, cepheid.Replay(EVENTS, rate=8_000), shed=cepheid.HSpice(latency_bound="5 ms"))
