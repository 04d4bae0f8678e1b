"""What a plan costs: the partial matches that it makes."""

from __future__ import annotations

from collections.abc import Sequence

from cepheid.plan.cardinality import Cardinality
from cepheid.plan.tree import Leaf, Plan, Search, variables


def order_cost(order: Sequence[str], cardinality: Cardinality) -> float:
    """The papers' Cost_ord: the partial matches over each prefix of an order, in one window."""
    return sum(cardinality.of(frozenset(order[: k + 1])) for k in range(len(order)))


def tree_cost(plan: Plan, cardinality: Cardinality) -> float:
    """The papers' Cost_tree: Cost(L) + Cost(R) + Card(L, R), and the events themselves at the leaves.

    For a left-deep tree this counts, beyond Cost_ord, the events of the variables after the first, which all trees have
    in common.
    """
    here = cardinality.of(frozenset(variables(plan)))
    if isinstance(plan, Leaf):
        return here
    if isinstance(plan, Search):  # the rarest first, as a rule
        return order_cost(sorted(plan.variables, key=lambda v: cardinality.of(frozenset({v}))), cardinality)
    return tree_cost(plan.left, cardinality) + tree_cost(plan.right, cardinality) + here
