"""Patterns that share work follow the data together."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import cepheid
from cepheid.adapt import worth
from cepheid.adapt.judged import Judged, cost, expected
from cepheid.adapt.policies import Invariant, Policy, Unconditional
from cepheid.adapt.record import Decision
from cepheid.adapt.together import Since, Together
from cepheid.pattern.normal import Branch
from cepheid.plan.cardinality import Cardinality
from cepheid.plan.tree import chain
from cepheid.stats.estimates import Estimates

PATTERNS = [
    "NAME one PATTERN SEQ(A a, B b, C c) WHERE a.x < b.x AND b.x < c.x WITHIN 120 RETURN a.ts AS x, c.ts AS y",
    "NAME two PATTERN SEQ(A a, B b, C c, D d) WHERE a.x < b.x AND b.x < c.x WITHIN 90 RETURN a.ts AS x, d.ts AS y",
    "NAME three PATTERN AND(B p, C q) WHERE p.x < q.x WITHIN 60 RETURN p.ts AS x, q.ts AS y",
]


def drifting(*shares: tuple[float, ...]) -> pa.Table:
    rng = np.random.default_rng(3)
    kinds = np.concatenate([rng.choice(list("ABCD"), 3000, p=np.array(part) / sum(part)) for part in shares])
    return pa.table({"ts": np.arange(len(kinds)), "type": kinds, "x": rng.random(len(kinds))})


def run(table: pa.Table, **options: Any) -> tuple[dict[str, int], dict[str, Any]]:
    session = cepheid.Engine([cepheid.parse(text) for text in PATTERNS], **options).open()
    found = [session.push(table.slice(start, 100), watermark=start) for start in range(0, len(table), 100)]
    names = pa.concat_tables([*found, session.close()])["pattern"].value_counts().to_pylist()
    return {row["values"]: row["counts"] for row in names}, session.report()


@pytest.mark.parametrize("policy", [Unconditional(), Invariant()])
def test_they_are_planned_again_and_lose_nothing(policy: Policy) -> None:
    table = drifting((1, 1, 0.02, 1), (0.02, 1, 1, 1), (1, 0.02, 1, 1))
    alone, _ = run(table, share="none")
    sharing = cepheid.Sharing(steps=30)
    static, _ = run(table, share=sharing)
    found, report = run(table, share=sharing, adapt=policy, check_every=500)
    assert found == static == alone
    changes = report["adaptation"]["changes"]
    assert {change["pattern"] for change in changes} <= {"one", "two", "three"}
    assert len(changes) >= 2
    assert all(change["old"] != change["new"] and change["estimated_gain"] > 0 for change in changes)
    last = [change["new"] for change in changes if change["pattern"] == "one"][-1]
    assert "(a ⋈ b)" in last or "(b ⋈ c)" in last, "in the end b is rare"


def test_where_nothing_changes_no_plan_does() -> None:
    _, report = run(drifting((1, 1, 0.1, 1)), share=cepheid.Sharing(steps=30), adapt=Invariant(distance=0.3))
    assert len(report["adaptation"]["changes"]) <= len(PATTERNS)


def test_what_a_change_brought_is_seen_and_learned() -> None:
    """Of all together: a plan for all is what was asked for."""
    table = drifting((1, 1, 0.02, 1), (0.02, 1, 1, 1), (1, 1, 0.02, 1), (0.02, 1, 1, 1))
    engine = cepheid.Engine(
        [cepheid.parse(text) for text in PATTERNS], share=cepheid.Sharing(steps=30), adapt=True, check_every=500
    )
    session = engine.open()
    for start in range(0, len(table), 100):
        session.push(table.slice(start, 100), watermark=start)
    changes = session.report()["adaptation"]["changes"]
    first, last = changes[0]["events"], changes[-1]["events"]
    judged = [change for change in changes if first < change["events"] < min(last, len(table) - 500)]
    assert judged, "at the first look the windows have just filled up"
    assert all(isinstance(change["observed_gain"], float) for change in judged)
    at_once = {change["events"]: change["observed_gain"] for change in judged}
    assert all(change["observed_gain"] == at_once[change["events"]] for change in judged)


def test_what_brought_little_is_learned(monkeypatch: pytest.MonkeyPatch) -> None:
    """A change whose gain is seen to be little makes its comparison wait for more."""
    for gain, learned in ((0.0, True), (0.1, False)):
        monkeypatch.setattr(
            Judged, "judge", lambda self, work, looks, gain=gain: [w.learn(gain) for _, w in self.asked]
        )
        table = drifting((1, 1, 0.02, 1), (0.02, 1, 1, 1))
        engine = cepheid.Engine(
            [cepheid.parse(text) for text in PATTERNS], share=cepheid.Sharing(steps=30), adapt=True, check_every=500
        )
        session = engine.open()
        for start in range(0, len(table), 100):
            session.push(table.slice(start, 100), watermark=start)
        assert session._follower is not None
        assert any(session._follower._memories.values()) == learned


def test_the_gain_of_plans_that_stay_as_they_are_is_none() -> None:
    """Ten times as many events make more work under any plan; what was expected of the old ones says how much."""
    branches = [cepheid.normalise(cepheid.parse(text)).branches[0] for text in PATTERNS[:2]]
    plans = {branch: chain([v.name for v in branch.variables]) for branch in branches}

    def look(branch: Branch, count: float) -> Cardinality:
        return expected(branch, Estimates(dict.fromkeys(branch.names, count)))

    def since(events: int, work: int, count: float) -> Since:
        costs = {branch: cost(plan, look(branch, count)) for branch, plan in plans.items()}
        return Since(events, work, dict.fromkeys(branches, work // 2), costs)

    together = Together(since(1_000, 10_000, 10.0))
    decision = Decision(2_000, 0, "one", "a reason", "old", "new", 0.5)
    now = since(2_000, 20_000, 10.0)
    together.changed([decision], [], plans, now)
    assert decision.observed_gain is None
    rose = sum(cost(plan, look(b, 100.0)) / now.costs[b] for b, plan in plans.items()) / 2
    together.last = now
    later = since(3_000, 20_000 + round(10_000 * (1 + rose) / 2), 100.0)
    together.judge(later, {branch: look(branch, 100.0) for branch in branches})
    assert decision.observed_gain == pytest.approx(0.0, abs=0.001)
    assert together.judged is None


def test_who_did_not_ask_is_told_who_did() -> None:
    table = drifting((1, 1, 0.02, 1), (0.02, 1, 1, 1), (1, 0.02, 1, 1), (1, 1, 0.02, 0.1))
    _, report = run(table, share=cepheid.Sharing(steps=30), adapt=Invariant(), check_every=250)
    changes = report["adaptation"]["changes"]
    told = [change for change in changes if change["reason"].startswith("planned anew together with ")]
    assert told
    for change in told:
        others = [c for c in changes if c["events"] == change["events"] and c["pattern"] != change["pattern"]]
        who, reason = change["reason"].removeprefix("planned anew together with ").split(", because ")
        assert who.split(" and ")[0] in {"one", "two", "three"} - {change["pattern"]}
        assert all(reason == c["reason"] for c in others if c["pattern"] == who)


def test_without_caution_what_is_better_now_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worth, "WORTH", 1e9)
    table = drifting((1, 1, 0.02, 1), (0.02, 1, 1, 1))
    options: dict[str, Any] = {"share": cepheid.Sharing(steps=30), "check_every": 500}
    for cautious in (True, False):
        _, report = run(table, adapt=Unconditional(cautious=cautious), **options)
        assert (report["adaptation"]["changed"] > 0) != cautious


def test_plans_that_are_as_written_never_change_and_that_is_said() -> None:
    patterns = [cepheid.parse(text) for text in PATTERNS]
    with pytest.warns(UserWarning, match="share='maximal', plans are as the patterns are written, and adapt= never"):
        engine = cepheid.Engine(patterns, share="maximal", adapt=Unconditional(cautious=False), check_every=500)
    session = engine.open()
    table = drifting((1, 1, 0.02, 1), (0.02, 1, 1, 1))
    plans = set()
    for start in range(0, len(table), 100):
        session.push(table.slice(start, 100), watermark=start)
        plans.add(str(session.plans))
    assert len(plans) == 1
    assert "adaptation" not in session.report()
    cepheid.Engine(patterns, share="maximal")
    cepheid.Engine(patterns[:1], share="maximal", adapt=True)
