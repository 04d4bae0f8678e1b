"""Estimates from a sample of the events, for plans that are made before the run."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from functools import cache
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from cepheid.engine.clock import unit_of
from cepheid.engine.evaluate import Reference, holds
from cepheid.engine.fields import StringCodes, as_integers, over_row
from cepheid.engine.ingest import Batch, EventColumns, EventTypes
from cepheid.engine.program import LeafProgram
from cepheid.engine.tally import Tally
from cepheid.engine.vector import Mask, Unit, Vector
from cepheid.language import syntax as s
from cepheid.language.pattern import Pattern
from cepheid.pattern.normal import Branch, Condition, ConditionKind
from cepheid.pattern.normalise import normalise
from cepheid.pattern.order import transitive_closure
from cepheid.stats.estimates import Estimates

Rows: TypeAlias = npt.NDArray[np.int64]

EVENTS = 20_000
"""How many events are looked at."""
PARTITIONED = 4_096
"""How many events are looked at for the size of a partition: all pairs of them are."""
COMBINATIONS = 2_000
"""How many combinations of events each condition is tried on."""
FEW = 50
"""So few combinations in the order of the pattern say less than all of them."""


SAMPLED = (ConditionKind.EQUALITY, ConditionKind.COMPARISON, ConditionKind.GENERAL)
"""The conditions that can be tried on single events."""


def is_tried(condition: Condition) -> bool:
    return condition.kind in SAMPLED and not condition.derived


def share(good: Mask) -> float:
    """The share that satisfies a condition, of some that were tried; never quite none or all, since they are few."""
    return (int(np.count_nonzero(good)) + 0.5) / (len(good) + 1)


def drawn(rows: Mapping[str, Rows]) -> dict[str, Rows]:
    """Combinations of events, those that each variable takes in them; nothing for a variable without events.

    Every event comes as often as every other, and what it comes together with is left to chance. It is the same chance
    each time, so that what is found changes only when the events do.
    """
    order = _shuffles(len(rows))
    return {
        name: found[order[place] * len(found) // COMBINATIONS]
        for place, (name, found) in enumerate(rows.items())
        if len(found)
    }


@cache
def _shuffles(count: int) -> Rows:
    return np.random.default_rng(0).permuted(np.tile(np.arange(COMBINATIONS), (count, 1)), axis=1)


Judge: TypeAlias = "Callable[[Condition, Mapping[str, Rows]], Mask]"
"""For each of some combinations of events, whether a condition holds."""


class Trial:
    """Conditions tried on combinations of events that stand in the order of the pattern.

    Conditions on the same events often hold together. So each is judged by the combinations that satisfy those before
    it, and the product of the selectivities is the share that satisfies all of them.
    """

    def __init__(self, branch: Branch, rows: Mapping[str, Rows], times: Callable[[Rows], Rows], judge: Judge) -> None:
        self._drawn = drawn(rows)
        self._times = times
        self._judge = judge
        order = transitive_closure(branch.order)
        self.selectivity = self._try([c for c in branch.conditions if is_tried(c)], order)
        for n in branch.negations:
            around = {*order, *((x, n.name) for x in n.after), *((n.name, y) for y in n.before)}
            self.selectivity |= self._try([c for c in n.conditions if c.kind in SAMPLED], around)

    def _try(self, conditions: Iterable[Condition], order: Collection[tuple[str, str]]) -> dict[Condition, float]:
        left: dict[frozenset[str], Mask] = {}
        found = {}
        for condition in conditions:
            names = condition.variables
            if not names <= set(self._drawn):
                continue
            if names not in left:
                left[names] = self._in_order(names, order)
                if np.count_nonzero(left[names]) < FEW:
                    left[names] = np.ones(COMBINATIONS, dtype=np.bool_)
            good = self._judge(condition, self._drawn)
            found[condition] = share(good[left[names]])
            left[names] = left[names] & good
        return found

    def _in_order(self, names: Collection[str], order: Collection[tuple[str, str]]) -> Mask:
        good = np.ones(COMBINATIONS, dtype=np.bool_)
        times = {name: self._times(self._drawn[name]) for name in names}
        for x, y in order:
            if x in names and y in names:
                good &= times[x] < times[y]
        return good


def same_partition(codes: Rows) -> float:
    """The share of pairs of events that have the same of these numbers."""
    some = codes[np.arange(0, len(codes), max(1, len(codes) // PARTITIONED))]
    sizes = np.unique(some, return_counts=True)[1]
    pairs = len(some) * (len(some) - 1) // 2
    return (int((sizes * (sizes - 1) // 2).sum()) + 0.5) / (pairs + 1)


def estimate_all(patterns: Iterable[Pattern], table: pa.Table, columns: EventColumns) -> dict[Branch, Estimates]:
    """Estimates for every branch with something to plan, from events spread evenly over a table sorted by time."""
    normals = tuple(normalise(pattern) for pattern in patterns)
    branches = [b for n in normals for b in n.branches if len(b.variables) > 1 and b.never is None]
    if not branches or not table.num_rows:
        return {}
    unit = unit_of(normals, table.schema)
    step = max(1, table.num_rows // EVENTS)
    types = EventTypes(
        [*(v.type for b in branches for v in b.variables), *(n.type for b in branches for n in b.negations)]
    )
    ends = Batch(table.take(pa.array([0, table.num_rows - 1])), columns, unit, types).vector(columns.time).data
    span = max(1, int(ends[1]) - int(ends[0]))
    sample = Batch(table.take(pa.array(np.arange(0, table.num_rows, step))), columns, unit, types)
    return {branch: _estimate(branch, sample, columns.time, step, span, unit) for branch in branches}


def _estimate(branch: Branch, sample: Batch, time: str, step: int, span: int, unit: Unit) -> Estimates:
    """``step``: how many events one of the sample stands for; ``span``: how many ticks they took to come."""
    if branch.window.kind is s.WindowKind.EVENTS:
        windows = max(1.0, step * len(sample) / branch.window.size)
    else:
        length = unit.ticks(branch.window.size) if branch.window.kind is s.WindowKind.TIME else branch.window.size
        windows = span / max(length, 1)
    conditions = {v.name: branch.conditions for v in branch.variables} | {
        n.name: n.conditions for n in branch.negations
    }
    rows = {}
    types = {v.name: v.type for v in branch.variables} | {n.name: n.type for n in branch.negations}
    for name, type_ in types.items():
        filters = [c for c in conditions[name] if c.variables == {name} and c.kind is ConditionKind.FILTER]
        leaf = LeafProgram(name, type_, tuple(over_row(c.expression) for c in filters), ())
        taken = sample.taken_by(leaf, Tally("events", name, ()))
        rows[name] = np.empty(0, dtype=np.int64) if taken is None else np.flatnonzero(taken)
    counts = {name: len(found) * step / windows for name, found in rows.items()}
    times = sample.times(time, "time")

    def judge(condition: Condition, combinations: Mapping[str, Rows]) -> Mask:
        def lookup(node: Reference) -> Vector:
            assert isinstance(node, s.Attribute)
            return sample.vector(node.name).take(combinations[node.variable])

        return holds(condition.expression, lookup, unit, COMBINATIONS)

    tried = Trial(branch, rows, lambda chosen: times[chosen], judge)
    return Estimates(counts, tried.selectivity, _same_partition(branch.partition, sample))


def _same_partition(names: tuple[str, ...], sample: Batch) -> float:
    if not names:
        return 1.0
    strings = StringCodes()
    columns = [as_integers(sample.vector(name), strings) for name in names]
    return same_partition(np.unique(np.stack(columns), axis=1, return_inverse=True)[1].reshape(-1))
