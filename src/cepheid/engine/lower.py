"""Lowering: from a branch and its plan to what kernels run."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from cepheid.engine.fields import COMPARED, over_row
from cepheid.engine.kernels.join import EQUAL, GREATER, GREATER_EQUAL, LESS, LESS_EQUAL, UNEQUAL
from cepheid.engine.program import (
    MIRRORED,
    Bound,
    BranchProgram,
    Compared,
    FieldTable,
    JoinNode,
    JoinProgram,
    KleeneProgram,
    LeafProgram,
    NegationProgram,
    SearchStep,
    Side,
    a_row,
    first_column,
    kleene_columns,
    last_column,
)
from cepheid.language import syntax as s
from cepheid.language.functions import DataType
from cepheid.pattern.normal import Branch, Condition, ConditionKind, Negation, Variable
from cepheid.pattern.order import transitive_closure, transitive_reduction
from cepheid.plan.sharing.identity import SubPattern, null_with, sub_pattern
from cepheid.plan.tree import Join, Plan, Search, nodes, variables

_OPERATORS = {
    "=": EQUAL, "<>": UNEQUAL, "<": LESS, "<=": LESS_EQUAL, ">": GREATER, ">=": GREATER_EQUAL,
}  # fmt: skip


def lower(
    branch: Branch,
    plan: Plan | None,
    table: FieldTable,
    window: int,
    negation: str = "auto",
    *,
    owner: Hashable = None,
    share: bool = False,
) -> BranchProgram:
    """The program of a branch; the columns that it needs are added to the table.

    ``share``: parts of the plan that mean the same as parts of other plans are to be the same as they. Else they are
    only the same as parts of other plans of the same ``owner``.
    """
    lowering = _Lowering(branch, table, negation)
    shared = _shared(branch, plan) if share else {}
    joins: dict[Join, JoinNode] = {}
    for node in () if plan is None else nodes(plan):
        if isinstance(node, Join):
            joins[node] = lowering.node(node, plan, joins, shared.get(node))
    columns: tuple[str, ...] = ()
    if plan is not None:
        columns = joins[plan].columns if isinstance(plan, Join) else lowering.in_pattern_order({*variables(plan)})
    leaves = {v.name: _leaf(v.name, v.type, branch.conditions) for v in branch.variables}
    if branch.stepwise:  # an event without a value is selected all the same, and the condition on it judged later
        leaves = {name: replace(leaf, needed=()) for name, leaf in leaves.items()}
    kleene: list[KleeneProgram] = []
    for variable in branch.variables:
        if variable.is_kleene:
            kleene.append(lowering.kleene(variable, columns))
            columns = (*columns, *kleene_columns(variable.name))
    # Whatever the plan, a match has its columns in the order of the pattern: single events, then sets.
    single = tuple(v.name for v in branch.variables if not v.is_kleene)
    columns = (*single, *columns[len(single) :])
    negations = tuple(lowering.negation(n, columns) for n in branch.negations)
    return BranchProgram(
        branch, plan, leaves, joins, tuple(kleene), negations, window, columns, lowering.step, lowering.compared,
        _keys(plan, joins, shared, owner), share, lowering.partition,
    )  # fmt: skip


def _shared(branch: Branch, plan: Plan | None) -> dict[Plan, SubPattern]:
    """What the parts of a plan mean, where that can be told."""
    parts = [] if plan is None else [node for node in nodes(plan) if not isinstance(node, Search)]
    found = {part: sub_pattern(branch, part) for part in parts}
    return {part: meaning for part, meaning in found.items() if meaning is not None}


def _keys(
    plan: Plan | None, joins: Mapping[Join, JoinNode], shared: Mapping[Plan, SubPattern], owner: Hashable
) -> dict[Plan, Hashable]:
    """What each part of a plan means, to everyone or to its owner, and how it is put together.

    A join that has dropped partial matches for a negated event, or one below it, means nothing to others.
    """
    keys: dict[Plan, Hashable] = {}
    dropping: set[Plan] = set()
    for part in () if plan is None else nodes(plan):
        if isinstance(part, Join):
            if joins[part].negations or part.left in dropping or part.right in dropping:
                dropping.add(part)
            meaning = owner if part in dropping else shared.get(part, owner)
            keys[part] = (meaning, frozenset({keys[part.left], keys[part.right]}))
        else:
            keys[part] = shared.get(part, (owner, part))
    return keys


class _Lowering:
    """Lowers the parts of one branch."""

    def __init__(self, branch: Branch, table: FieldTable, negation: str) -> None:
        self._branch = branch
        self._table = table
        self._placement = negation
        self._closed = transitive_closure(branch.order)
        self._sets = frozenset(v.name for v in branch.variables if v.is_kleene)
        self._steps: dict[tuple[frozenset[str], str], SearchStep] = {}
        self.partition = table.partition(branch.partition) if branch.partition else None
        conditions = (*branch.conditions, *(c for n in branch.negations for c in n.conditions))
        self.compared = {c: found for c in conditions if (found := _compared(c, table)) is not None}

    def node(
        self, join: Join, plan: Plan | None, below: Mapping[Join, JoinNode], shared: SubPattern | None
    ) -> JoinNode:
        left, right = (
            below[side].columns if isinstance(side, Join) else variables(side) for side in (join.left, join.right)
        )
        columns = self.in_pattern_order({*left, *right}) if shared is None else shared.slots
        here = [c for c in self._branch.conditions if len(c.variables) > 1 and _meet(c, set(left), set(right))]
        last = join == plan and not self._sets
        early = () if last and self._placement == "auto" else self._first_chances(columns, (left, right))
        from_left, from_right = (
            self._join(outer, inner, here, columns) for outer, inner in ((left, right), (right, left))
        )
        return JoinNode(join, columns, from_left, from_right, early)

    def in_pattern_order(self, names: set[str]) -> tuple[str, ...]:
        return tuple(v.name for v in self._branch.variables if v.name in names)

    def step(self, bound: frozenset[str], variable: str) -> SearchStep:
        """How a search goes on from bound variables. There are many ways to go, so they are lowered when taken."""
        if (bound, variable) not in self._steps:
            outer = self.in_pattern_order({*bound})
            here = [c for c in self._branch.conditions if len(c.variables) > 1 and _meet(c, set(bound), {variable})]
            both = self.in_pattern_order({*bound, variable})
            early = self._first_chances(both, (outer, (variable,)))
            self._steps[bound, variable] = SearchStep(self._join(outer, (variable,), here, both), early)
        return self._steps[bound, variable]

    # --- conditions between tuples

    def _order(self, names: Iterable[str]) -> frozenset[tuple[str, str]]:
        """The order between some variables: what stands between two of them may be bound later, or not be there."""
        chosen = set(names)
        return transitive_reduction(frozenset((x, y) for x, y in self._closed if x in chosen and y in chosen))

    def _join(
        self,
        outer: tuple[str, ...],
        inner: tuple[str, ...],
        conditions: list[Condition],
        columns: tuple[str, ...] | None = None,
    ) -> JoinProgram:
        return _join(outer, inner, self._order((*outer, *inner)), conditions, self.compared, self.partition, columns)

    # --- sets

    def kleene(self, variable: Variable, columns: tuple[str, ...]) -> KleeneProgram:
        name = variable.name
        bound = {v.name for v in self._branch.variables if v.name in columns}
        here = [c for c in self._branch.conditions if name in c.variables and c.variables <= bound | {name}]
        # What is asked of each event of the set on its own, with single events only, can be asked of the candidates.
        one_by_one = [
            c
            for c in here
            if len(c.variables) > 1 and not _has_aggregate(c.expression) and not c.variables & (self._sets - {name})
        ]
        rows: list[tuple[int, ...]] = []
        rest: list[Condition] = []
        for condition in here:
            if condition in one_by_one or (
                condition.kind is ConditionKind.FILTER and not _has_aggregate(condition.expression)
            ):
                continue
            checked = _neighbour(condition, self._table)
            if checked is not None:
                rows += checked
            else:
                rest.append(condition)
        bounds = (_bound(c.expression, name, self._sets, self._table) for c in rest)
        return KleeneProgram(
            variable,
            self._join(columns or (name,), (name,), one_by_one),
            self._join((name,), columns or (name,), one_by_one),
            np.array(rows, dtype=np.int64).reshape(-1, 5),
            tuple(b for b in bounds if b is not None),
            tuple(c.expression for c in rest),
        )

    # --- negation

    def negation(self, negation: Negation, outer: tuple[str, ...]) -> NegationProgram:
        own = [c for c in negation.conditions if negation.name in c.variables]
        compared = {c: self.compared[c] for c in own if not c.variables & self._sets and c in self.compared}
        shared = [c for c in own if len(c.variables) > 1]
        order = [*((x, negation.name) for x in negation.after), *((negation.name, y) for y in negation.before)]
        probe = _join(outer, (negation.name,), order, shared, compared, self.partition)
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

    def _first_chances(self, bound: tuple[str, ...], parts: tuple[tuple[str, ...], ...]) -> tuple[NegationProgram, ...]:
        """The negations that can be checked once these variables are bound, and could not in a part of them."""
        if self._placement == "post":
            return ()
        found = []
        for negation in self._branch.negations:
            needed = self._needed(negation)
            if needed <= set(bound) and not any(needed <= set(part) for part in parts) and self._safe(negation, bound):
                found.append(self.negation(negation, bound))
        return tuple(found)

    @staticmethod
    def _needed(negation: Negation) -> frozenset[str]:
        """What must be bound to find a negated event."""
        asked = frozenset().union(*(c.variables for c in negation.conditions)) - {negation.name}
        return frozenset({*negation.after, *negation.before}) | asked

    def _safe(self, negation: Negation, bound: tuple[str, ...]) -> bool:
        """Whether an event that strikes a partial match strikes every match that it becomes part of.

        It lies between bound events, so in every window that holds them; and no variable that is still to be bound can
        take it for itself.
        """
        if not (negation.after and negation.before):
            return False
        before = {x for x, y in self._closed if y in negation.after} | {*negation.after}
        after = {y for x, y in self._closed if x in negation.before} | {*negation.before}
        open_ = [v for v in self._branch.variables if v.name not in bound]
        typed = self._table.typed
        return all((typed and v.type != negation.type) or v.name in before | after for v in open_)


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
            found = _OPERATORS[operator] if left.offset == 0 else MIRRORED[_OPERATORS[operator]]
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


def _bound(expression: s.Expression, name: str, sets: frozenset[str], table: FieldTable) -> Bound | None:
    """A condition that compares a sum, a count or an extreme of a set with something that does not depend on it."""
    match expression:
        case s.Comparison(operator, s.Aggregate(function, variable) as aggregate, other):
            pass
        case s.Comparison(operator, other, s.Aggregate(function, variable) as aggregate):
            operator = s.MIRRORED[operator]
        case _:
            return None
    if variable != name or function not in ("SUM", "COUNT", "MIN", "MAX") or operator == "<>":
        return None
    if _has_aggregate(other) or s.variables(other) & sets:
        return None
    numbers = [other] if function == "COUNT" or aggregate.argument is None else [other, aggregate.argument]
    if not all(table.type_of(e) in COMPARED for e in numbers):
        return None
    return Bound(function, aggregate.argument, operator, other)


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
    # A condition without variables is asked of every event.
    filters = [c for c in conditions if c.variables <= {name} and not _has_aggregate(c.expression)]
    needed = []
    for condition in conditions:
        match condition.expression:
            case s.Comparison(_, left, right) if len(condition.variables) == 2 and not _has_aggregate(
                condition.expression
            ):
                needed += [over_row(null_with(side)) for side in (left, right) if s.variables(side) == {name}]
    return LeafProgram(
        name,
        type_,
        tuple(over_row(c.expression) for c in filters),
        tuple(dict.fromkeys(needed)),
        tuple(map(str, filters)),
    )


def _join(
    outer: tuple[str, ...],
    inner: tuple[str, ...],
    order: Iterable[tuple[str, str]],
    conditions: list[Condition],
    compared: dict[Condition, Compared],
    partition: int | None,
    columns: tuple[str, ...] | None = None,
) -> JoinProgram:
    columns = (*outer, *inner) if columns is None else columns
    known = [
        (c, compared[c] if compared[c].left.variable in outer else compared[c].turned())
        for c in conditions
        if c in compared
    ]
    key: tuple[int, int, int, int] | None = None
    by = ""
    if partition is not None:
        key, by = (a_row(outer), partition, a_row(inner), partition), "PARTITION BY"
    else:
        for condition, found in sorted(known, key=lambda pair: pair[0].derived):
            if found.operator == EQUAL and found.left.is_float == found.right.is_float:
                key = (
                    outer.index(found.left.variable),
                    found.left.column,
                    inner.index(found.right.variable),
                    found.right.column,
                )
                by = str(condition)
                break
    checked = [(c, found) for c, found in known if not c.derived and not _is_key(found, outer, inner, key)]
    rows = [_row(found, outer, inner) for _, found in checked]
    return JoinProgram(
        outer,
        inner,
        np.array([columns.index(name) for name in outer], dtype=np.int64),
        np.array([columns.index(name) for name in inner], dtype=np.int64),
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
        tuple(str(c) for c, _ in checked),
        by,
        *(key or (-1, 0, 0, 0)),
        tuple(c.expression for c in conditions if c not in compared and not c.derived),
    )


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


def _sides(expression: s.Expression) -> tuple[s.Expression, ...]:
    return (expression.left, expression.right) if isinstance(expression, s.Comparison) else ()
