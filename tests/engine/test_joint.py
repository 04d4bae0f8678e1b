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


@pytest.mark.parametrize("seed", range(4))
def test_of_more_it_is_near(seed: int) -> None:
    found, times, values = joint(16, seed)
    assert found.share(frozenset("abc")) == pytest.approx(true_share("abc", times, values), rel=0.05), "all are tried"
    assert found.share(frozenset("abcd")) == pytest.approx(true_share("abcd", times, values), rel=0.3)


def test_on_the_whole_it_is_right() -> None:
    """However few go on: what is found is too low as often as it is too high."""
    found, truth = 0.0, 0.0
    for seed in range(300):
        some, times, values = joint(12, seed, most=12)
        found += some.share(frozenset("abc")) or 0.0
        truth += true_share("abc", times, values)
    assert found == pytest.approx(truth, rel=0.05)


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
