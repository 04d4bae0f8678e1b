"""What a plan costs: the partial matches that it makes, and the pairs that it looks at for them."""

from __future__ import annotations

from collections.abc import Sequence

from cepheid.plan.cardinality import Cardinality
from cepheid.plan.tree import Join, Plan, Search, variables


def order_cost(order: Sequence[str], cardinality: Cardinality) -> float:
    """The papers' Cost_ord: the work for each prefix of an order, in one window."""
    return sum(cardinality.step(*step) for step in order_steps(order))


def order_steps(order: Sequence[str]) -> tuple[tuple[frozenset[str], frozenset[str]], ...]:
    """What each step of an order joins: the variables so far with the next one."""
    first = ((frozenset(order[:1]), frozenset[str]()),)
    return first + tuple((frozenset(order[:k]), frozenset({order[k]})) for k in range(1, len(order)))


def tree_cost(plan: Plan, cardinality: Cardinality) -> float:
    """The papers' Cost_tree: Cost(L) + Cost(R) + the work of their join, and the events themselves at the leaves.

    For a left-deep tree this counts, beyond Cost_ord, the events of the variables after the first, which all trees have
    in common.
    """
    if isinstance(plan, Search):  # the rarest first, as a rule
        return order_cost(sorted(plan.variables, key=lambda v: cardinality.of(frozenset({v}))), cardinality)
    return sum(cardinality.step(*step) for step in tree_steps(plan))


def tree_steps(plan: Plan) -> tuple[tuple[frozenset[str], frozenset[str]], ...]:
    """What each node of a tree joins, children before their parent; a leaf joins nothing."""
    found: list[tuple[frozenset[str], frozenset[str]]] = []

    def visit(node: Plan) -> frozenset[str]:
        joined = (
            (visit(node.left), visit(node.right)) if isinstance(node, Join) else (frozenset(variables(node)), _NONE)
        )
        found.append(joined)
        return joined[0] | joined[1]

    visit(plan)
    return tuple(found)


_NONE: frozenset[str] = frozenset()
