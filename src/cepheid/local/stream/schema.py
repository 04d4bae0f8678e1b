"""The columns of events that come as JSON, as a user writes them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

import pyarrow as pa

Schema: TypeAlias = "pa.Schema | Mapping[str, Any] | str"
TYPES = {"timestamp": pa.timestamp("us"), "boolean": pa.bool_(), "long": pa.int64(), "int": pa.int64()}
"""Words for types that Arrow has other names for."""
EXAMPLE = "'ts timestamp, type string, x double'"


def schema_of(given: Schema, name: str = "schema") -> pa.Schema:
    """A schema of Arrow's, text, or a dictionary of types, or of words for them, by the names of columns.

    >>> schema_of("ts timestamp, type string, x double").types
    [TimestampType(timestamp[us]), DataType(string), DataType(double)]
    >>> schema_of({"ts": "timestamp", "x": pa.int32()}).types
    [TimestampType(timestamp[us]), DataType(int32)]
    """
    match given:
        case pa.Schema():
            return given
        case str():
            columns = dict(part.strip().partition(" ")[::2] for part in given.split(","))
        case Mapping():
            columns = dict(given)
        case _:
            raise TypeError(f"{name} is a pyarrow.Schema, a dictionary, or text such as {EXAMPLE}; got {given!r}")
    return pa.schema([pa.field(column, _type_of(column, type_, name)) for column, type_ in columns.items()])


def _type_of(column: str, given: object, name: str) -> pa.DataType:
    if isinstance(given, pa.DataType):
        return given
    try:
        word = str(given).strip()
        return TYPES.get(word.lower()) or pa.type_for_alias(word)
    except ValueError:
        raise ValueError(
            f"{name}: expected names and types, such as {EXAMPLE}; found {f'{column} {given}'.strip()!r}"
        ) from None
