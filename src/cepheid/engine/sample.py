"""Estimates from a sample of the events, for plans that are made before the run."""

from __future__ import annotations

from collections.abc import Iterable

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
from cepheid.stats.estimates import Estimates

EVENTS = 20_000
"""How many events are looked at."""
PAIRS = 200_000
"""How many pairs of events are looked at for the size of a partition, which is small where there are many."""
COMBINATIONS = 2_000
"""How many combinations of events each condition is tried on."""


SAMPLED = (ConditionKind.EQUALITY, ConditionKind.COMPARISON, ConditionKind.GENERAL)
"""The conditions that can be tried on single events."""


def share(good: Mask) -> float:
    """The share that satisfies a condition, of some that were tried; never quite none or all, since they are few."""
    return (int(np.count_nonzero(good)) + 0.5) / (len(good) + 1)


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
    rng = np.random.default_rng(0)
    return {branch: _estimate(branch, sample, step, span, unit, rng) for branch in branches}


def _estimate(branch: Branch, sample: Batch, step: int, span: int, unit: Unit, rng: np.random.Generator) -> Estimates:
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
    selectivity = {
        c: _share(c, rows, sample, unit, rng)
        for c in (*branch.conditions, *(c for n in branch.negations for c in n.conditions))
        if c.kind in SAMPLED
    }
    return Estimates(counts, selectivity, _same_partition(branch.partition, sample, rng))


def _same_partition(names: tuple[str, ...], sample: Batch, rng: np.random.Generator) -> float:
    """The share of random pairs of events that are in one partition."""
    if not names:
        return 1.0
    strings = StringCodes()
    columns = [as_integers(sample.vector(name), strings) for name in names]
    one, other = rng.integers(0, len(sample), (2, PAIRS))
    apart = one != other
    same = np.logical_and.reduce([column[one] == column[other] for column in columns])
    return share(same[apart])


def _share(
    condition: Condition, rows: dict[str, npt.NDArray[np.int64]], sample: Batch, unit: Unit, rng: np.random.Generator
) -> float:
    """The share of random combinations of events that satisfy a condition."""
    if any(not len(rows[v]) for v in condition.variables):
        return 0.5
    chosen = {v: rng.choice(rows[v], COMBINATIONS) for v in sorted(condition.variables)}

    def lookup(node: Reference) -> Vector:
        assert isinstance(node, s.Attribute)
        return sample.vector(node.name).take(chosen[node.variable])

    return share(holds(condition.expression, lookup, unit, COMBINATIONS))
