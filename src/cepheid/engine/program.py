"""What kernels run: a branch and its plan as flat tables of slots, columns and operators."""

from __future__ import annotations

from collections.abc import Callable, Container, Hashable, Mapping
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from cepheid.engine.fields import over_row
from cepheid.engine.kernels.join import EQUAL, GREATER, GREATER_EQUAL, LESS, LESS_EQUAL, TIE, UNEQUAL
from cepheid.engine.tally import CANDIDATES, IN_ORDER
from cepheid.language import syntax as s
from cepheid.language.functions import DataType
from cepheid.language.text import expression_text
from cepheid.pattern.checks.types import type_of
from cepheid.pattern.normal import Branch, Condition, Negation, Variable
from cepheid.pattern.schema import Columns
from cepheid.plan.tree import Join, Plan, variables


@dataclass(slots=True)
class FieldTable:
    """Which column of the row store holds which expression over a row; the first two are time and tie-breaker."""

    columns: Columns
    typed: bool = True  # whether events have a type; else every variable may take any of them
    fields: dict[s.Expression, int] = field(default_factory=dict)
    partitions: dict[tuple[str, ...], int] = field(default_factory=dict)

    def __len__(self) -> int:
        return TIE + 1 + len(self.fields) + len(self.partitions)

    def column(self, expression: s.Expression) -> int:
        """The column of an expression over one variable."""
        return self.fields.setdefault(over_row(expression), len(self))

    def partition(self, names: tuple[str, ...]) -> int:
        return self.partitions.setdefault(names, len(self))

    @property
    def string_columns(self) -> list[int]:
        return [column for expression, column in self.fields.items() if self.type_of(expression) is DataType.STRING]

    def type_of(self, expression: s.Expression) -> DataType:
        return type_of(expression, self.columns)

    def is_float(self, expression: s.Expression) -> bool:
        return self.type_of(expression) in (DataType.FLOAT, DataType.NUMBER)


MIRRORED = {
    EQUAL: EQUAL,
    UNEQUAL: UNEQUAL,
    LESS: GREATER,
    GREATER: LESS,
    LESS_EQUAL: GREATER_EQUAL,
    GREATER_EQUAL: LESS_EQUAL,
}


@dataclass(frozen=True, slots=True)
class Side:
    """A value of an event: which variable, which column of the store, and whether it is a double."""

    variable: str
    column: int
    is_float: bool


@dataclass(frozen=True, slots=True)
class Compared:
    """A condition that a kernel checks: two values of two events."""

    operator: int
    left: Side
    right: Side

    def turned(self) -> Compared:
        return Compared(MIRRORED[self.operator], self.right, self.left)


@dataclass(frozen=True, slots=True)
class LeafProgram:
    """Which rows a variable takes: those of its type that pass its filters, with nothing NULL that is compared."""

    variable: str
    type: str | None  # None: every event
    filters: tuple[s.Expression, ...]
    needed: tuple[s.Expression, ...]
    labels: tuple[str, ...] = ()  # the filters in words

    @property
    def steps(self) -> tuple[str, ...]:
        """Of its funnel."""
        kind = "every event" if self.type is None else f"{self.type} events"
        return (kind, *self.labels, *(("with every value that is compared",) if self.needed else ()))

    @property
    def key(self) -> Hashable:
        """Whatever the variable is called."""
        return self.type, frozenset(self.filters), frozenset(self.needed)


@dataclass(frozen=True, slots=True)
class JoinProgram:
    """How the tuples of two sides are put together.

    ``after`` and ``before``: pairs of slots of the outer and the inner side. ``key``: the comparison by which inner
    tuples are found. ``labels``: the conditions in words, as the kernel has them.
    ``external``: conditions that are evaluated on the pairs that a kernel lets through.
    ``outer_to`` and ``inner_to``: which columns of the result those of the two sides become.
    """

    outer: tuple[str, ...]
    inner: tuple[str, ...]
    outer_to: npt.NDArray[np.int64]
    inner_to: npt.NDArray[np.int64]
    after: npt.NDArray[np.int64]
    before: npt.NDArray[np.int64]
    conditions: npt.NDArray[np.int64]
    labels: tuple[str, ...]
    key: str
    key_slot: int
    key_column: int
    inner_key_slot: int
    inner_key_column: int
    external: tuple[s.Expression, ...]
    external_labels: tuple[str, ...] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "external_labels", tuple(expression_text(e) for e in self.external))


@dataclass(frozen=True, slots=True)
class JoinNode:
    """A join of the plan, seen from either side: which is outer changes, what is asked does not.

    ``columns``: of its tuples. ``negations``: those that have their first chance here.
    """

    plan: Join
    columns: tuple[str, ...]
    from_left: JoinProgram
    from_right: JoinProgram
    negations: tuple[NegationProgram, ...] = ()

    @property
    def labels(self) -> tuple[str, ...]:
        """The steps of its funnel."""
        return (CANDIDATES, IN_ORDER, *self.from_left.labels, *self.from_left.external_labels)


@dataclass(frozen=True, slots=True)
class NegationProgram:
    """How to find a negated event for a match; ``outer_conditions`` must hold for the match, or none is looked for."""

    negation: Negation
    leaf: LeafProgram
    probe: JoinProgram
    outer_conditions: tuple[s.Expression, ...]


@dataclass(frozen=True, slots=True)
class SearchStep:
    """How a search binds one more variable: how to find its events, and the negations that have their first chance."""

    probe: JoinProgram
    negations: tuple[NegationProgram, ...]


@dataclass(frozen=True, slots=True)
class Bound:
    """A condition on a set as a whole that can rule out a set before all of its events are chosen.

    ``function`` of ``argument`` (None: the events) over the set, compared with ``other``, which the set is added to.
    """

    function: str
    argument: s.Expression | None
    operator: str
    other: s.Expression


@dataclass(frozen=True, slots=True)
class KleeneProgram:
    """How a KL variable is bound, once all single variables are.

    ``from_tuples`` finds the events that may be in a set of a tuple, ``from_events`` the tuples that a new event may
    concern.
    ``neighbours`` are conditions that the kernel checks while it makes sets, ``bounds`` rule sets out that cannot be
    completed; ``external`` ones are asked of whole sets.
    """

    variable: Variable
    from_tuples: JoinProgram
    from_events: JoinProgram
    neighbours: npt.NDArray[np.int64]
    bounds: tuple[Bound, ...]
    external: tuple[s.Expression, ...]

    @property
    def external_labels(self) -> tuple[str, ...]:
        return tuple(expression_text(e) for e in self.external)


@dataclass(frozen=True, slots=True)
class BranchProgram:
    """All that is needed to run a branch. Its plan is about single events; KL variables follow, one after the other.

    ``step``: for a plan that is a search, how to go from some bound variables to one more. ``compared``: the conditions
    that a kernel can check. ``keys``: what the parts of the plan mean; parts of other plans with the same key are the
    same. ``critical``: none of its matches may be lost under overload.
    """

    branch: Branch
    plan: Plan | None
    leaves: dict[str, LeafProgram]
    joins: dict[Join, JoinNode]
    kleene: tuple[KleeneProgram, ...]
    negations: tuple[NegationProgram, ...]
    window: int
    columns: tuple[str, ...]  # of a match's tuple
    step: Callable[[frozenset[str], str], SearchStep]
    compared: Mapping[Condition, Compared]
    keys: Mapping[Plan, Hashable]
    shares: bool  # whether parts of other patterns' plans may be the same
    partition: int | None = None
    critical: bool = False

    @property
    def all_leaves(self) -> list[LeafProgram]:
        """Those of negated variables too."""
        return [*self.leaves.values(), *(negation.leaf for negation in self.negations)]

    @property
    def planned(self) -> tuple[str, ...]:
        """The columns of what the plan finds."""
        if self.plan is None:
            return ()
        if isinstance(self.plan, Join):
            return self.joins[self.plan].columns
        return tuple(v.name for v in self.branch.variables if v.name in variables(self.plan))


_OWN = "\x01"
"""Begins names that are no variable's."""

EVERY = f"{_OWN}every"
"""In a strict pattern, the variable that takes every event."""

STARTS = f"{_OWN}starts"
"""The events with which runs may begin, where not all of the first variable's do."""


def kleene_columns(name: str) -> tuple[str, str, str]:
    """A KL variable has three columns in a tuple: the number of its set, and the first and last event in it."""
    return name, f"{_OWN}first {name}", f"{_OWN}last {name}"


def first_column(name: str, columns: tuple[str, ...]) -> str:
    return f"{_OWN}first {name}" if is_set(name, columns) else name


def last_column(name: str, columns: tuple[str, ...]) -> str:
    return f"{_OWN}last {name}" if is_set(name, columns) else name


def is_set(name: str, columns: Container[str]) -> bool:
    """Whether a column has the numbers of a KL variable's sets."""
    return f"{_OWN}first {name}" in columns


def a_row(columns: tuple[str, ...]) -> int:
    """A column that has row numbers, not numbers of sets."""
    return next(i for i, name in enumerate(columns) if not is_set(name, columns))
