"""From the columns of the events to the types of the language."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

from cepheid.language.functions import DataType
from cepheid.language.problems import CepheidError, closest

if TYPE_CHECKING:
    import pyarrow as pa


class SchemaError(CepheidError, ValueError):
    """The events do not have the columns that were named."""


@dataclass(frozen=True, slots=True)
class Columns:
    """The columns of the events, by name, and which of them is the time."""

    types: Mapping[str, DataType]
    time: str = "ts"

    @property
    def time_type(self) -> DataType:
        return self.types[self.time]

    def type_of(self, name: str) -> DataType | None:
        """The type of an attribute. ``ts`` is the event's time, unless a column of that name is something else."""
        return self.types.get(name) or (self.time_type if name == "ts" else None)


_ROLES = {
    "time": (frozenset({DataType.TIMESTAMP, DataType.INTEGER}), "timestamps or integers"),
    "type": (frozenset({DataType.STRING}), "strings"),
    "tie_breaker": (frozenset({DataType.TIMESTAMP, DataType.INTEGER}), "timestamps or integers"),
}


def columns_of(schema: pa.Schema, *, time: str, type: str | None, tie_breaker: str | None) -> Columns:
    """The types of the columns; SchemaError where one with a role is missing or holds the wrong thing."""
    types = {field.name: data_type(field.type) for field in schema}
    twice = sorted({name for name in schema.names if schema.names.count(name) > 1})
    wrong = [f"several columns are called {name!r}: give each a name of its own" for name in twice]
    for (role, (allowed, words)), name in zip(_ROLES.items(), (time, type, tie_breaker), strict=True):
        if name is None:
            continue
        if name not in types:
            near = closest(name, types) or f"its columns are: {', '.join(types) or 'none'}"
            wrong.append(f"{role}={name!r}: the table of events has no such column; {near}")
        elif types[name] not in allowed:
            wrong.append(f"{role}={name!r}: this column must hold {words}, and it holds {schema.field(name).type}")
    if wrong:
        raise SchemaError("\n".join(wrong))
    return Columns(types, time)


@cache
def data_type(arrow: pa.DataType) -> DataType:
    """What a column of an Arrow type is to the language."""
    from pyarrow import types

    if types.is_dictionary(arrow):
        arrow = arrow.value_type
    if types.is_integer(arrow):
        return DataType.INTEGER
    if types.is_floating(arrow):
        return DataType.FLOAT
    if types.is_decimal(arrow):
        return DataType.NUMBER
    if types.is_string(arrow) or types.is_large_string(arrow) or types.is_string_view(arrow):
        return DataType.STRING
    if types.is_boolean(arrow):
        return DataType.BOOLEAN
    if types.is_timestamp(arrow) or types.is_date(arrow):
        return DataType.TIMESTAMP
    if types.is_duration(arrow):
        return DataType.INTERVAL
    if types.is_null(arrow):
        return DataType.NULL
    if types.is_list(arrow) or types.is_large_list(arrow) or types.is_fixed_size_list(arrow):
        return DataType.LIST if data_type(arrow.value_type) in (DataType.INTEGER, DataType.FLOAT) else DataType.OTHER
    return DataType.OTHER
