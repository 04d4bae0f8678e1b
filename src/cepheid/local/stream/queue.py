"""The queue between the thread that a source runs in and the engine."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, replace
from numbers import Integral
from threading import Condition
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from cepheid.local.match import BATCH

Mask: TypeAlias = npt.NDArray[np.bool_]


def size_of(size: int | None, shed: object, option: str = "queue_size", shedding: str = "shed=") -> int:
    """How many events may wait; with an overload to shed, the queue is as long as the bound lets it be.

    >>> size_of(None, None), size_of(100, None)
    (262144, 100)
    """
    if size is None:
        return 4 * BATCH
    if not isinstance(size, Integral) or size < 1:
        raise ValueError(f"{option} is 1 event or more, got {size!r}")
    if shed is not None:
        raise ValueError(f"{option} is for a stream that waits; with {shedding}, the bound says how many events may")
    return int(size)


@dataclass(frozen=True, slots=True)
class Chunk:
    """Events that came together."""

    events: pa.Table
    came: float
    """When the first of them did, on the clock of ``time.perf_counter``."""
    stays: bool = False
    """Whether none of them can be left out any more."""

    def __len__(self) -> int:
        return int(self.events.num_rows)


class EventQueue:
    """Chunks in the order in which they came.

    One thread puts, another takes. With a ``capacity``, putting waits until there is room. After :meth:`end` what is
    left can still be taken; :meth:`abort` throws it away, and whoever waits goes on.
    """

    def __init__(self, capacity: int | None) -> None:
        self._capacity = capacity
        self._chunks: deque[Chunk] = deque()
        self._changed = Condition()
        self._events = self._arrived = 0
        self._ended = self._aborted = False
        self._error: BaseException | None = None

    @property
    def events(self) -> int:
        """How many wait."""
        return self._events

    @property
    def arrived(self) -> int:
        """How many have ever been put."""
        return self._arrived

    @property
    def error(self) -> BaseException | None:
        """What the source ended with, if it did not end by itself."""
        return self._error

    def put(self, chunk: Chunk) -> bool:
        """Whether the chunk was taken in: not if the run is over."""
        with self._changed:
            if self._capacity is not None:
                # A chunk that is larger than the whole queue comes when it is empty.
                self._changed.wait_for(lambda: self._aborted or not self._events or self._fits(len(chunk)))
            if self._aborted:
                return False
            self._chunks.append(chunk)
            self._events += len(chunk)
            self._arrived += len(chunk)
            self._changed.notify_all()
            return True

    def end(self, error: BaseException | None = None) -> None:
        """No more will come."""
        with self._changed:
            self._ended, self._error = True, error
            self._changed.notify_all()

    def abort(self) -> None:
        with self._changed:
            self._ended = self._aborted = True
            self._chunks.clear()
            self._events = 0
            self._changed.notify_all()

    def wait(self, seconds: float) -> bool:
        """Until there is an event, or no more will come; False if neither happened in so many seconds."""
        with self._changed:
            return self._changed.wait_for(lambda: bool(self._chunks) or self._ended, seconds)

    @property
    def exhausted(self) -> bool:
        return self._ended and not self._chunks

    def take(self, most: int) -> list[Chunk]:
        """The oldest chunks, ``most`` events at the most; the last may be a part of one."""
        with self._changed:
            taken: list[Chunk] = []
            while self._chunks and most > 0:
                chunk = self._chunks.popleft()
                if len(chunk) > most:
                    self._chunks.appendleft(replace(chunk, events=chunk.events.slice(most)))
                    chunk = replace(chunk, events=chunk.events.slice(0, most))
                taken.append(chunk)
                most -= len(chunk)
            self._events -= sum(map(len, taken))
            self._changed.notify_all()
            return taken

    def waited(self, now: float, *, at_stake: bool = False) -> float:
        """For how long the oldest event has; ``at_stake``: of those that could be left out."""
        with self._changed:
            oldest = next((chunk.came for chunk in self._chunks if not (at_stake and chunk.stays)), now)
            return now - oldest

    def thin(self, kept: Callable[[Chunk], Mask], late: float) -> int:
        """Leave out events; how many. ``kept`` says which ones of a chunk stay. Those that came before ``late`` and
        stay are not asked about again."""
        with self._changed:
            before = self._events
            thinned = []
            for chunk in self._chunks:
                if not chunk.stays:
                    events = chunk.events.filter(pa.array(kept(chunk)))
                    chunk = Chunk(events, chunk.came, stays=chunk.came < late)
                if len(chunk):
                    thinned.append(chunk)
            self._chunks = deque(thinned)
            self._events = sum(map(len, thinned))
            self._changed.notify_all()
            return before - self._events

    def _fits(self, events: int) -> bool:
        assert self._capacity is not None
        return self._events + events <= self._capacity
