"""How many combinations of several events satisfy all conditions on them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from cepheid.engine.sample import is_tried
from cepheid.engine.vector import Mask
from cepheid.pattern.normal import Branch, Condition
from cepheid.pattern.order import transitive_closure

Places: TypeAlias = npt.NDArray[np.int64]
"""Which of a variable's events, for each combination. Of several variables they may differ in shape, as in NumPy."""
Judge: TypeAlias = "Callable[[Condition, Mapping[str, Places]], Mask | None]"
"""For each combination, whether a condition holds; None where that can no longer be known."""


def evenly(rows: Places, most: int) -> Places:
    """So many of them at most, spread over all.

    >>> evenly(np.arange(100, 110), 4).tolist(), evenly(np.arange(3), 4).tolist()
    ([101, 103, 106, 108], [0, 1, 2])
    """
    return rows if len(rows) <= most else rows[(2 * np.arange(most) + 1) * len(rows) // (2 * most)]


class Joint:
    """Tries some events of each variable together. ``times``: theirs. ``most``: so many partial matches go on."""

    def __init__(self, branch: Branch, times: Mapping[str, Places], judge: Judge, most: int) -> None:
        self._conditions = [c for c in branch.conditions if is_tried(c)]
        self._names = [v.name for v in branch.variables if v.name in times]
        self._order = transitive_closure(branch.order)
        self._times = times
        self._judge = judge
        self._most = most
        self._found: dict[frozenset[str], tuple[float, dict[str, Places]] | None] = {}

    def share(self, names: frozenset[str]) -> float | None:
        """The share of combinations over some variables that are in order and satisfy all conditions.

        Of many variables hardly any combination does. So they are bound one after the other: some of those that are
        good so far are each tried with all events of the next variable, and of what is good then, some go on.
        """
        found = self._grown(names) if names <= set(self._names) else None
        return None if found is None else found[0]

    def _grown(self, names: frozenset[str]) -> tuple[float, dict[str, Places]] | None:
        if names not in self._found:
            last = self._last(names)
            rest = names - {last}
            if rest:
                before = self._grown(rest)
                self._found[names] = None if before is None else self._extended(*before, last)
            else:
                self._found[names] = 1.0, {last: np.arange(len(self._times[last]))}
        return self._found[names]

    def _last(self, names: frozenset[str]) -> str:
        """The last variable without which the others are still connected."""
        for name in reversed(self._names):
            if name in names and self._is_connected(names - {name}):
                return name
        return next(name for name in reversed(self._names) if name in names)

    def _is_connected(self, names: frozenset[str]) -> bool:
        if not names:
            return True
        reached = {next(iter(names))}
        while (
            more := {v for c in self._conditions if c.variables <= names and c.variables & reached for v in c.variables}
            - reached
        ):
            reached |= more
        return reached == names

    def _extended(self, chance: float, good: dict[str, Places], last: str) -> tuple[float, dict[str, Places]] | None:
        """One more variable: how likely it all is, and some of the combinations that are good."""
        events = np.arange(len(self._times[last]))
        tried = {name: places[:, None] for name, places in good.items()} | {last: events}
        passing = np.ones((len(next(iter(good.values()))), len(events)), dtype=np.bool_)
        for x, y in self._next_to(last, good):
            passing &= self._times[x][tried[x]] < self._times[y][tried[y]]
        for condition in self._conditions:
            if last in condition.variables and condition.variables <= set(tried):
                holds = self._judge(condition, tried)
                if holds is None:
                    return None
                passing &= holds
        found = np.flatnonzero(passing)
        chance *= (len(found) + 0.5) / (passing.size + 1)
        if not len(found):  # it goes on with combinations that are not good; the chance is next to nothing anyway
            found = np.arange(passing.size)
        before, event = np.divmod(evenly(found, self._most), len(events))
        return chance, {name: places[before] for name, places in good.items()} | {last: event}

    def _next_to(self, name: str, others: Collection[str]) -> list[tuple[str, str]]:
        """The order that is left to look at where another variable joins some that are in order: of its neighbours."""
        before = [x for x in others if (x, name) in self._order]
        after = [y for y in others if (name, y) in self._order]
        found = [(x, name) for x in before if not any((x, z) in self._order for z in before)]
        return found + [(name, y) for y in after if not any((z, y) in self._order for z in after)]
