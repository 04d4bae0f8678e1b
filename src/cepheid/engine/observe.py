"""Estimates from the stream: how often events come, over a sliding window, and how often conditions hold."""

from __future__ import annotations

from typing import Any

import numpy as np

from cepheid.engine.joiner import FOREVER, Rows
from cepheid.engine.run import BranchRun
from cepheid.engine.sample import COMBINATIONS, PAIRS, SAMPLED, share
from cepheid.pattern.normal import Condition
from cepheid.stats.estimates import Estimates
from cepheid.stats.histogram import ExponentialHistogram

FEW = 16
PIECES = 4
"""A batch of many events is counted in so many pieces, one after the other."""


class Arrivals:
    """How many events a variable takes in one window; ticks may come in any order within a batch."""

    def __init__(self, window: int) -> None:
        self._histogram = ExponentialHistogram(max(window, 1))
        self._now = -FOREVER
        self._waiting = 0

    def add(self, ticks: Rows) -> None:
        if len(ticks) <= FEW:  # a few at a time are counted together
            self._now = max(self._now, int(ticks[-1]))
            self._waiting += len(ticks)
            if self._waiting >= FEW:
                self._flush()
            return
        self._flush()
        ticks = ticks[ticks > max(int(ticks.max()), self._now) - self._histogram.window]
        if not len(ticks):
            return
        first = int(ticks.min())
        length = max(1, -(-(int(ticks.max()) - first + 1) // PIECES))
        for piece, count in enumerate(np.bincount((ticks - first) // length).tolist()):
            if count:
                self._add(first + (piece + 1) * length - 1, count)

    def _add(self, tick: int, count: int) -> None:
        self._now = max(self._now, tick)  # what comes late is counted now
        self._histogram.add(self._now, count)

    def _flush(self) -> None:
        if self._waiting:
            self._histogram.add(self._now, self._waiting)
            self._waiting = 0

    def dump(self) -> list[Any]:
        self._flush()
        return [self._now, self._histogram.dump()]

    def load(self, found: list[Any]) -> None:
        self._now = found[0]
        self._histogram.load(found[1])

    def count(self, now: int) -> float:
        self._flush()
        return self._histogram.count(max(now, self._now))


def observe(run: BranchRun, counts: dict[str, float], seed: int = 0) -> Estimates:
    """What is known of a branch now.

    Conditions are tried on random combinations of the events that are kept, so that it does not matter where the plan
    evaluates them, or whether it does.
    """
    branch = run.program.branch
    rng = np.random.default_rng(seed)
    rows = {name: run.events(name) for name in counts}
    conditions = [*branch.conditions, *(c for n in branch.negations for c in n.conditions)]
    found = {
        c: _share(c, run, rows, rng)
        for c in conditions
        if c.kind in SAMPLED and all(len(rows.get(v, ())) for v in c.variables)
    }
    return Estimates(counts, found, _same_partition(run, rows, rng))


def _same_partition(run: BranchRun, rows: dict[str, Rows], rng: np.random.Generator) -> float:
    column, store = run.program.partition, run.scope.store
    some = [found for found in rows.values() if len(found)]
    if column is None or not some:
        return 1.0
    codes = store.values[column][np.concatenate(some) - store.base]
    one, other = rng.integers(0, len(codes), (2, PAIRS))
    return share((codes[one] == codes[other])[one != other])


def _share(condition: Condition, run: BranchRun, rows: dict[str, Rows], rng: np.random.Generator) -> float:
    chosen = {name: rng.choice(rows[name], COMBINATIONS) for name in sorted(condition.variables)}
    return share(run.scope.holds(condition.expression, chosen, COMBINATIONS))
