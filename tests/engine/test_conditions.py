"""Conditions that no kernel checks: however their attributes are looked up, they hold for the same events."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

import cepheid
from cepheid.engine import conditions

PATTERN = (
    "PATTERN SEQ(A a, B b, KL(C c, 1, 2)) WHERE POWER(a.x - b.x, 2) + POWER(a.y - b.y, 2) <= 20 "
    "AND LOWER(a.s) <> LOWER(b.s) AND COALESCE(a.x, 0) + b.y > c.x WITHIN 12 RETURN a.ts AS a, b.ts AS b, SUM(c.x) AS c"
)


def matches() -> list[tuple[object, ...]]:
    rng = np.random.default_rng(0)
    some = pa.array(rng.integers(-5, 5, 400), mask=rng.random(400) < 0.1)
    events = pa.table(
        {
            "ts": np.arange(400),
            "type": rng.choice(list("ABC"), 400),
            "x": some,
            "y": rng.integers(-5, 5, 400).astype(float),
            "s": rng.choice(["n", "N", "m"], 400),
        }
    )
    session = cepheid.Engine([cepheid.parse(PATTERN)]).open()
    found = [session.push(events.slice(n, 7), watermark=max(n - 3, 0)) for n in range(0, 400, 7)]
    rows = pa.concat_tables([*found, session.close()]).to_pylist()
    return sorted(tuple(row.values()) for row in rows)


def test_few_rows_and_many(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = matches()
    monkeypatch.setattr(conditions, "WHOLE", 0)
    assert whole == matches()
    assert len(whole) > 100
