"""Rates that drift, events out of order, restarts in the middle of a change, several patterns: still the right matches."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

import cepheid
from cepheid.adapt.policies import Invariant, Policy, Threshold, Unconditional
from tests import oracle
from tests.contracts.test_engine_is_exact import canonical

PATTERNS = [
    cepheid.parse(text)
    for text in (
        "NAME sequence PATTERN SEQ(A a, B b, C c, D d) WHERE a.x < b.x AND b.x < c.x AND c.x < d.x WITHIN 14",
        "NAME negation PATTERN SEQ(A a, B b, NOT(D d), C c) WHERE a.x < b.x AND d.x > b.x AND b.k = c.k WITHIN 12",
        "NAME last PATTERN SEQ(A a, B b, C c, NOT(D d)) WHERE a.k = c.k AND d.k = a.k WITHIN 9",
        "NAME sets PATTERN SEQ(A a, KL(B s, 1, 3), C c, D d) WHERE s[i].x > s[i-1].x AND a.x < d.x WITHIN 10",
        "NAME either PATTERN OR(SEQ(A a, B b, C c), AND(B e, C f, D g)) WHERE a.x < c.x AND e.x < g.x WITHIN 8",
        "NAME apart PATTERN AND(A a, B b, C c, D d) WHERE a.x < b.x AND c.x < d.x PARTITION BY k WITHIN 16",
    )
]
LIKE_THE_FIRST = cepheid.parse("NAME similar PATTERN SEQ(A a, B b, C c) WHERE a.x < b.x AND b.x < c.x WITHIN 10")
POLICIES: list[Policy] = [Unconditional(), Threshold(0.2), Invariant(), Invariant(k=3), Invariant(distance=0.3),
                          Invariant(distance="average"), Invariant(distance="meta"), Unconditional(cautious=False),
                          Threshold(0.2, cautious=False), Invariant(cautious=False)]  # fmt: skip
PLANNERS = ["rate", "greedy", "dp_left", "zstream", "dp_bushy", "auto"]
SHARES: list[Any] = ["none", "reorder", "maximal", "prefix", "spass", "motto", cepheid.Sharing(steps=10)]
some_patterns = st.lists(st.sampled_from(PATTERNS), min_size=1, max_size=2, unique=True)
seeds = st.integers(0, 10_000)


def drifting(rng: np.random.Generator, count: int = 60) -> list[dict[str, Any]]:
    """In each of three pieces some types are rare and some frequent."""
    shares = np.repeat(rng.dirichlet([0.6] * 4, 3), count // 3, axis=0)
    return [
        {
            "ts": i,
            "type": "ABCD"[rng.choice(4, p=shares[i])],
            "x": int(rng.integers(0, 9)),
            "k": int(rng.integers(0, 2)),
        }
        for i in range(count)
    ]


@pytest.mark.parametrize("migrate", ["rebuild", "parallel"])
@pytest.mark.parametrize("planner", PLANNERS)
@pytest.mark.parametrize("policy", POLICIES, ids=str)
@settings(max_examples=2, phases=[Phase.generate])  # all of them together are many
@given(chosen=some_patterns, seed=seeds)
def test_drifting_rates(migrate: Any, planner: str, policy: Policy, chosen: list[Any], seed: int) -> None:
    check(chosen, seed, planner=planner, adapt=policy, migrate=migrate)


@pytest.mark.parametrize("policy", POLICIES, ids=str)
def test_plans_do_change_while_rates_drift(policy: Policy) -> None:
    assert sum(check([PATTERNS[0]], seed, planner="greedy", adapt=policy) for seed in range(6)) > 0


@pytest.mark.filterwarnings("ignore:with share='maximal'")
@pytest.mark.parametrize("migrate", ["rebuild", "parallel"])
@pytest.mark.parametrize("share", SHARES, ids=str)
@pytest.mark.parametrize("policy", [Unconditional(cautious=False), Invariant(distance="meta")], ids=str)
@settings(max_examples=1, phases=[Phase.generate])  # to search for a plan takes its time
@given(chosen=some_patterns, seed=seeds)
def test_drifting_rates_of_patterns_that_share(
    migrate: Any, share: Any, policy: Policy, chosen: list[Any], seed: int
) -> None:
    check([*chosen, LIKE_THE_FIRST], seed, share=share, adapt=policy, migrate=migrate)


def check(chosen: list[Any], seed: int, **options: Any) -> int:
    """How often a plan was changed. Events come up to four ticks late, in batches of any size, and now and then a session is restored."""
    rng = np.random.default_rng(seed)
    events = drifting(rng)
    table = pa.Table.from_pylist(events)
    engine = cepheid.Engine(chosen, check_every=int(rng.integers(1, 6)), **options)
    session = engine.open()
    arrival = np.argsort(np.arange(len(events)) + rng.uniform(0, 4, len(events)))
    rows: list[dict[str, Any]] = []
    size = int(rng.integers(1, 6))
    for start in range(0, len(events), size):
        if rng.random() < 0.15:
            session = engine.restore(session.snapshot())
        rest = arrival[start + size :]
        watermark = int(rest.min()) if len(rest) else None
        rows += session.push(table.take(pa.array(arrival[start : start + size])), watermark=watermark).to_pylist()
    rows += session.close().to_pylist()
    for pattern in chosen:
        mine = [row for row in rows if row["pattern"] == pattern.name]
        columns = own_columns(pattern)
        found = [{name: row[name] for name in columns} for row in mine]
        assert canonical(found) == canonical(oracle.rows(pattern, events))
    return int(session.report().get("adaptation", {"changed": 0})["changed"])


def own_columns(pattern: Any) -> list[str]:
    """The columns of a pattern's own matches, of all those of a session."""
    schema = pa.schema({"ts": "int64", "type": "string", "x": "int64", "k": "int64"})
    return list(cepheid.Engine([pattern]).output_schema(schema).names)


def test_a_partition_that_is_far_ahead_does_not_hide_the_others() -> None:
    """Where each counts its own events, c is rare in all partitions but one, and the chain that begins with it stays."""
    rng, count = np.random.default_rng(0), 24_000
    ahead = rng.random(count) < 0.1
    kinds = [rng.choice(list("ABC"), count, p=shares) for shares in ((0.02, 0.49, 0.49), (0.49, 0.49, 0.02))]
    keys = np.where(ahead, 0, rng.integers(1, 21, count))
    columns = {"type": np.where(ahead, *kinds), "x": rng.random(count), "k": keys}
    table = pa.table({"ts": np.arange(count), **columns})
    pattern = cepheid.parse(
        "PATTERN SEQ(A a, B b, C c) WHERE a.x + 0.3 < b.x AND b.x + 0.3 < c.x PARTITION BY k WITHIN 200 EVENTS"
    )

    def run(**options: Any) -> dict[str, Any]:
        session = cepheid.Engine([pattern], **options).open()
        for start in range(0, count, 500):
            session.push(table.slice(start, 500), watermark=start)
        return session.report()

    found, best, worst = run(adapt=True, check_every=2000), run(order=["c", "b", "a"]), run(order=["a", "b", "c"])
    assert [change["new"] for change in found["adaptation"]["changes"]] == ["((c ⋈ b) ⋈ a)"]
    assert found["candidates"] < 1.1 * best["candidates"] < worst["candidates"]
    assert found["matches"] == best["matches"] == worst["matches"]
