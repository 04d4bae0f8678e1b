"""The runner with each strategy: nothing changes without an overload, and what must not be shed is not."""

from __future__ import annotations

import math
from typing import Any

import pyarrow as pa
import pytest

import cepheid

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
