"""From a batch of events to rows of the store: which are kept, and the columns that kernels compare."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from cepheid.engine.evaluate import Reference, evaluate, holds
from cepheid.engine.fields import PartitionCodes, StringCodes, as_integers
from cepheid.engine.kernels.join import TIE, TIME
from cepheid.engine.program import FieldTable, LeafProgram
from cepheid.engine.store import RowStore
from cepheid.engine.tally import Tally
from cepheid.engine.vector import FEW, Mask, Unit, Vector, from_arrow
from cepheid.language import syntax as s

Rows = npt.NDArray[np.int64]


FAR = 2**62
MANY = 65_536
"""So many numbers of strings are kept without asking whether they are used."""


class InputError(ValueError):
    """Events that cannot be matched: a time is missing."""


@dataclass(frozen=True, slots=True)
class EventColumns:
    """Which columns of the events are what."""

    time: str = "ts"
    type: str | None = "type"
    tie_breaker: str | None = None


def without_views(schema: pa.Schema) -> pa.Schema:
    """With plain strings for string views, as polars has them: Arrow cannot pick rows from those."""
    plain = {pa.string_view(): pa.large_string(), pa.binary_view(): pa.large_binary()}
    return pa.schema([field.with_type(plain.get(field.type, field.type)) for field in schema])


class EventTypes:
    """The types of events that patterns ask for, numbered."""

    def __init__(self, names: Iterable[str]) -> None:
        self.of: dict[str, int] = {}
        self.add(names)

    def add(self, names: Iterable[str]) -> None:
        self.of |= {name: code for code, name in enumerate(dict.fromkeys([*self.of, *names]))}
        self._names = pa.array(list(self.of), pa.string())

    def codes(self, column: pa.Array | pa.ChunkedArray) -> tuple[npt.NDArray[np.int32], list[int]]:
        """The number of each event's type, other types have the last; and how many there are of each."""
        if len(column) <= FEW:
            few = [self.of.get(name, len(self.of)) for name in column.to_pylist()]
            counts = [0] * (len(self.of) + 1)
            for code in few:
                counts[code] += 1
            return np.array(few, dtype=np.int32), counts
        if pa.types.is_dictionary(column.type):
            if isinstance(column, pa.ChunkedArray):
                column = column.unify_dictionaries().combine_chunks()
            known = np.append(self._of_text(column.dictionary), np.int32(len(self.of)))
            places = column.indices
            if places.null_count:
                places = places.cast(pa.int64()).fill_null(len(known) - 1)
            codes = known[places.to_numpy(zero_copy_only=False)]
        else:
            codes = self._of_text(column)
        return codes, np.bincount(codes, minlength=len(self.of) + 1).tolist()

    def _of_text(self, column: pa.Array | pa.ChunkedArray) -> npt.NDArray[np.int32]:
        if column.type != pa.string():
            column = column.cast(pa.string())
        found = pc.index_in(column, value_set=self._names)
        codes: npt.NDArray[np.int32] = found.fill_null(len(self.of)).to_numpy(zero_copy_only=False)
        return codes


@dataclass(slots=True)
class Codes:
    """Numbers for strings and partitions, stable for the life of a session."""

    strings: StringCodes = field(default_factory=StringCodes)
    partitions: dict[tuple[str, ...], PartitionCodes] = field(default_factory=dict)
    _next_look: int = MANY

    @property
    def crowded(self) -> bool:
        """Whether there are many more than when they were last looked through."""
        return len(self.strings) + sum(map(len, self.partitions.values())) > self._next_look

    def keep(self, rows: RowStore, table: FieldTable) -> None:
        """Forget the numbers that no row has any more."""
        used = rows.values[:, : rows.size]
        for names, coder in self.partitions.items():
            coder.keep(used[table.partitions[names]])
        if len(self.strings):
            parts = [coder.parts() for coder in self.partitions.values()]
            self.strings.keep(np.concatenate([used[table.string_columns].reshape(-1), *parts]))
        self._next_look = max(MANY, 2 * (len(self.strings) + sum(map(len, self.partitions.values()))))


def _ends(data: Rows) -> tuple[int, int]:
    if len(data) <= FEW:
        few = data.tolist()
        return (min(few), max(few)) if few else (0, 0)
    return int(data.min()), int(data.max())


class Batch:
    """Some events, with what has been computed about them."""

    def __init__(
        self, events: pa.RecordBatch, columns: EventColumns, unit: Unit, types: EventTypes, ticks: Rows | None = None
    ) -> None:
        """``ticks``: the places of the events in their stream, where these are the clock and not time."""
        self.events = events
        self._size = int(events.num_rows)
        self._ticks = ticks
        self._columns = columns
        self._unit = unit
        self._vectors: dict[str, Vector] = {}
        self._ends: dict[str, tuple[int, int]] = {}
        self._types = types
        self._kinds: npt.NDArray[np.int32] | None = None
        self._counts: list[int] = []

    @classmethod
    def joined(cls, parts: list[Batch]) -> Batch:
        """Batches whose times have been looked at, as one."""
        if len(parts) == 1:
            return parts[0]
        first = parts[0]
        found = cls(pa.concat_batches([part.events for part in parts]), first._columns, first._unit, first._types)
        time = first._columns.time
        times = [part._vectors[time] for part in parts]
        found._vectors[time] = Vector(times[0].type, np.concatenate([vector.data for vector in times]))
        lows, highs = zip(*(part.span for part in parts), strict=True)
        found._ends[time] = min(lows), max(highs)
        return found

    def __len__(self) -> int:
        return self._size

    def vector(self, name: str) -> Vector:
        found = self._vectors.get(name)
        if found is None:
            column = name
            if name == "ts" != self._columns.time and name not in self.events.schema.names:
                column = self._columns.time
            found = self._vectors[name] = from_arrow(self.events.column(column), self._unit, column)
        return found

    def lookup(self, node: Reference) -> Vector:
        assert isinstance(node, s.Attribute)
        return self.vector(node.name)

    def value(self, expression: s.Expression) -> Vector:
        """An expression over one event, for each of them."""
        if isinstance(expression, s.Attribute):
            return self.vector(expression.name)
        return evaluate(expression, self.lookup, self._unit, len(self))

    def times(self, name: str, role: str) -> Rows:
        """A column that must not be NULL."""
        if name in self._ends:
            return self._vectors[name].data  # type: ignore[no-any-return]
        found = self.vector(name)
        if found.valid is not None and not found.valid.all():
            where = int(np.flatnonzero(~found.mask())[0])
            count = int((~found.mask()).sum())
            raise InputError(
                f"{count} of {len(self)} events have no {role}: column {name!r} is NULL, first in row {where}. "
                "Remove them, or give them one."
            )
        data: Rows = found.data
        ends = _ends(data)
        if ends[1] >= FAR or ends[0] <= -FAR:
            raise InputError(
                f"column {name!r}, the {role}, has values beyond ±2^62 ticks ({self._unit.name} for times), which "
                "windows cannot be reckoned with. Remove those events, or use a coarser unit."
            )
        self._ends[name] = ends
        return data

    @property
    def span(self) -> tuple[int, int]:
        """The earliest and the latest time; of no events, 0."""
        if self._columns.time not in self._ends:
            self.times(self._columns.time, "time")
        return self._ends[self._columns.time]

    def has(self, types: frozenset[str]) -> bool:
        """Whether there are events of some types."""
        if self._kinds is None and self._columns.type is not None and self._size <= FEW:
            return not types.isdisjoint(self.events.column(self._columns.type).to_pylist())
        return any(map(self._count_of_type, types))

    def taken_by(self, leaf: LeafProgram, tally: Tally) -> Mask | None:
        """Which events a variable takes; None if there are none of its type."""
        counts = [self._count_of_type(leaf.type)]
        if not counts[0]:
            return None
        mask = self._of_type(leaf.type)
        for condition in leaf.filters:
            if not counts[-1]:
                break
            mask = mask & holds(condition, self.lookup, self._unit, len(self))
            counts.append(int(np.count_nonzero(mask)))
        complete = True
        for value in leaf.needed:
            valid = self.value(value).valid
            if valid is not None:
                mask, complete = mask & valid, False
        if leaf.needed:
            counts.append(counts[-1] if complete else int(np.count_nonzero(mask)))
        for step, count in zip(tally.steps, counts, strict=False):  # after a step that nothing passes come no more
            tally.steps[step] += count
        return mask

    def _count_of_type(self, type_: str | None) -> int:
        if self._columns.type is None or type_ is None:
            return len(self)
        if self._kinds is None:
            self._kinds, self._counts = self._types.codes(self.events.column(self._columns.type))
        return self._counts[self._types.of[type_]]

    def _of_type(self, type_: str | None) -> Mask:
        if self._kinds is None or type_ is None:
            return np.ones(len(self), dtype=np.bool_)
        mask: Mask = self._kinds == self._types.of[type_]
        return mask

    def columns(self, table: FieldTable, codes: Codes, kept: Rows) -> list[Rows | int]:
        """The columns of the row store, for the rows that are kept."""
        every = len(kept) == len(self)
        tie = self._columns.tie_breaker
        if self._ticks is None:
            times = self.times(self._columns.time, "time")
        else:
            times, tie = self._ticks, None
        found: dict[int, Rows | int] = {
            TIME: times if every else times[kept],
            TIE: 0 if tie is None else self.times(tie, "tie-breaker")[kept],
        }
        for expression, column in table.fields.items():
            vector = self.value(expression)
            found[column] = as_integers(vector if every else vector.take(kept), codes.strings)
        for names, column in table.partitions.items():
            vectors = [self.vector(name).take(kept) for name in names]
            coder = codes.partitions.setdefault(names, PartitionCodes())
            found[column] = coder.of([as_integers(v, codes.strings) for v in vectors], [~v.mask() for v in vectors])
        return [found[column] for column in range(len(table))]
