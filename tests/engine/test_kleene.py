"""Sets of KL variables that cannot be completed are not made."""

from __future__ import annotations

import pyarrow as pa
import pytest

import cepheid
from tests import oracle
from tests.contracts.test_engine_is_exact import canonical

EVENTS = [{"ts": i, "type": "B", "x": (i * 7) % 13 - 3, "y": i * 0.1} for i in range(11)]


def sets_made(condition: str) -> tuple[int, int]:
    """How many sets were made, and how many of them match."""
    pattern = cepheid.parse(f"PATTERN KL(B b) WHERE {condition} WITHIN 100")
    session = cepheid.Engine([pattern]).open()
    found = session.push(pa.Table.from_pylist(EVENTS)).to_pylist() + session.close().to_pylist()
    assert canonical(found) == canonical(oracle.rows(pattern, EVENTS))
    [part] = [p for p in session.report()["patterns"][0]["branches"][0] if p["kind"] == "sets"]
    return dict(part["steps"])["sets"], len(found)


@pytest.mark.parametrize(
    "condition",
    ["COUNT(b) <= 2", "2.5 > COUNT(b.x)", "MAX(b.x) < 2.5", "MIN(b.x) > 3.5", "SUM(b.x) < -2.5", "SUM(b.x) >= 30",
     "SUM(b.y) > 5.25", "COUNT(b) >= 10", "MAX(b.y) >= 0.95", "SUM(b.x) = 30", "MIN(b.y) <= 0.05"],
)  # fmt: skip
def test_sets_outside_a_bound_are_not_made(condition: str) -> None:
    everything, _ = sets_made("AVG(b.x) < 1000")
    made, matching = sets_made(condition)
    assert 0 < matching == made < everything == 2**11 - 1


def test_a_bound_cuts_the_search_short() -> None:
    """Among 60 events there are more sets than could ever be looked at."""
    events = [{"ts": i, "type": "B", "x": i % 5 + 1} for i in range(60)]
    assert cepheid.match("PATTERN KL(B b) WHERE SUM(b.x) < 4 WITHIN 100", events).num_rows == 466
    assert cepheid.match("PATTERN KL(B b) WHERE COUNT(b) >= 59 WITHIN 100", events).num_rows == 61


def test_a_bound_may_come_from_an_event_that_the_set_is_added_to() -> None:
    pattern = cepheid.parse("PATTERN SEQ(A a, KL(B b), C c) WHERE SUM(b.x) < a.x AND MAX(b.x) < c.x WITHIN 100")
    events = [{"ts": -1, "type": "A", "x": 4, "y": 0.0}, *EVENTS, {"ts": 20, "type": "C", "x": 5, "y": 0.0}]
    found = cepheid.match(pattern, events)
    assert found.num_rows > 0
    assert canonical(found.to_pylist()) == canonical(oracle.rows(pattern, events))
