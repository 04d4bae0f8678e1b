"""Events that were sent from several places, put into the order of time."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa


@dataclass
class _Piece:
    """Events in the order of time, of which the first are gone."""

    events: pa.Table
    ticks: npt.NDArray[np.int64]
    start: int = 0


class Inbox:
    """Takes pieces that are sorted by time, by the time of their first event; gives back all events sorted by time.

    Where pieces follow each other in time, as they do when the source is sorted, it holds little.
    """

    def __init__(self, time: str, schema: pa.Schema) -> None:
        self._time = time
        self._schema = schema
        self._pieces: list[_Piece] = []

    def add(self, events: pa.Table) -> None:
        self._pieces.append(_Piece(events, events[self._time].cast(pa.int64()).to_numpy()))

    def before(self, time: int, fewest: int) -> pa.Table:
        """The events before a time, which are then gone; nothing if they are fewer than is worth the trouble."""
        ends = [int(np.searchsorted(piece.ticks, time)) for piece in self._pieces]
        if sum(end - piece.start for end, piece in zip(ends, self._pieces, strict=True)) < fewest:
            return self._schema.empty_table()
        return self._taken(ends)

    def rest(self) -> pa.Table:
        return self._taken([len(piece.ticks) for piece in self._pieces])

    def _taken(self, ends: list[int]) -> pa.Table:
        events, ticks = [], []
        for end, piece in zip(ends, self._pieces, strict=True):
            if end > piece.start:
                events.append(piece.events.slice(piece.start, end - piece.start))
                ticks.append(piece.ticks[piece.start : end])
                piece.start = end
        self._pieces = [piece for piece in self._pieces if piece.start < len(piece.ticks)]
        if not events:
            return self._schema.empty_table()
        found = pa.concat_tables(events)
        times = np.concatenate(ticks)
        if (np.diff(times) < 0).any():
            found = found.take(pa.array(np.argsort(times, kind="stable")))
        return found
