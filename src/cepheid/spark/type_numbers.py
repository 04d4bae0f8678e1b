"""Types of events as numbers, on their way from Spark to the engine."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pyarrow as pa
from pyspark.sql import Column
from pyspark.sql import functions as F  # noqa: N812

from cepheid.engine.engine import Engine
from cepheid.pattern.normal import NormalForm
from cepheid.spark.columns import needed_columns
from cepheid.spark.pushdown import needs_every_event

MOST_NUMBERED = 32
"""Of more types than these Spark would take long to tell which a row is of."""


def types_by_number(engine: Engine, normals: Sequence[NormalForm], columns: pa.Schema) -> tuple[str, ...]:
    """The types that patterns ask for, if a row may say by a number which of them it is; else none.

    Numbers cross from Spark to Python faster than text does. They will not do where the text is looked at or given
    out, or where other types are of use too.
    """
    name = engine.columns.type
    if name is None or any(map(needs_every_event, normals)) or columns.field(name).type != pa.string():
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
