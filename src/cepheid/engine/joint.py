"""How many combinations of several events satisfy all conditions on them."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping
from functools import cache, lru_cache
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from cepheid.engine.sample import is_tried
from cepheid.engine.vector import Mask, Numbers
from cepheid.pattern.normal import Branch, Condition
from cepheid.pattern.order import transitive_closure

Places: TypeAlias = npt.NDArray[np.int64]
"""Which of a variable's events, for each combination. Of several variables they may differ in shape, as in NumPy."""
Judge: TypeAlias = "Callable[[Condition, Mapping[str, Places]], Mask | None]"
"""For each combination, whether a condition holds; None where that can no longer be known."""


GOLDEN = 0.6180339887498949


def evenly(rows: Places, most: int) -> Places:
    """So many of them at most, one of each of as many parts of all; at another place in each part, so that it does not
    always hit the same column where they are the cells of a table.

    >>> evenly(np.arange(100, 110), 4).tolist(), evenly(np.arange(3), 4).tolist()
    ([100, 104, 106, 107], [0, 1, 2])
    """
    if len(rows) <= most:
        return rows
    parts = np.arange(most)
    return rows[((parts + (parts + 0.5) * GOLDEN % 1) * len(rows) / most).astype(np.int64)]


class Links:
    """What order and conditions ask for between the variables of a branch."""

    def __init__(self, branch: Branch) -> None:
        self._asked = [c.variables for c in branch.conditions if is_tried(c)]
        self.order = transitive_closure(branch.order)
        self._names = [v.name for v in branch.variables]
        self.tree = cache(self._tree)
        self.last = cache(self._last)
        self.beyond = cache(self._beyond)

    def _tree(self, names: frozenset[str]) -> frozenset[frozenset[str]] | None:
        """The pairs of variables between which something is asked for, if these make a tree."""
        edges = self._within(names) | {frozenset(pair) for name in names for pair in self.next_to(name, names - {name})}
        is_tree = _side(edges, next(iter(names))) == names and all(len(edge) == 2 for edge in edges)
        return frozenset(edges) if is_tree and len(edges) == len(names) - 1 else None

    def _beyond(self, names: frozenset[str], root: str) -> list[tuple[str, frozenset[str]]]:
        """Of a tree, the neighbours of a variable, and all that hangs on each of them."""
        edges = self.tree(names)
        assert edges is not None
        neighbours = [(edge, next(iter(edge - {root}))) for edge in edges if root in edge]
        return [(other, _side(edges - {edge}, other)) for edge, other in neighbours]

    def _last(self, names: frozenset[str]) -> str:
        """The last variable without which the others are still connected."""
        for name in reversed(self._names):
            rest = names - {name}
            if name in names and (not rest or _side(self._within(rest), next(iter(rest))) == rest):
                return name
        return next(name for name in reversed(self._names) if name in names)

    def _within(self, names: frozenset[str]) -> set[frozenset[str]]:
        return {asked for asked in self._asked if asked <= names}

    def next_to(self, name: str, others: Collection[str]) -> list[tuple[str, str]]:
        """The order that is left to look at where another variable joins some that are in order: of its neighbours."""
        before = [x for x in others if (x, name) in self.order]
        after = [y for y in others if (name, y) in self.order]
        found = [(x, name) for x in before if not any((x, z) in self.order for z in before)]
        return found + [(name, y) for y in after if not any((z, y) in self.order for z in after)]


links_of = lru_cache(maxsize=1024)(Links)
"""They are asked for at each look."""


def _side(edges: Collection[frozenset[str]], name: str) -> frozenset[str]:
    """What hangs together with a variable."""
    found = frozenset({name})
    while more := frozenset().union(*(edge for edge in edges if edge & found)) - found:
        found |= more
    return found


class Joint:
    """Tries some events of each variable together. ``times``: theirs.

    Where order and conditions connect the variables as a tree, as in a sequence whose neighbours are compared, all
    combinations are counted. Else they are too many, and some are tried. ``most``: so many partial matches go on then.
    ``good`` and ``grown``: what was found so far, of pairs and of more variables.
    """

    def __init__(self, branch: Branch, times: Mapping[str, Places], judge: Judge, most: int) -> None:
        self._links = links_of(branch)
        self._conditions = [c for c in branch.conditions if is_tried(c)]
        self.times = times
        self.judge = judge
        self.most = most
        self.good: dict[tuple[str, str], Mask | None] = {}
        self.grown: dict[frozenset[str], tuple[float, dict[str, Places]] | None] = {}
        self._ways = cache(self._ways_of)

    def __call__(self, names: frozenset[str]) -> float | None:
        return self.share(names)

    def share(self, names: frozenset[str]) -> float | None:
        """The share of combinations over some variables that are in order and satisfy all conditions."""
        if not names <= self.times.keys():
            return None
        if len(names) == 1:
            return 1.0
        if self._links.tree(names) is None:
            found = self._grown(names)
            return None if found is None else found[0]
        ways = self._ways(names, self._links.last(names))
        if ways is None:
            return None
        return (float(ways.sum()) + 0.5) / (math.prod(len(self.times[name]) for name in names) + 1)

    # --- counting all of them

    def _ways_of(self, names: frozenset[str], root: str) -> Numbers | None:
        """For each event of one variable of a tree, the combinations of the others that are good with it.

        What hangs on it by one edge does not know of what hangs on it by another, so their numbers are multiplied.
        """
        found = np.ones(len(self.times[root]))
        for other, side in self._links.beyond(names, root):
            beyond, good = self._ways(side, other), self._good(min(root, other), max(root, other))
            if beyond is None or good is None:
                return None
            found = found * (good @ beyond if root < other else beyond @ good)
        return found

    def _good(self, x: str, y: str) -> Mask | None:
        if (x, y) not in self.good:
            self.good[x, y] = self._good_pairs(x, y)
        return self.good[x, y]

    def _good_pairs(self, x: str, y: str) -> Mask | None:
        """For each event of one variable and each of another, whether they may be in one match.

        As bits of truth and not as numbers to multiply with: they are kept for as long as a look is remembered.
        """
        places = {x: np.arange(len(self.times[x]))[:, None], y: np.arange(len(self.times[y]))}
        good = np.ones((len(self.times[x]), len(self.times[y])), dtype=np.bool_)
        for one, two in ((x, y), (y, x)):
            if (one, two) in self._links.order:
                good &= self.times[one][places[one]] < self.times[two][places[two]]
        for condition in self._conditions:
            if condition.variables == {x, y}:
                holds = self.judge(condition, places)
                if holds is None:
                    return None
                good &= holds
        return good

    # --- trying some of them

    def _grown(self, names: frozenset[str]) -> tuple[float, dict[str, Places]] | None:
        """Of many variables hardly any combination is good. So they are bound one after the other: some of those that
        are good so far are each tried with all events of the next variable, and of what is good then, some go on."""
        if names not in self.grown:
            last = self._links.last(names)
            rest = names - {last}
            if rest:
                before = self._grown(rest)
                self.grown[names] = None if before is None else self._extended(*before, last)
            else:
                self.grown[names] = 1.0, {last: np.arange(len(self.times[last]))}
        return self.grown[names]

    def _extended(self, chance: float, good: dict[str, Places], last: str) -> tuple[float, dict[str, Places]] | None:
        """One more variable: how likely it all is, and some of the combinations that are good."""
        events = np.arange(len(self.times[last]))
        tried = {name: places[:, None] for name, places in good.items()} | {last: events}
        passing = np.ones((len(next(iter(good.values()))), len(events)), dtype=np.bool_)
        for x, y in self._links.next_to(last, good):
            passing &= self.times[x][tried[x]] < self.times[y][tried[y]]
        for condition in self._conditions:
            if last in condition.variables and condition.variables <= set(tried):
                holds = self.judge(condition, tried)
                if holds is None:
                    return None
                passing &= holds
        found = np.flatnonzero(passing)
        chance *= (len(found) + 0.5) / (passing.size + 1)
        if not len(found):  # it goes on with combinations that are not good; the chance is next to nothing anyway
            found = np.arange(passing.size)
        before, event = np.divmod(evenly(found, self.most), len(events))
        return chance, {name: places[before] for name, places in good.items()} | {last: event}
