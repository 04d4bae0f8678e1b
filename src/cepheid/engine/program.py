"""Lowering: from a branch and its plan to what kernels run."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt

from cepheid.engine.fields import COMPARED, over_row
from cepheid.engine.kernels.join import EQUAL, GREATER, GREATER_EQUAL, LESS, LESS_EQUAL, TIE, UNEQUAL
from cepheid.language import syntax as s
from cepheid.language.functions import DataType
from cepheid.pattern.checks.types import type_of
from cepheid.pattern.normal import Branch, Condition, ConditionKind, Negation, Variable
from cepheid.pattern.order import transitive_closure, transitive_reduction
from cepheid.pattern.schema import Columns
from cepheid.plan.tree import Join, Plan, variables

_OPERATORS = {
    "=": EQUAL, "<>": UNEQUAL, "<": LESS, "<=": LESS_EQUAL, ">": GREATER, ">=": GREATER_EQUAL,
}  # fmt: skip
_MIRRORED = {
    EQUAL: EQUAL,
    UNEQUAL: UNEQUAL,
    LESS: GREATER,
    GREATER: LESS,
    LESS_EQUAL: GREATER_EQUAL,
    GREATER_EQUAL: LESS_EQUAL,
}


@dataclass(slots=True)
class FieldTable:
    """Which column of the row store holds which expression over a row; the first two are time and tie-breaker."""

    columns: Columns
    fields: dict[s.Expression, int] = field(default_factory=dict)
    partitions: dict[tuple[str, ...], int] = field(default_factory=dict)

    def __len__(self) -> int:
        return TIE + 1 + len(self.fields) + len(self.partitions)

    def column(self, expression: s.Expression) -> int:
        """The column of an expression over one variable."""
        return self.fields.setdefault(over_row(expression), len(self))

    def partition(self, names: tuple[str, ...]) -> int:
        return self.partitions.setdefault(names, len(self))

    def type_of(self, expression: s.Expression) -> DataType:
        return type_of(expression, self.columns)

    def is_float(self, expression: s.Expression) -> bool:
        return self.type_of(expression) in (DataType.FLOAT, DataType.NUMBER)


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
        return Compared(_MIRRORED[self.operator], self.right, self.left)


@dataclass(frozen=True, slots=True)
class LeafProgram:
    """Which rows a variable takes: those of its type that pass its filters, with nothing NULL that is compared."""

    variable: str
    type: str | None  # None: every event
    filters: tuple[s.Expression, ...]
    needed: tuple[s.Expression, ...]


@dataclass(frozen=True, slots=True)
class JoinProgram:
    """How the tuples of two sides are put together.

    ``after`` and ``before``: pairs of slots of the outer and the inner side. ``key``: the comparison by which inner
    tuples are found.
    ``external``: conditions that are evaluated on the pairs that a kernel lets through.
    """

    outer: tuple[str, ...]
    inner: tuple[str, ...]
    after: npt.NDArray[np.int64]
    before: npt.NDArray[np.int64]
    conditions: npt.NDArray[np.int64]
    key_slot: int
    key_column: int
    inner_key_slot: int
    inner_key_column: int
    external: tuple[s.Expression, ...]


@dataclass(frozen=True, slots=True)
class JoinNode:
    """A join of the plan, seen from either side: which is outer changes, what is asked does not."""

    plan: Join
    from_left: JoinProgram
    from_right: JoinProgram


@dataclass(frozen=True, slots=True)
class NegationProgram:
    """How to find a negated event for a match. ``valid``: outer columns that must not be NULL for one to be found."""

    negation: Negation
    leaf: LeafProgram
    probe: JoinProgram
    outer_conditions: tuple[s.Expression, ...]


@dataclass(frozen=True, slots=True)
class KleeneProgram:
    """How a KL variable is bound, once all single variables are.

    ``from_tuples`` finds the events that may be in a set of a tuple, ``from_events`` the tuples that a new event may
    concern.
    ``neighbours`` are conditions that the kernel checks while it makes sets; ``external`` ones are asked of whole sets.
    """

    variable: Variable
    from_tuples: JoinProgram
    from_events: JoinProgram
    neighbours: npt.NDArray[np.int64]
    external: tuple[s.Expression, ...]


@dataclass(frozen=True, slots=True)
class BranchProgram:
    """All that is needed to run a branch. Its plan is about single events; KL variables follow, one after the other."""

    branch: Branch
    plan: Plan | None
    leaves: dict[str, LeafProgram]
    joins: dict[Join, JoinNode]
    kleene: tuple[KleeneProgram, ...]
    negations: tuple[NegationProgram, ...]
    window: int
    partition: int | None = None

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of a match's tuple."""
        single = () if self.plan is None else variables(self.plan)
        return (*single, *(column for k in self.kleene for column in kleene_columns(k.variable.name)))


def kleene_columns(name: str) -> tuple[str, str, str]:
    """A KL variable has three columns in a tuple: the number of its set, and the first and last event in it."""
    return name, f"first {name}", f"last {name}"


def first_column(name: str, columns: tuple[str, ...]) -> str:
    return f"first {name}" if f"first {name}" in columns else name


def last_column(name: str, columns: tuple[str, ...]) -> str:
    return f"last {name}" if f"last {name}" in columns else name


def lower(branch: Branch, plan: Plan | None, table: FieldTable, window: int) -> BranchProgram:
    """The program of a branch; the columns that it needs are added to the table."""
    partition = table.partition(branch.partition) if branch.partition else None
    compared = {c: found for c in branch.conditions if (found := _compared(c, table)) is not None}
    joins: dict[Join, JoinNode] = {}
    # What stands between two single events may be a set, which is bound later; its order is theirs.
    single = {v.name for v in branch.variables if not v.is_kleene}
    closed = transitive_closure(branch.order)
    order = transitive_reduction(frozenset((x, y) for x, y in closed if x in single and y in single))

    def visit(node: Plan) -> None:
        if isinstance(node, Join):
            visit(node.left)
            visit(node.right)
            left, right = variables(node.left), variables(node.right)
            here = [c for c in branch.conditions if len(c.variables) > 1 and _meet(c, set(left), set(right))]
            joins[node] = JoinNode(
                node,
                _join(left, right, order, here, compared, partition),
                _join(right, left, order, here, compared, partition),
            )

    columns: tuple[str, ...] = ()
    if plan is not None:
        visit(plan)
        columns = variables(plan)
    leaves = {v.name: _leaf(v.name, v.type, branch.conditions) for v in branch.variables}
    if branch.stepwise:  # an event without a value is selected all the same, and the condition on it judged later
        leaves = {name: replace(leaf, needed=()) for name, leaf in leaves.items()}
    kleene: list[KleeneProgram] = []
    for variable in branch.variables:
        if variable.is_kleene:
            kleene.append(_kleene(variable, columns, branch, table, compared, partition))
            columns = (*columns, *kleene_columns(variable.name))
    negations = tuple(_negation(n, columns, table, partition, _sets(branch)) for n in branch.negations)
    return BranchProgram(branch, plan, leaves, joins, tuple(kleene), negations, window, partition)


def _sets(branch: Branch) -> frozenset[str]:
    return frozenset(v.name for v in branch.variables if v.is_kleene)


def _kleene(
    variable: Variable,
    columns: tuple[str, ...],
    branch: Branch,
    table: FieldTable,
    compared: dict[Condition, Compared],
    partition: int | None,
) -> KleeneProgram:
    name, sets = variable.name, _sets(branch)
    bound = {v.name for v in branch.variables if v.name in columns}
    here = [c for c in branch.conditions if name in c.variables and c.variables <= bound | {name}]
    # What is asked of each event of the set on its own, with single events only, can be asked of the candidates.
    one_by_one = [
        c
        for c in here
        if len(c.variables) > 1 and not _has_aggregate(c.expression) and not c.variables & (sets - {name})
    ]
    rows: list[tuple[int, ...]] = []
    rest: list[s.Expression] = []
    for condition in here:
        if condition in one_by_one or (
            condition.kind is ConditionKind.FILTER and not _has_aggregate(condition.expression)
        ):
            continue
        checked = _neighbour(condition, table)
        if checked is not None:
            rows += checked
        else:
            rest.append(condition.expression)
    return KleeneProgram(
        variable,
        _join(columns or (name,), (name,), branch.order, one_by_one, compared, partition),
        _join((name,), columns or (name,), branch.order, one_by_one, compared, partition),
        np.array(rows, dtype=np.int64).reshape(-1, 5),
        tuple(rest),
    )


def _neighbour(condition: Condition, table: FieldTable) -> list[tuple[int, ...]] | None:
    """A condition on neighbours as a kernel can check it: a value of the later event with one of the earlier.

    Events without that value are still candidates, since a set of one has no neighbours; so the kernel also compares,
    for each of the two, whether there is a value (1 or 0) with zero.
    """
    match condition.expression:
        case s.Comparison(operator, s.Neighbour() as left, s.Neighbour() as right) if left.offset != right.offset:
            later, earlier = (s.Attribute(n.variable, n.name) for n in sorted((left, right), key=lambda n: -n.offset))
            types = {table.type_of(later), table.type_of(earlier)}
            if not (types <= COMPARED or (types == {DataType.STRING} and operator in ("=", "<>"))):
                return None
            found = _OPERATORS[operator] if left.offset == 0 else _MIRRORED[_OPERATORS[operator]]
            zero = table.column(s.Literal(0))
            there = [table.column(s.Case(((s.IsNull(side), s.Literal(0)),), s.Literal(1))) for side in (later, earlier)]
            return [
                (GREATER, there[0], 0, zero, 0),
                (LESS, zero, 0, there[1], 0),
                (
                    found,
                    *(part for side in (later, earlier) for part in (table.column(side), int(table.is_float(side)))),
                ),
            ]
    return None


def _meet(condition: Condition, left: set[str], right: set[str]) -> bool:
    """Whether a condition can be checked where two sides meet, and not before."""
    return condition.variables <= left | right and not condition.variables <= left and not condition.variables <= right


def _compared(condition: Condition, table: FieldTable) -> Compared | None:
    """A condition as a kernel can check it: values of two events, of types that it knows."""
    match condition.expression:
        case s.Comparison(operator, left, right) if len(s.variables(left)) == len(s.variables(right)) == 1:
            if s.variables(left) == s.variables(right) or _has_aggregate(condition.expression):
                return None
            types = {table.type_of(left), table.type_of(right)}
            if not (types <= COMPARED or (types == {DataType.STRING} and operator in ("=", "<>"))):
                return None
            sides = (Side(next(iter(s.variables(e))), table.column(e), table.is_float(e)) for e in (left, right))
            return Compared(_OPERATORS[operator], *sides)
    return None


def _has_aggregate(expression: s.Expression) -> bool:
    return any(isinstance(node, (s.Aggregate, s.Neighbour)) for node in s.walk(expression))


def _leaf(name: str, type_: str, conditions: Iterable[Condition]) -> LeafProgram:
    filters = tuple(  # a condition without variables is asked of every event
        over_row(c.expression) for c in conditions if c.variables <= {name} and not _has_aggregate(c.expression)
    )
    needed = []
    for condition in conditions:
        match condition.expression:
            case s.Comparison(_, left, right) if len(condition.variables) == 2 and not _has_aggregate(
                condition.expression
            ):
                needed += [over_row(side) for side in (left, right) if s.variables(side) == {name}]
    return LeafProgram(name, type_, filters, tuple(dict.fromkeys(needed)))


def _join(
    outer: tuple[str, ...],
    inner: tuple[str, ...],
    order: Iterable[tuple[str, str]],
    conditions: list[Condition],
    compared: dict[Condition, Compared],
    partition: int | None,
) -> JoinProgram:
    known = [
        (c, compared[c] if compared[c].left.variable in outer else compared[c].turned())
        for c in conditions
        if c in compared
    ]
    key: tuple[int, int, int, int] | None = None
    if partition is not None:
        key = (_a_row(outer), partition, _a_row(inner), partition)
    else:
        for _, found in sorted(known, key=lambda pair: pair[0].derived):
            if found.operator == EQUAL and found.left.is_float == found.right.is_float:
                key = (
                    outer.index(found.left.variable),
                    found.left.column,
                    inner.index(found.right.variable),
                    found.right.column,
                )
                break
    rows = [_row(found, outer, inner) for c, found in known if not c.derived and not _is_key(found, outer, inner, key)]
    return JoinProgram(
        outer,
        inner,
        _pairs(
            (outer.index(last_column(x, outer)), inner.index(first_column(y, inner)))
            for x, y in order
            if x in outer and y in inner
        ),
        _pairs(
            (outer.index(first_column(y, outer)), inner.index(last_column(x, inner)))
            for x, y in order
            if x in inner and y in outer
        ),
        np.array(rows, dtype=np.int64).reshape(-1, 7),
        *(key or (-1, 0, 0, 0)),
        tuple(c.expression for c in conditions if c not in compared and not c.derived),
    )


def _a_row(columns: tuple[str, ...]) -> int:
    """A column that has row numbers, not numbers of sets."""
    return next(i for i, name in enumerate(columns) if f"first {name}" not in columns)


def _row(found: Compared, outer: tuple[str, ...], inner: tuple[str, ...]) -> tuple[int, ...]:
    left, right = found.left, found.right
    return (
        found.operator,
        outer.index(left.variable), left.column, int(left.is_float),
        inner.index(right.variable), right.column, int(right.is_float),
    )  # fmt: skip


def _is_key(
    found: Compared, outer: tuple[str, ...], inner: tuple[str, ...], key: tuple[int, int, int, int] | None
) -> bool:
    sides = (outer.index(found.left.variable), found.left.column, inner.index(found.right.variable), found.right.column)
    return found.operator == EQUAL and sides == key


def _pairs(pairs: Iterable[tuple[int, int]]) -> npt.NDArray[np.int64]:
    return np.array(sorted(pairs), dtype=np.int64).reshape(-1, 2)


def _negation(
    negation: Negation, root: tuple[str, ...], table: FieldTable, partition: int | None, sets: frozenset[str]
) -> NegationProgram:
    own = [c for c in negation.conditions if negation.name in c.variables]
    compared = {c: found for c in own if not c.variables & sets and (found := _compared(c, table)) is not None}
    shared = [c for c in own if len(c.variables) > 1]
    order = [*((x, negation.name) for x in negation.after), *((negation.name, y) for y in negation.before)]
    probe = _join(root, (negation.name,), order, shared, compared, partition)
    # A value of the match that is NULL satisfies no comparison: then no negated event is found.
    values = [side for c in compared for side in _sides(c.expression) if negation.name not in s.variables(side)]
    return NegationProgram(
        negation,
        _leaf(negation.name, negation.type, own),
        probe,
        (
            *(s.Not(s.IsNull(value)) for value in dict.fromkeys(values)),
            *(c.expression for c in negation.conditions if negation.name not in c.variables),
        ),
    )


def _sides(expression: s.Expression) -> tuple[s.Expression, ...]:
    return (expression.left, expression.right) if isinstance(expression, s.Comparison) else ()
