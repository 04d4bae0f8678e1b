"""Events in a line, and the runs that are followed along it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from cepheid.engine.joiner import Rows
from cepheid.engine.kernels.join import TIE, TIME
from cepheid.engine.store import RowStore
from cepheid.engine.vector import Mask


@dataclass(frozen=True, slots=True)
class Line:
    """The events in order, a partition after the other; ``group`` numbers those of one time."""

    rows: Rows
    group: Rows
    begins: Rows  # where each group begins, and at last where the line ends
    time: Rows
    partition: Rows
    takes: dict[str, Mask]
    by_row: Rows

    def place(self, rows: Rows) -> Rows:
        found: Rows = self.by_row[np.searchsorted(self.rows, rows, sorter=self.by_row)]
        return found


@dataclass(frozen=True, slots=True)
class Runs:
    """Runs that have bound the same variables.

    ``window``: with SLIDE, where it starts; ``group``: that of the last event; ``limit``: the last tick of the window;
    ``open``: strict only, whether an event may follow.
    """

    columns: dict[str, Rows]
    window: Rows
    group: Rows
    limit: Rows
    open: Mask

    def __len__(self) -> int:
        return len(self.limit)

    def take(self, chosen: Rows | Mask) -> Runs:
        columns = {name: column[chosen] for name, column in self.columns.items()}
        return Runs(columns, self.window[chosen], self.group[chosen], self.limit[chosen], self.open[chosen])


def joined_runs(parts: list[Runs]) -> Runs:
    if len(parts) == 1:
        return parts[0]
    columns = {name: np.concatenate([p.columns[name] for p in parts]) for name in parts[0].columns}
    return Runs(
        columns,
        np.concatenate([p.window for p in parts]),
        np.concatenate([p.group for p in parts]),
        np.concatenate([p.limit for p in parts]),
        np.concatenate([p.open for p in parts]),
    )


def line_of(taken: dict[str, Rows], rows: Rows, store: RowStore, partitioned_by: int | None) -> Line:
    """Some rows in the order of time, a partition after the other; ``taken``: which of them each variable takes."""
    at = rows - store.base
    values = store.values
    partition = np.zeros(len(rows), dtype=np.int64) if partitioned_by is None else values[partitioned_by][at]
    order = np.lexsort((values[TIE][at], values[TIME][at], partition))
    rows, at, partition = rows[order], at[order], partition[order]
    time, tie = values[TIME][at], values[TIE][at]
    fresh = np.ones(len(rows), dtype=np.bool_)
    fresh[1:] = (np.diff(partition) != 0) | (np.diff(time) != 0) | (np.diff(tie) != 0)
    begins = np.append(np.flatnonzero(fresh), len(rows))
    takes = {name: np.isin(rows, found) for name, found in taken.items()}
    return Line(rows, np.cumsum(fresh) - 1, begins, time, partition, takes, np.argsort(rows))


def end_of_window(partition: Rows, time: Rows, of: Rows, limit: Rows) -> Rows:
    """For each run, the first position whose event is of a later partition, or of this one and beyond the limit."""
    order = np.lexsort(
        (
            np.concatenate([np.zeros(len(time)), np.ones(len(limit))]),
            np.concatenate([time, limit]),
            np.concatenate([partition, of]),
        )
    )
    is_run = order >= len(time)
    before = np.cumsum(~is_run)
    found: npt.NDArray[np.int64] = np.empty(len(limit), dtype=np.int64)
    found[order[is_run] - len(time)] = before[is_run]
    return found
