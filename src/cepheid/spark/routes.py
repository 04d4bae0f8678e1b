"""How rows get to the tasks that match them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812

from cepheid.spark.slices import Slices, Span
from cepheid.spark.spread import spread
from cepheid.spark.task import CELL
from cepheid.spark.ticks import TimeColumn

EVERYTHING = 0
"""Where there are no keys, all rows have this one."""


@dataclass(frozen=True)
class Route:
    """Rows go to ``shards`` by the hash of their keys; those of some hashes go to slices of time instead.

    A hash stands for its keys. Should two keys share one, they are sliced together, which is as exact.
    """

    keys: Sequence[Column] = ()
    shards: int = 1
    slices: Mapping[int, Slices] = field(default_factory=dict)

    @property
    def _owners(self) -> int:
        """How many of the parts are shards. Without keys there are none if there are slices."""
        return self.shards if self.keys or not self.slices else 0

    @property
    def parts(self) -> int:
        return self._owners + sum(map(len, self.slices.values()))

    @property
    def cells(self) -> dict[int, Span] | None:
        """The numbers of the slices, and the times that belong to them; None if there are only shards."""
        if not self.slices:
            return None
        numbers = iter(spread(self.parts)[self._owners :])
        return {next(numbers): slices.span(place) for slices in self.slices.values() for place in range(len(slices))}

    def sent(self, rows: DataFrame, time: TimeColumn) -> DataFrame:
        """The rows where they are wanted, in the order of time. With slices there is another column, their part."""
        if self.slices:
            numbers = spread(self.parts)
            rows = rows.withColumn(CELL, F.explode(self._cells(time, numbers)))
            rows = rows.repartition(self.parts, F.col(CELL))
        elif self.keys:
            rows = rows.repartition(self.shards, *self.keys)
        else:
            rows = rows.repartition(1)
        return rows.sortWithinPartitions(time.column)

    def _cells(self, time: TimeColumn, numbers: Sequence[int]) -> Column:
        """The parts that a row goes to: one, or two if it is near the border between slices."""
        places = count(self._owners)
        trees: dict[int, Column] = {}
        for key, slices in self.slices.items():
            mine = [numbers[next(places)] for _ in range(len(slices))]
            trees[key] = _tree(slices, time, [F.lit(number) for number in mine])
        if not self.keys:
            return trees[EVERYTHING]
        hashed = key_hash(self.keys)
        shards = F.array(*(F.array(F.lit(number)) for number in numbers[: self.shards]))
        found = F.element_at(shards, (F.pmod(hashed, F.lit(self.shards)) + 1).cast("int"))
        for key, tree in trees.items():
            found = F.when(hashed == F.lit(key), tree).otherwise(found)
        return found


def key_hash(keys: Sequence[Column]) -> Column:
    return F.xxhash64(*keys) if keys else F.lit(EVERYTHING)


def _tree(slices: Slices, time: TimeColumn, numbers: Sequence[Column]) -> Column:
    """A search for the slices that read a time, halving what is left at each step."""
    regions = slices.regions()

    def search(low: int, high: int) -> Column:
        if high - low == 1:
            return F.array(*(numbers[place] for place in regions[low][1]))
        middle = (low + high) // 2
        border = regions[middle - 1][0]
        assert border is not None
        return F.when(time.value < time.at(border), search(low, middle)).otherwise(search(middle, high))

    return search(0, len(regions))
