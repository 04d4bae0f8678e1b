"""Conditions that no kernel checks, evaluated on many tuples at once.

A KL variable makes a condition a statement about every event of its set, or every pair of neighbours: the tuple is
written out once for each of them, and must satisfy the condition every time.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from cepheid.engine.evaluate import Reference, evaluate, holds
from cepheid.engine.kernels.kleene import neighbour_pairs
from cepheid.engine.program import is_set
from cepheid.engine.sets import Sets, aggregate
from cepheid.engine.store import RowStore
from cepheid.engine.vector import Mask, Unit, Vector, from_arrow, nulls
from cepheid.language import syntax as s
from cepheid.language.functions import DataType

Rows: TypeAlias = npt.NDArray[np.int64]
_Whole: TypeAlias = "tuple[tuple[int, int], Vector]"

AT_ONCE = 1 << 18
"""Tuples that a condition is evaluated on at a time: enough to be fast, few enough to fit into memory."""

WHOLE = 1 << 15
"""So many rows become a vector once for all conditions of a push; of more, those that each condition asks for do."""


@dataclass(frozen=True, slots=True)
class _Parts:
    """What a condition speaks of: ``plain`` are the variables whose attributes it names outside aggregates."""

    expression: s.Expression
    plain: frozenset[str]
    pairs: tuple[str, ...]
    aggregates: frozenset[s.Aggregate]

    @classmethod
    def of(cls, expression: s.Expression) -> _Parts:
        nodes = list(s.walk(expression))
        pairs = sorted({node.variable for node in nodes if isinstance(node, s.Neighbour)})
        aggregates = frozenset(node for node in nodes if isinstance(node, s.Aggregate))
        return cls(expression, frozenset(plain_variables(expression)), tuple(pairs), aggregates)


@dataclass(frozen=True, slots=True)
class Scope:
    """What the variables of some tuples stand for: a column of rows, or of numbers of sets."""

    store: RowStore
    sets: Sets
    unit: Unit
    ties: bool
    kleene: frozenset[str]
    # What conditions speak of. Those of plans stay the same, so they are known by where they are, and kept there.
    _known: dict[int, _Parts] = field(default_factory=dict, init=False, repr=False, compare=False)
    # Attributes of all rows; of which, since rows come and go.
    _whole: dict[str, _Whole] = field(default_factory=dict, init=False, repr=False, compare=False)

    def holds(self, condition: s.Expression, columns: dict[str, Rows], count: int) -> Mask:
        """For each of ``count`` tuples, whether a condition holds for every event and pair of neighbours."""
        if not count:
            return np.zeros(0, dtype=np.bool_)
        if count > AT_ONCE:
            parts = [slice(start, start + AT_ONCE) for start in range(0, count, AT_ONCE)]
            return np.concatenate(
                [self._holds(condition, _part(columns, p), min(AT_ONCE, count - p.start)) for p in parts]
            )
        return self._holds(condition, columns, count)

    def _holds(self, condition: s.Expression, columns: dict[str, Rows], count: int) -> Mask:
        # While its candidates are looked at, a KL variable is bound to one event, and has no set yet.
        parts = self._parts(condition)
        each = sorted(name for name in parts.plain & self.kleene if is_set(name, columns))
        aggregates = {node: self._aggregate(node, columns, count) for node in parts.aggregates}
        which = np.arange(count, dtype=np.int64)
        bound: dict[str, Rows] = {}
        neighbours: dict[str, tuple[Rows, Rows]] = {}
        for name in each:
            part, members = self.sets.expand(columns[name][which])
            which, bound, neighbours = which[part], _picked(bound, part), _picked_pairs(neighbours, part)
            bound[name] = members
        for name in parts.pairs:
            chosen = -1 - columns[name][which]
            part, earlier, later = neighbour_pairs(  # type: ignore[no-untyped-call]
                self.sets.starts, self.sets.members, chosen, self.store.values, self.store.base, self.ties
            )
            which, bound, neighbours = which[part], _picked(bound, part), _picked_pairs(neighbours, part)
            neighbours[name] = earlier, later

        def lookup(node: Reference) -> Vector:
            match node:
                case s.Aggregate():
                    return aggregates[node].take(which)
                case s.Neighbour(variable, offset, name):
                    return self.attribute(name, neighbours[variable][0 if offset else 1])
                case s.Attribute(variable, name):
                    rows = bound[variable] if variable in bound else columns[variable][which]
                    return self.attribute(name, rows)
            raise AssertionError(node)

        good = holds(condition, lookup, self.unit, len(which))
        broken: Mask = np.bincount(which[~good], minlength=count) > 0
        return ~broken

    def value(self, expression: s.Expression, columns: dict[str, Rows], count: int) -> Vector:
        """The values of an expression that speaks of sets only through aggregates; what is not bound is NULL."""
        aggregates = {node: self._aggregate(node, columns, count) for node in self._parts(expression).aggregates}

        def lookup(node: Reference) -> Vector:
            match node:
                case s.Aggregate():
                    return aggregates[node]
                case s.Attribute(variable, name) if variable in columns:
                    return self.attribute(name, columns[variable])
            return nulls(count)

        return evaluate(expression, lookup, self.unit, count)

    def _parts(self, expression: s.Expression) -> _Parts:
        return self._known.get(id(expression)) or self._known.setdefault(id(expression), _Parts.of(expression))

    def attribute(self, name: str, rows: Rows) -> Vector:
        base, size = self.store.base, self.store.size
        if size > WHOLE:
            return from_arrow(self.store.column(name, rows), self.unit, name)
        key, whole = self._whole.get(name, (None, None))
        if whole is None or key != (base, size):
            whole = from_arrow(self.store.whole_column(name), self.unit, name)
            self._whole[name] = (base, size), whole
        return whole.take(rows - base)

    def _aggregate(self, node: s.Aggregate, columns: dict[str, Rows], count: int) -> Vector:
        if node.variable not in columns:  # of another branch: an empty set
            zero = Vector(DataType.INTEGER, np.zeros(count, dtype=np.int64))
            return zero if node.function == "COUNT" else nulls(count)
        numbers = columns[node.variable]
        if node.argument is None:
            return Vector(DataType.INTEGER, self.sets.sizes(numbers))
        which, members = self.sets.expand(numbers)
        function = node.function
        if function in ("FIRST", "LAST"):
            which, members = self._edge(function, which, members)
            function = "MIN" if function == "FIRST" else "MAX"
        values = evaluate(node.argument, lambda n: self.attribute(n.name, members), self.unit, len(members))  # type: ignore[union-attr]
        return aggregate(function, values, which, count)

    def _edge(self, function: str, which: Rows, members: Rows) -> tuple[Rows, Rows]:
        """The members that have the time of the first, or the last, of their set."""
        place = members - self.store.base
        times, tie = self.store.values[0][place], self.store.values[1][place]
        ends = (
            np.flatnonzero(np.diff(which, prepend=-1))
            if function == "FIRST"
            else np.flatnonzero(np.diff(which, append=-1))
        )
        edge = np.zeros(int(which.max()) + 1, dtype=np.int64)
        edge[which[ends]] = ends
        same = (times == times[edge[which]]) & (tie == tie[edge[which]])
        return which[same], members[same]


def plain_variables(expression: s.Expression) -> set[str]:
    """The variables whose attributes are named outside aggregates."""
    if isinstance(expression, s.Aggregate):
        return set()
    own = {expression.variable} if isinstance(expression, s.Attribute) else set()
    return own.union(*(plain_variables(child) for child in s.children(expression)))


def _part(columns: dict[str, Rows], part: slice) -> dict[str, Rows]:
    return {name: rows[part] for name, rows in columns.items()}


def _picked(bound: dict[str, Rows], part: Rows) -> dict[str, Rows]:
    return {name: rows[part] for name, rows in bound.items()}


def _picked_pairs(pairs: dict[str, tuple[Rows, Rows]], part: Rows) -> dict[str, tuple[Rows, Rows]]:
    return {name: (earlier[part], later[part]) for name, (earlier, later) in pairs.items()}
