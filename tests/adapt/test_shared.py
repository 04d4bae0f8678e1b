"""Patterns that share work follow the data together."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import cepheid
from cepheid.adapt.policies import Invariant, Policy, Unconditional

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
