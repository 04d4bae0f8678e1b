"""Of plans that share work, those are changed that make less work together, by enough to be worth it."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

import cepheid
from cepheid.adapt.policies import Unconditional
from tests.adapt.test_shared import drifting


def alike(table: pa.Table, **options: Any) -> tuple[int, dict[str, Any]]:
    """Patterns that begin in the same way, and are planned each by itself; how many matches they have."""
    texts = [
        f"NAME p{i} PATTERN SEQ(A a, B b, C c, D d) WHERE a.x + 0.3 < b.x AND b.x + 0.2 < c.x AND c.x < d.x + 0.1 "
        f"AND d.x > {0.02 * i} WITHIN {200 - i}"
        for i in range(8)
    ]
    session = cepheid.Engine([cepheid.parse(text) for text in texts], planner="greedy", **options).open()
    found = [session.push(table.slice(i, 100), watermark=i).num_rows for i in range(0, len(table), 100)]
    return sum(found) + session.close().num_rows, session.report()


def test_what_each_would_give_up_but_all_share_stays() -> None:
    """Alone, each makes less work beginning with the rare d, which no two have in common."""
    table = drifting((1, 1, 1, 0.05), (1, 1, 1, 0.05), (1, 1, 1, 0.05))
    static, before = alike(table)
    for policy in (True, Unconditional()):
        found, report = alike(table, adapt=policy, check_every=1500)
        assert found == static
        assert report["candidates"] < 1.05 * before["candidates"], policy


@pytest.mark.parametrize("migrate", ["rebuild", "parallel"])
def test_what_all_share_is_given_up_together_where_it_has_become_costly(migrate: str) -> None:
    table = drifting((0.02, 1, 1, 1), (1, 1, 1, 0.004), (1, 1, 1, 0.004), (1, 1, 1, 0.004))
    static, before = alike(table)
    found, report = alike(table, adapt=True, check_every=500, migrate=migrate)
    assert found == static
    changes = report["adaptation"]["changes"]
    assert {change["pattern"] for change in changes} == {f"p{i}" for i in range(8)}
    assert report["candidates"] < 0.8 * before["candidates"]


@pytest.mark.parametrize("policy", [True, Unconditional(cautious=False)])
def test_those_that_leave_by_a_change_in_parallel_are_judged_no_more_with_the_others(policy: Any) -> None:
    text = "NAME {0} PATTERN SEQ(A a, B b, {0} z) WHERE a.x + 0.3 < b.x AND b.x + {1} < z.x WITHIN 200"
    texts = [text.format("C", 0.1), text.format("D", 0.9)]
    table = drifting((1, 1, 1, 0.02), (1, 1, 1, 1), (1, 1, 1, 1))
    matches = []
    for options in ({}, {"adapt": policy, "check_every": 500, "migrate": "parallel"}):
        engine = cepheid.Engine([cepheid.parse(text) for text in texts], planner="greedy", **options)
        session, found = engine.open(), 0
        for start in range(0, len(table), 100):
            found += session.push(table.slice(start, 100), watermark=start).num_rows
            if options and start % 1100 == 0:
                session = engine.restore(session.snapshot())
        report = session.report()
        matches.append(found + session.close().num_rows)
    assert matches[0] == matches[1]
    assert "D" in {change["pattern"] for change in report["adaptation"]["changes"]}
