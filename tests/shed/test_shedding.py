"""Shedding in a session: what is dropped, what is said about it, and that it goes on after a restart."""

from __future__ import annotations

import datetime as dt
from functools import cache
from itertools import permutations
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute
import pytest

import cepheid
from cepheid.engine.gate import OPEN, Places, in_control, lots
from cepheid.engine.kernels.join import PROCESSED, mixed
from cepheid.engine.learning import REMEMBERED
from cepheid.plan.tree import Join, Leaf
from cepheid.shed.drops import ALL, CONTROL
from cepheid.shed.model import utility
from cepheid.shed.strategies import Strategy
from tests.shed import simulated

KINDS = (cepheid.HSpice, cepheid.ESpice, cepheid.PSpice, cepheid.WeightedSampling, cepheid.CostAware)
EVENTS = simulated.cascades(2500)
PATTERN = simulated.sequence()
LETTERS = pa.table(
    {
        "ts": np.arange(20_000),
        "type": np.random.default_rng(1).choice(list("ABCD"), 20_000),
        "x": np.random.default_rng(2).integers(0, 20, 20_000),
    }
)


def slices(events: pa.Table, size: int = 200) -> list[pa.Table]:
    return [events.slice(start, size) for start in range(0, events.num_rows, size)]


def push(session: cepheid.Session, part: pa.Table) -> pa.Table:
    return session.push(part, watermark=part["ts"][0])


@pytest.mark.parametrize("kind", KINDS)
def test_more_overload_leaves_less_work_and_estimates_are_near_the_truth(kind: type[Strategy]) -> None:
    full, _, all_work = simulated.matches_after(PATTERN, EVENTS, None, 0.0)
    works = []
    for ratio in (0.15, 0.3, 0.6, 0.9):
        found, report, work = simulated.matches_after(PATTERN, EVENTS, kind(observations=20_000), ratio)
        assert found <= full
        works.append(work / all_work)
        shedding = report["shedding"]
        assert shedding["ready"]
        assert shedding["matches"] == len(found)
        if ratio < 0.5:
            assert shedding["estimated recall"] == pytest.approx(len(found) / len(full), abs=0.25)
    assert works == sorted(works, reverse=True)
    assert works[0] < 0.95
    assert works[-1] < 0.5


@pytest.mark.parametrize("kind", KINDS)
def test_a_restored_session_sheds_the_same(kind: type[Strategy]) -> None:
    engine = cepheid.Engine([PATTERN], shed=kind(observations=20_000))
    straight, broken = engine.open(), engine.open()
    for place, part in enumerate(slices(EVENTS)):
        ratio = (0.0, 0.0, 0.0, 0.0, 0.5, 0.3, 0.8, 0.5, 0.3)[place % 9] if place > 5 else 0.0
        if place % 3 == 0:
            broken = engine.restore(broken.snapshot())
        for session in (straight, broken):
            session.overload(ratio)
        assert push(straight, part).equals(push(broken, part))
        assert straight.report() == broken.report()
    plain = cepheid.Engine([PATTERN]).restore(broken.snapshot())  # shedding can be left out
    assert "shedding" not in plain.report()


WORDS = {
    cepheid.HSpice: {"events from partial matches"},
    cepheid.ESpice: {"events from windows"},
    cepheid.PSpice: {"partial matches"},
    cepheid.WeightedSampling: {"events, at random"},
}


@cache
def shed_by(place: int) -> tuple[bytes, bytes, dict[str, Any]]:
    """Of a session in an overload, with one of the strategies: the snapshot, the model alone, and the report."""
    session = cepheid.Engine([PATTERN], shed=KINDS[place](observations=20_000)).open()
    for place, part in enumerate(slices(EVENTS)):
        session.overload(0.5 if place > 6 else 0.0)
        push(session, part)
    model = session.shedding_model()
    assert model is not None
    return session.snapshot(), model, session.shedding()


@pytest.mark.parametrize("alone", [False, True])
@pytest.mark.parametrize(("first", "then"), list(permutations(KINDS, 2)))
def test_another_strategy_goes_on_with_what_was_learned(
    first: type[Strategy], then: type[Strategy], alone: bool
) -> None:
    """And decides by itself: it has other ways to drop work."""
    snapshot, model, report = shed_by(KINDS.index(first))
    engine = cepheid.Engine([PATTERN], shed=then(observations=20_000))
    if alone:
        session = engine.open()
        session.prepare(EVENTS.schema)
        assert session.resume_shedding(model)
        session.overload(0.5)
    else:
        session = engine.restore(snapshot)
    learned = session.shedding()
    assert learned["ready"]
    assert {**learned, "strategy": 0, "drops": 0, "ratio": 0} == {**report, "strategy": 0, "drops": 0, "ratio": 0}
    later = EVENTS.set_column(0, "ts", pa.compute.add(EVENTS["ts"], EVENTS["ts"][-1]))
    for part in slices(later)[:10]:
        push(session, part)
        assert set(session.shedding()["drops"]) <= WORDS.get(then, set().union(*WORDS.values()))
    session = engine.restore(session.snapshot())
    for name in ("pairs dropped", "partial matches dropped", "events dropped"):
        assert session.shedding()[name] >= report[name]
    assert session.shedding()["estimated false negatives"] > report["estimated false negatives"]


@pytest.mark.parametrize(
    ("pattern", "events", "targets"),
    [
        (simulated.sequence(), simulated.cascades(3500), (0.55,)),
        (simulated.any_three(), simulated.players(1800), (0.6,)),
    ],
    ids=["like Q1", "like Q4"],
)
def test_no_strategy_is_better_than_the_one_that_chooses(
    pattern: cepheid.Pattern, events: pa.Table, targets: tuple[float, ...]
) -> None:
    """For the same work, it loses no more than the best of the others, but for what chance makes of it."""
    for target in targets:
        found = {}
        truth = simulated.matches_after(pattern, events, None, 0.0, planner="pattern_order")
        for kind in KINDS:
            recall, work = simulated.recall_at(
                target, pattern, events, kind(observations=20_000), truth, planner="pattern_order"
            )
            found[kind.__name__] = recall - (work - target)  # what is left of the work is not quite the same for all
        best = max(recall for name, recall in found.items() if name != "CostAware")
        assert found["CostAware"] >= best - 0.04, found


@pytest.mark.parametrize("kind", KINDS)
def test_who_asks_changes_nothing(kind: type[Strategy]) -> None:
    """Events that wait for one that can complete a match are left in one push with it."""
    engine = cepheid.Engine([PATTERN], shed=kind(observations=5_000))
    straight, asked = engine.open(), engine.open()
    for place, part in enumerate([*slices(EVENTS.slice(0, 1500)), *slices(EVENTS.slice(1500), 2)]):
        for session in (straight, asked):
            session.overload(0.5 if place > 7 else 0.0)
        if place % 2 == 0:
            asked.shedding()
            asked.shedding_model()
        if place % 40 == 0:
            asked = engine.restore(asked.snapshot())
        assert push(straight, part).equals(push(asked, part))
    assert straight.shedding() == asked.shedding()
    assert straight.report() == asked.report()


def test_shedding_is_reported_alone_too() -> None:
    session = cepheid.Engine([PATTERN], shed=cepheid.PSpice(observations=20_000)).open()
    for place, part in enumerate(slices(EVENTS)):
        session.overload(0.5 if place > 6 else 0.0)
        push(session, part)
        assert session.shedding() == session.report()["shedding"]
    assert session.shedding()["pairs dropped"] > 0
    assert cepheid.Engine([PATTERN]).open().shedding() == {}


@pytest.mark.parametrize("kind", KINDS[:3])
def test_a_push_is_remembered_for_what_it_stands_for_whether_work_is_dropped_or_not(kind: type[Strategy]) -> None:
    """Then only a control group is seen. If it weighed less, what was before the overload would be remembered most."""
    session = cepheid.Engine([PATTERN], shed=kind(observations=20_000)).open()
    last, there, shown = 0, 0.0, 0.0
    for place, part in enumerate(slices(EVENTS)):
        session.overload(0.3 if place > 6 else 0.0)
        matches = push(session, part).num_rows
        (state,) = session._states
        assert state.shedder is not None
        remembered, before = state.shedder.model.matches, there
        there = state.shedder.lost.would_be
        new = np.arange(last, remembered.next if remembered.next >= last else remembered.next + remembered.room)
        last = remembered.next
        weight = float(remembered.weights[new % remembered.room].sum())
        assert weight == pytest.approx(there - before if place > 6 else matches)
        shown += weight if place > 6 else 0.0
    assert shown > 0


def test_before_there_is_a_model_events_are_dropped_alike() -> None:
    session = cepheid.Engine([PATTERN], shed=cepheid.HSpice(observations=10**9)).open()
    session.overload(0.5)
    for part in slices(EVENTS):
        push(session, part)
    report = session.report()["shedding"]
    assert not report["ready"]
    assert report["drops"] == ["events, at random, until there is a model"]
    assert report["events dropped"] == pytest.approx(0.5 * EVENTS.num_rows, rel=0.1)
    assert session.report()["buffered events"] < 0.6 * EVENTS.num_rows


def test_what_others_drop_is_kept_for_a_critical_pattern() -> None:
    """They share all their nodes, and the leaves; the one that is not critical then loses nothing either."""
    critical = PATTERN.named("critical").never_shed()
    other = simulated.sequence(types=4).named("other")
    expected = cepheid.match([critical], EVENTS).num_rows
    for kind in KINDS:
        session = cepheid.Engine([other, critical], shed=kind(observations=20_000), share="maximal").open()
        counts: dict[str, int] = {"critical": 0, "other": 0}
        for place, part in enumerate(slices(EVENTS)):
            session.overload(0.9 if place > 6 else 0.0)
            for name in push(session, part)["pattern"].to_pylist():
                counts[name] += 1
        for name in session.close()["pattern"].to_pylist():
            counts[name] += 1
        assert counts["critical"] == expected, kind


@pytest.mark.parametrize("kind", [cepheid.WeightedSampling, cepheid.CostAware])
def test_estimates_know_what_a_critical_pattern_keeps_for_others(kind: type[Strategy]) -> None:
    """It shares its A and C with the other pattern, which so loses no more than B events, and pairs."""
    rng = np.random.default_rng(1)
    events = pa.table(
        {"ts": np.arange(24_000), "type": rng.choice(list("ABCD"), 24_000), "x": rng.integers(0, 100, 24_000)}
    )
    up = cepheid.parse("NAME up PATTERN SEQ(A a, B b, C c) WHERE a.x < b.x AND b.x < c.x WITHIN 40 RETURN a.x")
    critical = cepheid.parse(
        "NAME critical PATTERN SEQ(A a, C c) WHERE a.x = c.x WITHIN 40 RETURN a.ts AS at NEVER SHED"
    )

    def found(ratio: float) -> tuple[int, dict[str, Any]]:
        session = cepheid.Engine([up, critical], shed=kind()).open()
        count = 0
        for place, part in enumerate(slices(events, 1000)):
            session.overload(ratio if place >= 12 else 0.0)
            names = push(session, part)["pattern"].to_pylist()
            count += names.count("up") if place >= 12 else 0
        return count, session.shedding()

    (full, _), (some, shedding) = found(0.0), found(0.5)
    assert shedding["estimated recall"] == pytest.approx(some / full, abs=0.1)
    # Of four types one is of use that the critical pattern does not need, and not more than these can be dropped.
    assert shedding["events dropped"] < 0.3 * 12_000


def test_negated_events_that_are_dropped_make_false_positives_and_are_reported() -> None:
    rng = np.random.default_rng(5)
    events = pa.table({"ts": np.arange(6000), "type": rng.choice(["A", "B", "N"], 6000, p=[0.4, 0.4, 0.2])})
    pattern = cepheid.parse("PATTERN SEQ(A a, NOT(N n), B b) WITHIN 8 RETURN a.ts AS x, b.ts AS y")
    full, _, _ = simulated.matches_after(pattern, events, None, 0.0)
    found, report, _ = simulated.matches_after(pattern, events, cepheid.WeightedSampling(observations=1000), 0.2)
    made_up = len(found - full)
    assert made_up > 50
    assert report["shedding"]["estimated false positives"] == pytest.approx(made_up, rel=0.35)
    found, report, _ = simulated.matches_after(pattern, events, cepheid.PSpice(observations=1000), 0.05)
    if not report["shedding"]["events dropped"]:
        assert not found - full


@pytest.mark.parametrize("strategy", ["skip_till_next", "strict"])
def test_runs_are_dropped_whole_where_events_are_selected_step_by_step(strategy: str) -> None:
    rng = np.random.default_rng(6)
    events = pa.table({"ts": np.arange(4000), "type": rng.choice(["A", "B", "C"], 4000)})
    pattern = cepheid.parse(
        f"PATTERN SEQ(A a, B b, C c) USING {strategy} WITHIN 20 RETURN a.ts AS x, b.ts AS y, c.ts AS z"
    )
    full, _, _ = simulated.matches_after(pattern, events, None, 0.0)
    for kind in (cepheid.HSpice, cepheid.CostAware):
        found, report, _ = simulated.matches_after(pattern, events, kind(observations=200), 0.6)
        assert found < full
        assert report["shedding"]["ready"]
        assert report["shedding"]["pairs dropped"] > 0


@pytest.mark.parametrize("strategy", ["skip_till_next", "strict"])
@pytest.mark.parametrize("kind", KINDS)
def test_runs_are_dropped_at_random_before_there_is_a_model_and_by_who_knows_nothing_better(
    kind: type[Strategy], strategy: str
) -> None:
    pattern = cepheid.parse(f"PATTERN SEQ(A a, NOT(D d), KL(B b), C c) USING {strategy} WITHIN 20 RETURN a.ts AS x")
    full, _, _ = simulated.matches_after(pattern, LETTERS, None, 0.0, batch=500)
    for ratio, observations in ((0.5, 10**9), (0.2, 1000)):
        shed = kind(observations=observations)
        found, report, _ = simulated.matches_after(pattern, LETTERS, shed, ratio, batch=500)
        shedding = report["shedding"]
        assert found < full
        assert shedding["ready"] == (observations < 10**9)
        assert shedding["estimated false positives"] == 0
        assert shedding["estimated recall"] == pytest.approx(len(found) / len(full), abs=0.1)
        if not shedding["ready"]:
            assert shedding["drops"] == ["events, at random, until there is a model"]
            assert len(found) == pytest.approx(0.5 * len(full), rel=0.2)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("observations", [1000, 10**9])
def test_what_cannot_be_dropped_is_not_said_to_be(kind: type[Strategy], observations: int) -> None:
    patterns = [cepheid.parse("PATTERN SEQ(A a, B b) WHERE a.x < b.x WITHIN 20 NEVER SHED")]
    session = cepheid.Engine(patterns, shed=kind(observations=observations)).open()
    for part in slices(LETTERS, 500):
        push(session, part)
        session.overload(0.5)
    shedding = session.shedding()
    assert shedding["drops"] == ["nothing"]
    assert shedding["events dropped"] + shedding["pairs dropped"] + shedding["partial matches dropped"] == 0


def test_a_stream_that_changes_is_learned_anew_while_it_is_shed() -> None:
    """The lag between A and B grows; the control group shows it, though all pairs with that lag are dropped."""
    rng = np.random.default_rng(7)

    def part(start: int, lag: int) -> pa.Table:
        a = start + np.arange(0, 20_000, 10)
        times = np.concatenate([a, a + lag, start + rng.integers(0, 20_000, 2000)])
        types = np.repeat(["A", "B", "B"], 2000)
        keys = np.concatenate([np.arange(2000), np.arange(2000), rng.integers(10**6, 10**7, 2000)])
        order = np.argsort(times, kind="stable")
        return pa.table({"ts": times[order], "type": types[order], "k": keys[order].astype(np.float64)})

    pattern = cepheid.parse("PATTERN SEQ(A a, B b) WHERE a.k - b.k = 0 AND a.k <= b.k WITHIN 1000")
    session = cepheid.Engine([pattern], planner="pattern_order", shed=cepheid.HSpice(observations=20_000)).open()

    def utilities() -> list[float]:
        (state,) = session._states
        assert state.shedder is not None
        model = state.shedder.model
        line = next(place for place, line in enumerate(model.lines) if not line.opens)
        found: list[float] = utility(model.worth, model.pairs)[line].tolist()
        return found

    for each in slices(part(0, 100), 500):
        push(session, each)
    before = int(np.argmax(utilities()))
    session.overload(0.5)
    for phase in range(1, 12):
        for each in slices(part(phase * 20_000, 800), 500):
            push(session, each)
    assert int(np.argmax(utilities())) > before


def test_many_branches_do_not_outweigh_many_moments() -> None:
    """What one push shows of a pattern with ANY does not take the place of all that was remembered before."""
    leaves = ", ".join(f"D{n} d{n}" for n in range(8))
    pattern = cepheid.parse(f"PATTERN SEQ(S s, ANY(2, {leaves})) WITHIN 100 RETURN s.ts AS x")
    session = cepheid.Engine([pattern], shed=cepheid.HSpice(observations=100)).open()
    types = np.resize(["S", *(f"D{n}" for n in range(8))], 9 * 400)
    for each in slices(pa.table({"ts": np.arange(len(types)), "type": types}), 360):
        assert push(session, each).num_rows > 1_000
    (state,) = session._states
    assert state.shedder is not None
    assert len(state.shedder._runs) == 28
    assert 10 * 28 <= state.shedder.model.matches.size <= 10 * (REMEMBERED + 28)


def test_pairs_are_counted_as_they_are() -> None:
    """Against all pairs of events, in a keyed and in a plain join, whatever the batches."""
    rng = np.random.default_rng(8)
    events = pa.table({"ts": np.arange(300), "type": rng.choice(["A", "B"], 300), "x": rng.normal(size=300)})
    pattern = cepheid.parse("PATTERN SEQ(A a, B b) WHERE a.x < b.x WITHIN 50")
    expected = sum(
        one["type"] == "A" and other["type"] == "B" and 0 < other["ts"] - one["ts"] <= 50
        for one in events.to_pylist()
        for other in events.to_pylist()
    )
    for size in (7, 60, 300):
        session = cepheid.Engine([pattern], planner="pattern_order", shed=cepheid.HSpice(observations=10**9)).open()
        matches = sum(session.push(part).num_rows for part in slices(events, size))
        session.report()  # does what was put off
        (state,) = session._states
        assert state.shedder is not None
        state.shedder._count()
        model = state.shedder.model
        line = next(place for place, line in enumerate(model.lines) if not line.opens)
        assert model.pairs[line].sum() == pytest.approx(
            expected, rel=0.03
        )  # ties at the edge of the window are looked at too
        assert model.completed[line].sum() == matches


def test_lots_are_drawn_evenly() -> None:
    assert len({mixed(number) % 64 for number in range(1000)}) == 64
    assert in_control(np.arange(64_000)).mean() == pytest.approx(1 / 64, rel=0.1)
    numbers = np.array([0, 1, 2, 63, 64, 10**9, 2**40, -5], dtype=np.int64)
    assert in_control(numbers).tolist() == [mixed(int(number)) % CONTROL == 0 for number in numbers]
    assert lots(numbers.reshape(-1, 1)).tolist() == [mixed(int(number)) % ALL for number in numbers]
    assert lots(np.arange(10_000).reshape(-1, 1)).mean() == pytest.approx(511.5, rel=0.02)


@pytest.mark.parametrize(("window", "step"), [(1, 0), (10, 0), (1000, 7), (2**40, 0), (60_000_000, 1_000_000)])
def test_every_place_has_a_bin(window: int, step: int) -> None:
    places = Places.of(window, step, 64)
    edge = (2 * (window + step)) >> places.shift
    assert edge < 64
    gate = places.gate(None, is_left=True, anchor=0, alike=0)
    assert gate.shape == (PROCESSED + 2, 64)
    assert OPEN.size == 0


def test_what_may_be_said() -> None:
    assert cepheid.HSpice("500 ms").seconds == 0.5
    assert cepheid.ESpice(dt.timedelta(seconds=2)).seconds == 2
    assert cepheid.PSpice(0.25).seconds == 0.25
    wrong: list[tuple[dict[str, Any], str]] = [
        ({"latency_bound": "5 events"}, "length of time"),
        ({"latency_bound": "soon"}, "length of time"),
        ({"latency_bound": 0}, "longer than nothing"),
        ({"safety": 1.0}, "between 0 and 1"),
        ({"weights": {"p": -1.0}}, "0 or more"),
        ({"observations": 0}, "1 or more"),
    ]
    for options, message in wrong:
        with pytest.raises(ValueError, match=message):
            cepheid.HSpice(**options)
    with pytest.raises(TypeError, match=r"such as cepheid\.HSpice"):
        cepheid.Engine([PATTERN], shed=3)
    with pytest.raises(ValueError, match="no pattern of that name; there are pattern_1"):
        cepheid.Engine([PATTERN], shed=cepheid.HSpice(weights={"other": 2.0}))
    with pytest.raises(ValueError, match=r"shed=cepheid\.HSpice"):
        cepheid.Engine([PATTERN]).open().overload(0.5)
    session = cepheid.Engine([PATTERN], shed=cepheid.HSpice()).open()
    for ratio in (-0.1, 1.0, float("nan")):
        with pytest.raises(ValueError, match="from 0 up to"):
            session.overload(ratio)


def test_a_pattern_that_weighs_more_loses_less() -> None:
    one, other = PATTERN.named("one"), simulated.sequence(types=4).named("other")
    recalls = {}
    for heavy in ("one", "other"):
        session = cepheid.Engine(
            [one, other], share="none", shed=cepheid.HSpice(weights={heavy: 100.0}, observations=20_000)
        ).open()
        counts = {"one": 0, "other": 0}
        for place, part in enumerate(slices(EVENTS)):
            session.overload(0.4 if place > 6 else 0.0)
            for name in push(session, part)["pattern"].to_pylist():
                counts[name] += 1
        recalls[heavy] = counts
    assert recalls["one"]["one"] > recalls["other"]["one"]
    assert recalls["other"]["other"] > recalls["one"]["other"]


@pytest.mark.parametrize("kind", KINDS[:3])
def test_an_order_that_is_not_that_of_time_loses_no_more_than_was_reckoned(kind: type[Strategy]) -> None:
    """A partial match then meets events that came before its last one, at places that are behind it already."""
    pattern, events, order = simulated.sequence(), simulated.cascades(3500), ["c4", "c2", "c5", "c1", "c3"]
    truth, _, _ = simulated.matches_after(pattern, events, None, 0.0, order=order)
    found, report, _ = simulated.matches_after(pattern, events, kind(observations=20_000), 0.3, order=order)
    recall = len(found & truth) / len(truth)
    assert recall > 0.5
    assert report["shedding"]["estimated recall"] == pytest.approx(recall, abs=0.2)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "patterns",
    [
        ("PATTERN B b WITHIN 10", "PATTERN SEQ(A a, B b) WITHIN 20"),
        ("PATTERN OR(B b, SEQ(A a, B b2)) WITHIN 20",),
        ("PATTERN SEQ(B b, KL(C c, 1, 2)) WITHIN 5", "PATTERN SEQ(A a, B b) WITHIN 20"),
    ],
)
def test_single_events_beside_sequences_that_end_with_them(kind: type[Strategy], patterns: tuple[str, ...]) -> None:
    session = cepheid.Engine([cepheid.parse(text) for text in patterns], shed=kind(observations=10_000)).open()
    for place, part in enumerate(slices(LETTERS, 500)):
        session.overload(0.4 if place >= 20 else 0.0)
        push(session, part)
    shedding = session.shedding()
    assert shedding["ready"]
    assert shedding["pairs dropped"] + shedding["events dropped"] + shedding["partial matches dropped"] > 0


def test_a_critical_pattern_takes_over_nothing_that_lacks_something() -> None:
    """Its new plan has a part in common with one from which pairs were dropped."""
    texts = [
        "NAME critical PATTERN SEQ(A a, B b, C c) WHERE a.x = b.x AND b.x < c.x WITHIN 100 NEVER SHED",
        "NAME other PATTERN SEQ(A a, B b, D d) WHERE a.x = b.x AND b.x > d.x WITHIN 100",
    ]
    late = Join(Join(Leaf("c"), Leaf("b")), Leaf("a"))
    early = Join(Join(Leaf("a"), Leaf("b")), Leaf("c"))

    def found(ratio: float) -> int:
        shed = cepheid.HSpice(observations=10_000)
        engine = cepheid.Engine([cepheid.parse(text) for text in texts], shed=shed, planner="pattern_order")
        session, count = engine.open(), 0
        session.prepare(LETTERS.schema)
        branch = next(iter(session.plans))
        assert session.change_plans({branch: late})
        for place, part in enumerate(slices(LETTERS, 500)):
            session.overload(ratio if place >= 20 else 0.0)
            if place == 30:
                session = engine.restore(session.snapshot())
                branch = next(iter(session.plans))
                assert session.change_plans({branch: early})
            count += pa.compute.sum(pa.compute.equal(push(session, part)["pattern"], "critical")).as_py() or 0
        assert bool(session.shedding()["pairs dropped"]) == bool(ratio)
        return count

    assert found(0.8) == found(0.0) > 0


@pytest.mark.parametrize("events", [("A a", "B b", "C c"), ("A a", "C c", "B b")])
def test_a_critical_pattern_that_comes_later_keeps_all_that_its_part_is_made_of(events: tuple[str, ...]) -> None:
    """It takes over the joins of a pattern with a longer window, and could find leaves of a shorter one beside them."""
    short = "NAME short PATTERN SEQ(A a, C c) WHERE a.x = c.x WITHIN 10"
    long = f"NAME long PATTERN SEQ({', '.join(events)}) WHERE a.x < c.x WITHIN 20"
    critical = long.replace("long", "critical").replace("20", "10 NEVER SHED")

    def found(ratio: float) -> int:
        shed = cepheid.HSpice(observations=10_000)
        session, count = cepheid.Engine([cepheid.parse(short)], share="maximal", shed=shed).open(), 0
        for place, part in enumerate(slices(LETTERS, 500)):
            if place in (5, 8):
                session.add(long if place == 5 else critical)
            session.overload(ratio if place >= 20 else 0.0)
            count += push(session, part)["pattern"].to_pylist().count("critical")
        shedding = session.shedding()
        assert bool(shedding["events dropped"] + shedding["pairs dropped"]) == bool(ratio)
        session.remove("long")
        left = cepheid.Engine([cepheid.parse(short), cepheid.parse(critical)], share="maximal", shed=shed)
        assert push(left.restore(session.snapshot()), part).equals(push(session, part))
        return count

    assert found(0.5) == found(0.0) > 0


@pytest.mark.parametrize("name", ["two", "three"])
def test_patterns_that_come_and_go_between_two_pushes(name: str) -> None:
    first = "NAME one PATTERN SEQ(A a, B b) WITHIN 20"
    second = "NAME two PATTERN SEQ(A a, C c) USING skip_till_next WITHIN 20"
    third = f"NAME {name} PATTERN SEQ(B b, D d) USING skip_till_next WITHIN 20"
    session = cepheid.Engine([cepheid.parse(first), cepheid.parse(second)], shed=cepheid.HSpice()).open()
    parts = slices(LETTERS, 500)
    for part in parts[:5]:
        push(session, part)
    session.remove("two")
    session.add(third)
    found = [push(session, part) for part in parts[5:10]]
    alone = cepheid.Engine([cepheid.parse(third)]).open()
    wanted = [push(alone, part).num_rows for part in parts[5:10]]
    assert [pa.compute.sum(pa.compute.equal(t["pattern"], name)).as_py() for t in found] == wanted
