"""An evaluation plan: a binary tree over the variables of a branch, read as a join plan.

A left-deep tree is a lazy chain automaton, the left-deep tree in pattern order the eager automaton, and a bushy tree a
ZStream plan. A search is the lazy tree automaton: it has no order of its own and finds one anew for each event.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any, TypeAlias


@dataclass(frozen=True, slots=True)
class Leaf:
    """The events of one variable."""

    variable: str

    def __str__(self) -> str:
        return self.variable


@dataclass(frozen=True, slots=True)
class Join:
    """Partial matches of the left side combined with those of the right."""

    left: Plan
    right: Plan

    def __str__(self) -> str:
        return f"({self.left} ⋈ {self.right})"


@dataclass(frozen=True, slots=True)
class Search:
    """From each new event on, the variable with the fewest events in reach comes next. No partial match is kept."""

    variables: tuple[str, ...]

    def __str__(self) -> str:
        return f"search({', '.join(self.variables)})"


Plan: TypeAlias = Leaf | Join | Search


def chain(order: Sequence[str]) -> Plan:
    """The left-deep tree that takes the variables in this order.

    >>> print(chain(["c", "a", "b"]))
    ((c ⋈ a) ⋈ b)
    """
    leaves: list[Plan] = [Leaf(variable) for variable in order]
    return reduce(Join, leaves)


def as_lists(plan: Plan | None) -> Any:
    """A tree as nested lists of names, which JSON can hold.

    >>> as_lists(chain(["c", "a", "b"]))
    [['c', 'a'], 'b']
    """
    match plan:
        case None:
            return None
        case Leaf(variable):
            return variable
        case Join(left, right):
            return [as_lists(left), as_lists(right)]
        case Search(names):
            return {"search": list(names)}


def from_lists(found: Any) -> Plan | None:
    """The plan that :func:`as_lists` wrote.

    >>> print(from_lists([["c", "a"], "b"]))
    ((c ⋈ a) ⋈ b)
    """
    match found:
        case None:
            return None
        case str():
            return Leaf(found)
        case [left, right]:
            one, other = from_lists(left), from_lists(right)
            if one is not None and other is not None:
                return Join(one, other)
        case {"search": [*names]}:
            return Search(tuple(map(str, names)))
    raise ValueError(f"{found!r} is no plan")


def search(names: Sequence[str]) -> Plan:
    """The search over some variables; for one alone there is nothing to search."""
    return Search(tuple(names)) if len(names) > 1 else Leaf(names[0])


def variables(plan: Plan) -> tuple[str, ...]:
    """From left to right."""
    if isinstance(plan, Join):
        return variables(plan.left) + variables(plan.right)
    return plan.variables if isinstance(plan, Search) else (plan.variable,)


def nodes(plan: Plan) -> Iterator[Plan]:
    """Every node, children before their parent, left before right: the order in which they are evaluated."""
    if isinstance(plan, Join):
        yield from nodes(plan.left)
        yield from nodes(plan.right)
    yield plan
