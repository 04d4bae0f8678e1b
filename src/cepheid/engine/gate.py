"""Where pairs of tuples are counted and, under overload, dropped: a join of a plan, or the sets of a KL variable."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from cepheid.engine.kernels.join import (
    ALIKE,
    ANCHOR,
    DROPPED,
    IS_LEFT,
    LEVELS,
    OFFSET,
    PROCESSED,
    SETTINGS,
    SHEDS,
    SHIFT,
    STEP,
)  # fmt: skip
from cepheid.engine.kernels.join import in_control as _in_control
from cepheid.engine.kernels.join import lots as _lots

Rows: TypeAlias = npt.NDArray[np.int64]

Gate: TypeAlias = Rows
"""What the kernel reads and counts in: see there."""

OPEN: Gate = np.empty((0, 0), dtype=np.int64)
"""All pairs pass, and none is counted."""


@dataclass(frozen=True, slots=True)
class Places:
    """How places are reckoned: from one window before the origin of a pair to one after it, in bins.

    There are no more than ``most``; each is a power of two of ticks long. ``step``: of windows that slide, else 0.
    """

    window: int
    step: int
    shift: int
    most: int

    @classmethod
    def of(cls, window: int, step: int, most: int) -> Places:
        span = 2 * (window + step) + 1
        shift = max(0, (span - 1).bit_length() - (most.bit_length() - 1))
        return cls(window, step, shift, most)

    @property
    def offset(self) -> int:
        return self.window + self.step

    def bin_of(self, left: Rows, right: Rows) -> Rows:
        """The bins of pairs, by the times of the first events on both sides."""
        origin = left - left % self.step if self.step else left
        found: Rows = np.clip((right - origin + self.offset) >> self.shift, 0, self.most - 1)
        return found

    def gate(self, levels: Rows | None, *, is_left: bool, anchor: int, alike: int) -> Gate:
        """A gate; ``levels``: what it drops, None for nothing."""
        found = np.zeros((4, self.most), dtype=np.int64)
        found[SETTINGS, [SHIFT, OFFSET, STEP, IS_LEFT, ANCHOR, ALIKE, SHEDS]] = (
            self.shift, self.offset, self.step, is_left, anchor, alike, levels is not None,
        )  # fmt: skip
        if levels is not None:
            found[LEVELS] = levels
        return found


def in_control(anchors: Rows) -> npt.NDArray[np.bool_]:
    """Which tuples are in the control group, by the rows of their anchors."""
    found: npt.NDArray[np.bool_] = _in_control(anchors)  # type: ignore[no-untyped-call]
    return found


def lots(rows: Rows) -> Rows:
    """What decides about tuples where only some are dropped."""
    found: Rows = _lots(rows)  # type: ignore[no-untyped-call]
    return found


def warm_up() -> None:
    """Load what is only needed when there is too much to do already."""
    rows = np.zeros((1, 2), dtype=np.int64)
    in_control(rows[:, 0])
    in_control(rows[0])
    lots(rows)


@dataclass(slots=True)
class Opening:
    """Where events open partial matches: a leaf on the left side of a join, the start of a run."""

    places: Places
    gate: Gate

    def passing(self, rows: Rows, times: Rows) -> npt.NDArray[np.bool_] | None:
        """Which events pass; None for all. They are counted."""
        where = self.places.bin_of(times, times)
        if not self.gate[SETTINGS, SHEDS]:
            self.gate[PROCESSED] += np.bincount(where, minlength=self.gate.shape[1])
            return None
        control = in_control(rows)
        passes: npt.NDArray[np.bool_] = control | (lots(rows.reshape(-1, 1)) >= self.gate[LEVELS, where])
        for line, some in ((PROCESSED, control), (DROPPED, ~passes)):
            self.gate[line] += np.bincount(where[some], minlength=self.gate.shape[1])
        return None if passes.all() else passes


@dataclass(slots=True)
class Promise:
    """Where partial matches are dropped as they are made: ``levels`` are those of the join that would use them.

    Levels only rise with the place. So one is dropped if it would be at the first place at which it could meet anything
    there: after the events in the slots ``after``, or, if the other side need not come after any, at any place.
    """

    places: Places
    levels: Rows
    anchor: int
    dropped: Rows
    after: Sequence[int]
    in_order: bool  # whether the other side comes after all of it

    def passing(self, rows: Rows, lo: Rows, times: Callable[[Rows], Rows]) -> npt.NDArray[np.bool_] | None:
        """Which pass; None for all. ``times``: of rows."""
        where = np.zeros(len(lo), dtype=np.int64)
        if self.after:
            where = self.places.bin_of(lo, reduce(np.maximum, [times(rows[:, slot]) for slot in self.after]))
        passes: npt.NDArray[np.bool_] = in_control(rows[:, self.anchor]) | (lots(rows) >= self.levels[where])
        if passes.all():
            return None
        self.dropped += np.bincount(where[~passes], minlength=len(self.dropped))
        return passes


@dataclass(slots=True)
class Gates:
    """The gates of a network: of each join as seen from its left and from its right side, by the node's number."""

    joins: dict[int, tuple[Gate, Gate]]
    openings: dict[int, Opening]
    promises: dict[int, Promise]
