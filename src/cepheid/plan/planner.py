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

MOST_AGAIN = 8
"""While a stream waits, all orders and all trees are searched for patterns of so many variables at the most; each
variable more takes twice to thrice as long, and more than a second for eleven."""
EXHAUSTIVE = ("auto", "dp_left", "dp_bushy")

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


def quick(planner: str, branch: Branch) -> str:
    """The planner to plan a branch with again, while the stream waits.

    >>> from cepheid.pattern.normalise import normalise
    >>> from cepheid.pattern.read import parse
    >>> [branch] = normalise(parse(f"PATTERN SEQ({', '.join(f'A v{n}' for n in range(9))}) WITHIN 10")).branches
    >>> quick("auto", branch), quick("zstream", branch)
    ('greedy', 'zstream')
    """
    return "greedy" if planner in EXHAUSTIVE and _planned(branch) > MOST_AGAIN else planner


def again(planner: str, branch: Branch) -> int:
    """What it takes to plan a branch again, in variables of a planner that does not search all subsets of them.

    >>> from cepheid.pattern.normalise import normalise
    >>> from cepheid.pattern.read import parse
    >>> [branch] = normalise(parse(f"PATTERN SEQ({', '.join(f'A v{n}' for n in range(8))}) WITHIN 10")).branches
    >>> again("auto", branch), again("greedy", branch)
    (64, 8)
    """
    subsets = 2 ** _planned(branch) if quick(planner, branch) in EXHAUSTIVE else 0
    return max(len(branch.names), subsets // 4)


def _planned(branch: Branch) -> int:
    """How many variables there is a plan for: sets come after it."""
    return sum(not v.is_kleene for v in branch.variables)


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
