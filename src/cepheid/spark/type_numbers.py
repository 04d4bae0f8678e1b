"""Types of events as numbers, on their way from Spark to the engine."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column
from pyspark.sql import functions as F  # noqa: N812

from cepheid.engine.engine import Engine
from cepheid.engine.ingest import EventColumns
from cepheid.pattern.normal import NormalForm
from cepheid.spark.columns import needed_columns

_BITS = 5
MOST_NUMBERED = 2**_BITS
"""Of more types than these Spark would take long to tell which a row is of."""


def types_by_number(engine: Engine, normals: Sequence[NormalForm], columns: pa.Schema) -> tuple[str, ...]:
    """The types that patterns ask for, if a row may say by a number which of them it is; else none.

    Numbers cross from Spark to Python faster than text does. They will not do where the text is looked at or given
    out, or where other types are of use too.
    """
    name = engine.columns.type
    if name is None or any(normal.needs_every_event for normal in normals) or columns.field(name).type != pa.string():
        return ()
    if name in needed_columns(replace(engine, columns=replace(engine.columns, type=None)), normals, columns):
        return ()
    branches = [branch for normal in normals for branch in normal.branches]
    parts = [v.type for b in branches for v in b.variables] + [n.type for b in branches for n in b.negations]
    types = dict.fromkeys(parts)
    return tuple(types) if len(types) <= MOST_NUMBERED else ()


def number_of(column: Column, types: Sequence[str]) -> Column:
    """Which of some types a row is of; NULL for others."""
    found = F.when(column == types[0], F.lit(0).cast("byte"))
    for number, name in enumerate(types[1:], 1):
        found = found.when(column == name, F.lit(number).cast("byte"))
    return found


NUMBERED = pa.dictionary(pa.int8(), pa.string())


def named(numbers: pa.ChunkedArray, types: Sequence[str]) -> pa.ChunkedArray:
    """The types that numbers stand for.

    >>> named(pa.chunked_array([pa.array([1, 0, None], pa.int8())]), ["A", "B"]).to_pylist()
    ['B', 'A', None]
    """
    texts = pa.array(types, pa.string())
    return pa.chunked_array([pa.DictionaryArray.from_arrays(chunk, texts) for chunk in numbers.chunks], NUMBERED)


def stamp(time: Column, number: Column) -> Column:
    """The time and the number of a row's type in one column: what crosses costs as much for each column as for each
    row. NULL where there is no time, or one after the year 11,000, which is more than there is room for.
    """
    return F.try_add(F.try_multiply(F.unix_micros(time), F.lit(MOST_NUMBERED)), number.cast("long"))


def can_be_stamped(columns: EventColumns, events: pa.Schema) -> bool:
    """Whether rows without the number of a type have no time either: one without a tie-breaker is sent whatever its
    type is. And times are microseconds."""
    time = events.field(columns.time).type
    return columns.tie_breaker is None and pa.types.is_timestamp(time) and time.tz is not None


def unstamped(stamps: pa.ChunkedArray) -> tuple[pa.ChunkedArray, pa.ChunkedArray]:
    """Times in microseconds, and numbers of types.

    >>> [part.to_pylist() for part in unstamped(pa.chunked_array([[32 * 7 + 1, None, 32 * -7 + 31]]))]
    [[7, None, -7], [1, None, 31]]
    """
    return pc.shift_right(stamps, _BITS), pc.bit_wise_and(stamps, MOST_NUMBERED - 1).cast(pa.int8())
