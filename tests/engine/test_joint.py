"""How many combinations of events satisfy all conditions: what is found by some of them, and what is true."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise, product

import numpy as np
import pyarrow as pa
import pytest

import cepheid
from cepheid.engine.joint import Joint, Places
from cepheid.engine.vector import Mask
from cepheid.pattern.normal import Condition

PATTERN = cepheid.parse("PATTERN SEQ(A a, B b, C c, D d) WHERE a.x < b.x AND b.x < c.x AND c.x < d.x WITHIN 1000")
BRANCH = cepheid.normalise(PATTERN).branches[0]
NAMES = ("a", "b", "c", "d")


def joint(count: int, seed: int = 0, most: int = 200) -> tuple[Joint, dict[str, Places], dict[str, Places]]:
    rng = np.random.default_rng(seed)
    times = {name: np.sort(rng.choice(100_000, count, replace=False)) for name in NAMES}
    values = {name: rng.integers(0, 1000, count) for name in NAMES}

    def judge(condition: Condition, places: Mapping[str, Places]) -> Mask:
        x, y = sorted(condition.variables)
        found: Mask = values[x][places[x]] < values[y][places[y]]
        return found

    return Joint(BRANCH, times, judge, most), times, values


def true_share(names: str, times: Mapping[str, Places], values: Mapping[str, Places]) -> float:
    good = 0
    for chosen in product(range(len(times["a"])), repeat=len(names)):
        pairs = list(zip(names, chosen, strict=True))
        good += all(
            times[x][i] < times[y][j] and (ord(y) - ord(x) > 1 or values[x][i] < values[y][j])
            for (x, i), (y, j) in pairwise(pairs)
        )
    return good / len(times["a"]) ** len(names)


@pytest.mark.parametrize("names", ["ab", "bc", "cd", "ac"])
def test_of_two_variables_it_is_exact(names: str) -> None:
    found, times, values = joint(30)
    assert found.share(frozenset(names)) == pytest.approx(true_share(names, times, values), rel=0.01)


@pytest.mark.parametrize("names", ["abc", "bcd", "abcd"])
def test_a_chain_of_comparisons_is_counted(names: str) -> None:
    found, times, values = joint(14, most=1)
    assert found.share(frozenset(names)) == pytest.approx(true_share(names, times, values), abs=14.0 ** -len(names))


STAR = "PATTERN AND(A a, B b, C c, D d) WHERE b.x < a.x AND b.x < c.x AND d.x < b.x WITHIN 1000"
RING = "PATTERN SEQ(A a, B b, C c) WHERE a.x < b.x AND a.x < c.x WITHIN 1000"
THREE = "PATTERN AND(A a, B b, C c) WHERE a.x + b.x < c.x WITHIN 1000"


def tried(pattern: str, names: str, count: int, seed: int, most: int) -> tuple[float | None, float]:
    """What is found, and what is true: all combinations are looked at."""
    [branch] = cepheid.normalise(cepheid.parse(pattern)).branches
    rng = np.random.default_rng(seed)
    times = {name: np.sort(rng.choice(100_000, count, replace=False)) for name in names}
    values = {name: rng.integers(0, 100, count) for name in names}

    def holds(condition: Condition, x: Mapping[str, Places]) -> Mask:
        good: Mask = values["a"][x["a"]] + values["b"][x["b"]] < values["c"][x["c"]]
        return good

    def judge(condition: Condition, places: Mapping[str, Places]) -> Mask:
        if len(condition.variables) == 3:
            return holds(condition, places)
        x, operator, y = str(condition).replace(".x", "").split()
        x, y = (x, y) if operator == "<" else (y, x)
        found: Mask = values[x][places[x]] < values[y][places[y]]
        return found

    shape = np.indices((count,) * len(names))
    places = dict(zip(names, shape, strict=True))
    good = np.ones(shape.shape[1:], dtype=np.bool_)
    for x, y in branch.order:
        good &= times[x][places[x]] < times[y][places[y]]
    for condition in branch.conditions:
        good &= judge(condition, places)
    return Joint(branch, times, judge, most).share(frozenset(names)), float(good.mean())


def test_so_is_a_star() -> None:
    found, truth = tried(STAR, "abcd", 12, 0, most=1)
    assert found == pytest.approx(truth, abs=12.0**-4)


@pytest.mark.parametrize("pattern", [RING, THREE])
def test_what_is_no_tree_is_tried_on_some(pattern: str) -> None:
    """However few go on: what is found is too low as often as it is too high."""
    all_go_on, truth = tried(pattern, "abc", 12, 0, most=12**3)
    assert all_go_on == pytest.approx(truth, rel=0.05)
    found, true = zip(*(tried(pattern, "abc", 12, seed, most=12) for seed in range(900)), strict=True)
    assert sum(found) == pytest.approx(sum(true), rel=0.05)
    assert max(abs(one - two) for one, two in zip(found, true, strict=True)) > 0.01


def test_of_a_variable_without_events_nothing_is_known() -> None:
    found = Joint(BRANCH, {"a": np.arange(3), "b": np.arange(3)}, lambda condition, places: None, 200)
    assert found.share(frozenset("ac")) is None
    assert found.share(frozenset("ab")) is None, "nor of a condition that can no longer be tried"
    assert found.share(frozenset("a")) == 1.0


def test_what_was_known_of_a_moment_stays_known() -> None:
    rng = np.random.default_rng(0)
    engine = cepheid.Engine([cepheid.parse(str(PATTERN).replace("WITHIN 1000", "WITHIN 100"))])

    def push(session: cepheid.Session, start: int, falling: bool) -> None:
        x = rng.random(3000) - np.linspace(0, 30, 3000) * falling
        kinds = rng.choice(list("ABCD"), 3000)
        session.push(pa.table({"ts": start + np.arange(3000), "type": kinds, "x": x}), watermark=start + 3000)

    session = engine.open()
    push(session, 0, falling=False)
    [then], [same] = session.estimates().values(), session.estimates().values()
    known = same.joint(frozenset("abc"))
    push(session, 3000, falling=True)
    [now] = session.estimates().values()
    assert then.joint(frozenset("abc")) == known != now.joint(frozenset("abc"))
    assert known is not None
    assert known > 0
