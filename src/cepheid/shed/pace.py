"""Keeps a bound on the latency of events that come in micro-batches: by working in pieces, with a look at the clock.

An event waits until the micro-batch that is in work when it comes has ended, and then for its own: for two at the most.
Each of them takes some time whatever is dropped (reading, planning, the shuffle, commits) and some for the work on its
events. What the bound leaves after the first is what the detector of overload is given as its bound; and what events
have waited for is the work on the micro-batch before, and on this one so far.
"""

from __future__ import annotations

import statistics
import time
import warnings
from collections import deque
from collections.abc import Callable, Iterator

from cepheid.shed.batching import SLICE, BatchSize
from cepheid.shed.detector import LEVEL, PATIENCE, OverloadDetector

MOST = 65_536
"""Events in a piece."""
MEMORY, FEWEST = 5, 3
"""So many micro-batches tell how long they take whatever is dropped. With fewer it is not held against the work: when a
query starts, they wait for processes that start too."""
MIDDLE = 1.5
"""With w seconds of work on each micro-batch, an event has waited for w when the work on its own begins, for 2·w when
it ends: for so many times w in the middle, where the detector holds it."""

SHORT = 0.5
"""A micro-batch is short that takes less than this part of the work that there is time for."""


class Pace:
    """The detector of overload, for micro-batches. ``ratio``: the share of the work to drop now.

    All parts of a micro-batch that are worked on in a process, one after the other, keep one pace: what one of them
    takes, the others have to wait. ``clock``: in seconds, of the kind that says when micro-batches begin.

    >>> now = [0.0]
    >>> pace = Pace(2.0, 0.8, lambda: now[0])
    >>> for cut in range(4):
    ...     now[0] = cut + 0.2
    ...     for start, size in pace.pieces(cut, 1000):
    ...         now[0] += size * 0.0001
    >>> pace.ratio, round(pace.overhead, 1)
    (0.0, 0.4)
    """

    def __init__(self, latency_bound: float, safety: float, clock: Callable[[], float] = time.time) -> None:
        self.ratio = 0.0
        self.overhead = 0.0
        """Seconds that a micro-batch takes whatever is dropped, as far as is known."""
        self._bound, self._safety, self._clock = latency_bound, safety, clock
        self._least = (1 - safety) * latency_bound
        self._detector = OverloadDetector(latency_bound, safety)
        self._size = BatchSize(SLICE * (1 - safety) * latency_bound, MOST)
        self._before: deque[float] = deque(maxlen=MEMORY)  # from the beginning of a micro-batch to that of the work …
        self._after: deque[float] = deque(maxlen=MEMORY)  # … and from the end of the work to the next micro-batch
        self._cut: float | None = None  # when this micro-batch began
        self._since: float | None = None  # events of this one came since then, if it is known
        self._began = self._ended = 0.0  # the work on it
        self._worked = 0.0  # for how long, on the one before
        self._events = self._done = 0  # of the parts of this one that have come, and how many of them are done
        self._parts = self._parts_before = 0  # in this one so far, and in the one before
        self._time = self._told = 0.0  # for the detector: time in which nothing happens is left out
        self._warned = False

    def pieces(self, cut: float, events: int) -> Iterator[tuple[int, int]]:
        """For each piece of a micro-batch that began at ``cut``, where it starts and how many events it has.

        What is done between two of them is the work on the first. In the first micro-batch nothing new is decided:
        nothing is known of how fast events come, and it may have what had gathered before there was anybody to look.
        """
        if cut != self._cut:
            self._next(cut)
        self._parts += 1
        self._events += events
        # If the parts are as many as before, and those that are to come as large as those that have.
        expected = self._events * max(self._parts, self._parts_before) / self._parts
        start = 0
        while start < events:
            began, left = self._clock(), events - start
            most = self._size.events
            size = -(-left // -(-left // most))  # pieces of one size
            too_small = self._size.growing and size < left and not self._detector.shedding  # to say how fast it goes
            yield start, size
            start += size
            self._done += size
            seconds = max(self._clock() - began, 1e-6)
            self._size.took(size, seconds)
            if self._since is not None:
                # Of a micro-batch that takes little time, nothing need be dropped.
                short = size == expected and seconds < SHORT * self._work
                self._decide(size, seconds, expected, self._size.rate if too_small or short else None)
        if not events:
            yield 0, 0
        self._ended = self._clock()

    def _next(self, cut: float) -> None:
        """A micro-batch begins."""
        began = self._clock()
        first, second = self._cut is None, self._cut is not None and not self._before
        # The first may have been one that is done again, and then says when it was first begun.
        self._since, self._cut = self._began if second else self._cut, cut
        if self._since is not None and cut <= self._since:
            self._since = None  # clocks that do not agree
        self._worked = 0.0 if second else self._ended - self._began
        self._parts_before, self._parts, self._events, self._done = self._parts, 0, 0, 0
        if not first:
            self._before.append(began - cut)
            self._after.append(cut - self._ended)
            if began - self._ended > PATIENCE * self._bound:  # whatever there was, it is over
                self._detector, self.ratio = OverloadDetector(self._bound, self._safety), 0.0
            self._look()
            self._time += min(max(began - self._ended, 0.0), self._bound)
        self._began = self._ended = began

    def _look(self) -> None:
        """How long micro-batches take whatever is dropped, and what that leaves."""
        if len(self._before) < FEWEST:
            return
        before = statistics.median(self._before)
        # What is longer than that may be a wait for events, or for a trigger.
        self.overhead = max(before + min(before, *self._after), 0.0)
        room = self._bound - 2 * self.overhead
        if room < self._least and len(self._before) == MEMORY:
            self._warn()
        self._detector.latency_bound = max(room, self._least)

    def _decide(self, served: int, seconds: float, expected: float, capacity: float | None) -> None:
        """After a piece. ``expected``: events in this micro-batch."""
        assert self._cut is not None
        assert self._since is not None
        now = self._clock()
        came = expected / (self._cut - self._since)
        self._time += seconds
        # Events come all the time, and only some of it is there to work on them.
        self.ratio = self._detector.after_push(
            self._time,
            arrived=came * (1 + self.overhead / self._work) * (self._time - self._told),
            served=served,
            seconds=seconds,
            queued=expected - self._done + came * (min(self._began - self._cut, self.overhead) + now - self._began),
            waited=self._worked + now - self._began,
            capacity=capacity,
        )
        self._told = self._time

    @property
    def _work(self) -> float:
        """Seconds of work on a micro-batch, where the detector holds it."""
        return LEVEL * self._safety * self._detector.latency_bound / MIDDLE

    def _warn(self) -> None:
        if not self._warned:
            self._warned = True
            warnings.warn(
                f"a micro-batch takes {self.overhead:.2f} s whatever is dropped, and an event may wait for two of "
                f"them; so the latency bound of {self._bound:g} s cannot be kept. Expected: a bound of more than "
                f"{2 * self.overhead + self._least:.1f} s, or micro-batches that cost less (fewer partitions, a "
                "faster source or sink)",
                RuntimeWarning,
                stacklevel=2,
            )
