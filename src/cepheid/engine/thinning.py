"""Events that are dropped at random under overload, before the plans get them."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping

import numpy as np

from cepheid.engine.chances import Chances
from cepheid.engine.gate import lots
from cepheid.engine.joiner import Rows
from cepheid.engine.matches import Matches
from cepheid.engine.run import BranchRun
from cepheid.engine.vector import Mask
from cepheid.shed.drops import ALL
from cepheid.shed.lost import Lost
from cepheid.shed.model import Numbers

LEAST = 1e-6
"""A match stands for no more than a million that had the same chance."""


class Thinning:
    """Drops events; those that someone needs are dropped for the others only."""

    def __init__(self) -> None:
        self.events = 0  # that came in, by which lots are drawn
        self.dropped = 0
        self.chances = Chances()
        self._thin: Mapping[int, float] = {}
        self._needed: Collection[int] = ()
        self._mixed: dict[int, Mask] = {}

    def begin(self, thin: Mapping[int, float], needed: Collection[int], runs: Iterable[BranchRun]) -> None:
        """Before a push. ``thin``: of each leaf, the part to drop; ``needed``: the leaves that someone needs all of."""
        self._thin, self._needed, self._mixed = thin, needed, {}
        for run in runs:
            run.negations.count_few()

    def chances_of(self, run: BranchRun, reads: Mapping[str, int], whole: Collection[str], found: Matches) -> Numbers:
        """How likely it was for each match that no event of it is dropped."""
        product = np.ones(len(found))
        columns = found.columns
        for name in (v.name for v in run.program.branch.variables if v.name not in whole):
            rows = columns[name]
            if name not in run.scope.kleene:
                product *= self.chances.of(reads[name], rows)
            elif len(rows):  # all events of a set
                which, members = run.sets.expand(rows)
                left = self.chances.of(reads[name], members)
                product *= np.multiply.reduceat(left, np.flatnonzero(np.diff(which, prepend=-1)))
        return np.maximum(product, LEAST)

    def told(self, run: BranchRun, reads: Mapping[str, int], whole: Collection[str], chances: Numbers) -> Mask:
        """Which matches tell of what is dropped now: not those whose events are all from before."""
        found: Mask = chances < (1.0 if self._now(run, reads, whole) < 1.0 else np.inf)
        return found

    def _now(self, run: BranchRun, reads: Mapping[str, int], whole: Collection[str]) -> float:
        """How likely a match is found whose events all come now."""
        return math.prod(self._there(v.name, reads, whole) for v in run.program.branch.variables)

    def thinned(self, masks: dict[int, Mask]) -> dict[int, Mask]:
        """For each leaf, which of the events that it takes it is to get."""
        found = {}
        count = len(next(iter(masks.values())))
        lot = lots(np.arange(self.events, self.events + count).reshape(-1, 1))
        self.events += count
        gone = np.zeros(count, dtype=np.bool_)
        for place, mask in masks.items():
            part = self._thin.get(place, 0.0)
            if not part:
                found[place] = mask
                continue
            drop = lot < round(part * ALL)
            gone |= mask & drop
            if place in self._needed:
                found[place], self._mixed[place] = mask, ~drop[mask]
            else:
                found[place] = mask & ~drop
        self.dropped += int(np.count_nonzero(gone))
        return found

    def kept(self, taken: dict[int, Rows]) -> dict[int, Rows]:
        """The rows that those get who do not need all."""
        return {**taken, **{place: taken[place][kept] for place, kept in self._mixed.items() if len(kept)}}

    def lost(self, run: BranchRun, reads: Mapping[str, int], whole: Collection[str], chances: Numbers) -> Lost:
        """Beside the matches of a run that were found, with such chances: how many were missed, and what tells how many
        of them are none.

        ``whole``: the variables that get all of their events even so.
        """
        branch = run.program.branch
        lost = Lost(chances=self._now(run, reads, whole), thinnings=1)
        lost.thinned = float((1.0 / chances - 1.0).sum())
        negated = {n.name: self._there(n.name, reads, whole) for n in branch.negations}
        odds = {name: (1.0 - left) / left for name, left in negated.items() if left < 1.0}
        lost.struck_once, lost.struck_twice, lost.odds = run.negations.few(odds)
        lost.doubtful = len(chances) if odds else 0
        return lost

    def _there(self, name: str, reads: Mapping[str, int], whole: Collection[str]) -> float:
        """Which part of a variable's events is left."""
        return 1.0 if name in whole else 1.0 - self._thin.get(reads[name], 0.0)
