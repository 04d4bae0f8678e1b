"""How likely it was for each row that it was not dropped at random."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

import numpy as np

from cepheid.engine.joiner import Rows
from cepheid.engine.snapshot import Arrays
from cepheid.shed.model import Numbers

MOST = 256
"""So many decisions are told apart; of more, older ones are put together."""


class Chances:
    """By what was dropped when a row came: rows are numbered in the order in which they do."""

    def __init__(self) -> None:
        self._since: Rows = np.zeros(0, dtype=np.int64)  # from which row on a decision holds
        self._left: Numbers = np.ones((0, 0))  # by decision and leaf: which part of the events is kept
        self._columns: dict[int, int] = {}  # of leaves
        self._thin: Mapping[int, float] | None = {}  # now; None: that is not known

    def note(self, thin: Mapping[int, float], row: int, oldest: int) -> None:
        """From a row on, such parts of the leaves' events are dropped; ``oldest``: the first row that is still kept."""
        if thin == self._thin:
            return
        self._thin = thin
        if thin:
            self._forget(thin)
        places = [self._columns.setdefault(leaf, len(self._columns)) for leaf in thin]
        self._left = np.pad(self._left, ((0, 1), (0, len(self._columns) - self._left.shape[1])), constant_values=1.0)
        self._left[-1, places] = 1.0 - np.array(list(thin.values()))
        self._since = np.append(self._since, row)
        gone = max(int(np.searchsorted(self._since, oldest, side="right")) - 1, 0)
        self._since, self._left = self._since[gone:], self._left[gone:]
        if len(self._since) > MOST:
            self._merge()

    def _forget(self, leaves: Collection[int]) -> None:
        """All leaves but these: they are gone, or get all of their events."""
        known = [leaf for leaf in self._columns if leaf in leaves]
        self._left = self._left[:, [self._columns[leaf] for leaf in known]]
        self._columns = {leaf: place for place, leaf in enumerate(known)}

    def _merge(self) -> None:
        """Put the older decisions together by twos: of all their rows, the mean."""
        half = len(self._since) // 4 * 2
        rows = np.maximum(np.diff(self._since[: half + 1]), 1)[:, None]
        weighted = self._left[:half] * rows
        merged = (weighted[::2] + weighted[1::2]) / (rows[::2] + rows[1::2])
        self._since = np.concatenate([self._since[:half:2], self._since[half:]])
        self._left = np.concatenate([merged, self._left[half:]])

    def of(self, leaf: int, rows: Rows) -> Numbers:
        """The chances of some rows that a leaf has."""
        column = self._columns.get(leaf)
        if column is None:
            return np.ones(len(rows))
        left = np.append(1.0, self._left[:, column])
        found: Numbers = left[np.searchsorted(self._since, rows, side="right")]
        return found

    def renumber(self, kept: Rows, first: int) -> None:
        """Of all rows only these are left; the first of them has another number now, and the others follow it."""
        self._since = first + np.searchsorted(kept, self._since)

    # --- snapshots

    def dump(self, leaves: Sequence[int]) -> Arrays:
        """Of the leaves that there are, in their order."""
        some = np.ones((len(self._since), len(leaves)))
        for place, leaf in enumerate(leaves):
            if leaf in self._columns:
                some[:, place] = self._left[:, self._columns[leaf]]
        return {"chances since": self._since, "chances": some}

    def load(self, arrays: Arrays, leaves: Sequence[int]) -> None:
        """Take what :meth:`dump` gave."""
        self._since, self._left = arrays["chances since"], arrays["chances"]
        self._columns = {leaf: place for place, leaf in enumerate(leaves)}
        self._thin = None if len(self._since) else {}
