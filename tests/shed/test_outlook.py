"""What is reckoned ahead of a decision, and when."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import pyarrow as pa
import pytest

import cepheid
from cepheid.shed.decisions import BUSY, CALM, REST, STEPS, Decisions
from cepheid.shed.drops import ALL
from cepheid.shed.model import Model
from cepheid.shed.outlook import PAST, Curve, Outlook
from cepheid.shed.reckoning import Reckoning
from cepheid.shed.strategies import Strategy
from cepheid.shed.ways import COARSE, Ways
from tests.shed import simulated

KINDS = (cepheid.HSpice, cepheid.ESpice, cepheid.PSpice, cepheid.WeightedSampling, cepheid.CostAware)
WAYS = ("by_utility", "by_event", "by_promise", "by_type")


@cache
def learned(slide: str = "") -> tuple[Model, dict[int, int]]:
    """A model that has seen some stream."""
    session = cepheid.Engine([simulated.sequence(slide=slide)], shed=cepheid.HSpice()).open()
    events = simulated.cascades(2500)
    for start in range(0, events.num_rows, 200):
        part = events.slice(start, 200)
        session.push(part, watermark=part["ts"][0])
    (state,) = session._states
    assert state.shedder is not None
    assert state.shedder._survey is not None
    return state.shedder.model, state.shedder._survey.repetitions


def complete(kind: type[Strategy]) -> Outlook:
    model, repetitions = learned()
    outlook = Outlook(kind(), Reckoning.of(model), repetitions)
    while not outlook.ready:
        outlook.advance(1)
    return outlook


def reckoned(outlook: Outlook, ratio: float) -> tuple[float, float]:
    """What is left of the work, and lost of the matches, by a decision."""
    drops = outlook.drops(ratio)
    kept = 1.0 - drops.levels[:, :, None] / ALL
    thin = {leaf: np.array([part]) for leaf, part in drops.thin.items()}
    return float(outlook.reckoning.work(kept, thin)[0]), float(outlook.reckoning.loss(kept, thin)[0])


@pytest.mark.parametrize("name", WAYS)
def test_many_shares_at_once_are_reckoned_as_one_by_one(name: str) -> None:
    model, repetitions = learned()
    reckoning = Reckoning.of(model)
    way = getattr(Ways(reckoning, repetitions), name)()
    shares = np.array([0.0, 0.1, 0.45, 0.8, 1.0])
    parts, thin = way.parts(shares)
    work, loss = reckoning.work(1.0 - parts, thin), reckoning.loss(1.0 - parts, thin)
    for place in range(len(shares)):
        alone, thinned = way.parts(shares[place : place + 1])
        assert reckoning.work(1.0 - alone, thinned)[0] == pytest.approx(work[place])
        assert reckoning.loss(1.0 - alone, thinned)[0] == pytest.approx(loss[place])
    assert work[0] == pytest.approx(1.0)
    assert loss[0] == pytest.approx(0.0)
    assert work.tolist() == sorted(work, reverse=True)
    assert loss.tolist() == sorted(loss)


def test_a_tuple_is_left_if_all_its_pairs_are() -> None:
    """Half of the pairs of each of five lines: 1 match of 32."""
    model, _ = learned()
    reckoning = Reckoning.of(model)
    half = np.full((*model.pairs.shape, 1), 0.5)
    assert reckoning.loss(half, {})[0] == pytest.approx(1 - 0.5**5)


def test_when_an_event_opens_partial_matches_within_its_step_does_not_matter() -> None:
    """Where windows slide, it has not been seen at most moments of a step, and is as good there as elsewhere."""
    reckoning = Reckoning.of(learned("SLIDE 30000")[0])
    opens = [place for place, line in enumerate(reckoning.lines) if line.opens]
    assert len(opens) == 1
    assert 1 < np.count_nonzero(reckoning.pairs[opens]) < 60
    parts, _ = Ways(reckoning, {}).by_utility().parts(np.linspace(0.0, 1.0, 200))
    assert np.ptp(parts[opens], axis=1).max() == 0.0
    assert ((parts[opens] > 0.0) & (parts[opens] < 1.0)).any()  # so some are dropped, and some are not


def test_a_match_is_told_once_for_each_window_that_holds_it() -> None:
    """To take events in and to look at pairs is then a smaller part of the work, which the last join is to drop."""

    def left(slide: str) -> float:
        text = f"PATTERN SEQ(A a, B b) WITHIN 20 {slide}RETURN a.ts AS x"
        session = cepheid.Engine([cepheid.parse(text)], shed=cepheid.HSpice(observations=1)).open()
        events = pa.table({"ts": np.arange(4000), "type": ["A", "B"] * 2000})
        found = sum(session.push(events.slice(n, 400), watermark=n).num_rows for n in range(0, 4000, 400))
        (state,) = session._states
        assert state.shedder is not None
        reckoning = Reckoning.of(state.shedder.model)
        (last,) = (place for place, line in enumerate(reckoning.lines) if not line.opens)
        assert reckoning.arrays["told"][last] == pytest.approx(found)
        kept = np.ones((*reckoning.pairs.shape, 1))
        kept[last] = 0.0
        return float(reckoning.work(kept, {})[0])

    often, once = left("SLIDE 1 "), left("")
    assert often < once / 2
    assert once < 1.0


@pytest.mark.parametrize("kind", KINDS)
def test_a_decision_leaves_as_much_work_as_was_asked_for(kind: type[Strategy]) -> None:
    """Or what is there whatever is dropped: events are taken in, and the control group is joined."""
    outlook = complete(kind)
    nothing = np.zeros((*outlook.reckoning.pairs.shape, 1))
    least = float(outlook.reckoning.work(nothing, {})[0])
    assert 0.05 < least < 0.25
    for ratio in (0.05, 0.2, 0.5, 0.75, 0.9):
        assert reckoned(outlook, ratio)[0] == pytest.approx(max(1.0 - ratio, least), abs=0.04)


def test_ways_are_known_where_work_falls() -> None:
    """Of some ways nearly all has to be dropped before there is much less work; what they lose then rises steeply."""
    for known in complete(cepheid.CostAware)._known:
        work = known.curve.work
        assert (np.diff(known.shares) >= 0).all()
        assert -np.diff(work).min() <= 0.3 * (work[0] - work[-1]) + 0.01


@pytest.mark.parametrize("ratio", [0.1, 0.3, 0.6])
def test_the_way_that_loses_the_least_is_taken(ratio: float) -> None:
    """As far as can be told from all that was seen; it is judged by the other half of it."""
    *others, chosen = (reckoned(complete(kind), ratio)[1] for kind in KINDS)
    assert chosen <= min(others) + COARSE + 0.02


def test_a_way_that_is_good_until_everything_is_lost_is_not_taken_there() -> None:
    """How much has to be dropped changes all the time."""
    outlook = complete(cepheid.CostAware)
    work = np.linspace(1.0, 0.2, 9)
    losing(outlook, Curve(work, np.where(work >= 0.5, 0.0, 1.0)), Curve(work, np.linspace(0.0, 0.4, 9)))
    assert outlook.place_of_best(0.3) == 0
    assert outlook.place_of_best(0.48) == 1, "though it loses nothing yet"


def test_a_way_that_is_better_in_one_outlook_only_is_not_taken() -> None:
    """What an outlook knows is of few moments; the share to drop is the same, and so is the stream."""
    work = np.linspace(1.0, 0.2, 9)
    usual, worse, better = (Curve(work, np.linspace(0.0, most, 9)) for most in (0.4, 0.9, 0.2))
    outlook = complete(cepheid.CostAware)
    losing(outlook, usual, better)
    assert outlook.place_of_best(0.4) == 1, "as far as is known"
    outlook.past = [[usual, worse]]
    assert outlook.place_of_best(0.4) == 0
    outlook.past = [[usual, better]] * PAST
    assert outlook.place_of_best(0.4) == 1
    losing(outlook, usual, worse)
    assert outlook.place_of_best(0.4) == 1, "as it was the better one until now"


def losing(outlook: Outlook, *curves: Curve) -> None:
    """Have an outlook know of so many ways, which lose so much."""
    outlook._known = [
        replace(known, way=replace(known.way, doubt=0.0), curve=curve)
        for known, curve in zip(outlook._known, curves, strict=False)
    ]


@pytest.mark.parametrize("ratio", [0.2, 0.4, 0.5, 0.6])
@pytest.mark.parametrize("other", [cepheid.ESpice, cepheid.PSpice, cepheid.WeightedSampling])
def test_of_a_sequence_pairs_are_the_best_to_drop(other: type[Strategy], ratio: float) -> None:
    assert reckoned(complete(cepheid.HSpice), ratio)[1] < reckoned(complete(other), ratio)[1] + 0.01


def test_little_is_done_in_a_push_and_decisions_stand_until_all_ways_are_known_anew() -> None:
    model, repetitions = learned()
    decisions = Decisions(cepheid.CostAware())
    decisions.forget(model, repetitions)
    assert decisions.at(20).kind == "events, at random, until there is a model"
    decisions.advance(model, 1, step=20)
    first = decisions._outlook
    assert first is not None
    assert decisions.at(20).levels.any()  # of the ways that there are already
    each = max(1, BUSY // len(model.lines))
    pushes = 2
    while not first.ready:
        before = first.reckoned
        decisions.advance(model, pushes, step=20)
        decisions.at(20)
        pushes += 1
        assert first.reckoned - before <= each
    assert decisions._outlook is first
    stands, changes = decisions.at(20), decisions.changes
    assert stands.kind == first.drops(20 / STEPS).kind
    while decisions._outlook is first:
        assert decisions.at(20) is stands
        assert decisions.changes == changes
        before = 0 if decisions._next is None else decisions._next.reckoned
        decisions.advance(model, pushes, step=20)
        assert decisions._next is None or decisions._next.reckoned - before <= each
        pushes += 1
    assert pushes <= 3 * REST
    following = decisions._outlook
    assert following is not None
    assert following.ready
    assert following.past == [first.curves]
    assert decisions.changes == changes + 1
    assert decisions.at(20) is not stands
    assert decisions.at(20).kind == stands.kind  # nothing else was seen


def test_a_way_that_is_known_later_and_is_better_is_taken_then_and_there() -> None:
    model, repetitions = learned()
    decisions = Decisions(cepheid.CostAware())
    decisions.forget(model, repetitions)
    complete_ = complete(cepheid.CostAware)
    for push in range(1, 200):
        decisions.advance(model, push, step=20)
        outlook = decisions._outlook
        assert outlook is not None
        assert decisions.at(20).kind == outlook.drops(20 / STEPS).kind
        if outlook.ready:
            break
    assert decisions.at(20).kind == complete_.drops(20 / STEPS).kind


def test_while_nothing_is_dropped_ways_are_reckoned_ever_more_rarely(monkeypatch: pytest.MonkeyPatch) -> None:
    model, repetitions = learned()
    monkeypatch.setattr(model, "settled", True)
    decisions = Decisions(cepheid.CostAware())
    decisions.forget(model, repetitions)
    outlooks: list[Outlook] = []
    for push in range(CALM, 45 * CALM):
        before = sum(outlook.reckoned for outlook in (decisions._outlook, decisions._next) if outlook is not None)
        decisions.advance(model, push, step=0)
        after = sum(outlook.reckoned for outlook in (decisions._outlook, decisions._next) if outlook is not None)
        assert after - before <= (1 if push % CALM == 0 else 0)
        if decisions._outlook is not None and (not outlooks or outlooks[-1] is not decisions._outlook):
            outlooks.append(decisions._outlook)
    assert len(outlooks) == 3
    assert outlooks[-1].ready
    due = 45 * CALM
    decisions.at(20)
    decisions.advance(model, due, step=20)
    assert decisions._outlook is outlooks[-1]  # until what has been seen since is reckoned with
    for push in range(due + 1, due + 2 * outlooks[-1].ways):
        decisions.advance(model, push, step=20)
        decisions.at(20)
    assert decisions._outlook is not None
    assert decisions._outlook is not outlooks[-1]
    assert decisions._outlook.ready


def test_what_is_seen_later_changes_no_outlook() -> None:
    model, repetitions = learned()
    outlook = complete(cepheid.HSpice)
    before = outlook.drops(0.4).levels
    frozen = {name: array.copy() for name, array in outlook.reckoning.arrays.items()}
    model.pairs += 1000.0
    model.worth += np.arange(model.bins)
    model.matches.weights[:] += 3.0
    try:
        assert all(np.array_equal(array, frozen[name]) for name, array in outlook.reckoning.arrays.items())
        again = Outlook(cepheid.HSpice(), Reckoning(model.lines, frozen, outlook.reckoning.events), repetitions)
        again.advance(1)
        assert np.array_equal(again.drops(0.4).levels, before)
    finally:
        learned.cache_clear()
