"""What is known after plans have changed, patterns have come, or where there was an overload from the start."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import numpy as np
import pyarrow as pa
import pytest

import cepheid
from cepheid.plan.tree import chain
from cepheid.shed.model import Line, Model
from cepheid.shed.reckoning import Reckoning
from cepheid.shed.strategies import Strategy

COUNT = 30_000
EVENTS = pa.table(
    {
        "ts": np.arange(COUNT),
        "type": np.random.default_rng(1).choice(list("ABCD"), COUNT),
        "x": np.random.default_rng(2).integers(0, 20, COUNT),
    }
)
PATTERN = cepheid.parse("NAME p PATTERN SEQ(A a, B b, C c, D d) WHERE a.x < b.x AND b.x < c.x AND c.x < d.x WITHIN 60")
BACKWARDS = ["d", "c", "b", "a"]
OTHER = "NAME q PATTERN SEQ(D d, E e) WHERE d.x = e.x WITHIN 10"
"""There is no E."""
OVERLOAD = 12_000
"""From this event on half of the work is to be dropped."""


def run(
    engine: cepheid.Engine,
    size: int = 1000,
    before: Callable[[cepheid.Session, int], object] = lambda session, at: None,
) -> tuple[int, cepheid.Session]:
    """The matches of the first pattern from ``OVERLOAD`` on."""
    session, found = engine.open(), 0
    for start in range(0, COUNT, size):
        before(session, start)
        if start == OVERLOAD and session.shedding():
            session.overload(0.5)
        matches = session.push(EVENTS.slice(start, size), watermark=start)
        if start >= OVERLOAD:
            found += matches["pattern"].to_pylist().count("p")
    return found, session


@cache
def every_match() -> int:
    return run(cepheid.Engine([PATTERN]))[0]


def turned_round(at: int) -> Callable[[cepheid.Session, int], None]:
    def change(session: cepheid.Session, start: int) -> None:
        if start == at:
            session.change_plans({branch: chain(BACKWARDS) for branch in session.plans})

    return change


def model_of(session: cepheid.Session) -> Model:
    shedder = session._states[0].shedder
    assert shedder is not None
    return shedder.model


def test_pairs_of_a_new_plan_count_from_when_it_is_there() -> None:
    strategy = cepheid.HSpice()
    changed, steady = cepheid.Engine([PATTERN], planner="greedy", shed=strategy), cepheid.Engine(
        [PATTERN], order=BACKWARDS, shed=strategy
    )  # fmt: skip
    sessions = [engine.open() for engine in (changed, steady)]
    for session, change in zip(sessions, (turned_round(9_000), lambda session, start: None), strict=True):
        for start in range(0, OVERLOAD, 1000):
            change(session, start)
            session.push(EVENTS.slice(start, 1000), watermark=start)
    rates = []
    for session in sessions:
        model = model_of(session)
        reckoning = Reckoning.of(model)
        rates.append([*(reckoning.pairs.sum(axis=1) / model.windows), sum(reckoning.events.values()) / model.windows])
    assert rates[0] == pytest.approx(rates[1], rel=0.2)


@pytest.mark.parametrize("kind", [cepheid.HSpice, cepheid.CostAware])
@pytest.mark.parametrize("at", [9_000, OVERLOAD])
def test_a_plan_that_changed_sheds_about_as_well_as_one_that_was_there_before(kind: type[Strategy], at: int) -> None:
    changed, _ = run(cepheid.Engine([PATTERN], planner="greedy", shed=kind()), before=turned_round(at))
    steady, _ = run(cepheid.Engine([PATTERN], order=BACKWARDS, shed=kind()))
    assert steady > 0.3 * every_match()
    assert changed > 0.75 * steady


@pytest.mark.parametrize("size", [200, 1000])
def test_a_pattern_that_comes_in_an_overload_does_not_cost_the_others_their_matches(size: int) -> None:
    def add(session: cepheid.Session, start: int) -> None:
        if start == OVERLOAD:
            session.add(OTHER)

    engine = cepheid.Engine([PATTERN], shed=cepheid.HSpice())
    together, session = run(engine, size, before=add)
    alone, _ = run(engine, size)
    assert session.shedding()["ready"]
    assert together > 0.75 * alone


@pytest.mark.parametrize("kind", [cepheid.HSpice, cepheid.CostAware])
@pytest.mark.parametrize("size", [200, 1000])
def test_what_is_learned_of_events_that_were_dropped_at_random_is_what_there_would_be(
    kind: type[Strategy], size: int
) -> None:
    engine = cepheid.Engine([PATTERN], planner="greedy", shed=kind())
    fresh, session = run(engine, size, before=lambda session, start: session.overload(0.5))
    warmed, _ = run(engine, size)
    assert session.shedding()["ready"]
    assert fresh > 0.75 * warmed


@pytest.mark.parametrize("kind", [cepheid.HSpice, cepheid.CostAware, cepheid.WeightedSampling])
@pytest.mark.parametrize("window", [600, 60_000])
def test_a_pattern_with_a_longer_window_does_not_change_what_the_others_are_known_to_make(
    kind: type[Strategy], window: int
) -> None:
    """Time is measured by the longest window."""
    other = f"NAME q PATTERN SEQ(E e, D d) WHERE d.x = e.x WITHIN {window}"

    def add(session: cepheid.Session, start: int) -> None:
        if start == 6_000:
            session.add(other)

    later, _ = run(cepheid.Engine([PATTERN], shed=kind()), before=add)
    first, _ = run(cepheid.Engine([PATTERN, cepheid.parse(other)], shed=kind()))
    assert 0.75 * first < later < 1.5 * first


def test_patterns_that_come_and_go_leave_nothing_behind() -> None:
    session = cepheid.Engine([PATTERN], shed=cepheid.HSpice(observations=5_000)).open()
    for turn, start in enumerate(range(0, COUNT, 300)):
        if turn:
            session.add(f"NAME q{turn} PATTERN SEQ(D d, E e) WHERE d.x = e.x AND d.x > {turn % 20} WITHIN 10")
        session.push(EVENTS.slice(start, 300), watermark=start)
        if turn:
            session.remove(f"q{turn}")
    model = model_of(session)
    assert session.shedding()["ready"]
    assert len(model.events) == len(model.seen_events) < 8


@pytest.mark.parametrize("kind", [cepheid.WeightedSampling, cepheid.ESpice, cepheid.CostAware])
def test_a_session_that_is_restored_after_another_pattern_has_gone_drops_the_same(kind: type[Strategy]) -> None:
    """The first one has other numbers for the leaves."""
    other = cepheid.parse("NAME q PATTERN SEQ(D d, A a) WHERE d.x = a.x AND d.x > 15 WITHIN 10")
    session = cepheid.Engine([other, PATTERN], shed=kind(), planner="greedy", share="none").open()
    for start in range(0, OVERLOAD, 500):
        session.push(EVENTS.slice(start, 500), watermark=start)
    session.remove("q")
    session.overload(0.5)
    session.push(EVENTS.slice(OVERLOAD, 500), watermark=OVERLOAD)
    restored = cepheid.Engine([PATTERN], shed=kind(), planner="greedy", share="none").restore(session.snapshot())
    for start in range(OVERLOAD + 500, COUNT, 500):
        found = [one.push(EVENTS.slice(start, 500), watermark=start) for one in (session, restored)]
        assert found[0].equals(found[1])
    assert session.shedding() == restored.shedding()


def test_a_snapshot_right_after_a_change_has_what_was_learned_of_the_other_patterns() -> None:
    other = cepheid.parse("NAME o PATTERN SEQ(A a, B b, C c) WHERE a.x < b.x AND b.x < c.x WITHIN 60")
    engine = cepheid.Engine([PATTERN, other], share="none", planner="greedy", shed=cepheid.HSpice(observations=5_000))
    straight, asked = engine.open(), engine.open()
    for session in (straight, asked):
        for start in range(0, OVERLOAD, 500):
            session.push(EVENTS.slice(start, 500), watermark=start)
        assert session.shedding()["ready"]
        session.change_plans({b: chain(BACKWARDS) for b in session.plans if len(b.variables) == 4})
    restored = engine.restore(asked.snapshot())
    assert model_of(restored).windows == model_of(asked).windows > 100
    for start in range(OVERLOAD, COUNT, 500):
        found = []
        for session in (straight, asked, restored):
            session.overload(0.5)
            found.append(session.push(EVENTS.slice(start, 500), watermark=start))
        assert found[1].equals(found[2])
        assert found[0].equals(found[2])


def test_matches_that_went_through_a_join_that_is_gone_are_forgotten() -> None:
    model = Model(4)
    model.place([Line("a", "A"), Line("b", "B"), Line("c", "C")])
    for n in range(5):
        model.matches.add({0: np.array([n % 4]), 1 + n % 2: np.array([1])}, 1, float(n))
    model.place([Line("a", "A"), Line("c", "C"), Line("d", "D")])
    assert model.matches.size == 2
    assert model.matches.weights[:2].tolist() == [1.0, 3.0]
    assert model.matches.paths[:2].tolist() == [[1, 1, -1], [3, 1, -1]]
    model.matches.add({2: np.array([0])}, 1, 7.0)
    assert model.matches.weights[:3].tolist() == [1.0, 3.0, 7.0]


def test_a_full_sample_keeps_the_order_of_what_is_left() -> None:
    model = Model(4)
    model.place([Line("a", "A"), Line("b", "B")])
    model.matches.room, room = 4, 4
    for n in range(room + 2):  # 2, 3, 4, 5 are left
        model.matches.add({n % 2: np.array([0])}, 1, float(n))
    model.place([Line("b", "B")])
    assert model.matches.weights[: model.matches.size].tolist() == [3.0, 5.0]
    assert model.matches.next == 2
