"""Events that are dropped at random under overload, before the plans get them."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TypeAlias

import numpy as np

from cepheid.engine.gate import lots
from cepheid.engine.joiner import Rows
from cepheid.engine.negation import REJECTED
from cepheid.engine.run import BranchRun
from cepheid.engine.vector import Mask
from cepheid.shed.drops import ALL
from cepheid.shed.lost import Lost

Key: TypeAlias = "tuple[str, int]"


class Thinning:
    """Drops events; those that someone needs are dropped for the others only."""

    def __init__(self) -> None:
        self.events = 0  # that came in, by which lots are drawn
        self.dropped = 0
        self._thin: Mapping[int, float] = {}
        self._needed: Collection[int] = ()
        self._mixed: dict[int, Mask] = {}
        self._rejected: dict[Key, int] = {}

    def begin(self, thin: Mapping[int, float], needed: Collection[int], runs: Mapping[Key, BranchRun]) -> None:
        """Before a push. ``thin``: of each leaf, the part to drop; ``needed``: the leaves that someone needs all of."""
        self._thin, self._needed, self._mixed = thin, needed, {}
        self._rejected = {key: _rejected(run) for key, run in runs.items() if run.program.negations}

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

    def lost(self, key: Key, run: BranchRun, reads: Mapping[str, int], whole: Collection[str], matches: float) -> Lost:
        """Beside so many matches of a run: how many were missed, and how many should have been rejected.

        ``whole``: the variables that get all of their events even so.
        """
        there = 1.0
        for variable in run.program.branch.variables:
            if variable.name not in whole:
                there *= 1.0 - self._thin.get(reads[variable.name], 0.0)
        negated = (n.name for n in run.program.branch.negations if n.name not in whole)
        part = max((self._thin.get(reads[name], 0.0) for name in negated), default=0.0)
        rejected = _rejected(run) - self._rejected.get(key, 0) if part else 0
        return Lost(
            thinned=matches * (1.0 / there - 1.0),
            chances=there,
            thinnings=1,
            false_positives=rejected * part / (1.0 - part),
        )


def _rejected(run: BranchRun) -> int:
    return sum(tally.steps.get(REJECTED, 0) for tally in run.negations.tallies.values())
