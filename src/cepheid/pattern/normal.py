"""The normal form of a pattern: branches without OR, each a set of variables, an order and conditions."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, fields, replace
from enum import Enum
from typing import Any, TypeAlias

from cepheid.language import syntax as s
from cepheid.language.text import expression_text
from cepheid.pattern.describe import describe


def judged_with(expression: s.Expression) -> tuple[frozenset[str], frozenset[str]]:
    """What decides when a condition is judged: its variables, and those whose sets must be closed first."""
    closed = frozenset(node.variable for node in s.walk(expression) if isinstance(node, s.Aggregate))
    return s.variables(expression), closed


class ConditionKind(str, Enum):
    """How a condition can be evaluated."""

    FILTER = "filter"  # one variable: decides which events enter its relation
    EQUALITY = "equality"  # f(a) = g(b): found by key
    COMPARISON = "comparison"  # f(a) op g(b): two numbers are compared
    NEIGHBOUR = "neighbour"  # b[i] and b[i-1] of a KL variable
    AGGREGATE = "aggregate"  # looks at the set of a KL variable as a whole
    GENERAL = "general"  # anything else


@dataclass(frozen=True, slots=True)
class Condition:
    """One conjunct. ``derived``: it follows from others, and need not be checked where they are."""

    expression: s.Expression
    derived: bool = False
    variables: frozenset[str] = field(init=False, compare=False)
    kind: ConditionKind = field(init=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "variables", s.variables(self.expression))
        object.__setattr__(self, "kind", _kind(self.expression))

    def __hash__(self) -> int:
        return hash((self.variables, self.derived))  # it is asked for often, and expressions are deep

    def __str__(self) -> str:
        return expression_text(self.expression)


def has_neighbours(expression: s.Expression) -> bool:
    """Whether a condition is about pairs of neighbours. Of a set of one event it holds, whatever it says."""
    return any(isinstance(node, s.Neighbour) for node in s.walk(expression))


def _kind(expression: s.Expression) -> ConditionKind:
    if any(isinstance(node, s.Aggregate) for node in s.walk(expression)):
        return ConditionKind.AGGREGATE
    if has_neighbours(expression):
        return ConditionKind.NEIGHBOUR
    if len(s.variables(expression)) <= 1:
        return ConditionKind.FILTER
    match expression:
        case s.Comparison(operator, left, right) if len(s.variables(left)) == len(s.variables(right)) == 1:
            return ConditionKind.EQUALITY if operator == "=" else ConditionKind.COMPARISON
    return ConditionKind.GENERAL


@dataclass(frozen=True, slots=True)
class Variable:
    """A positive variable. ``minimum`` is None for a single event, else the least size of a KL set."""

    name: str
    type: str
    minimum: int | None = None
    maximum: int | None = None

    @property
    def is_kleene(self) -> bool:
        return self.minimum is not None


@dataclass(frozen=True, slots=True)
class Negation:
    """A negated variable, with the nearest positive variables that it must come after and before.

    A match fails if an event of this type lies there and satisfies all of ``conditions``. They belong to the negation
    alone: nothing is asked of the match by them.
    """

    name: str
    type: str
    after: tuple[str, ...]
    before: tuple[str, ...]
    conditions: tuple[Condition, ...] = ()


@dataclass(frozen=True, slots=True)
class Branch:
    """One alternative of a pattern. ``order`` is the transitive reduction: only pairs that follow from no others.

    ``never`` says why no events can satisfy the branch, where that is known. ``stepwise``: events are selected one
    variable at a time (skip_till_next, strict), so a rewrite must not change when a condition is judged.
    """

    variables: tuple[Variable, ...]
    order: frozenset[tuple[str, str]]
    negations: tuple[Negation, ...]
    conditions: tuple[Condition, ...]
    partition: tuple[str, ...]
    window: s.Window
    slide: s.Window | None
    never: str | None = None
    stepwise: bool = False
    _hash: int | None = field(default=None, init=False, repr=False, compare=False)

    @property
    def names(self) -> tuple[str, ...]:
        """Positive variables, then negated ones: the order in which conditions name them."""
        return (*(v.name for v in self.variables), *(n.name for n in self.negations))

    @property
    def all_conditions(self) -> tuple[Condition, ...]:
        """Those of the match, and then those of each negation."""
        return (*self.conditions, *(c for n in self.negations for c in n.conditions))

    def __hash__(self) -> int:
        """It is asked for with every push, and hundreds of patterns differ by a number in a condition: so it is of all
        of them, and found once."""
        if self._hash is None:
            conditions = tuple(c.expression for c in self.all_conditions)
            found = hash((self.variables, self.order, self.negations, conditions, self.window))
            object.__setattr__(self, "_hash", found)
        return self._hash  # type: ignore[return-value]

    def __reduce__(self) -> tuple[Any, ...]:
        """Without the hash, which is another one in each process."""
        return Branch, tuple(getattr(self, item.name) for item in fields(self) if item.init)

    def map_conditions(self, change: Callable[[tuple[Condition, ...]], Iterable[Condition]]) -> Branch:
        """Change the conditions of the match and, apart from them, those of each negation."""
        negations = (replace(n, conditions=tuple(change(n.conditions))) for n in self.negations)
        return replace(self, conditions=tuple(change(self.conditions)), negations=tuple(negations))

    def map_expressions(self, change: Callable[[s.Expression], s.Expression]) -> Branch:
        """Change each condition on its own."""
        return self.map_conditions(lambda found: (replace(c, expression=change(c.expression)) for c in found))


Rewrite: TypeAlias = Callable[[Branch], Branch]


@dataclass(frozen=True, slots=True)
class NormalForm:
    """A pattern ready to be planned. ``variables``: those of all branches, negated ones left out, in pattern order."""

    name: str
    variables: tuple[str, ...]
    branches: tuple[Branch, ...]
    selection: s.Selection
    output: tuple[s.ReturnItem, ...] | None
    critical: bool = False  # it loses nothing under overload

    @property
    def needs_every_event(self) -> bool:
        """Whether events of other types matter, too: they are counted, or must not lie between those of a match."""
        counted = any(branch.window.kind is s.WindowKind.EVENTS for branch in self.branches)
        return counted or self.selection.strategy is s.Strategy.STRICT

    def __str__(self) -> str:
        return describe(self)
