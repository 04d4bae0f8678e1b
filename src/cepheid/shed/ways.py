"""The ways to drop a share of the work: from a share of something to the parts of pairs and events that are dropped."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from cepheid.shed.drops import EACH_PAIR, SAME_LEFT, SAME_RIGHT
from cepheid.shed.model import PRIOR, Numbers, ThresholdArray, utility
from cepheid.shed.reckoning import Reckoning, Thin

NEAR = (1.0, 2.0, 3.0, 2.0, 1.0)
"""A place is judged with its neighbours, which are much like it."""
DOUBT, FEWER, COARSE = 0.01, 0.02, 0.03
"""What depends on utilities must promise so much more than what does not: they are only known from what was seen. What
tells fewer pairs apart, events from windows and still more partial matches, more than that: it is easier to judge, and
as a rule no better."""
MOST = 0.98
"""Of no type are more events dropped."""

Parts: TypeAlias = "Callable[[Numbers], tuple[Numbers, Thin]]"
"""For some shares, by line, place and share, the parts of pairs that are dropped; and those of events."""


@dataclass(frozen=True)
class Way:
    """``kind`` says it in words. ``doubt``: how much more of the matches it is taken to lose than is reckoned, if it
    depends on what is known of the worth of pairs."""

    kind: str
    alike: int
    parts: Parts
    doubt: float = 0.0


class Ways:
    """The ways that there are. ``worth``: what is known of the worth of pairs, if not all of it."""

    def __init__(self, reckoning: Reckoning, repetitions: Mapping[int, int], worth: Numbers | None = None) -> None:
        self._reckoning = reckoning
        self._repetitions = repetitions
        self._sheddable = reckoning.sheddable[:, None]
        self._worth = _smooth(reckoning.worth if worth is None else worth)
        self._pairs = _smooth(reckoning.pairs)

    def by_utility(self) -> Way:
        """hSPICE: the pairs of least utility for the work that they, and what follows from them, make.

        The paper counts pairs, each of which is as much work to it. Here a pair that goes on to make others is more.
        """
        each = self._reckoning.downstream()[:, None]
        mean = _mean(self._worth, self._pairs)
        worth = utility(self._worth, self._pairs, PRIOR, mean)
        # An event that opens partial matches has no place among others: where windows slide, it is that in its step.
        opens = np.array([[line.opens] for line in self._reckoning.lines], dtype=np.bool_).reshape(-1, 1)
        utilities = np.where(opens, mean, worth) / np.maximum(each, 1e-300)
        costs = np.where(self._sheddable, self._reckoning.pairs * each, 0.0)
        return Way("events from partial matches", EACH_PAIR, _pairs(utilities, costs), DOUBT)

    def by_event(self) -> Way:
        """eSPICE: of each type of events, the positions in a window where they are in the fewest matches.

        Events of a type are as frequent at all positions, so how many matches they are in is all that differs. Where
        each event opens a window of its own, it cannot be dropped from it.
        """
        all_pairs, all_lines = self._reckoning.pairs, self._reckoning.lines
        lines = [(place, line) for place, line in enumerate(all_lines) if not line.kept and line.leaf >= 0]
        slides = any(line.opens and np.count_nonzero(all_pairs[place]) > 1 for place, line in lines)
        lines = [(place, line) for place, line in lines if slides or not line.opens]
        types = sorted({line.type for _, line in lines})
        type_of = np.full(len(all_lines), len(types))
        worth, there = np.zeros((2, len(types) + 1, all_pairs.shape[1]))
        for row, name in enumerate(types):
            places = [place for place, line in lines if line.type == name]
            type_of[places] = row
            leaves = {all_lines[place].leaf for place in places}
            seen = all_pairs[places].sum(axis=0) > 0
            count = sum(self._reckoning.events.get(leaf, 0.0) for leaf in leaves)
            worth[row] = self._worth[places].sum(axis=0)
            there[row] = np.where(seen, count / max(int(seen.sum()), 1), 0.0)
        of_types = _pairs(worth / np.maximum(there, 1e-300), there)

        def parts(shares: Numbers) -> tuple[Numbers, Thin]:
            return of_types(shares)[0][type_of], {}

        return Way("events from windows", SAME_RIGHT, parts, FEWER)

    def by_promise(self) -> Way:
        """pSPICE: the partial matches of least promise: what comes of them from an age on, for the work they make.

        Once it is dropped, a partial match stays dropped. Events that came before it meet it when it is made.
        """
        lines = self._reckoning.lines
        sheddable = np.array([[not line.kept and not line.opens] for line in lines], dtype=np.bool_).reshape(-1, 1)
        costs = self._reckoning.costs
        mean = _mean(self._worth, costs)
        promise = utility(_later(self._worth), _later(costs), PRIOR, mean)
        for place, line in enumerate(lines):
            promise[place, : line.zero + 1] = promise[place, 0]
        by_age = _pairs(promise, np.where(sheddable, costs, 0.0))

        def parts(shares: Numbers) -> tuple[Numbers, Thin]:
            return np.maximum.accumulate(by_age(shares)[0], axis=1), {}

        return Way("partial matches", SAME_LEFT, parts, COARSE)

    def by_type(self) -> Way:
        """Weighted sampling: a type's events are dropped the more, the more there are for each variable that reads it.

        First the types with many events, in the end all of them.
        """
        counts = {leaf: self._reckoning.events.get(leaf, 0.0) / max(n, 1) for leaf, n in self._repetitions.items()}
        largest = max(counts.values(), default=1.0) or 1.0
        powers = {leaf: largest / max(count, 1e-3 * largest) for leaf, count in counts.items()}
        shape = self._reckoning.pairs.shape

        def parts(shares: Numbers) -> tuple[Numbers, Thin]:
            thin = {leaf: MOST * shares**power for leaf, power in powers.items()}
            return np.zeros((*shape, len(shares))), thin

        return Way("events, at random", EACH_PAIR, parts)

    def more(self, way: Way, share: float) -> Way:
        """So much of a way, and from all leaves events at random; all of it, where there are none to be dropped."""
        if not self._repetitions:
            return way
        base, _ = way.parts(np.array([share]))

        def parts(shares: Numbers) -> tuple[Numbers, Thin]:
            every = dict.fromkeys(self._repetitions, MOST * shares)
            return np.broadcast_to(base, (*base.shape[:2], len(shares))), every

        return Way(f"{way.kind}, and events at random", way.alike, parts)


def _pairs(utilities: Numbers, occurrences: Numbers) -> Parts:
    """The least useful first; a place where no pair was seen goes with those of its utility."""
    array = ThresholdArray.of(utilities.ravel(), occurrences.ravel())
    there = np.asarray(occurrences > 0).any(axis=1).reshape(-1, 1, 1)

    def parts(shares: Numbers) -> tuple[Numbers, Thin]:
        found = array.shares(shares * array.total).reshape(*utilities.shape, len(shares))
        return np.where(there, found, 0.0), {}

    return parts


def _smooth(counts: Numbers) -> Numbers:
    if not len(counts):
        return counts
    reach = len(NEAR) // 2
    wider = np.pad(counts, ((0, 0), (reach, reach)))
    weights = np.array(NEAR) / sum(NEAR)
    found: Numbers = sum(w * wider[:, n : n + counts.shape[1]] for n, w in enumerate(weights))
    return found


def _mean(worth: Numbers, pairs: Numbers) -> Numbers:
    found: Numbers = worth.sum(axis=1, keepdims=True) / np.maximum(pairs.sum(axis=1, keepdims=True), 1.0)
    return found


def _later(counts: Numbers) -> Numbers:
    """From each place on."""
    found: Numbers = np.cumsum(counts[:, ::-1], axis=1)[:, ::-1]
    return found
