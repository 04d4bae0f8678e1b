"""The last resort when shedding does not help in time: events are left out of the queue before the engine sees them."""

from __future__ import annotations

from collections.abc import Collection

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cepheid.local.stream.queue import Chunk, EventQueue, Mask
from cepheid.shed.detector import LEVEL

FADE = 0.9
"""How much of the longest push is remembered after the next."""
MARGIN = 1.25
"""A push may take so many times as long as the longest of the last ones."""


class LastResort:
    """Keeps events from being late by leaving some out: those that would be, and of the others every so manieth.

    Where patterns must never be shed, events of their types stay, even if they are late for it: ``critical``. Where
    these are not all that such patterns look at, it is None, and all events stay.
    """

    def __init__(
        self, latency_bound: float, safety: float, type: str | None = None, critical: Collection[str] | None = ()
    ) -> None:
        self._bound = latency_bound
        self._latest = latency_bound * (1 + safety) / 2
        self._room = LEVEL * safety * latency_bound
        self._longest = 0.0  # of the last pushes
        self._type = type
        self._critical = pa.array(sorted(critical or ()), pa.string())
        self._helpless = critical is None or (bool(critical) and type is None)
        self._place = 0

    def took(self, seconds: float) -> None:
        """How long a push was: the next may be as long."""
        self._longest = max(seconds, FADE * self._longest)

    def relieve(self, queue: EventQueue, now: float, service_rate: float) -> int:
        """How many events were left out. None, as long as no event is about to be late."""
        limit = max(min(self._latest, self._bound - MARGIN * self._longest), self._room)
        if self._helpless or queue.waited(now, at_stake=True) <= limit:
            return 0
        kept = min(1.0, self._room * service_rate / max(queue.events, 1))
        late = now - limit

        def stay(chunk: Chunk) -> Mask:
            if chunk.came < late:
                mask = np.zeros(len(chunk), np.bool_)
            else:
                places = np.floor((self._place + np.arange(len(chunk) + 1)) * kept)
                mask = places[1:] > places[:-1]
                self._place += len(chunk)
            if len(self._critical):
                types = chunk.events[self._type].cast(pa.string())
                mask |= pc.is_in(types, self._critical).to_numpy(zero_copy_only=False)
            return mask

        return queue.thin(stay, late)
