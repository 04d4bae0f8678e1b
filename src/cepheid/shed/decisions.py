"""What is decided while a stream goes on: by which outlook, and when there is to be another one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from cepheid.shed.drops import Drops
from cepheid.shed.model import Line, Model
from cepheid.shed.outlook import Outlook
from cepheid.shed.reckoning import Reckoning
from cepheid.shed.strategies import Strategy
from cepheid.shed.ways import MOST

STEPS = 64
"""A decision is made for each of so many shares of the work."""
BUSY, EACH = 40, 4096
"""In a push in which work is dropped, ways are reckoned for so many lines, or one for each so many events; one at
least. Events wait for it."""
CALM, STANDBY = 8, 3
"""While nothing is dropped, one way in one of so many pushes, and only if the model has seen enough; and only so many,
to begin with when it is needed: those that were the best until now. The others are reckoned then."""
REST, PART = 64, 8
"""While work is dropped, an outlook stands for so many pushes; at first, for a part of the pushes that there were, and
one for each of its ways."""
AGAIN = 7
"""So many times only the ways that have promised about as much as the best are reckoned again; then all of them."""

Arrays = Mapping[str, npt.NDArray[Any]]


class Decisions:
    """By the last outlook that knows the ways that were the best, while it grows, and while the next one is begun.

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
        self._again = 0  # how many there were since all ways were reckoned
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
        if busy and step not in self._found and _is_usable(self._outlook):
            return
        if not busy and (pushes % CALM or not model.settled):
            return
        if model.ready and self._is_due(pushes, _ratio(step)):
            self._next = self._following(model, _ratio(step))
            self._begun = pushes
            if self._outlook is not None:
                return  # enough for this push
        growing = self._outlook if self._next is None else self._next
        if growing is None or growing.ready or (not busy and _is_usable(growing)):
            return
        known = growing.reckoned
        growing.advance(max(1, BUSY // max(1, len(model.lines)), events // EACH) if busy else 1)
        if growing is self._outlook:
            self._void([step for step in self._found if growing.place_of_best(_ratio(step)) >= known])
        elif self._outlook is None or _is_usable(growing):
            self._outlook, self._next = growing, None
            self._void(list(self._found))

    def _is_due(self, pushes: int, ratio: float) -> bool:
        """While nothing is dropped, ever more rarely; then soon, if it is not of just now, and if it has few ways; at
        once, if none of its few ways drops as much as has to be dropped by now."""
        last = self._outlook
        if last is None:
            return True
        if self._next is not None or (ratio and STANDBY < last.reckoned < last.ways):
            return False  # first things first
        if ratio and not last.of_all_ways and not last.has_way(ratio):
            return True
        return pushes - self._begun >= (min(REST, last.ways + self._begun // PART) if ratio else 3 * self._begun)

    def _following(self, model: Model, ratio: float) -> Outlook:
        """The next one: of all ways, or, if all were reckoned not long ago, of those that were about as good as the
        best."""
        reckoning, last = Reckoning.of(model), self._outlook
        if last is None:
            return Outlook(self._strategy, reckoning, self._repetitions)
        again = ratio and last.ready and last.has_way(ratio) and self._again < AGAIN
        self._again = self._again + 1 if again else 0
        if self._again:
            return Outlook(self._strategy, reckoning, self._repetitions, last.promising(ratio, STANDBY), only=True)
        return Outlook(self._strategy, reckoning, self._repetitions, last.promising(ratio))

    def at(self, step: int) -> Drops:
        """What to drop for a share of the work, in 64ths."""
        found = self._found.get(step)
        if found is None:
            ratio = _ratio(step)
            found = self._found[step] = self._random(ratio) if self._outlook is None else self._outlook.drops(ratio)
        return found

    def _random(self, ratio: float) -> Drops:
        nothing = np.zeros(self._shape, dtype=np.int64)
        if not self._shape[0]:
            return Drops("nothing", nothing)
        thin = dict.fromkeys(self._repetitions, min(ratio, MOST))
        return Drops("events, at random, until there is a model", nothing, thin=thin)

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
                outlook.plan,
                outlook.reckoned,
                list(outlook.reckoning.events.items()),
                [line.evaluations for line in outlook.reckoning.lines],
            ]
            for name, outlook in self._outlooks().items()
        ]
        decided = sorted(self._found)  # a push in which something is to be decided reckons with nothing else
        return {"begun": self._begun, "again": self._again, "outlooks": outlooks, "decided": decided}

    def _outlooks(self) -> dict[str, Outlook]:
        both = {"outlook": self._outlook, "next": self._next}
        return {name: outlook for name, outlook in both.items() if outlook is not None}

    def load(self, arrays: Arrays, meta: Mapping[str, Any], lines: list[Line]) -> None:
        """Take what :meth:`dump` and :meth:`meta` gave, for the same lines."""
        found: dict[str, Outlook] = {}
        for name, plan, reckoned, events, evaluations in meta["outlooks"]:
            mine = {key.removeprefix(f"{name} "): array for key, array in arrays.items() if key.startswith(f"{name} ")}
            then = [line.with_work(each) for line, each in zip(lines, evaluations, strict=True)]
            reckoning = Reckoning(then, mine, {int(leaf): count for leaf, count in events})
            planned = [(way, also, share) for way, also, share in plan]
            outlook = Outlook(self._strategy, reckoning, self._repetitions, planned, only=True)
            outlook.advance(reckoned)
            found[name] = outlook
        self._begun, self._again = meta["begun"], meta["again"]
        self._outlook, self._next = found.get("outlook"), found.get("next")
        self._found.clear()
        self.changes += 1
        for step in meta["decided"]:
            self.at(step)


def _ratio(step: int) -> float:
    return min(step / STEPS, 0.99)


def _is_usable(outlook: Outlook | None) -> bool:
    return outlook is not None and outlook.reckoned >= min(STANDBY, outlook.ways)
