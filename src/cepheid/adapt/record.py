"""What following the data did, and what it took."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace

from cepheid.stats.estimates import Estimates


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
        """Estimating may go on in the middle of something else, which does not count it then."""
        started, estimating = time.perf_counter(), self.estimating
        yield
        within = 0.0 if on == "estimating" else self.estimating - estimating
        setattr(self, on, getattr(self, on) + time.perf_counter() - started - within)

    @property
    def overhead(self) -> float:
        """The share of the time that went into estimating, deciding and planning."""
        return (self.estimating + self.deciding + self.planning) / self.all if self.all else 0.0


@dataclass(frozen=True, slots=True)
class Timed:
    """Combinations of events are counted when somebody asks for them; that is estimating, wherever it happens."""

    joint: Callable[[frozenset[str]], float | None]
    seconds: Seconds

    def __call__(self, names: frozenset[str]) -> float | None:
        with self.seconds.spent("estimating"):
            return self.joint(names)


def untimed(estimates: Estimates) -> Estimates:
    return replace(estimates, joint=estimates.joint.joint) if isinstance(estimates.joint, Timed) else estimates
