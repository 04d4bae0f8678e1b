"""What is said to be lost, against what is."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import cepheid
from cepheid.engine.chances import MOST, Chances
from cepheid.plan.tree import Join, Leaf, Plan, chain
from cepheid.shed.lost import ENOUGH, Lost
from cepheid.shed.strategies import Strategy
from tests.shed import simulated

PATTERN = simulated.sequence(types=4, window=40_000)
BUSHY = Join(Join(Leaf("c1"), Leaf("c2")), Join(Leaf("c3"), Leaf("c4")))
KINDS = (cepheid.HSpice, cepheid.ESpice, cepheid.PSpice, cepheid.CostAware)


@cache
def events() -> pa.Table:
    return simulated.cascades(24_000, types=4)


def run(kind: type[Strategy] | None, ratio: float, plan: Plan | None = None, **options: Any) -> tuple[set[Any], Any]:
    """The matches of the later three quarters, in which ``ratio`` of the work is dropped, and the session."""
    shed = None if kind is None else kind(observations=20_000)
    session = cepheid.Engine([PATTERN], shed=shed, **options).open()
    found, quarter = [], events().num_rows // 4
    for start in range(0, events().num_rows, 500):
        if plan is not None and start == 500:
            session.change_plans(dict.fromkeys(session.plans, plan))
        if shed is not None and start >= quarter:
            session.overload(ratio)
        part = events().slice(start, 500)
        matches = session.push(part, watermark=part["ts"][0])
        if start >= quarter:
            found.append(matches)
    rows = zip(*(column.to_pylist() for column in pa.concat_tables(found).columns), strict=True)
    return set(rows), session


@cache
def truth() -> set[Any]:
    return run(None, 0.0)[0]


@pytest.mark.parametrize("plan", [chain(["c1", "c2", "c3", "c4"]), chain(["c3", "c2", "c4", "c1"]), BUSHY])
@pytest.mark.parametrize("kind", KINDS)
def test_the_control_group_shows_what_there_would_be(kind: type[Strategy], plan: Plan) -> None:
    found, session = run(kind, 0.4, plan, planner="greedy")
    assert found < truth()
    assert session.shedding()["estimated recall"] == pytest.approx(len(found) / len(truth()), abs=0.08)


def test_a_search_has_a_control_group_for_each_variable() -> None:
    found, session = run(cepheid.HSpice, 0.4, planner="dynamic")
    assert found < truth()
    assert session.shedding()["estimated recall"] == pytest.approx(len(found) / len(truth()), abs=0.08)


def test_who_finds_nothing_does_not_claim_that_there_was_nothing() -> None:
    found, session = run(cepheid.WeightedSampling, 0.98)
    assert len(found) < 0.02 * len(truth())
    assert session.shedding()["estimated recall"] == pytest.approx(len(found) / len(truth()), abs=0.01)


def test_what_the_model_expects_counts_until_the_control_group_has_shown_enough() -> None:
    lost = Lost(matches=60, beside=60, foregone=40.0)
    assert lost.report()["estimated recall"] == pytest.approx(0.6)
    lost.add(Lost(would_be=90.0, groups=ENOUGH))
    assert lost.false_negatives == pytest.approx((40.0 + 30.0) / 2)
    lost.add(Lost(groups=1e9))
    assert lost.false_negatives == pytest.approx(30.0)
    assert Lost(matches=60, beside=60, would_be=50.0, groups=1e9).false_negatives == pytest.approx(0.0)


def test_where_events_and_pairs_are_dropped_the_matches_that_both_would_have_cost_count() -> None:
    """Half of the matches have all of their events, and half of those all of their pairs."""
    lost = Lost(matches=25, beside=25, both=25.0, would_be=50.0, groups=1e9)
    assert lost.false_negatives == pytest.approx(75.0)
    assert Lost(matches=25, beside=25, thinned=75.0).false_negatives == pytest.approx(75.0)


def thinned(text: str, table: pa.Table, ratio: float) -> tuple[set[Any], set[Any], dict[str, Any]]:
    """Of events that are dropped at random, as there is no model: the matches, what is found of them, and the report."""
    found = []
    for share in (0.0, ratio):
        session = cepheid.Engine([cepheid.parse(text)], shed=cepheid.HSpice(observations=10**9)).open()
        session.overload(share)
        parts = [table.slice(start, 300) for start in range(0, table.num_rows, 300)]
        matches = [session.push(part, watermark=part["ts"][0]) for part in parts]
        rows = pa.concat_tables([*matches, session.close()]).to_pylist()
        found.append({str(row) for row in rows})
    return found[0], found[1], session.shedding()


def letters(weights: dict[str, float], count: int = 20_000) -> pa.Table:
    types = np.random.default_rng(4).choice(list(weights), count, p=list(weights.values()))
    return pa.table({"ts": np.arange(count), "type": types})


@pytest.mark.parametrize("ratio", [0.3, 0.6])
@pytest.mark.parametrize(
    ("pattern", "weights"),
    [
        ("SEQ(A a, NOT(N n), B b) WITHIN 8", {"A": 0.4, "B": 0.4, "N": 0.2}),
        ("SEQ(A a, NOT(N n), B b) WITHIN 40", {"A": 0.2, "B": 0.2, "N": 0.6}),
        ("SEQ(A a, NOT(N n), KL(B b, 1, 2)) WITHIN 10", {"A": 0.4, "B": 0.4, "N": 0.2}),
        ("SEQ(A a, NOT(M m), NOT(N n), B b) WITHIN 15", {"A": 0.3, "B": 0.3, "M": 0.2, "N": 0.2}),
        ("SEQ(A a, NOT(M m), B b, NOT(N n), C c) WITHIN 15", {"A": 0.3, "B": 0.2, "C": 0.2, "M": 0.2, "N": 0.1}),
    ],
)
def test_a_match_is_made_up_if_all_events_that_strike_it_are_dropped(
    pattern: str, weights: dict[str, float], ratio: float
) -> None:
    truth, found, report = thinned(f"PATTERN {pattern}", letters(weights), ratio)
    made_up = len(found - truth)
    assert made_up > 100
    rel = 0.7 if "C c" in pattern else 0.35  # some are rejected before they are matches
    assert report["estimated false positives"] == pytest.approx(made_up, rel=rel)
    assert report["estimated false positives"] <= len(found)
    assert report["estimated recall"] == pytest.approx(len(found & truth) / len(truth), abs=0.05)


@pytest.mark.parametrize("ratio", [0.3, 0.7])
def test_where_one_event_strikes_each_match_all_that_are_found_are_known_to_be_made_up(ratio: float) -> None:
    table = pa.table({"ts": np.arange(30_000), "type": np.tile(["A", "N", "B", "X", "X", "X"], 5_000)})
    truth, found, report = thinned("PATTERN SEQ(A a, NOT(N n), B b) WITHIN 3", table, ratio)
    assert not truth
    assert report["estimated false positives"] == pytest.approx(len(found), rel=0.2)


@pytest.mark.parametrize("ratio", [0.2, 0.5])
@pytest.mark.parametrize(
    "pattern", ["SEQ(A a, KL(B b), C c) WITHIN 12", "SEQ(A a, KL(B b, 2, 3), KL(C c, 1, 2)) WITHIN 8"]
)
def test_a_set_is_found_if_all_of_its_events_are_there(pattern: str, ratio: float) -> None:
    truth, found, report = thinned(f"PATTERN {pattern}", letters({"A": 0.3, "B": 0.4, "C": 0.3}, 6_000), ratio)
    assert found < truth
    assert report["estimated recall"] == pytest.approx(len(found) / len(truth), rel=0.25)


def test_time_that_is_not_looked_at_does_not_count() -> None:
    """Else there would seem to be fewer pairs in a window the more rarely pushes are looked at."""
    session = cepheid.Engine([PATTERN], shed=cepheid.HSpice(observations=20_000)).open()
    middle, before, after = events().num_rows // 2 // 500 * 500, 0.0, 0.0
    for start in range(0, events().num_rows, 500):
        part = events().slice(start, 500)
        session.push(part, watermark=part["ts"][0])
        (state,) = session._states
        assert state.shedder is not None
        after = state.shedder.model.windows
        if start == middle:
            state.shedder.model.settled = True
            before = after
    passed = (events()["ts"][-1].as_py() - events()["ts"][middle].as_py()) / 40_000
    assert 0 < after - before < 0.3 * passed


@pytest.mark.parametrize("ratio", [0.5, 0.8, 0.9])
def test_what_sampling_has_cost_is_told_by_what_was_dropped_when_each_event_came(ratio: float) -> None:
    """The window is longer than the time between two decisions, so that a match has events of several of them."""
    found, session = run(cepheid.WeightedSampling, ratio)
    assert session.shedding()["estimated recall"] == pytest.approx(len(found) / len(truth()), abs=0.03)


def test_a_restored_session_knows_what_was_dropped_before() -> None:
    engine = cepheid.Engine([PATTERN], shed=cepheid.WeightedSampling(observations=20_000))
    session, part = engine.open(), events().slice(0, 6_000)
    session.push(part, watermark=part["ts"][-1])
    for start, ratio in ((6_000, 0.5), (6_500, 0.8)):
        session.overload(ratio)
        session.push(events().slice(start, 500), watermark=events()["ts"][start])
    restored = engine.restore(session.snapshot())
    for one in (session, restored):
        one.push(events().slice(7_000, 500), watermark=events()["ts"][7_000])
    assert restored.shedding() == session.shedding()


def sampled(
    pattern: cepheid.Pattern, table: pa.Table, ratio: Any, first: int, last: int | None = None, batch: int = 200
) -> tuple[int, dict[str, Any]]:
    """How many matches there are from the first event of an overload on, and the report."""
    engine = cepheid.Engine([pattern], planner="greedy", shed=cepheid.WeightedSampling() if ratio else None)
    session, found = engine.open(), 0
    for turn, start in enumerate(range(0, table.num_rows, batch)):
        if ratio:
            session.overload(ratio(turn) if first <= start < (last or table.num_rows) else 0.0)
        matches = session.push(table.slice(start, batch), watermark=start).num_rows
        found += matches * (start >= first)
    return found, session.shedding()


LETTERS = pa.table(
    {
        "ts": np.arange(40_000),
        "type": np.random.default_rng(1).choice(list("ABC"), 40_000),
        "x": np.random.default_rng(2).integers(0, 30, 40_000),
        "visit": np.arange(40_000) // 2_000 * 20 + np.random.default_rng(3).integers(0, 20, 40_000),
    }
)
RISING = "PATTERN SEQ(A a, B b, C c) WHERE a.x < b.x AND b.x < c.x"


@pytest.mark.parametrize("late", [100, 400])
def test_what_sampling_has_cost_is_known_where_events_come_out_of_order(late: int) -> None:
    """What was dropped goes by when an event came, and not by its time."""
    ts = LETTERS["ts"].to_numpy() + np.random.default_rng(4).integers(0, late, LETTERS.num_rows)
    table, pattern = LETTERS.set_column(0, "ts", pa.array(ts)), cepheid.parse(f"{RISING} WITHIN 60")
    every, _ = sampled(pattern, table, None, 10_000)
    found, report = sampled(pattern, table, lambda turn: (0.2, 0.4, 0.6, 0.8)[turn // 3 % 4], 10_000)
    assert report["estimated recall"] == pytest.approx(found / every, abs=0.05)


@pytest.mark.parametrize("first", [600, 20_000])
def test_what_sampling_has_cost_is_known_where_events_of_partitions_are_counted(first: int) -> None:
    pattern = cepheid.parse(f"{RISING} PARTITION BY visit WITHIN 60 EVENTS")
    every, _ = sampled(pattern, LETTERS, None, first, batch=600)
    found, report = sampled(pattern, LETTERS, lambda turn: 0.3, first, batch=600)
    assert report["matches"] == found
    assert report["estimated recall"] == pytest.approx(found / every, abs=0.1)


def test_a_short_overload_says_what_it_has_cost_of_itself_and_of_all_so_far() -> None:
    pattern = cepheid.parse(f"{RISING} WITHIN 40")
    every, _ = sampled(pattern, LETTERS, None, 0)
    found, report = sampled(pattern, LETTERS, lambda turn: 0.5, 20_000, 24_000)
    before, _ = sampled(pattern, LETTERS.slice(0, 20_000), None, 0)
    all_found = before + found
    assert report["estimated recall so far"] == pytest.approx(all_found / every, abs=0.03)
    assert report["estimated recall"] < 0.6


def test_chances_are_those_of_when_a_row_came() -> None:
    chances = Chances()
    assert chances.of(7, np.array([3])).tolist() == [1.0]
    chances.note({}, 0, 0)
    chances.note({7: 0.5, 8: 0.25}, 10, 0)
    chances.note({7: 0.75, 8: 0.25}, 20, 0)
    chances.note({}, 30, 0)
    rows = np.array([9, 10, 19, 20, 29, 30, 31])
    assert chances.of(7, rows).tolist() == [1.0, 0.5, 0.5, 0.25, 0.25, 1.0, 1.0]
    assert chances.of(8, rows).tolist() == [1.0, 0.75, 0.75, 0.75, 0.75, 1.0, 1.0]
    chances.renumber(np.array([5, 15, 16, 25, 35]), 40)
    assert chances.of(7, np.arange(40, 45)).tolist() == [1.0, 0.5, 0.5, 0.25, 1.0]
    other = Chances()
    other.load(chances.dump([8, 7]), [1, 0])
    assert other.of(0, np.arange(40, 45)).tolist() == [1.0, 0.5, 0.5, 0.25, 1.0]
    other.note({}, 50, 0)
    assert other.of(0, np.array([44, 50])).tolist() == [1.0, 1.0]


def test_chances_of_long_windows_are_told_apart_less_and_less() -> None:
    chances, shares = Chances(), np.random.default_rng(1).uniform(0.2, 0.8, 3000)
    for place, share in enumerate(shares):
        chances.note({0: float(share)}, 10 * place, 0)
    found = chances.of(0, np.arange(10 * len(shares)))
    assert len(chances.dump([0])["chances"]) <= MOST
    assert found[-1] == pytest.approx(1 - shares[-1])
    assert found.mean() == pytest.approx(1 - shares.mean(), rel=1e-3)
    chances.note({0: 0.9}, 30_000, 29_995)  # what is no longer there is forgotten
    assert len(chances.dump([0])["chances"]) == 2
