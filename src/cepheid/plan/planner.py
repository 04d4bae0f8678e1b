"""From a branch and what is known of the stream to a plan."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from cepheid.pattern.normal import Branch
from cepheid.plan import orders, trees
from cepheid.plan.cardinality import Cardinality
from cepheid.plan.cost import tree_cost
from cepheid.plan.tree import Plan, chain, search
from cepheid.stats.estimates import Estimates

CLEARLY = 0.8
"""A tree that is not a chain keeps partial matches on both sides of a join; it must cost less by this factor."""

PLANNERS: dict[str, Callable[[Branch, Cardinality], Plan]] = {
    "pattern_order": lambda branch, cardinality: chain(orders.pattern_order(branch, cardinality)),
    "rate": lambda branch, cardinality: chain(orders.by_rate(branch, cardinality)),
    "greedy": lambda branch, cardinality: chain(orders.greedy(branch, cardinality)),
    "dp_left": lambda branch, cardinality: chain(orders.exact(branch, cardinality)),
    "zstream": trees.zstream,
    "dp_bushy": trees.bushy,
    "dynamic": lambda branch, cardinality: search(orders.pattern_order(branch, cardinality)),
}

UNASKED = ("pattern_order", "dynamic")
"""Those that give the same plan whatever is known of the stream."""


def make_plan(branch: Branch, estimates: Estimates, planner: str = "auto", order: Sequence[str] | None = None) -> Plan:
    """The plan of a planner, or the chain of a given order.

    ``auto`` takes the best left-deep tree, and a bushy one only if it promises to be clearly cheaper: it keeps partial
    matches on both sides of a join.
    """
    if order is not None:
        return chain(_checked_order(branch, order))
    return plan_with(branch, Cardinality(branch, estimates), planner)


def plan_with(branch: Branch, cardinality: Cardinality, planner: str) -> Plan:
    """The plan of a planner."""
    if planner != "auto":
        return PLANNERS[planner](branch, cardinality)
    left_deep = PLANNERS["dp_left"](branch, cardinality)
    bushy = PLANNERS["dp_bushy"](branch, cardinality)
    return bushy if tree_cost(bushy, cardinality) < CLEARLY * tree_cost(left_deep, cardinality) else left_deep


def _checked_order(branch: Branch, order: Sequence[str]) -> list[str]:
    """The part of an order that a branch has; it must name every variable, once."""
    names = [v.name for v in branch.variables]
    missing = [name for name in names if name not in order]
    if missing or len(set(order)) < len(order):
        raise ValueError(
            f"order names each variable once: expected {', '.join(names)} in some order, got {', '.join(order)}"
        )
    return [name for name in order if name in names]
