"""What following the data did, and what it took."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass


@dataclass(slots=True)
class Decision:
    """A plan that was made anew: when and why, what it replaced, and what that was expected to bring and brought.

    Gains are parts of the work that was saved; the observed one is known at the check after it. ``seconds``: what it
    took to put the new plan in the place of the old.
    """

    events: int
    time: int | str
    pattern: str
    reason: str
    old: str
    new: str
    estimated_gain: float
    observed_gain: float | None = None
    seconds: float = 0.0


@dataclass(slots=True)
class Seconds:
    """What following took; ``all`` is the time of all pushes, looks included."""

    estimating: float = 0.0
    deciding: float = 0.0
    planning: float = 0.0
    changing: float = 0.0
    all: float = 0.0

    @contextmanager
    def spent(self, on: str) -> Iterator[None]:
        started = time.perf_counter()
        yield
        setattr(self, on, getattr(self, on) + time.perf_counter() - started)

    @property
    def overhead(self) -> float:
        """The share of the time that went into estimating, deciding and planning."""
        return (self.estimating + self.deciding + self.planning) / self.all if self.all else 0.0
