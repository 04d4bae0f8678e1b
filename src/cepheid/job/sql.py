"""Pieces of Spark SQL."""

from __future__ import annotations

from collections.abc import Iterable

from cepheid.spark.columns import microseconds_of

JSON = {
    "timestampFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX",
    "timestampNTZFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSS",
}
"""Options for writing JSON and CSV: times keep their microseconds, which Spark would cut to milliseconds."""

CSV = {"header": "true", "escape": '"'}
"""As others read and write it: with names, and quotes in quotes doubled."""


def name(column: str) -> str:
    """A column of exactly this name, whatever is in it.

    >>> name("a.b")
    '`a.b`'
    """
    return "`" + column.replace("`", "``") + "`"


def text(value: str) -> str:
    """A literal.

    >>> print(text("it's"))
    'it\\'s'
    """
    return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"


def struct(columns: Iterable[str]) -> str:
    return f"struct({', '.join(map(name, columns))})"


def to_json(value: str) -> str:
    """JSON of a value, with all of its microseconds."""
    return f"to_json({value}, map({', '.join(text(word) for pair in JSON.items() for word in pair)}))"


def ticks(column: str, type_name: str) -> str:
    """A time as a whole number: microseconds since 1970, or the number that it is."""
    if type_name == "timestamp":
        return f"unix_micros({name(column)})"
    if type_name == "timestamp_ntz":
        return microseconds_of(name(column))
    return name(column)
