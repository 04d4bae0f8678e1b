"""From a model and a share of the work to what is dropped.

Events wait while it is decided. So for each way to drop work, what a share of it would save and cost is reckoned ahead,
for shares from none to all, a few ways in each push. A decision looks up the rest.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from cepheid.shed.drops import ALL, Drops
from cepheid.shed.model import MATCHES, Numbers
from cepheid.shed.reckoning import Reckoning
from cepheid.shed.strategies import CostAware, ESpice, HSpice, PSpice, Strategy, WeightedSampling
from cepheid.shed.ways import Way, Ways

SHARES: Numbers = np.linspace(0.0, 1.0, 9)
"""What ways are reckoned for at first; then for as many that leave work in even steps. Between two of those the rest
lies about on a line."""
STEPS: Numbers = np.arange(float(len(SHARES)))
"""Their numbers. Between two steps, work and loss both lie about on a line."""
SLACK = 0.02
MORE = (0.0, 0.05, 0.1)
"""How much has to be dropped changes all the time. So ways are compared by what they lose where so much more has to be,
too: one that can be had for a little more is better than one that is the best until everything is lost."""
PAST = 3
"""Matches come in bursts, so what one outlook knows is of few moments. So ways are compared by so many earlier ones,
too."""


@dataclass(frozen=True)
class Curve:
    """Of a way, from nothing that is dropped to all: which part of the work is left, and of the matches lost."""

    work: Numbers
    loss: Numbers

    def loss_about(self, left: float) -> float:
        """Where so much work is left, and a little less; of all that it can drop, if that is not enough."""
        steps = [_reaching(self.work, STEPS, left - more) for more in MORE]
        return float(np.interp(steps, STEPS, self.loss).mean())


@dataclass(frozen=True)
class _Known:
    """A way, and for some of its shares what comes of them."""

    way: Way
    shares: Numbers
    curve: Curve


class Outlook:
    """What a strategy decides, by what was known at one time. ``reckoned``: for how many ways.

    ``repetitions``: the leaves from which events may be dropped, and how many variables of the patterns read each.
    ``past``: of the last outlooks, the curves of all ways.
    """

    def __init__(
        self,
        strategy: Strategy,
        reckoning: Reckoning,
        repetitions: Mapping[int, int],
        past: Sequence[Sequence[Curve]] = (),
    ) -> None:
        self.reckoning = reckoning
        self.past = past[-PAST:]
        self._ways = Ways(reckoning, repetitions)
        self._halves: list[Ways] = []
        self._known: list[_Known] = []
        match strategy:
            case HSpice():
                self._makes = [Ways.by_utility]
            case ESpice():
                self._makes = [Ways.by_event]
            case PSpice():
                self._makes = [Ways.by_promise]
            case WeightedSampling():
                self._makes = [Ways.by_type]
            case CostAware():
                odd = reckoning.odd_worth
                self._halves = [Ways(reckoning, repetitions, worth) for worth in (odd, reckoning.worth - odd)]
                self._makes = [Ways.by_utility, Ways.by_event, Ways.by_promise, Ways.by_type]
            case _:
                raise TypeError(f"shed is a strategy such as cepheid.HSpice(), got {strategy!r}")
        # What was seen of few matches is less sure.
        self._doubts = (MATCHES / max(1, len(reckoning.arrays["weights"]))) ** 0.5

    @property
    def reckoned(self) -> int:
        return len(self._known)

    @property
    def curves(self) -> list[Curve]:
        """Of the ways that are reckoned."""
        return [known.curve for known in self._known]

    @property
    def ways(self) -> int:
        """To be reckoned in all."""
        return len(self._makes)

    @property
    def ready(self) -> bool:
        return self.reckoned == self.ways

    def advance(self, ways: int) -> None:
        """Reckon some more ways."""
        for make in self._makes[self.reckoned : self.reckoned + ways]:
            way = make(self._ways)
            shares = _even(self._work(way, SHARES))
            work = self._work(way, shares)
            # What a way has learned from some windows is judged by the matches of the others: else the one that fits
            # chance best would win.
            loss = np.zeros(len(shares))
            for is_even, half in enumerate(self._halves):
                parts, thin = (make(half) if way.doubt else way).parts(shares)
                loss += self.reckoning.loss(1.0 - parts, thin, odd=bool(is_even)) / 2
            self._known.append(_Known(way, shares, Curve(work, loss)))

    def _work(self, way: Way, shares: Numbers) -> Numbers:
        parts, thin = way.parts(shares)
        return self.reckoning.work(1.0 - parts, thin)

    def place_of_best(self, ratio: float) -> int:
        """When the way that is best for a share of the work was reckoned; -1 if none fits."""
        losses = self._losses(1.0 - ratio)
        place = int(np.argmin(losses))
        return place if np.isfinite(losses[place]) else -1

    def _losses(self, left: float) -> list[float]:
        """What each way that is reckoned loses of the matches, if it leaves so much work, or a little less; infinite if
        it cannot."""
        found = []
        for place, known in enumerate(self._known):
            looks = [known.curve, *(curves[place] for curves in self.past)]
            loss = float(np.mean([curve.loss_about(left) for curve in looks])) + self._doubts * known.way.doubt
            found.append(loss if known.curve.work[-1] <= left + SLACK else np.inf)
        return found

    def drops(self, ratio: float) -> Drops:
        """What to drop so that ``ratio`` of the work is not done: the way that is expected to lose the least.

        Of the ways that are reckoned already, at least one. Where all of a way is not enough, events are dropped at
        random as well.
        """
        left = 1.0 - ratio
        place = self.place_of_best(ratio)
        if place >= 0:
            known = self._known[place]
            return self._decided(known.way, known.shares, known.curve.work, left)
        way = self._ways.more(self._known[0].way, 0.5 * (1.0 + ratio))
        return self._decided(way, SHARES, self._work(way, SHARES), left)

    def _decided(self, way: Way, shares: Numbers, work: Numbers, left: float) -> Drops:
        """As much of a way as is enough, found between two of the shares for which it is known."""
        about = _reaching(work, shares, left)
        place = int(np.searchsorted(shares, about))
        between = np.linspace(shares[max(place - 1, 0)], shares[place], 5)
        parts, thin = way.parts(np.array([_reaching(self._work(way, between), between, left)]))
        levels = np.rint(parts[:, :, 0] * ALL).astype(np.int64)
        return Drops(way.kind, levels, way.alike, {leaf: float(part[0]) for leaf, part in thin.items()})


def _even(work: Numbers) -> Numbers:
    """Shares that leave work in even steps, given what is left for ``SHARES``: none of it and all of it among them."""
    falling = np.minimum.accumulate(work)
    steps = np.linspace(falling[0], falling[-1], len(SHARES))
    found = np.interp(-steps, -falling, SHARES)
    found[0], found[-1] = SHARES[0], SHARES[-1]
    return found


def _reaching(work: Numbers, shares: Numbers, left: float) -> float:
    """The least share that leaves so little work, or the largest."""
    enough = np.flatnonzero(work <= left)
    if not len(enough):
        return float(shares[-1])
    place = int(enough[0])
    if not place:
        return float(shares[0])
    before, after = work[place - 1], work[place]
    return float(shares[place] - (shares[place] - shares[place - 1]) * (left - after) / (before - after))
