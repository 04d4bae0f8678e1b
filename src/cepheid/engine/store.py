"""The rows that can still be part of a match: what kernels compare, and the events as they came in."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from cepheid.engine.batches import in_one, picked
from cepheid.engine.kernels.join import TIME
from cepheid.engine.snapshot import Arrays, from_array, to_array

Rows = npt.NDArray[np.int64]
MAX_PIECES = 32
SMALL = 1024
"""Pieces that together have no more rows are always put together: Arrow picks rows from one piece much faster."""
FEW = 4096
"""So many rows are not worth looking through."""


class RowStore:
    """Rows in the order of their arrival, numbered from the first that ever came; old ones are dropped from the front.

    ``values`` has a line for each column that kernels read; ``floats`` are the same bits, read as doubles. Row number
    n stands at place n - ``base``.
    """

    def __init__(self, columns: int, schema: pa.Schema) -> None:
        self.base = 0
        self.size = 0
        self.values = np.zeros((columns, 1024), dtype=np.int64)
        self.floats = self.values.view(np.float64)
        self._schema = schema
        self._pieces: list[pa.RecordBatch] = []
        self._next_look = FEW

    def append(self, columns: Sequence[Rows | int], events: pa.RecordBatch) -> Rows:
        """Add rows; their numbers. A column of one value is that value."""
        count = events.num_rows
        if self.size + count > self.values.shape[1]:
            larger = np.zeros((len(self.values), 2 * (self.size + count)), dtype=np.int64)
            larger[:, : self.size] = self.values[:, : self.size]
            self.values, self.floats = larger, larger.view(np.float64)
        for line, column in zip(self.values, columns, strict=True):
            line[self.size : self.size + count] = column
        numbers = np.arange(self.base + self.size, self.base + self.size + count, dtype=np.int64)
        self.size += count
        if count:
            self._pieces.append(events)
        return numbers

    def widen(self, columns: int) -> None:
        """Have more columns. The rows that are there have nothing in them."""
        more = columns - len(self.values)
        if more > 0:
            self.values = np.concatenate([self.values, np.zeros((more, self.values.shape[1]), dtype=np.int64)])
            self.floats = self.values.view(np.float64)

    def dump(self) -> Arrays:
        return {
            "base": np.array([self.base]),
            "values": self.values[:, : self.size],
            "events": to_array(self._schema, self._pieces),
        }

    def load(self, arrays: Arrays) -> None:
        self.base = int(arrays["base"][0])
        self.values = np.ascontiguousarray(arrays["values"])
        self.floats = self.values.view(np.float64)
        self.size = self.values.shape[1]
        self._pieces = from_array(arrays["events"]).combine_chunks().to_batches()

    def times(self, rows: Rows) -> Rows:
        found: Rows = self.values[TIME][rows - self.base]
        return found

    def events(self, rows: Rows) -> pa.RecordBatch:
        """The events of some rows, as they came in."""
        found = picked(self._together(), rows - self.base)
        if isinstance(found, pa.RecordBatch):
            return found
        first, *more = in_one(found)
        if more:
            raise ValueError("the matches of one push have more than 2 GB of text: push smaller batches")
        return first

    def column(self, name: str, rows: Rows) -> pa.Array:
        found = picked(self._together().column(name), rows - self.base)
        return found.combine_chunks() if isinstance(found, pa.ChunkedArray) else found

    def whole_column(self, name: str) -> pa.Array | pa.ChunkedArray:
        """Of all rows, in order."""
        return self._together().column(name)

    def contents(self, rows: Rows) -> Rows:
        """The rank of each row's event by its attributes, column by column, smaller values first and NULL last."""
        columns = np.stack([_ranks(column) for column in self.events(rows).columns])
        order = np.lexsort(columns[::-1])
        differs = (np.diff(columns[:, order], axis=1) != 0).any(axis=0)
        ranks = np.empty(len(rows), dtype=np.int64)
        ranks[order] = np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(differs)])[: len(rows)]
        return ranks

    def _together(self) -> pa.Table | pa.RecordBatch:
        """All pieces; only the smaller ones are copied for it, when there are many."""
        # The last pieces that together are no larger than the one before them become one, when there are many. So sizes
        # fall geometrically, and a row is copied a few times only.
        many = len(self._pieces) > MAX_PIECES
        rest, place = 0, len(self._pieces)
        while place > 0 and self._merges(place - 1, rest, many=many):
            place -= 1
            rest += self._pieces[place].num_rows
        if place < len(self._pieces) - 1:
            self._pieces[place:] = [pa.concat_batches(self._pieces[place:])]
        if len(self._pieces) == 1:
            return self._pieces[0]
        return pa.Table.from_batches(self._pieces, self._schema)

    def _merges(self, place: int, rest: int, *, many: bool) -> bool:
        """Whether a piece goes together with those after it, which have ``rest`` rows."""
        rows = self._pieces[place].num_rows
        return rows + rest <= SMALL or (many and (place >= MAX_PIECES // 2 or rows <= rest))

    def _drop(self, rows: int) -> None:
        """Take rows from the front."""
        while self._pieces and self._pieces[0].num_rows <= rows:
            rows -= self._pieces.pop(0).num_rows
        if rows:
            self._pieces[0] = self._pieces[0].slice(rows)

    @property
    def crowded(self) -> bool:
        """Whether there are many more rows than when they were last looked through."""
        return self.size >= self._next_look

    def keep(self, rows: Rows) -> Callable[[Rows], Rows] | None:
        """Drop all but some rows, given in order, if that is worth it: from old numbers to new ones, -1 for none."""
        self._next_look = max(FEW, 2 * self.size)
        if 2 * len(rows) > self.size:
            return None
        places = rows - self.base
        first = self.base + self.size - len(rows)

        def change(old: Rows) -> Rows:
            where = np.searchsorted(rows, old)
            known = rows[np.minimum(where, len(rows) - 1)] == old if len(rows) else np.zeros_like(old, dtype=np.bool_)
            return np.where(known, first + where, -1)

        self.values[:, : len(rows)] = self.values[:, places]
        found = picked(self._together(), places)
        self._pieces = [found] if isinstance(found, pa.RecordBatch) else in_one(found)
        self.base, self.size = first, len(rows)
        self._next_look = max(FEW, 2 * self.size)
        return change

    def evict(self, time: int) -> int:
        """Forget rows from the front that are older than a time, once they are worth the move; how many are younger."""
        young = self.values[TIME, : self.size] >= time
        count = int(np.count_nonzero(young))
        old = int(young.argmax()) if young.any() else self.size
        if old < 1024 or old < self.size // 2:
            return count
        rest = self.size - old
        self.values[:, :rest] = self.values[:, old : self.size].copy()
        self._drop(old)
        self.base += old
        self.size = rest
        return count


def _ranks(column: pa.Array) -> Rows:
    """Equal ranks for equal values; NaN counts as NULL, which comes last."""
    if pa.types.is_null(column.type):
        return np.zeros(len(column), dtype=np.int64)
    if pa.types.is_nested(column.type):
        values = [_sortable(value) for value in column.to_pylist()]
        places = {value: place for place, value in enumerate(sorted(set(values)))}
        return np.array([places[value] for value in values], dtype=np.int64)
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    if pa.types.is_float16(column.type):
        column = column.cast(pa.float32())
    if pa.types.is_floating(column.type):
        column = pc.if_else(pc.is_nan(column), None, column)
    ranks: Rows = pc.rank(column, "ascending", tiebreaker="dense").to_numpy().astype(np.int64)
    return ranks


def _sortable(value: object) -> tuple[object, ...]:
    if value is None or value != value:
        return (1,)
    if isinstance(value, (list, tuple)):
        return (0, tuple(map(_sortable, value)))
    return (0, tuple(map(_sortable, value.values()))) if isinstance(value, dict) else (0, value)
