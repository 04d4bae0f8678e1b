"""A session that is restored changes its plans as one does that was never stopped."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

import cepheid
from cepheid.adapt import worth
from cepheid.adapt.policies import Invariant, Policy, Threshold, Unconditional

PATTERNS = [
    cepheid.parse(text)
    for text in (
        "NAME sequence PATTERN SEQ(A a, B b, C c, D d) WHERE a.x < b.x AND b.x < c.x AND c.x < d.x WITHIN 60",
        "NAME ring PATTERN SEQ(A a, B b, C c) WHERE a.x < b.x AND b.x < c.x AND c.x < a.x + 0.8 WITHIN 60",
        "NAME three PATTERN AND(A a, B b, C c) WHERE a.x + b.x < c.x WITHIN 40",
        "NAME computed PATTERN SEQ(A a, B b, C c) WHERE ABS(a.x - b.x) < 0.3 AND ABS(b.x - c.x) < 0.3 WITHIN 60",
        "NAME negation PATTERN SEQ(A a, B b, NOT(D d), C c) WHERE a.x < b.x AND d.x > b.x AND b.k = c.k WITHIN 50",
        "NAME sets PATTERN SEQ(A a, KL(B s, 1, 2), C c, D d) WHERE s[i].x > s[i-1].x AND a.x < d.x WITHIN 25",
        "NAME either PATTERN OR(SEQ(A a, B b, C c), AND(B e, C f, D g)) WHERE a.x < c.x AND e.x < g.x WITHIN 40",
        "NAME apart PATTERN AND(A a, B b, C c, D d) WHERE a.x < b.x AND c.x < d.x PARTITION BY k WITHIN 60",
        "NAME counted PATTERN SEQ(A a, B b, C c) WHERE a.x < b.x AND b.x < c.x WITHIN 60 events",
    )
]
POLICIES: list[Policy] = [Unconditional(), Threshold(0.2), Invariant(), Invariant(k=3, distance="average"),
                          Invariant(distance="meta"), Invariant(cautious=False), Unconditional(cautious=False)]  # fmt: skip
SHARING = cepheid.Sharing(steps=20)


def drifting(seed: int, count: int = 900) -> pa.Table:
    rng = np.random.default_rng(seed)
    shares = rng.dirichlet([0.6] * 4, 6)
    kinds = np.concatenate([rng.choice(list("ABCD"), count // 6, p=p) for p in shares])
    return pa.table({"ts": range(count), "type": kinds, "x": rng.random(count), "k": rng.integers(0, 2, count)})


def changes(session: cepheid.Session) -> list[dict[str, Any]]:
    found = session.report()["adaptation"]["changes"]
    return [{name: value for name, value in change.items() if name != "seconds"} for change in found]


def ran(
    engine: cepheid.Engine, table: pa.Table, size: int, stops: set[int], *, restored: bool = True
) -> cepheid.Session:
    """After the pushes that are named there is a snapshot, and it is restored. Or it is not, and the session goes on."""
    session = engine.open()
    for push, start in enumerate(range(0, len(table), size)):
        session.push(table.slice(start, size), watermark=start)
        if push in stops:
            snapshot = session.snapshot()
            session = engine.restore(snapshot) if restored else session
    return session


@settings(max_examples=60, phases=[Phase.generate])
@given(
    chosen=st.lists(st.sampled_from(PATTERNS), min_size=1, max_size=2, unique=True),
    policy=st.sampled_from(POLICIES),
    planner=st.sampled_from(["greedy", "zstream", "auto"]),
    share=st.sampled_from([None, "none", SHARING]),
    migrate=st.sampled_from(["rebuild", "parallel"]),
    seed=st.integers(0, 10_000),
    stops=st.sets(st.integers(0, 29), min_size=1, max_size=3),
)
def test_it_decides_the_same(
    chosen: list[Any], policy: Policy, planner: str, share: Any, migrate: Any, seed: int, stops: set[int]
) -> None:
    if share is None and planner == "auto":
        share = SHARING  # a search that looks at the clock finds another plan each time
    engine = cepheid.Engine(chosen, planner=planner, adapt=policy, share=share, check_every=60, migrate=migrate)
    table = drifting(seed)
    straight, broken = ran(engine, table, 30, stops, restored=False), ran(engine, table, 30, stops)
    assert changes(broken) == changes(straight)
    assert broken.plans == straight.plans
    assert broken._follower is not None
    assert straight._follower is not None
    assert broken._follower._memories == straight._follower._memories


@pytest.mark.parametrize("policy", [Unconditional(), Invariant()])
@pytest.mark.parametrize("at", [15_800, 17_000, 18_000])
def test_a_moment_of_silence_is_not_followed(policy: Policy, at: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """What makes a session cautious is what it saw before it was restored."""
    monkeypatch.setattr(worth, "EVENT", 1)
    monkeypatch.setattr(worth, "WORTH", 1.1)
    rng = np.random.default_rng(0)
    usual, silence = [0.2, 0.2, 0.6, 0.0], [0.2, 0.2, 0.0, 0.6]
    kinds = np.concatenate([rng.choice(list("ABC-"), n, p=p) for n, p in ((16_000, usual), (3_600, silence))])
    table = pa.table({"ts": range(len(kinds)), "type": kinds, "x": rng.random(len(kinds))})
    pattern = cepheid.parse("PATTERN SEQ(A a, B b, C c) WHERE a.x + 0.8 < b.x AND b.x + 0.8 < c.x WITHIN 2000")
    engine = cepheid.Engine([pattern], planner="greedy", adapt=policy, check_every=2_000)
    assert not changes(ran(engine, table, 200, {at // 200}))


def test_another_policy_begins_anew() -> None:
    table = drifting(1)
    first = cepheid.Engine(PATTERNS[:1], planner="greedy", adapt=Invariant(), check_every=60)
    second = cepheid.Engine(PATTERNS[:1], planner="greedy", adapt=Threshold(0.2), check_every=60)
    session = second.restore(ran(first, table.slice(0, 450), 30, set()).snapshot())
    session.push(table.slice(450, 60), watermark=450)
    assert session.report()["adaptation"]["checks"] == 8
    static = cepheid.Engine(PATTERNS[:1], planner="greedy")
    assert second.restore(static.open().snapshot()).report()["adaptation"]["checks"] == 0
    assert "adaptation" not in static.restore(session.snapshot()).report()
