"""Which rows go to which part of the work: to shards by key, or to slices of time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyspark.sql import Column
from pyspark.sql import functions as F  # noqa: N812

from cepheid.spark.slices import Slices, Span

Numbers: TypeAlias = npt.NDArray[np.int64]

EVERYTHING = 0
"""Where there are no keys, all rows have this one."""
NOWHERE = -1
NO_KEY = 0
"""Stands for NULL among keys that are whole numbers; that another key may have it does no harm."""


@dataclass(frozen=True)
class Route:
    """Rows go to ``shards`` by the number of their key; those of some numbers go to slices of time instead.

    A number stands for its keys. Should two keys share one, they are sliced together, which is as exact. The parts of
    the work are numbered: the shards come first.
    """

    keyed: bool
    shards: int = 1
    slices: Mapping[int, Slices] = field(default_factory=dict)

    @property
    def spans(self) -> list[Span | None]:
        """For each part the times of the matches that belong to it; None for a shard, whose matches are all its own."""
        own: list[Span | None] = [None] * self._owners
        return [*own, *(slices.span(place) for slices in self.slices.values() for place in range(len(slices)))]

    @property
    def _owners(self) -> int:
        if self.keyed:
            return self.shards
        return 0 if self.slices else 1

    def parts(self, keys: Numbers | None, ticks: Numbers) -> tuple[Numbers, Numbers]:
        """Where the rows are wanted: places of rows, of which some stand twice, and with each the part it goes to."""
        rows = np.arange(len(ticks))
        if not self.keyed:
            keys = np.zeros(len(ticks), dtype=np.int64)  # EVERYTHING
        assert keys is not None
        found = spread_out(keys) % self.shards if self.keyed else np.zeros(len(ticks), dtype=np.int64)
        again: list[tuple[Numbers, Numbers]] = []
        number = self._owners
        for key, slices in self.slices.items():
            mine = np.flatnonzero(keys == key) if self.keyed else rows
            ends, first, second = _regions(slices)
            region = np.searchsorted(ends, ticks[mine], side="right")
            found[mine] = number + first[region]
            twice = second[region] != NOWHERE
            again.append((mine[twice], number + second[region[twice]]))
            number += len(slices)
        if not any(len(places) for places, _ in again):
            return rows, found
        rows = np.concatenate([rows, *(places for places, _ in again)])
        order = np.argsort(rows, kind="stable")
        return rows[order], np.concatenate([found, *(parts for _, parts in again)])[order]


def _regions(slices: Slices) -> tuple[Numbers, Numbers, Numbers]:
    """Where regions of time end, the first slice that reads each, and the second, if there is one."""
    regions = slices.regions()
    ends = np.array([end for end, _ in regions if end is not None], dtype=np.int64)
    first = np.array([readers[0] for _, readers in regions], dtype=np.int64)
    second = np.array([readers[1] if len(readers) > 1 else NOWHERE for _, readers in regions], dtype=np.int64)
    return ends, first, second


def key_column(column: Column, type_: pa.DataType) -> Column:
    """A column so that Spark's hash agrees with what is equal to the engine: NaN is NULL, -0.0 is 0.0."""
    if pa.types.is_decimal(type_):
        column, type_ = column.cast("double"), pa.float64()
    if pa.types.is_floating(type_):
        return F.when(~F.isnan(column), column + F.lit(0.0))
    return column


def key_hash(keys: Sequence[Column]) -> Column:
    return F.xxhash64(*keys)


@dataclass(frozen=True)
class Key:
    """A number for each row: rows with the same key have the same. ``name``: of the column that it already is in."""

    number: Column
    name: str | None = None


def key_of(names: Sequence[str], named: Mapping[str, Column], events: pa.Schema) -> Key | None:
    """That of some columns. A single column of whole numbers needs no hash, which would have to be sent, too."""
    if not names:
        return None
    if len(names) == 1 and pa.types.is_integer(events.field(names[0]).type):
        return Key(F.coalesce(named[names[0]].cast("long"), F.lit(NO_KEY)), names[0])
    return Key(key_hash([key_column(named[name], events.field(name).type) for name in names]))


def key_numbers(column: pa.ChunkedArray) -> Numbers:
    """The numbers of keys, as they come from Spark."""
    found: Numbers = column.cast(pa.int64()).fill_null(NO_KEY).to_numpy()
    return found


def spread_out(keys: Numbers) -> Numbers:
    """Other numbers, of which all bits depend on all bits of a key: people give keys in steps of ten."""
    bits = keys.view(np.uint64)
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        bits = (bits ^ (bits >> np.uint64(shift))) * np.uint64(factor)
    return (bits >> np.uint64(1)).view(np.int64)
