"""What variables take of the events that come in."""

from __future__ import annotations

from collections.abc import Iterable
from functools import reduce
from typing import Any, Protocol

import numpy as np
import pyarrow as pa

from cepheid.engine.batches import picked
from cepheid.engine.fields import PartitionCodes
from cepheid.engine.ingest import Batch, Codes, EventColumns
from cepheid.engine.joiner import FOREVER, NONE, Rows
from cepheid.engine.kernels.join import TIME
from cepheid.engine.observe import FEW, Arrivals
from cepheid.engine.program import BranchProgram, FieldTable, LeafProgram
from cepheid.engine.snapshot import Arrays
from cepheid.engine.store import RowStore
from cepheid.engine.tally import Tally
from cepheid.engine.vector import Mask
from cepheid.language.text import expression_text


class Thinning(Protocol):
    """Drops events under overload."""

    def thinned(self, masks: dict[int, Mask]) -> dict[int, Mask]:
        """For each leaf, which of the events that it takes it is to get."""
        ...


class Intake:
    """The leaves of all plans: each that is asked for is evaluated once, and events that none takes are not kept."""

    def __init__(self, columns: EventColumns, table: FieldTable, schema: pa.Schema) -> None:
        self.table = table
        self.codes = Codes()
        self.store = RowStore(len(table), schema)
        self.live = 0  # rows in the store that were not old when it was last looked through
        self._columns = columns
        self._leaves: dict[int, tuple[LeafProgram, Tally]] = {}
        self._arrivals: dict[tuple[int, int], Arrivals] = {}
        self._next = 0

    def admit(self, program: BranchProgram) -> dict[str, int]:
        """Which leaf each variable of a program reads; those that are not there yet are added."""
        known = {leaf.key: place for place, (leaf, _) in self._leaves.items()}
        for leaf in program.all_leaves:
            if leaf.key not in known:
                known[leaf.key] = self._next
                self._leaves[self._next] = leaf, Tally("events", leaf.variable, leaf.steps)
                self._next += 1
            self._arrivals.setdefault((known[leaf.key], program.window), Arrivals(program.window))
        return {leaf.variable: known[leaf.key] for leaf in program.all_leaves}

    def retain(self, read: Iterable[tuple[int, int]]) -> None:
        """Forget all leaves but those that are read in some windows."""
        self.store.widen(len(self.table))
        used = list(dict.fromkeys(read))
        self._arrivals = {key: self._arrivals[key] for key in used}
        self._leaves = {place: self._leaves[place] for place in dict.fromkeys(place for place, _ in used)}

    def take(self, batch: Batch, thin: Thinning | None = None) -> dict[int, Rows]:
        """Put the events that some variable takes into the store; for each leaf the rows that it takes.

        ``thin`` drops some of them, where no one needs them all.
        """
        nothing: dict[int, Rows] = dict.fromkeys(self._leaves, NONE)
        if not len(batch):
            return nothing
        batch.times(self._columns.time, "time")
        masks: dict[int, Mask] = {}
        for place, (leaf, tally) in self._leaves.items():
            mask = batch.taken_by(leaf, tally)
            if mask is not None:
                masks[place] = mask
        if not masks:
            return nothing
        if thin is not None:
            masks = thin.thinned(masks)
        kept = np.flatnonzero(reduce(np.logical_or, masks.values()))
        every = len(kept) == len(batch)
        columns = batch.columns(self.table, self.codes, kept)
        numbers = self.store.append(columns, batch.events if every else picked(batch.events, kept))
        self.live += len(kept)
        found = {place: numbers[mask if every else mask[kept]] for place, mask in masks.items()}
        for (place, _), arrivals in self._arrivals.items():
            rows = found.get(place, NONE)
            if len(rows) > FEW:
                arrivals.add(self.store.times(rows))
            elif len(rows):
                arrivals.add_few(len(rows), int(self.store.values[TIME, self.store.size - 1]))
        nothing.update(found)
        return nothing

    @property
    def newest(self) -> int | None:
        """The time of the newest row that is kept; None if there is none."""
        return int(self.store.values[TIME, : self.store.size].max()) if self.store.size else None

    @property
    def leaves(self) -> list[int]:
        """Their places, in the order in which runs read them: a session that has seen other patterns come and go has
        other places for the same leaves."""
        return list(self._leaves)

    def type_of(self, place: int) -> str:
        """The type of the events that a leaf takes."""
        return self._leaves[place][0].type or "any event"

    def evict(self, oldest: int) -> None:
        self.live = self.store.evict(oldest)

    def counts(self, reads: dict[str, int], window: int) -> dict[str, float]:
        """How many events each variable takes in a window."""
        now = int(self.store.values[TIME, : self.store.size].max(initial=-FOREVER))
        return {name: self._arrivals[place, window].count(now) for name, place in reads.items()}

    # --- what was counted, and snapshots

    @property
    def tallies(self) -> list[Tally]:
        return [tally for _, tally in self._leaves.values()]

    def tallies_of(self, program: BranchProgram, reads: dict[str, int]) -> list[Tally]:
        """Those of a program, in its own words."""
        return [self._leaves[reads[f.variable]][1].seen_as(f.variable, f.steps) for f in program.all_leaves]

    def meta(self) -> dict[str, Any]:
        """Ordered as the leaves of the runs are, which have been retained."""
        return {
            "strings": self.codes.strings.dump(),
            "partitions": [[list(names), codes.dump()] for names, codes in self.codes.partitions.items()],
            "leaves": [tally.dump() for tally in self.tallies],
            "arrivals": [arrivals.dump() for arrivals in self._arrivals.values()],
            "columns": self._labels(),
            "live": self.live,
        }

    def load(self, arrays: Arrays, meta: dict[str, Any]) -> None:
        places = [meta["columns"].index(label) for label in self._labels()]
        self.store.load({**arrays, "values": arrays["values"][places]})
        self.live = meta["live"]
        self.codes.strings.load(meta["strings"])
        for names, keys in meta["partitions"]:
            self.codes.partitions.setdefault(tuple(names), PartitionCodes()).load(keys)
        for tally, counts in zip(self.tallies, meta["leaves"], strict=True):
            tally.load(counts)
        for arrivals, found in zip(self._arrivals.values(), meta["arrivals"], strict=True):
            arrivals.load(found)

    def _labels(self) -> list[str]:
        """The columns of the store in words: a session that has seen other patterns come and go has more of them."""
        found = {0: "time", 1: "tie-breaker"}
        found |= {column: expression_text(expression) for expression, column in self.table.fields.items()}
        found |= {column: f"PARTITION BY {', '.join(names)}" for names, column in self.table.partitions.items()}
        return [found[column] for column in range(len(self.table))]
