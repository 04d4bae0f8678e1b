"""Matches that wait for a time to pass."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from cepheid.engine.clock import Watermark
from cepheid.engine.joiner import Rows
from cepheid.engine.matches import Matches, joined
from cepheid.engine.program import a_row
from cepheid.engine.store import RowStore

MAX_PIECES = 64


class Waiting:
    """Matches, each with the time after which it need not wait. They stand in pieces, sorted by it."""

    def __init__(self, store: RowStore) -> None:
        self._store = store
        self._pieces: list[tuple[Matches, Rows]] = []

    def __len__(self) -> int:
        return sum([len(matches) for matches, _ in self._pieces])

    @property
    def matches(self) -> list[Matches]:
        return [matches for matches, _ in self._pieces]

    def add(self, matches: Matches, until: Rows) -> None:
        if not len(matches):
            return
        self._pieces.append(_sorted(matches, until))
        if len(self._pieces) > MAX_PIECES:
            parts, times = zip(*self._pieces, strict=True)
            self._pieces = [_sorted(joined(list(parts)), np.concatenate(times))]

    def due(self, watermark: Watermark | None) -> list[Matches]:
        """Take those out whose time has passed."""
        if watermark is None or not self._pieces:
            return []
        pieces, self._pieces = self._pieces, []
        ready = []
        for matches, until in pieces:
            if isinstance(watermark.ticks, int):
                cut = int(np.searchsorted(until, watermark.ticks))
                first, rest = slice(cut), slice(cut, None)
            else:
                passed = until < watermark.of(matches.tuples.rows[:, a_row(matches.variables)], self._store)
                first, rest = np.flatnonzero(passed), np.flatnonzero(~passed)  # type: ignore[assignment]
            if len(until[first]):
                ready.append(matches.take(first))
            if len(until[rest]):
                self._pieces.append((matches.take(rest), until[rest]))
        return ready

    def change(self, change: Callable[[Matches], Matches]) -> None:
        """Put others in their places."""
        self._pieces = [(change(matches), until) for matches, until in self._pieces]


def _sorted(matches: Matches, until: Rows) -> tuple[Matches, Rows]:
    order = np.argsort(until, kind="stable")
    return matches.take(order), until[order]
