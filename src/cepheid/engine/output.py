"""Matches as a table."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from functools import cache

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from cepheid.engine.batches import integers
from cepheid.engine.conditions import Scope, plain_variables
from cepheid.engine.joiner import NONE
from cepheid.engine.kernels.join import TIE, TIME
from cepheid.engine.matches import Matches, Rows
from cepheid.engine.program import is_set
from cepheid.engine.vector import Unit, Vector
from cepheid.language import syntax as s
from cepheid.language.functions import DataType
from cepheid.pattern.checks.types import type_of
from cepheid.pattern.normal import NormalForm
from cepheid.pattern.rewrites.fold import fold
from cepheid.pattern.schema import Columns


class Output:
    """Builds the rows of one pattern's matches; its schema is known before there are any."""

    def __init__(
        self, normal: NormalForm, events: pa.Schema, time: str, columns: Columns, unit: Unit, times_in: int | None
    ) -> None:
        """``times_in``: where the clock counts events, the column of the row store that has their times."""
        self._normal = normal
        self._events = events
        self._time = events.field(time).type
        self._events_time = time
        self._columns = columns
        self._times_in = times_in
        self._unit = unit
        self._kleene = {v.name for branch in normal.branches for v in branch.variables if v.is_kleene}
        self._is_whole = self._time == pa.int64()
        self.schema = pa.schema(self._fields())
        self._name = pa.repeat(normal.name, 1024)
        self._nothing = self.schema.empty_table()
        self._listing_of = cache(self._listed)
        self._of_branch = cache(_of_branch)
        self._of_sets = cache(_about_sets)

    def _fields(self) -> Iterable[pa.Field]:
        yield pa.field("pattern", pa.string())
        yield pa.field("start", self._time)
        yield pa.field("end", self._time)
        if self._normal.branches[0].slide is not None:
            yield pa.field("window_start", self._window_type())
        if self._normal.output is None:
            for name in self._normal.variables:
                yield pa.field(name, self._event_type(name))
            return
        for item in self._normal.output:
            if isinstance(item.expression, s.EventRef):
                yield pa.field(item.name, self._event_type(item.expression.variable))
            else:
                value = self._arrow_type(item.expression)
                yield pa.field(item.name, pa.list_(value) if self._listed(item.expression) else value)

    def _window_type(self) -> pa.DataType:
        """A window can start where no event could: between the ticks of its column, or before its least number."""
        if not pa.types.is_timestamp(self._time):
            return pa.int64() if pa.types.is_integer(self._time) else pa.timestamp(self._unit.name)
        step = pa.scalar(1, pa.duration(self._time.unit)).cast(pa.duration("ns")).value
        sizes = [w.size for b in self._normal.branches for w in (b.window, b.slide) if w is not None]
        whole = all(size % step == 0 for size in sizes)
        return self._time if whole else pa.timestamp(self._unit.name, self._time.tz)

    def _event_type(self, name: str) -> pa.DataType:
        event = pa.struct(list(self._events))
        return pa.list_(event) if name in self._kleene else event

    def _listed(self, expression: s.Expression) -> str | None:
        """The KL variable whose events an expression has a value for each of."""
        return next(iter(plain_variables(expression) & self._kleene), None)

    def _arrow_type(self, expression: s.Expression) -> pa.DataType:
        if isinstance(expression, s.Attribute) and expression.name in self._events.names:
            return self._events.field(expression.name).type
        match type_of(expression, self._columns):
            case DataType.INTEGER:
                return pa.int64()
            case DataType.STRING:
                return pa.string()
            case DataType.BOOLEAN:
                return pa.bool_()
            case DataType.TIMESTAMP:
                return self._time if pa.types.is_timestamp(self._time) else pa.timestamp(self._unit.name)
            case DataType.INTERVAL:
                return pa.duration(self._unit.name)
            case DataType.NULL:
                return pa.null()
            case _:
                return pa.float64()

    def table(self, found: Iterable[tuple[Matches, Scope]]) -> pa.Table:
        """The matches of all branches, one after the other."""
        parts = [self._rows(matches, scope) for matches, scope in found if len(matches)]
        if not parts:
            return self._nothing
        return parts[0] if len(parts) == 1 else pa.concat_tables(parts)

    def _rows(self, matches: Matches, scope: Scope) -> pa.Table:
        count = len(matches)
        name = self._name.slice(0, count) if count <= len(self._name) else pa.repeat(self._normal.name, count)
        start, end = self._span(matches, scope)
        columns: list[pa.Array] = [name, self._times(start), self._times(end)]
        if matches.window_start is not None:
            columns.append(self._times(matches.window_start, self._window_type()))
        if self._normal.output is None:
            columns += self._events_of(matches, count, scope)
        else:
            bound = matches.columns
            columns += [self._column(item, bound, count, scope) for item in self._normal.output]
        return pa.Table.from_arrays(columns, schema=self.schema)

    def _span(self, matches: Matches, scope: Scope) -> tuple[Rows, Rows]:
        """The times of the first and the last event of each match."""
        if self._times_in is None:
            return matches.tuples.lo, matches.tuples.hi
        rows = [place for place, name in enumerate(matches.variables) if not is_set(name, matches.variables)]
        times = scope.store.values[self._times_in][matches.tuples.rows[:, rows] - scope.store.base]
        return times.min(axis=1), times.max(axis=1)

    def _times(self, ticks: Rows, type_: pa.DataType | None = None) -> pa.Array:
        if type_ is None:
            if self._is_whole:
                return integers(ticks)
            type_ = self._time
        if pa.types.is_integer(type_):
            return integers(ticks).cast(type_)
        return _moments(integers(ticks), type_, self._unit)

    def _events_of(self, matches: Matches, count: int, scope: Scope) -> list[pa.Array]:
        """A column for each variable; the events of single ones are looked up together."""
        names = self._normal.variables
        if matches.variables == names and not self._kleene:
            events = self._structs(matches.tuples.rows.T.reshape(-1), scope)
            return [events.slice(place * count, count) for place in range(len(names))]
        bound = matches.columns
        single = [name for name in names if name in bound and name not in self._kleene]
        found = self._structs(np.concatenate([bound[name] for name in single] or [NONE]), scope)
        return [
            found.slice(single.index(name) * count, count) if name in single else self._event(name, bound, count, scope)
            for name in names
        ]

    def _event(self, name: str, bound: dict[str, Rows], count: int, scope: Scope) -> pa.Array:
        if name not in bound:
            return pa.nulls(count, self._event_type(name))
        if name not in self._kleene:
            return self._structs(bound[name], scope)
        _, members = self._listing(bound[name], scope)
        return pa.ListArray.from_arrays(
            pa.array(_offsets(scope.sets.sizes(bound[name]))), self._structs(members, scope)
        )

    def _structs(self, rows: Rows, scope: Scope) -> pa.Array:
        return scope.store.events(rows).to_struct_array()

    def _listing(self, numbers: Rows, scope: Scope) -> tuple[Rows, Rows]:
        """The members of sets as they are listed: by time; of one time, by their attributes."""
        which, members = scope.sets.expand(numbers)
        times, ties = (scope.store.values[line][members - scope.store.base] for line in (TIME, TIE))
        same = (np.diff(which) == 0) & (np.diff(times) == 0) & (np.diff(ties) == 0)
        if same.any():
            contents = scope.store.contents(members)
            order = np.lexsort((contents, ties, times, which))
            which, members = which[order], members[order]
        return which, members

    def _column(self, item: s.ReturnItem, bound: dict[str, Rows], count: int, scope: Scope) -> pa.Array:
        if isinstance(item.expression, s.EventRef):
            return self._event(item.expression.variable, bound, count, scope)
        type_ = self.schema.field(item.name).type
        listed = self._listing_of(item.expression)
        if isinstance(item.expression, s.Attribute) and listed is None and not pa.types.is_floating(type_):
            return self._raw(item.expression, bound, count, scope)
        if listed is None:
            expression = self._of_branch(item.expression, frozenset(bound))
            return _to_arrow(scope.value(expression, bound, count), type_, self._unit)
        if listed not in bound:
            return pa.nulls(count, type_)
        which, members = self._listing(bound[listed], scope)
        if isinstance(item.expression, s.Attribute) and not pa.types.is_floating(type_.value_type):
            raw = self._raw(item.expression, {listed: members}, len(members), scope)
            return pa.ListArray.from_arrays(pa.array(_offsets(scope.sets.sizes(bound[listed]))), raw)
        each = {name: members if name == listed else rows[which] for name, rows in bound.items()}
        # The aggregates of the listed variable look at its set, not at the event that is listed.
        whole = {**each, SET + listed: bound[listed][which]}
        values = scope.value(self._of_sets(item.expression, listed), whole, len(members))
        return pa.ListArray.from_arrays(
            pa.array(_offsets(scope.sets.sizes(bound[listed]))), _to_arrow(values, type_.value_type, self._unit)
        )

    def _raw(self, attribute: s.Attribute, bound: dict[str, Rows], count: int, scope: Scope) -> pa.Array:
        """An attribute as it came in."""
        name = attribute.name if attribute.name in self._events.names else self._events_time
        if attribute.variable not in bound:
            return pa.nulls(count, self._events.field(name).type)
        return scope.store.column(name, bound[attribute.variable])


def _of_branch(expression: s.Expression, bound: frozenset[str]) -> s.Expression:
    """What is left of an expression where some variables are not bound, and so NULL."""

    def known(node: s.Expression) -> s.Expression:
        if isinstance(node, s.Attribute) and node.variable not in bound:
            return s.Literal(None)
        return node if isinstance(node, s.Aggregate) else s.map_children(node, known)

    return fold(known(expression))


SET = "set of "


def _about_sets(expression: s.Expression, listed: str) -> s.Expression:
    if isinstance(expression, s.Aggregate):
        return replace(expression, variable=SET + listed) if expression.variable == listed else expression
    return s.map_children(expression, lambda child: _about_sets(child, listed))


def _offsets(sizes: Rows) -> npt.NDArray[np.int32]:
    return np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(sizes)]).astype(np.int32)


def _to_arrow(vector: Vector, type_: pa.DataType, unit: Unit) -> pa.Array:
    if vector.type is DataType.NULL:
        return pa.nulls(len(vector), type_)
    if vector.is_arrow:
        return vector.data.cast(type_) if vector.valid is None else _masked(vector).cast(type_)
    array = pa.array(vector.data, mask=None if vector.valid is None else ~vector.valid)
    if vector.type is DataType.TIMESTAMP and not pa.types.is_integer(type_):
        return _moments(array, type_, unit)
    if vector.type is DataType.INTERVAL:
        return array.cast(pa.duration(unit.name)).cast(type_)
    return array.cast(type_)


def _moments(ticks: pa.Array, type_: pa.DataType, unit: Unit) -> pa.Array:
    """Ticks of the engine's clock as moments, or as the days that they are on."""
    moments = ticks.cast(pa.timestamp(unit.name))
    if pa.types.is_timestamp(type_):
        return moments.cast(pa.timestamp(type_.unit)).view(type_)
    return moments.cast(type_)


def _masked(vector: Vector) -> pa.Array:
    return pc.if_else(pa.array(vector.mask()), vector.data, pa.scalar(None, vector.data.type))
