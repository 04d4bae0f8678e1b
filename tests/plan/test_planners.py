"""Planners find what they promise: the exact ones the best plan, the others a valid one."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

import cepheid
from cepheid.pattern.normal import Branch
from cepheid.plan import orders, trees
from cepheid.plan.cardinality import Cardinality
from cepheid.plan.cost import order_cost, tree_cost
from cepheid.plan.planner import PLANNERS, make_plan
from cepheid.plan.tree import Join, Leaf, Plan, chain, variables
from cepheid.stats.estimates import Estimates, nothing_known

STRUCTURES = [
    "SEQ(A a, B b, C c, D d)",
    "AND(A a, B b, C c, D d)",
    "SEQ(A a, AND(B b, C c), D d)",
    "AND(SEQ(A a, B b), SEQ(C c, D d))",
    "SEQ(A a, KL(B b, 1, 3), C c, NOT(N n))",
]


def branch_of(structure: str, where: str = "a.x < b.x AND b.k = c.k AND a.y + c.y > 3") -> Branch:
    return cepheid.normalise(cepheid.parse(f"PATTERN {structure} WHERE {where} WITHIN 10")).branches[0]


@st.composite
def planned(draw: st.DrawFn) -> tuple[Branch, Cardinality]:
    branch = branch_of(draw(st.sampled_from(STRUCTURES)))
    rates = {v.name: draw(st.floats(0.01, 100)) for v in branch.variables}
    selectivity = {c: draw(st.floats(0.001, 1)) for c in branch.conditions}
    return branch, Cardinality(branch, Estimates(rates, selectivity))


def all_trees(names: tuple[str, ...]) -> list[Plan]:
    if len(names) == 1:
        return [Leaf(names[0])]
    return [
        Join(left, right)
        for size in range(1, len(names))
        for chosen in itertools.combinations(names, size)
        for left in all_trees(chosen)
        for right in all_trees(tuple(n for n in names if n not in chosen))
    ]


@given(planned())
def test_exact_order_search_finds_the_cheapest_of_all_orders(case: tuple[Branch, Cardinality]) -> None:
    branch, cardinality = case
    names = [v.name for v in branch.variables]
    best = min(order_cost(order, cardinality) for order in itertools.permutations(names))
    assert order_cost(orders.exact(branch, cardinality), cardinality) == pytest.approx(best)


@given(planned())
def test_exact_tree_search_finds_the_cheapest_of_all_trees(case: tuple[Branch, Cardinality]) -> None:
    branch, cardinality = case
    best = min(tree_cost(tree, cardinality) for tree in all_trees(tuple(v.name for v in branch.variables)))
    assert tree_cost(trees.bushy(branch, cardinality), cardinality) == pytest.approx(best)


@given(planned())
def test_zstream_finds_the_cheapest_tree_in_pattern_order(case: tuple[Branch, Cardinality]) -> None:
    branch, cardinality = case
    names = tuple(v.name for v in branch.variables)
    best = min(tree_cost(tree, cardinality) for tree in all_trees(names) if variables(tree) == names)
    assert tree_cost(trees.zstream(branch, cardinality), cardinality) == pytest.approx(best)


@given(planned(), st.sampled_from([*PLANNERS]))
def test_every_planner_uses_each_variable_once(case: tuple[Branch, Cardinality], planner: str) -> None:
    branch, cardinality = case
    plan = PLANNERS[planner](branch, cardinality)
    assert sorted(variables(plan)) == sorted(v.name for v in branch.variables)


def test_without_conditions_greedy_sorts_by_rate() -> None:
    branch = branch_of("AND(A a, B b, C c)", "TRUE")
    cardinality = Cardinality(branch, Estimates({"a": 5.0, "b": 1.0, "c": 3.0}))
    assert orders.greedy(branch, cardinality) == orders.by_rate(branch, cardinality) == ("b", "c", "a")


def test_the_order_of_a_sequence_counts_once() -> None:
    """Of three events in a window, one order in six is a < b < c; of two, one in two."""
    cardinality = Cardinality(branch_of("SEQ(A a, B b, C c)", "TRUE"), Estimates({"a": 10.0, "b": 10.0, "c": 10.0}))
    assert cardinality.of(frozenset("abc")) == pytest.approx(1000 / 6)
    assert cardinality.of(frozenset("ac")) == pytest.approx(100 / 2)


def test_a_kl_variable_counts_its_sets() -> None:
    cardinality = Cardinality(branch_of("AND(A a, KL(B b, 1, 2), C c)", "TRUE"), Estimates({"b": 4.0}))
    assert cardinality.of(frozenset("b")) == pytest.approx(4 + 4**2 / 2)


def test_a_given_order() -> None:
    branch = branch_of("SEQ(A a, B b, C c)")
    assert make_plan(branch, nothing_known(branch), order=["c", "a", "b"]) == chain(["c", "a", "b"])
    for wrong in (["a", "b"], ["a", "b", "c", "c"]):
        with pytest.raises(ValueError, match="each variable once"):
            make_plan(branch, nothing_known(branch), order=wrong)


def test_auto_starts_with_what_is_rare() -> None:
    branch = branch_of("SEQ(A a, B b, C c)")
    plan = make_plan(branch, Estimates({"a": 100.0, "b": 100.0, "c": 0.0}))
    assert variables(plan)[0] == "c"
