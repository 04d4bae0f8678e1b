"""Matches as a table."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import pyarrow as pa

from cepheid.engine.evaluate import Reference, evaluate
from cepheid.engine.run import Matches
from cepheid.engine.store import RowStore
from cepheid.engine.vector import Unit, Vector, from_arrow
from cepheid.language import syntax as s
from cepheid.language.functions import DataType
from cepheid.pattern.checks.types import type_of
from cepheid.pattern.normal import NormalForm
from cepheid.pattern.schema import Columns


class Output:
    """Builds the rows of one pattern's matches; its schema is known before there are any."""

    def __init__(self, normal: NormalForm, events: pa.Schema, time: str, columns: Columns, unit: Unit) -> None:
        self._normal = normal
        self._events = events
        self._time = events.field(time).type
        self._columns = columns
        self._unit = unit
        self.schema = pa.schema(self._fields())

    def _fields(self) -> Iterable[pa.Field]:
        yield pa.field("pattern", pa.string())
        yield pa.field("start", self._time)
        yield pa.field("end", self._time)
        if self._normal.branches[0].slide is not None:
            yield pa.field("window_start", self._time)
        event = pa.struct(list(self._events))
        if self._normal.output is None:
            for name in self._normal.variables:
                yield pa.field(name, event)
            return
        for item in self._normal.output:
            if isinstance(item.expression, s.EventRef):
                yield pa.field(item.name, event)
            else:
                yield pa.field(item.name, self._arrow_type(item.expression))

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

    def table(self, found: Sequence[Matches], store: RowStore) -> pa.Table:
        """The matches of all branches, one after the other."""
        parts = [self._rows(matches, store) for matches in found if len(matches)]
        return pa.concat_tables(parts) if parts else self.schema.empty_table()

    def _rows(self, matches: Matches, store: RowStore) -> pa.Table:
        count = len(matches)
        tuples = matches.tuples
        columns: list[pa.Array] = [
            pa.DictionaryArray.from_arrays(pa.array(np.zeros(count, dtype=np.int8)), [self._normal.name]).cast(
                pa.string()
            ),
            self._times(tuples.lo),
            self._times(tuples.hi),
        ]
        if matches.window_start is not None:
            columns.append(self._times(matches.window_start))
        if self._normal.output is None:
            columns += [self._event(name, matches, store) for name in self._normal.variables]
        else:
            columns += [self._column(item, matches, store) for item in self._normal.output]
        return pa.Table.from_arrays(columns, schema=self.schema)

    def _times(self, ticks: np.ndarray) -> pa.Array:
        if not pa.types.is_timestamp(self._time):
            return pa.array(ticks).cast(self._time)
        return pa.array(ticks).cast(pa.timestamp(self._unit.name)).cast(pa.timestamp(self._time.unit)).view(self._time)

    def _event(self, name: str, matches: Matches, store: RowStore) -> pa.Array:
        kind = pa.struct(list(self._events))
        if name not in matches.variables:
            return pa.nulls(len(matches), kind)
        events = store.events(matches.tuples.rows[:, matches.variables.index(name)])
        arrays = [column.combine_chunks() if column.num_chunks != 1 else column.chunk(0) for column in events.columns]
        return pa.StructArray.from_arrays(arrays, fields=list(self._events))

    def _column(self, item: s.ReturnItem, matches: Matches, store: RowStore) -> pa.Array:
        if isinstance(item.expression, s.EventRef):
            return self._event(item.expression.variable, matches, store)
        type_ = self.schema.field(item.name).type

        def lookup(node: Reference) -> Vector:
            assert isinstance(node, s.Attribute)
            if node.variable not in matches.variables:
                return from_arrow(pa.nulls(len(matches), self._events.field(node.name).type), self._unit)
            column = store.column(node.name, matches.tuples.rows[:, matches.variables.index(node.variable)])
            return from_arrow(column, self._unit, node.name)

        if isinstance(item.expression, s.Attribute) and item.expression.name in self._events.names:
            name, variable = item.expression.name, item.expression.variable
            if variable not in matches.variables:
                return pa.nulls(len(matches), type_)
            column = store.column(name, matches.tuples.rows[:, matches.variables.index(variable)])
            return column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
        return _to_arrow(evaluate(item.expression, lookup, self._unit, len(matches)), type_, self._unit)


def _to_arrow(vector: Vector, type_: pa.DataType, unit: Unit) -> pa.Array:
    if vector.type is DataType.NULL:
        return pa.nulls(len(vector), type_)
    if vector.is_arrow:
        return vector.data.cast(type_)
    array = pa.array(vector.data, mask=None if vector.valid is None else ~vector.valid)
    if vector.type is DataType.TIMESTAMP and pa.types.is_timestamp(type_):
        return array.cast(pa.timestamp(unit.name)).cast(pa.timestamp(type_.unit)).view(type_)
    if vector.type is DataType.INTERVAL:
        return array.cast(pa.duration(unit.name)).cast(type_)
    return array.cast(type_)
