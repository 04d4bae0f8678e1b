"""What a session knows of its stream."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

import cepheid
from cepheid.engine.session import Session
from cepheid.stats.estimates import Estimates

PATTERN = cepheid.parse(
    "PATTERN SEQ(A a, NOT(D d), B b, C c) WHERE a.x < b.x AND b.x < 0.5 AND c.k = a.k AND a.x + b.x > c.x WITHIN 1000"
)
ENGINE = cepheid.Engine([PATTERN])


def stream(start: int, count: int, shares: list[float], seed: int = 0) -> pa.Table:
    rng = np.random.default_rng(seed)
    return pa.table(
        {
            "ts": start + np.arange(count),
            "type": np.array(["A", "B", "C", "D"])[rng.choice(4, count, p=shares)],
            "x": rng.random(count),
            "k": rng.integers(0, 4, count),
        }
    )


def estimates(session: Session) -> Estimates:
    [found] = session.estimates().values()
    return found


@pytest.mark.parametrize("size", [7, 500, 10_000])
def test_rates_are_those_of_the_last_window(size: int) -> None:
    session = ENGINE.open()
    events = pa.concat_tables([stream(0, 10_000, [0.2, 0.2, 0.55, 0.05]), stream(10_000, 10_000, [0.6, 0.2, 0.1, 0.1])])
    for start in range(0, 20_000, size):
        session.push(events.slice(start, size), watermark=start)
    found = estimates(session).counts
    assert found == pytest.approx({"a": 600, "b": 100, "c": 100, "d": 100}, rel=0.3)


@pytest.mark.parametrize("planner", ["auto", "dynamic", "pattern_order"])
def test_selectivities_of_all_conditions_wherever_the_plan_has_them(planner: str) -> None:
    session = cepheid.Engine([PATTERN], planner=planner).open()
    session.push(stream(0, 3000, [0.3, 0.3, 0.3, 0.1]), watermark=2900)
    found = {str(c): share for c, share in estimates(session).selectivity.items()}
    assert found == pytest.approx({"a.x < b.x": 0.25, "a.k = c.k": 0.25, "a.x + b.x > c.x": 0.72}, abs=0.07)


def test_a_snapshot_has_them() -> None:
    session = ENGINE.open()
    session.push(stream(0, 3000, [0.3, 0.3, 0.3, 0.1]), watermark=2900)
    assert estimates(ENGINE.restore(session.snapshot())) == estimates(session)


def test_memory_does_not_grow_with_new_strings() -> None:
    pattern = cepheid.parse("PATTERN SEQ(A a, B b) WHERE a.k = b.k PARTITION BY p WITHIN 50")
    engine = cepheid.Engine([pattern])
    session = engine.open()
    found = 0
    for start in range(0, 400_000, 1000):
        ts = np.arange(start, start + 1000)
        table = pa.table({"ts": ts, "type": np.where(ts % 2 == 0, "A", "B"), "k": (ts // 2).astype(str), "p": ts // 4})
        found += session.push(table, watermark=start + 1000).num_rows
        if start == 200_000:
            session = engine.restore(session.snapshot())
    assert found == 200_000
    codes = session._states[0]._intake.codes
    assert len(codes.strings) + sum(map(len, codes.partitions.values())) < 150_000


def test_patterns_with_different_windows_have_different_rates() -> None:
    short, long = (cepheid.parse(f"PATTERN SEQ(A a, B b) WITHIN {window}") for window in (10, 1000))
    session = cepheid.Engine([short, long]).open()
    session.push(stream(-5000, 3000, [0.3, 0.3, 0.3, 0.1]), watermark=-2500)
    rates = [found.counts["a"] for found in session.estimates().values()]
    assert rates == pytest.approx([3, 300], rel=0.6)


def test_partitions_that_count_for_themselves_have_their_own_last_window() -> None:
    """One that is far ahead of the others takes nothing from their rates, and a NOT does not count further back."""
    pattern = cepheid.parse("PATTERN SEQ(A a, NOT(D d), B b, C c) WHERE a.x < b.x PARTITION BY k WITHIN 200 EVENTS")
    count, busy = 24_000, 0.3
    rng = np.random.default_rng(0)
    kinds = {0: [0.02, 0.4, 0.4, 0.18]} | {k: [0.5, 0.3, 0.02, 0.18] for k in range(1, 11)}
    keys = np.where(rng.random(count) < busy, 0, rng.integers(1, 11, count))
    types = np.empty(count, dtype="U1")
    for key, shares in kinds.items():
        types[keys == key] = rng.choice(list("ABCD"), int((keys == key).sum()), p=shares)
    events = pa.table({"ts": np.arange(count), "type": types, "x": rng.random(count), "k": keys})
    session = cepheid.Engine([pattern]).open()
    for start in range(0, count, 500):
        session.push(events.slice(start, 500), watermark=start)
    session.push(events.slice(0, 0), watermark=count)
    last = np.concatenate([types[keys == key][-200:] for key in kinds])
    wanted = {name.lower(): int((last == name).sum()) for name in "ABCD"}
    assert estimates(session).counts == pytest.approx(wanted, rel=0.02)
