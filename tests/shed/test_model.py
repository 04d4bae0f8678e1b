"""The model of hSPICE: its utility table, virtual window and threshold array."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import cepheid
from cepheid.shed.model import Line, Model, ThresholdArray, utility
from cepheid.shed.reckoning import Reckoning

# The paper's example 2, SEQ(A; B) in windows of five events. Each window is the type at each position, and at which
# positions an event contributes to the window's partial match. Figure 3 shows what came of the six of them.
WINDOWS = [
    ("AABBA", {0, 3}),  # completes
    ("AABBB", {0, 4}),  # completes
    ("AAABB", {2, 4}),  # completes
    ("AAABB", {2}),
    ("AAAAB", {3}),
    ("AAAAB", {3}),
]


def observed() -> Model:
    """What the automaton of the example sees, event by event."""
    model = Model(5)
    lines = [("s0", "A"), ("s0", "B"), ("s1", "A"), ("s1", "B")]
    model.place([Line(key, key[1]) for key in lines])
    for types, contributing in WINDOWS:
        state, contributed = "s0", []
        for position, type_ in enumerate(types):
            if state == "s2":
                break
            line = lines.index((state, type_))
            model.saw(line, np.bincount([position], minlength=5))
            if position in contributing:
                contributed.append((line, position))
                state = "s1" if state == "s0" else "s2"
        if state == "s2":
            for line, position in contributed:
                model.saw_completed(line, np.array([position]))
        model.passed(1)
    return model


def test_the_worked_example_of_the_paper() -> None:
    """Figure 4, in per cent. A strategy judges places together with their neighbours and their line, by the same."""
    found = utility(observed().worth, observed().pairs)
    table = dict(zip(["s0 A", "s0 B", "s1 A", "s1 B"], np.rint(100 * found).tolist(), strict=True))
    assert table == {
        "s0 A": [33, 0, 25, 0, 0],
        "s0 B": [0, 0, 0, 0, 0],
        "s1 A": [0, 0, 0, 0, 0],
        "s1 B": [0, 0, 0, 25, 40],
    }


def test_the_worked_example_in_a_plan_of_joins() -> None:
    """The engine sees what the automaton sees, where an event meets a partial match: B at state s1."""
    events = []
    for window, (types, contributing) in enumerate(WINDOWS):
        # In a plan of joins an A that does not contribute opens no partial match, and after its end a match is no more
        # looked at: so the last event of the first window has another type.
        for position, type_ in enumerate(types):
            if type_ == "A" and position not in contributing:
                continue
            events.append({"ts": 5 * window + position, "type": type_, "x": int(position in contributing)})
    engine = cepheid.Engine(
        [cepheid.parse("PATTERN SEQ(A a, B b) WHERE a.x <= b.x WITHIN 5 SLIDE 5")],
        planner="pattern_order",
        shed=cepheid.HSpice(observations=1_000_000),
    )
    session = engine.open()
    for event in events:
        session.push(pa.Table.from_pylist([event]))
    assert session.close().num_rows == 0
    (state,) = session._states
    assert state.shedder is not None
    state.shedder._count()
    model, survey = state.shedder.model, state.shedder._survey
    assert survey is not None
    (line,) = [place for place, line in enumerate(model.lines) if not line.opens]
    assert model.lines[line].type == "B"
    places = survey.places[line]
    found = utility(model.worth, model.pairs)[line]
    assert [int(np.rint(100 * found[(p + places.offset) >> places.shift])) for p in range(5)] == [0, 0, 0, 25, 40]


def test_the_virtual_window_is_the_average_over_windows() -> None:
    """Shares of it are dropped, so nothing but this test needs it for a single window."""
    window = observed().pairs / observed().windows
    assert window.sum() == pytest.approx(sum(4 if n == 0 else 5 for n in range(6)) / 6)  # the first one ends early
    assert window[0].tolist() == pytest.approx([1, 4 / 6, 4 / 6, 2 / 6, 0])


def test_the_threshold_array_of_the_example() -> None:
    """The paper's has a place for each pair. It is the largest utility of which any is dropped for so many."""
    utilities, pairs = utility(observed().worth, observed().pairs).ravel(), observed().pairs.ravel()
    every = np.sort(np.repeat(utilities, pairs.astype(np.int64)))
    shares = ThresholdArray.of(utilities, pairs).shares(np.arange(1.0, len(every) + 1))
    there = (pairs[:, None] > 0) & (shares > 0)
    assert np.where(there, utilities[:, None], 0.0).max(axis=0).tolist() == pytest.approx(every.tolist())
    assert not ThresholdArray.of(utilities, pairs).shares(np.zeros(1))[pairs > 0].any()


cells = st.lists(
    st.tuples(st.sampled_from([0.0, 0.1, 0.25, 0.5]) | st.floats(0, 1), st.integers(0, 5000)), min_size=1, max_size=40
)


@given(cells, st.floats(0, 1))
def test_as_much_is_dropped_as_was_promised(cells: list[tuple[float, int]], share: float) -> None:
    """From the virtual window, ρ_v pairs: the least useful ones, and of those at the threshold no more than needed."""
    utilities, occurrences = (np.array(column, dtype=np.float64) for column in zip(*cells, strict=True))
    wanted = share * occurrences.sum()
    parts = ThresholdArray.of(utilities, occurrences).shares(np.array([wanted]))[:, 0]
    dropped = float((parts * occurrences).sum())
    assert dropped == pytest.approx(wanted, abs=1e-6)
    worst_dropped = max((u for u, p, n in zip(utilities, parts, occurrences, strict=True) if p > 0 and n), default=0.0)
    best_kept = min((u for u, p, n in zip(utilities, parts, occurrences, strict=True) if p < 1 and n), default=1.0)
    assert worst_dropped <= best_kept


def test_new_plans_are_learned_anew_and_old_ones_kept() -> None:
    model = Model(4)
    model.place([Line("one", "A"), Line("two", "B")])
    model.saw(0, np.array([1, 2, 3, 4]))
    model.saw(1, np.array([5, 5, 5, 5]))
    model.saw_completed(0, np.array([1, 1]))
    model.matches.add({0: np.array([1, 1])}, 2)
    model.make()
    model.place([Line("three", "C"), Line("one", "A")])
    assert not model.ready
    assert model.pairs.tolist() == [[0, 0, 0, 0], [1, 2, 3, 4]]
    assert model.matches.paths[:2].tolist() == [[-1, 1], [-1, 1]]
    model.make()
    model.place([Line("one", "A")])
    assert model.ready


def test_what_is_new_beside_most_of_the_work_is_left_alone_until_it_is_known() -> None:
    model = Model(4)
    model.place([Line("one", "A"), Line("two", "B")])
    model.saw(0, np.array([5, 5, 5, 5]))
    model.saw(1, np.array([1, 2, 3, 4]))
    model.make()
    model.place([Line("three", "C"), Line("one", "A")])
    assert model.ready
    assert not model.settled
    assert Reckoning.of(model).sheddable.tolist() == [False, True]
    model.make()
    assert Reckoning.of(model).sheddable.tolist() == [True, True]


def test_a_model_is_known_by_many_moments_and_fades_as_they_are_replaced() -> None:
    """However many matches a moment has, no more than a few of them are remembered, and it is one moment."""
    model = Model(4)
    model.place([Line("a", "A")])
    model.saw(0, np.array([8, 8, 8, 8]))
    model.passed(40.0)
    model.fresh = model.matches.room - 1
    model.make()
    assert model.ready
    assert not model.settled
    assert model.pairs.tolist() == [[8, 8, 8, 8]]
    model.fresh += 1
    model.make()
    assert model.settled
    assert model.pairs.tolist() == [[4, 4, 4, 4]]
    model.windows = 40.0
    model.make()  # nothing was seen since
    assert model.pairs.tolist() == [[4, 4, 4, 4]]
    rare = Model(4)
    rare.windows = 2047.0
    rare.make()
    assert not rare.settled
    rare.windows = 2048.0  # no more is to be expected
    rare.make()
    assert rare.settled
    model.windows = 2048.0  # where matches are rare, what is known of them is not forgotten for nothing
    model.make()
    assert model.pairs.tolist() == [[4, 4, 4, 4]]


def test_many_matches_of_next_to_no_pair_are_not_expected_of_all_that_are_dropped_there() -> None:
    """What was seen long ago has faded: of a pair, a thousandth may be left, and then it is in a burst of matches."""
    model = Model(4)
    model.place([Line("a", "A")])
    model.saw(0, np.array([1000.0, 1000.0, 1000.0, 0.001]))
    model.saw_completed(0, np.array([0, 1, 2, 3]), count=100.0)
    assert model.completions()[0, :3].tolist() == pytest.approx([0.1] * 3, rel=0.05)
    assert model.completions()[0, 3] < 10.0
    model.born[0] = [0.001, 0.0, 0.0, 500.0]
    assert model.promises(0, 0, in_order=True).max() < 100.0


def test_matches_of_pairs_that_were_never_seen_say_nothing_of_others() -> None:
    """Where a strategy drops all pairs of a line, its matches still come of those before."""
    model = Model(4)
    model.place([Line("one", "A"), Line("two", "B")])
    model.saw(0, np.full(4, 100), 1.0)
    for line in (0, 1):
        model.saw_completed(line, np.array([1, 1, 2]), count=1000.0)
    assert model.completions()[0].max() < 30
    assert model.completions()[1].tolist() == [0.0] * 4


@pytest.mark.parametrize("windows", [0.25, 1.0, 18.0, 62.3])
def test_half_of_what_is_seen_is_judged_by_the_other_half_however_long_pushes_are(windows: float) -> None:
    model = Model(bins=4)
    found = []
    for _ in range(80):
        found.append(model.odd)
        model.passed(windows)
    assert sum(found) == len(found) // 2
    turns = sum(one != other for one, other in pairwise(found))
    assert turns == pytest.approx(80 * min(1.0, windows), abs=1)
