"""Of plans that share work, those are changed that make less work together, by enough to be worth it."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

import cepheid
from cepheid.adapt import looking
from cepheid.adapt.policies import Invariant, Unconditional
from tests.adapt.test_shared import drifting


def alike(table: pa.Table, **options: Any) -> tuple[int, dict[str, Any]]:
    """Patterns that begin in the same way; how many matches they have."""
    texts = [
        f"NAME p{i} PATTERN SEQ(A a, B b, C c, D d) WHERE a.x + 0.3 < b.x AND b.x + 0.2 < c.x AND c.x < d.x + 0.1 "
        f"AND d.x > {0.02 * i} WITHIN {200 - i}"
        for i in range(8)
    ]
    session = cepheid.Engine([cepheid.parse(text) for text in texts], **options).open()
    found = [session.push(table.slice(i, 100), watermark=i).num_rows for i in range(0, len(table), 100)]
    return sum(found) + session.close().num_rows, session.report()


def test_what_each_would_give_up_but_all_share_stays() -> None:
    """Alone, each makes less work beginning with the rare d, which no two have in common."""
    table = drifting((1, 1, 1, 0.05), (1, 1, 1, 0.05), (1, 1, 1, 0.05))
    static, before = alike(table, planner="greedy")
    for policy in (True, Unconditional()):
        found, report = alike(table, planner="greedy", adapt=policy, check_every=1500)
        assert found == static
        assert report["candidates"] < 1.05 * before["candidates"], policy


@pytest.mark.parametrize("migrate", ["rebuild", "parallel"])
def test_what_all_share_is_given_up_together_where_it_has_become_costly(migrate: str) -> None:
    table = drifting((0.02, 1, 1, 1), (1, 1, 1, 0.004), (1, 1, 1, 0.004), (1, 1, 1, 0.004))
    static, before = alike(table, planner="greedy")
    found, report = alike(table, planner="greedy", adapt=True, check_every=500, migrate=migrate)
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


@pytest.mark.parametrize(("rare", "every"), [(0.05, 500), (0.05, 1500), (0.1, 1000)])
def test_a_plan_for_all_is_not_given_up_for_what_one_look_sees(rare: float, every: int) -> None:
    """A window has a few of the rare d, and one look sees none of them: a plan that begins with d seems to cost nothing."""
    table = drifting((1, 1, 1, rare), (1, 1, 1, rare), (1, 1, 1, rare))
    sharing = cepheid.Sharing(steps=30)
    static, before = alike(table, share=sharing)
    found, report = alike(table, share=sharing, adapt=True, check_every=every)
    assert found == static
    assert report["candidates"] < 1.05 * before["candidates"]


def test_what_was_in_doubt_is_asked_for_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Who asked for a plan that is refused at one look asks at the next, too."""
    monkeypatch.setattr(looking, "FIRST", 1.0)
    table = drifting((1, 1, 1, 0.006)).slice(0, 1_100)
    _, report = alike(table, share=cepheid.Sharing(steps=30), adapt=Invariant(distance=1e6), check_every=500)
    asked = {name: report["adaptation"][name] for name in ("checks", "replanned", "changed")}
    assert asked == {"checks": 2, "replanned": 2, "changed": 0}
