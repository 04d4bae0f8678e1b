"""What is decided while a stream goes on: by which outlook, and when there is to be another one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from cepheid.shed.drops import Drops
from cepheid.shed.model import Line, Model
from cepheid.shed.outlook import Curve, Outlook
from cepheid.shed.reckoning import Reckoning
from cepheid.shed.strategies import Strategy
from cepheid.shed.ways import MOST

STEPS = 64
"""A decision is made for each of so many shares of the work."""
BUSY, EACH = 40, 4096
"""In a push in which work is dropped, ways are reckoned for so many lines, or one for each so many events; one at
least. Events wait for it."""
CALM = 8
"""While nothing is dropped, one way in one of so many pushes, and only if the model has seen enough."""
REST, PART = 64, 8
"""While work is dropped, an outlook stands for so many pushes; at first, for a part of the pushes that there were, and
one for each of its ways."""

Arrays = Mapping[str, npt.NDArray[Any]]


class Decisions:
    """By the last outlook that knows all ways, while the next one grows; the first one is used as it grows.

    All depends on what was pushed, not on how long anything took: so a restored session decides the same.
    ``changes`` counts how often what was decided became void.
    """

    def __init__(self, strategy: Strategy) -> None:
        self._strategy = strategy
        self._repetitions: Mapping[int, int] = {}
        self._shape = (0, 0)
        self._outlook: Outlook | None = None
        self._next: Outlook | None = None
        self._begun = 0  # at which push the last one was
        self._found: dict[int, Drops] = {}
        self.changes = 0

    def forget(self, model: Model, repetitions: Mapping[int, int]) -> None:
        """The lines are others."""
        self._repetitions, self._shape = repetitions, model.pairs.shape
        self._outlook = self._next = None
        self._found.clear()
        self.changes += 1

    def _void(self, steps: Sequence[int]) -> None:
        for step in steps:
            del self._found[step]
        self.changes += bool(steps)

    def advance(self, model: Model, pushes: int, step: int, events: int = 0) -> None:
        """In each push, of so many events: reckon a little. ``step``: the share that is dropped; to decide about it is
        enough."""
        busy = step > 0
        if busy and step not in self._found and self._outlook is not None and self._outlook.ready:
            return
        if not busy and (pushes % CALM or not model.settled):
            return
        if model.ready and self._is_due(pushes, busy):
            last = self._outlook
            past = [] if last is None else [*last.past, last.curves]
            self._next = Outlook(self._strategy, Reckoning.of(model), self._repetitions, past)
            self._begun = pushes
            if self._outlook is not None:
                return  # enough for this push
        growing = self._outlook if self._next is None else self._next
        if growing is None or growing.ready:
            return
        known = growing.reckoned
        growing.advance(max(1, BUSY // max(1, len(model.lines)), events // EACH) if busy else 1)
        if growing is self._outlook:
            self._void([step for step in self._found if growing.place_of_best(_ratio(step)) >= known])
        elif self._outlook is None or growing.ready:
            self._outlook, self._next = growing, None
            self._void(list(self._found))

    def _is_due(self, pushes: int, busy: bool) -> bool:
        """While nothing is dropped, ever more rarely; then soon, if it is not of just now, and if it has few ways."""
        last = self._outlook
        if last is None:
            return True
        if self._next is not None or not last.ready:
            return False  # first things first
        return pushes - self._begun >= (min(REST, last.ways + self._begun // PART) if busy else 3 * self._begun)

    def at(self, step: int) -> Drops:
        """What to drop for a share of the work, in 64ths."""
        found = self._found.get(step)
        if found is None:
            ratio = _ratio(step)
            found = self._found[step] = self._random(ratio) if self._outlook is None else self._outlook.drops(ratio)
        return found

    def _random(self, ratio: float) -> Drops:
        thin = dict.fromkeys(self._repetitions, min(ratio, MOST))
        return Drops("events, at random, until there is a model", np.zeros(self._shape, dtype=np.int64), thin=thin)

    # --- snapshots

    def dump(self) -> dict[str, npt.NDArray[Any]]:
        return {
            f"{name} {what}": array
            for name, outlook in self._outlooks().items()
            for what, array in outlook.reckoning.arrays.items()
        }

    def meta(self) -> dict[str, Any]:
        """What ways save and cost is reckoned again from what was known."""
        outlooks = [
            [
                name,
                outlook.reckoned,
                list(outlook.reckoning.events.items()),
                [[line.evaluations, line.kept] for line in outlook.reckoning.lines],
                [[[curve.work.tolist(), curve.loss.tolist()] for curve in curves] for curves in outlook.past],
            ]
            for name, outlook in self._outlooks().items()
        ]
        decided = sorted(self._found)  # a push in which something is to be decided reckons with nothing else
        return {"begun": self._begun, "outlooks": outlooks, "decided": decided}

    def _outlooks(self) -> dict[str, Outlook]:
        both = {"outlook": self._outlook, "next": self._next}
        return {name: outlook for name, outlook in both.items() if outlook is not None}

    def load(self, arrays: Arrays, meta: Mapping[str, Any], lines: list[Line], now_at: Mapping[int, int]) -> None:
        """Take what :meth:`dump` and :meth:`meta` gave, for the same lines; ``now_at``: which leaf is which now."""
        found: dict[str, Outlook] = {}
        for name, reckoned, events, known, curves in meta["outlooks"]:
            mine = {key.removeprefix(f"{name} "): array for key, array in arrays.items() if key.startswith(f"{name} ")}
            then = [replace(line, evaluations=work, kept=kept) for line, (work, kept) in zip(lines, known, strict=True)]
            reckoning = Reckoning(then, mine, {now_at[leaf]: count for leaf, count in events if leaf in now_at})
            past = [[Curve(np.array(work), np.array(loss)) for work, loss in ways] for ways in curves]
            outlook = Outlook(self._strategy, reckoning, self._repetitions, past)
            outlook.advance(reckoned)
            found[name] = outlook
        self._begun = meta["begun"]
        self._outlook, self._next = found.get("outlook"), found.get("next")
        self._found.clear()
        self.changes += 1
        for step in meta["decided"]:
            self.at(step)


def _ratio(step: int) -> float:
    return min(step / STEPS, 0.99)
