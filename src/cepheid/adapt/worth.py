"""Whether a plan is so much better than the one in force that to change is worth its risk."""

from __future__ import annotations

import math
from collections.abc import Sequence

from cepheid.adapt.every import EVENT

WORTH = 1.1
"""A change is worth its risk if it is expected to save a tenth of all work, that of taking in events included."""
RECENT, NOW = 3, 0.6
"""So many of the last looks count beside now, which has this weight. More than a half: where things have changed for
good, the last looks are wrong."""
LARGE = 3.0
"""A plan that makes so many times less work now is taken at once. Many streams waver by less from one window to the
next, without end: what saves less must do so in the mean of this and all the last looks."""


def is_worth(old: float, new: float) -> bool:
    """Whether to change from a plan with one cost of an event to one with another."""
    return _times(old, new) > WORTH


def saves_enough(gain: float) -> bool:
    """Whether a change saves enough of all work, if this part of it."""
    return WORTH * (1 - gain) < 1


def with_recent(costs: Sequence[float]) -> float:
    """What is expected next, by the costs at some looks, the last of which is now."""
    recent = costs[-RECENT - 1 : -1]
    return NOW * costs[-1] + (1 - NOW) * sum(recent) / len(recent) if recent else costs[-1]


def lasts(old: Sequence[float], new: Sequence[float]) -> bool:
    """Whether to change, given what both plans cost of an event at some looks, the last of which is now."""
    if not is_worth(with_recent(old), with_recent(new)):
        return False
    times = list(map(_times, old, new))
    if times[-1] > LARGE:
        return True
    # In a sum, one busy window would outweigh all others.
    return math.exp(sum(map(math.log, times)) / len(times)) > WORTH


def _times(old: float, new: float) -> float:
    """How many times as much work one plan makes as another, given what they cost of an event."""
    return max(old + EVENT, 1e-300) / max(new + EVENT, 1e-300)
