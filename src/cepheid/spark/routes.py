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


@dataclass(frozen=True)
class Route:
    """Rows go to ``shards`` by the hash of their keys; those of some hashes go to slices of time instead.

    A hash stands for its keys. Should two keys share one, they are sliced together, which is as exact. The parts of the
    work are numbered: the shards come first.
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

    def parts(self, hashes: Numbers | None, ticks: Numbers) -> tuple[Numbers, Numbers]:
        """Where the rows are wanted: places of rows, of which some stand twice, and with each the part it goes to."""
        rows = np.arange(len(ticks))
        if not self.keyed:
            hashes = np.zeros(len(ticks), dtype=np.int64)  # EVERYTHING
        assert hashes is not None
        found = hashes % self.shards if self.keyed else np.zeros(len(ticks), dtype=np.int64)
        again: list[tuple[Numbers, Numbers]] = []
        number = self._owners
        for key, slices in self.slices.items():
            mine = np.flatnonzero(hashes == key) if self.keyed else rows
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
    return F.xxhash64(*keys) if keys else F.lit(EVERYTHING)
