"""Estimates from the stream: how often events come, over a sliding window, and how often conditions hold."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeAlias

import numpy as np

from cepheid.engine.comparisons import COMPARE, Comparisons
from cepheid.engine.joiner import FOREVER, Rows
from cepheid.engine.joint import Joint, Places, evenly
from cepheid.engine.program import Side
from cepheid.engine.run import BranchRun
from cepheid.engine.sample import Trial, same_partition
from cepheid.engine.vector import Mask, Numbers
from cepheid.pattern.normal import Condition
from cepheid.stats.estimates import Estimates
from cepheid.stats.histogram import ExponentialHistogram

Clock: TypeAlias = "Callable[[Rows], Rows]"

FEW = 16
PIECES = 4
"""A batch of many events is counted in so many pieces, one after the other."""


class Arrivals:
    """How many events a variable takes in one window; ticks may come in any order within a batch."""

    def __init__(self, window: int) -> None:
        self._histogram = ExponentialHistogram(max(window, 1))
        self._now = -FOREVER
        self._waiting = 0

    def add_few(self, count: int, now: int) -> None:
        """A few at a time are counted together."""
        self._now = max(self._now, now)
        self._waiting += count
        if self._waiting >= FEW:
            self._flush()

    def add(self, ticks: Rows) -> None:
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
        return [self._now, self._waiting, self._histogram.dump()]

    def load(self, found: list[Any]) -> None:
        self._now, self._waiting, histogram = found
        self._histogram.load(histogram)

    def count(self, now: int) -> float:
        self._flush()
        return self._histogram.count(max(now, self._now))


def observe(run: BranchRun, counts: dict[str, float], tried: int) -> Estimates:
    """What is known of a branch now; it stays known when the events of now are gone.

    Conditions are tried on combinations of the events that are kept, so that it does not matter where the plan
    evaluates them, or whether it does. ``tried``: so many events of each variable are tried together.
    """
    program, scope, store = run.program, run.scope, run.scope.store
    kept = {name: run.events(name) for name in counts}
    clock = _clock(run, kept.values())
    rows = _recent(kept, clock, program.window)
    if run.keeps_for_ever:  # the places of one partition say nothing of when an event of another came
        counts = {name: float(len(found)) for name, found in rows.items()}

    def value(side: Side, rows: Rows) -> Rows | Numbers:
        found: Rows | Numbers = (store.floats if side.is_float else store.values)[side.column][rows - store.base]
        return found

    def holds(condition: Condition, combinations: Mapping[str, Rows]) -> Mask:
        compared = program.compared.get(condition)
        if compared is None:
            return scope.holds(condition.expression, dict(combinations), len(next(iter(combinations.values()))))
        left, right = (value(side, combinations[side.variable]) for side in (compared.left, compared.right))
        good: Mask = COMPARE[compared.operator](left, right)
        return good

    some = {name: evenly(found, tried) for name, found in rows.items() if len(found)}
    sides = dict.fromkeys(side for compared in program.compared.values() for side in (compared.left, compared.right))
    values = {side: value(side, some[side.variable]) for side in sides if side.variable in some}
    now = store.base, store.size

    def holds_now(condition: Condition, places: Mapping[str, Places]) -> Mask | None:
        if (store.base, store.size) != now:
            return None
        names = sorted(condition.variables)
        shaped = np.broadcast_arrays(*(some[name][places[name]] for name in names))
        flat = {name: chosen.reshape(-1) for name, chosen in zip(names, shaped, strict=True)}
        return holds(condition, flat).reshape(shaped[0].shape)

    times = {name: clock(found) for name, found in some.items()}
    joint = Joint(program.branch, times, Comparisons(program.compared, values, holds_now), tried)
    selectivity = Trial(program.branch, rows, clock, holds).selectivity
    return Estimates(counts, selectivity, _same_partition(run, rows), joint)


def _recent(rows: dict[str, Rows], clock: Clock, window: int) -> dict[str, Rows]:
    """Those of the last window. More are kept where the watermark lags behind, or where events are negated."""
    times = {name: clock(found) for name, found in rows.items()}
    oldest = max((int(found.max()) for found in times.values() if len(found)), default=0) - window
    return {name: found[times[name] >= oldest] for name, found in rows.items()}


def _clock(run: BranchRun, rows: Iterable[Rows]) -> Clock:
    """When events came. Where partitions count for themselves, from the newest of the same partition backwards."""
    store, column = run.scope.store, run.program.partition
    if column is None or not run.keeps_for_ever:
        return store.times
    every = np.concatenate(list(rows))
    parts = store.values[column][every - store.base]
    newest = np.full(int(parts.max(initial=-1)) + 1, -FOREVER)
    np.maximum.at(newest, parts, store.times(every))
    return lambda found: store.times(found) - newest[store.values[column][found - store.base]]


def _same_partition(run: BranchRun, rows: Mapping[str, Rows]) -> float:
    column, store = run.program.partition, run.scope.store
    some = [found for found in rows.values() if len(found)]
    if column is None or not some:
        return 1.0
    return same_partition(store.values[column][np.concatenate(some) - store.base])
