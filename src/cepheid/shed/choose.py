"""From a model and a share of the work to what is dropped: one function for each strategy."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from cepheid.shed.drops import ALL, EACH_PAIR, SAME_LEFT, SAME_RIGHT, Drops
from cepheid.shed.model import Model, Numbers, shares_up_to
from cepheid.shed.reckoning import Reckoning
from cepheid.shed.strategies import CostAware, ESpice, HSpice, PSpice, Strategy, WeightedSampling

PRIOR = 8.0
"""A place with few pairs is judged with so many of its line's average …"""
NEAR = (1.0, 2.0, 3.0, 2.0, 1.0)
"""… and with its neighbours, which are much like it."""
MOST = 0.98
"""Of no type are more events dropped."""
TRIES = 8
"""A share is found by so many halvings."""
MIXED = (0.15, 0.35, 0.6)
"""So many of the events that open partial matches may be dropped, before other pairs are."""
FEW = 100
"""Mixtures are tried where there are no more lines: events wait for the decision."""
SLACK = 0.02
DOUBT = 0.03
"""What depends on utilities must promise so much more: they are only known from what was seen."""

Way: TypeAlias = "Callable[[float], tuple[Numbers, Mapping[int, float]]]"
"""From a share of something to the parts of pairs that are dropped, and of events."""


def choose(strategy: Strategy, model: Model, ratio: float, repetitions: Mapping[int, int]) -> Drops:
    """What to drop so that ``ratio`` of the work is not done.

    ``repetitions``: the leaves from which events may be dropped, and how many variables of the patterns read each.
    """
    nothing = np.zeros(model.pairs.shape, dtype=np.int64)
    if ratio <= 0 or not model.lines:
        return Drops("nothing", nothing)
    if not model.ready:
        thin = dict.fromkeys(repetitions, min(ratio, MOST))
        return Drops("events, at random, until there is a model", nothing, thin=thin)
    chosen = _Choice(model, ratio, repetitions)
    match strategy:
        case HSpice():
            return chosen.enough("events from partial matches", EACH_PAIR, chosen.by_utility())
        case ESpice():
            return chosen.enough("events from windows", SAME_RIGHT, chosen.by_event())
        case PSpice():
            return chosen.enough("partial matches", SAME_LEFT, chosen.by_promise())
        case WeightedSampling():
            return chosen.enough("events, at random", EACH_PAIR, chosen.by_type())
        case CostAware():
            return chosen.cheapest()
    raise TypeError(f"shed is a strategy such as cepheid.HSpice(), got {strategy!r}")


class _Choice:
    """The ways to drop a share of the work. ``worth``: what is known of the worth of pairs, if not all of it."""

    def __init__(
        self,
        model: Model,
        ratio: float,
        repetitions: Mapping[int, int],
        reckoning: Reckoning | None = None,
        worth: Numbers | None = None,
    ) -> None:
        self._model = model
        self._ratio = ratio
        self._repetitions = repetitions
        self._reckoning = Reckoning(model) if reckoning is None else reckoning
        self._sheddable = self._reckoning.sheddable[:, None]
        self._worth, self._pairs = _smooth(model.worth if worth is None else worth), _smooth(model.pairs)

    def enough(self, kind: str, alike: int, way: Way) -> Drops:
        """So much of a way that it is expected to be enough; events at random where all of it would not be."""
        parts, thin = way(self._share(way))
        if self._work(parts, thin) > 1.0 - self._ratio + SLACK:
            half, _ = way(0.5 * (1.0 + self._ratio))

            def more(share: float) -> tuple[Numbers, Mapping[int, float]]:
                return half, dict.fromkeys(self._repetitions, MOST * share)

            parts, thin = more(self._share(more))
            kind = f"{kind}, and events at random"
        return self._drops(kind, alike, parts, thin)

    def _share(self, way: Way) -> float:
        """As much of a way as is enough, or all of it."""
        low, high = 0.0, 1.0
        for _ in range(TRIES):
            middle = (low + high) / 2
            low, high = (middle, high) if self._work(*way(middle)) > 1.0 - self._ratio else (low, middle)
        return high

    def _work(self, parts: Numbers, thin: Mapping[int, float]) -> float:
        return self._reckoning.work(1.0 - parts, thin)

    def _drops(self, kind: str, alike: int, parts: Numbers, thin: Mapping[int, float]) -> Drops:
        loss = self._reckoning.loss(1.0 - parts, thin)
        return Drops(kind, _levels(parts), alike, thin, self._work(parts, thin), loss)

    def by_utility(self) -> Way:
        """hSPICE: the pairs of least utility."""
        mean = _mean(self._worth, self._pairs)
        utilities = (self._worth + PRIOR * mean) / (self._pairs + PRIOR)
        occurrences = np.where(self._sheddable, self._model.pairs, 0.0)
        return lambda share: (_shares(utilities, occurrences, share), {})

    def by_density(self) -> Way:
        """The pairs that promise the least for the work that they, and what follows from them, make."""
        each = self._reckoning.downstream()[:, None]
        mean = _mean(self._worth, self._pairs)
        density = (self._worth + PRIOR * mean) / (self._pairs + PRIOR) / np.maximum(each, 1e-300)
        costs = np.where(self._sheddable, self._model.pairs * each, 0.0)
        return lambda share: (_shares(density, costs, share), {})

    def by_event(self) -> Way:
        """eSPICE: of each type of events, the positions in a window where they are in the fewest matches.

        Events of a type are as frequent at all positions, so how many matches they are in is all that differs. Where
        each event opens a window of its own, it cannot be dropped from it.
        """
        model = self._model
        lines = [(place, line) for place, line in enumerate(model.lines) if not line.kept and line.leaf >= 0]
        slides = any(line.opens and np.count_nonzero(model.pairs[place]) > 1 for place, line in lines)
        lines = [(place, line) for place, line in lines if slides or not line.opens]
        types = sorted({line.type for _, line in lines})
        members = [[place for place, line in lines if line.type == name] for name in types]
        worth, there = np.zeros((len(types), model.bins)), np.zeros((len(types), model.bins))
        for row, places in enumerate(members):
            count = sum(model.events.get(leaf, 0.0) for leaf in {model.lines[place].leaf for place in places})
            seen = model.pairs[places].sum(axis=0) > 0
            worth[row] = self._worth[places].sum(axis=0)
            there[row] = np.where(seen, count / max(int(seen.sum()), 1), 0.0)
        utilities = worth / np.maximum(there, 1e-300)

        def way(share: float) -> tuple[Numbers, Mapping[int, float]]:
            found = np.zeros_like(model.pairs)
            for row, shares in enumerate(_shares(utilities, there, share)) if types else ():
                found[members[row]] = shares
            return found, {}

        return way

    def by_promise(self) -> Way:
        """pSPICE: the partial matches of least promise: what comes of them from an age on, for the work they make.

        Once it is dropped, a partial match stays dropped. Events that came before it meet it when it is made.
        """
        lines = self._model.lines
        sheddable = np.array([[not line.kept and not line.opens] for line in lines], dtype=np.bool_).reshape(-1, 1)
        costs = self._reckoning.costs
        mean = _mean(self._worth, costs)
        promise = (_later(self._worth) + PRIOR * mean) / (_later(costs) + PRIOR)
        weights = np.where(sheddable, costs, 0.0)
        for place, line in enumerate(lines):
            promise[place, : line.zero + 1] = promise[place, 0]

        def way(share: float) -> tuple[Numbers, Mapping[int, float]]:
            return np.maximum.accumulate(_shares(promise, weights, share), axis=1), {}

        return way

    def by_opening(self) -> Way:
        """The events that open partial matches, whatever would come of them."""
        opens = np.array([[float(line.opens and not line.kept)] for line in self._model.lines]).reshape(-1, 1)
        every = opens * np.ones((1, self._model.bins))
        return lambda share: (every * share, {})

    def by_type(self) -> Way:
        """Weighted sampling: a type's events are dropped the more, the more there are for each variable that reads it.

        First the types with many events, in the end all of them.
        """
        counts = {leaf: self._model.events.get(leaf, 0.0) / max(n, 1) for leaf, n in self._repetitions.items()}
        largest = max(counts.values(), default=1.0) or 1.0
        powers = {leaf: largest / max(count, 1e-3 * largest) for leaf, count in counts.items()}
        none = np.zeros_like(self._model.pairs)
        return lambda share: (none, {leaf: MOST * share**power for leaf, power in powers.items()})

    def by_leaf(self, leaf: int) -> Way:
        none = np.zeros_like(self._model.pairs)
        return lambda share: (none, {leaf: MOST * share})

    def ways(self) -> list[tuple[str, int, Way]]:
        """All ways, and some mixtures of them."""
        ways = [
            ("events from partial matches", EACH_PAIR, self.by_utility()),
            ("events from partial matches, by work", EACH_PAIR, self.by_density()),
            ("events from windows", SAME_RIGHT, self.by_event()),
            ("partial matches", SAME_LEFT, self.by_promise()),
        ]
        opening = self.by_opening()
        mixed = [
            (f"{kind}, and events that open partial matches", alike, _after(opening(share)[0], way))
            for kind, alike, way in ways
            for share in (MIXED if len(self._model.lines) <= FEW else ())
        ]
        # First those for which nothing is to be known but how much there is.
        sampled = [("events, at random", EACH_PAIR, self.by_leaf(leaf)) for leaf in self._repetitions]
        return [
            *(("events that open partial matches", EACH_PAIR, opening), *sampled),
            *(("events, at random", EACH_PAIR, self.by_type()), *ways, *mixed),
        ]

    def cheapest(self) -> Drops:
        """Of all ways, the one that is expected to lose the least.

        What a way has learned from some windows is judged by the matches of the others: else the one that fits chance
        best would win.
        """
        odd = self._model.odd_worth
        halves = [
            _Choice(self._model, self._ratio, self._repetitions, self._reckoning, worth).ways()
            for worth in (odd, self._model.worth - odd)
        ]
        found: list[tuple[float, Drops]] = []
        for place, (kind, alike, way) in enumerate(self.ways()):
            share = self._share(way)
            parts, thin = way(share)
            if self._work(parts, thin) > 1.0 - self._ratio + SLACK:
                continue
            losses = []
            for is_even, half in enumerate(halves):
                learned, thinned = half[place][2](share)
                losses.append(self._reckoning.loss(1.0 - learned, thinned, odd=bool(is_even)))
            learned_from = DOUBT if place >= len(self._repetitions) + 2 else 0.0
            found.append((sum(losses) / 2 + learned_from, self._drops(kind, alike, parts, thin)))
        if not found:
            return self.enough("events that open partial matches", EACH_PAIR, self.by_opening())
        return min(found, key=lambda each: each[0])[1]


def _after(base: Numbers, way: Way) -> Way:
    """What a way drops, and what is dropped already."""

    def both(share: float) -> tuple[Numbers, Mapping[int, float]]:
        parts, thin = way(share)
        return np.maximum(base, parts), thin

    return both


def _levels(parts: Numbers) -> npt.NDArray[np.int64]:
    return np.rint(parts * ALL).astype(np.int64)


def _shares(utilities: Numbers, occurrences: Numbers, share: float) -> Numbers:
    flat = shares_up_to(utilities.ravel(), occurrences.ravel(), share * float(occurrences.sum()))
    # A place where no pair was seen goes with those of its utility.
    return np.where((occurrences > 0).any(axis=1, keepdims=True), flat.reshape(utilities.shape), 0.0)


def _smooth(counts: Numbers) -> Numbers:
    weights = np.array(NEAR) / sum(NEAR)
    if not len(counts):
        return counts
    return np.stack([np.convolve(line, weights, mode="same") for line in counts])


def _mean(worth: Numbers, pairs: Numbers) -> Numbers:
    found: Numbers = worth.sum(axis=1, keepdims=True) / np.maximum(pairs.sum(axis=1, keepdims=True), 1e-300)
    return found


def _later(counts: Numbers) -> Numbers:
    """From each place on."""
    found: Numbers = np.cumsum(counts[:, ::-1], axis=1)[:, ::-1]
    return found
