"""Counting over a sliding window in little memory: exponential histograms.

Datar, Gionis, Indyk, Motwani: Maintaining stream statistics over sliding windows (SIAM J. Comput. 31(6), 2002). Events
are kept in buckets whose sizes are powers of two, few of each size; only the oldest may straddle the window's edge.
"""

from __future__ import annotations

from collections import deque


class ExponentialHistogram:
    """How many events arrived in the last ``window`` units of time, within a relative error of ``error``.

    Batches of events are added at once; times must not decrease. Memory is O(log(events) / error).

    >>> histogram = ExponentialHistogram(window=100, error=0.1)
    >>> for time in range(1000):
    ...     histogram.add(time, 3)
    >>> 270 <= histogram.count(999) <= 330
    True
    """

    __slots__ = ("_buckets", "_most", "_total", "window")

    def __init__(self, window: int, error: float = 0.05) -> None:
        if window <= 0:
            raise ValueError(f"a window is longer than 0, got {window}")
        if not 0 < error < 1:
            raise ValueError(f"a relative error lies between 0 and 1, got {error}")
        self.window = window
        # The paper's k is 1/ε; k/2 + 1 buckets of a size may stand side by side before two of them are merged.
        self._most = int(1 / (2 * error)) + 2
        self._buckets: list[deque[int]] = []  # per power of two, the newest time in each bucket, newest first
        self._total = 0

    def add(self, time: int, events: int = 1) -> None:
        """Count events that arrive at a time; however many, the work is that of the buckets that are kept."""
        self._expire(time)
        self._total += events
        older: list[int] = []  # buckets that come into the current size from the one below, newest first …
        new = events  # … and so many, newer still, that hold only events of now
        level = 0
        while older or new:
            if level == len(self._buckets):
                self._buckets.append(deque())
            here = self._buckets[level]
            here.extendleft(reversed(older))
            older = []
            # Two oldest become one of the next size, which is as new as the newer of them.
            while here and len(here) + new > self._most:
                here.pop()
                if here:
                    older.insert(0, here.pop())
                else:
                    older.insert(0, time)
                    new -= 1
            merged = max(0, new - self._most + 1) // 2 if new > self._most else 0
            here.extendleft([time] * (new - 2 * merged))
            new = merged
            level += 1

    def count(self, now: int) -> float:
        """The estimate at a time: the oldest bucket counts half."""
        self._expire(now)
        if not self._total:
            return 0.0
        oldest: int = max(level for level, here in enumerate(self._buckets) if here)
        return self._total - float((1 << oldest) - 1) / 2

    def _expire(self, now: int) -> None:
        edge = now - self.window
        for level in range(len(self._buckets) - 1, -1, -1):
            here = self._buckets[level]
            while here and here[-1] <= edge:
                here.pop()
                self._total -= 1 << level
            if here:
                return

    def dump(self) -> list[list[int]]:
        """The newest times of the buckets, by size."""
        return [list(here) for here in self._buckets]

    def load(self, found: list[list[int]]) -> None:
        self._buckets = [deque(times) for times in found]
        self._total = sum(len(here) << level for level, here in enumerate(self._buckets))

    @property
    def buckets(self) -> int:
        """How many buckets are kept: the memory it takes."""
        return sum(map(len, self._buckets))
