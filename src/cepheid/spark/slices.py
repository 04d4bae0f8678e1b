"""Slices of time that are matched apart, and give together exactly the matches of the whole.

The borders b₁ < b₂ < … cut time into slices. Each match belongs to one of them: that in which it ends or, if windows
slide, in which its window begins. What can make or unmake a match lies around that time: up to ``before`` ahead of it,
and up to ``after`` behind it. So a slice from b to b' reads the events from b - before up to b' + after, matches them
as if there were no others, and reports the matches that belong to it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from cepheid.language import syntax as s
from cepheid.pattern.normal import Branch, NormalForm

Span: TypeAlias = tuple[int | None, int | None]
"""From a time up to, but not including, another; None: without an end."""

MICROSECOND = 1000
"""In nanoseconds. A tick of a column of timestamps, since Spark keeps them so."""


@dataclass(frozen=True, slots=True)
class Reach:
    """How far around the time of a match lies what decides on it."""

    before: int = 0
    after: int = 0

    @property
    def total(self) -> int:
        return self.before + self.after


def reach_of(normals: Iterable[NormalForm]) -> Reach:
    """That of several patterns together, all of which can be sliced."""
    reaches = [reach for normal in normals for branch in normal.branches for reach in [_reach(branch)]]
    return Reach(max((r.before for r in reaches), default=0), max((r.after for r in reaches), default=0))


def can_be_sliced(normal: NormalForm) -> bool:
    """Whether a part of the stream is enough to know the matches in it.

    It is not where events are counted, or where events that were used are gone: that depends on all matches before.
    With SLIDE, each window is matched as if there were no other, and CONSUME does not reach beyond it.
    """
    counted = any(branch.window.kind is s.WindowKind.EVENTS for branch in normal.branches)
    return not counted and (not normal.selection.consume or normal.branches[0].slide is not None)


def _reach(branch: Branch) -> Reach:
    size = branch.window.size
    length = -(-size // MICROSECOND) if branch.window.kind is s.WindowKind.TIME else size
    if branch.slide is not None:
        return Reach(0, length)
    # A set that comes last in a stepwise pattern grows to the end of the window; there, too, a negated event that need
    # not come before any other may lie.
    grows = branch.stepwise and branch.variables[-1].is_kleene
    waits = any(not negation.before for negation in branch.negations)
    return Reach(length, length if grows or waits else 0)


@dataclass(frozen=True, slots=True)
class Slices:
    """Borders that are further apart than what decides on a match reaches: no event is read by more than two slices."""

    borders: tuple[int, ...]
    reach: Reach

    def __len__(self) -> int:
        return len(self.borders) + 1

    def span(self, place: int) -> Span:
        """The times of the matches that belong to a slice."""
        low = self.borders[place - 1] if place else None
        return low, self.borders[place] if place < len(self.borders) else None

    def regions(self) -> list[tuple[int | None, tuple[int, ...]]]:
        """Time from its beginning to its end in pieces that the same slices read: where each ends, and the slices.

        >>> Slices((100,), Reach(before=10, after=0)).regions()
        [(90, (0,)), (100, (0, 1)), (None, (1,))]
        """
        found: list[tuple[int | None, tuple[int, ...]]] = []
        for place, border in enumerate(self.borders):
            found.append((border - self.reach.before, (place,)))
            if self.reach.total:
                found.append((border + self.reach.after, (place, place + 1)))
        return [*found, (None, (len(self.borders),))]


SHARE = 4
"""If there is work for all, a slice is at least so many times as long as what it reads of its neighbours."""


def cut(times: Sequence[int], count: int, least: int, reach: Reach) -> Slices:
    """About ``count`` slices with equally many events, given times with equally many events between them.

    Slices are not much shorter than what they read of others. If there would be fewer than ``least``, for which there
    are hands, they are made shorter, but never so short that three of them read the same event.

    >>> cut(range(0, 1001, 10), count=4, least=2, reach=Reach(before=5)).borders
    (250, 500, 750)
    """
    slices = Slices((), reach)
    for shortest in (SHARE * reach.total, reach.total):
        if len(slices) < least:
            slices = Slices(_borders(times, count, max(shortest, 1)), reach)
    return slices


def _borders(times: Sequence[int], count: int, shortest: int) -> tuple[int, ...]:
    if not times:
        return ()
    borders: list[int] = []
    steps = max(len(times) - 1, 1)
    share = steps / count
    behind = 0.0  # where, in steps, the last border is
    for place, time in enumerate(times):
        far = time - (borders[-1] if borders else times[0]) >= shortest and times[-1] - time >= shortest
        if place - behind >= share - 1e-9 and far:
            borders.append(time)
            behind = place
    return tuple(borders)
