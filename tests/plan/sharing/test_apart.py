"""Plans that each branch has by itself, and what is equal in them."""

from __future__ import annotations

import pytest

import cepheid
from cepheid.pattern.normal import Branch
from cepheid.plan.cardinality import Cardinality
from cepheid.plan.cost import tree_cost
from cepheid.plan.sharing.apart import Priced, gain, in_common, worth_taking
from cepheid.plan.tree import Plan, chain
from cepheid.stats.estimates import Estimates


def branches(*texts: str) -> list[Branch]:
    return [branch for text in texts for branch in cepheid.normalise(cepheid.parse(text)).branches]


ALIKE = branches(*(f"PATTERN SEQ(A a, B b, {last} z) WHERE a.x < b.x WITHIN 10" for last in "CDE"))
OTHER = branches("PATTERN SEQ(X a, Y b, Z c) WITHIN 10")
RARE = {b: Cardinality(b, Estimates({"a": 100, "b": 100, "z": 6})) for b in ALIKE}
SHARED: dict[Branch, Plan] = {b: chain(["a", "b", "z"]) for b in ALIKE}
OWN: dict[Branch, Plan] = {b: chain(["z", "b", "a"]) for b in ALIKE}


def test_who_has_something_in_common() -> None:
    counted = branches("PATTERN SEQ(A a, B b, C c) WHERE a.x < b.x WITHIN 10 EVENTS")
    assert in_common([*ALIKE, *OTHER, *counted]) == frozenset(ALIKE)
    assert in_common(ALIKE[:1]) == frozenset()


def test_what_several_have_is_paid_once() -> None:
    [first, *_] = ALIKE
    alone = tree_cost(SHARED[first], RARE[first]) / 10
    assert Priced({first: RARE[first]}, SHARED).cost == pytest.approx(alone)
    prefix = RARE[first].step(frozenset("a"), frozenset("b")) + 200
    assert Priced(RARE, SHARED).cost == pytest.approx(3 * alone - 2 * prefix / 10)
    assert gain(RARE, SHARED, SHARED, leaves=True) < 0, "by itself, each pays for all of it"


def test_a_branch_keeps_what_others_pay_for() -> None:
    assert all(tree_cost(OWN[b], RARE[b]) < tree_cost(SHARED[b], RARE[b]) for b in ALIKE)
    assert worth_taking(RARE, SHARED, OWN) == ({}, 0.0)


def test_what_has_become_costly_is_given_up_by_all_though_by_none_alone() -> None:
    costly = {b: Cardinality(b, Estimates({"a": 100, "b": 100, "z": 2})) for b in ALIKE}
    for branch in ALIKE:
        assert gain(costly, SHARED, {branch: OWN[branch]}) < 0
    taken, saved = worth_taking(costly, SHARED, OWN)
    assert taken == OWN
    assert saved == gain(costly, SHARED, OWN) > 0


def test_only_those_change_that_gain_by_it() -> None:
    looks = {**RARE, **{b: Cardinality(b, Estimates({"a": 50, "b": 50, "c": 1})) for b in OTHER}}
    plans = {**SHARED, **{b: chain(["a", "b", "c"]) for b in OTHER}}
    answers = {**OWN, **{b: chain(["c", "b", "a"]) for b in OTHER}}
    assert list(worth_taking(looks, plans, answers)[0]) == OTHER
