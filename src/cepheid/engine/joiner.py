"""Putting tuples of events together: the kernel's join, and the conditions that no kernel checks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from cepheid.engine.conditions import Scope
from cepheid.engine.gate import OPEN, Gate
from cepheid.engine.kernels.join import join
from cepheid.engine.kernels.tuples import join_tuples, put_together
from cepheid.engine.matches import columns_of
from cepheid.engine.program import JoinProgram
from cepheid.engine.relation import Relation, Tuples
from cepheid.engine.tally import CANDIDATES as CANDIDATES_STEP
from cepheid.engine.tally import IN_ORDER, Tally
from cepheid.language import syntax as s

Rows: TypeAlias = npt.NDArray[np.int64]
FOREVER = 2**62
"""Longer than any window, and no sum of two of them overflows."""

NONE = np.empty(0, dtype=np.int64)


class LimitError(RuntimeError):
    """A pattern makes more partial matches than was allowed."""


@dataclass(frozen=True, slots=True)
class Joiner:
    """Joins within one window. ``limit``: how many tuples one join may find."""

    scope: Scope
    window: int
    limit: int

    def tuples(self, rows: Rows) -> Tuples:
        times = self.scope.store.times(rows)
        return Tuples(rows.reshape(-1, 1), times, times)

    def insert(self, relation: Relation, new: Tuples, probe: JoinProgram) -> None:
        """Keep tuples where ``probe`` will look for them."""
        if not len(new):
            return
        keys = None
        if relation.keyed:
            store = self.scope.store
            keys = store.values[probe.inner_key_column][new.rows[:, probe.inner_key_slot] - store.base]
        relation.insert(new, keys)
        if len(relation) > self.limit and len(probe.inner) > 1:
            raise self._too_many(probe.inner)

    def pairs(self, outer: Tuples, relation: Relation, probe: JoinProgram, tally: Tally, gate: Gate = OPEN) -> Tuples:
        """Outer tuples with the inner ones that go with them."""
        if self._has_none(outer, relation, probe):
            return Tuples.empty(len(probe.outer) + len(probe.inner))
        inner, store = relation.tuples, self.scope.store
        if probe.external:
            o, i = self.candidates(outer, relation, probe, tally, gate)
            found = put_together(  # type: ignore[no-untyped-call]
                outer.rows, outer.lo, outer.hi, inner.rows, inner.lo, inner.hi, o, i, probe.outer_to, probe.inner_to
            )
            return Tuples(*found)
        rows, lo, hi, counts = join_tuples(  # type: ignore[no-untyped-call]
            outer.rows, outer.lo, outer.hi, inner.rows, inner.lo, inner.hi,
            outer.hi - self.window, outer.lo + self.window, self.window, probe.after, probe.before, probe.conditions,
            store.values, store.floats, store.base, self.scope.ties,
            probe.key_slot, probe.key_column, relation.keys, relation.heads, relation.links,
            relation.in_order, self.limit, gate, probe.outer_to, probe.inner_to,
        )  # fmt: skip
        self._count(counts, probe, tally)
        return Tuples(rows, lo, hi)

    def _has_none(self, outer: Tuples, relation: Relation, probe: JoinProgram) -> bool:
        """Whether it is plain that nothing goes together: one side is empty, or nothing has come after the other."""
        if not len(outer) or not len(relation):
            return True
        if not len(probe.after):
            return False
        times = outer.lo if outer.rows.shape[1] == 1 else self.scope.store.times(outer.rows[:, probe.after[0, 0]])
        return bool(relation.newest < np.minimum.reduce(times))

    def candidates(
        self, outer: Tuples, relation: Relation, probe: JoinProgram, tally: Tally, gate: Gate = OPEN
    ) -> tuple[Rows, Rows]:
        """Which outer tuples go with which inner ones."""
        if self._has_none(outer, relation, probe):
            return NONE, NONE
        low, high = outer.hi - self.window, outer.lo + self.window
        o, i = self.probe(outer, low, high, relation, probe, tally, window=self.window, gate=gate)
        return self.passing(outer, o, relation.tuples, i, probe, tally)

    def passing(
        self, outer: Tuples, o: Rows, inner: Tuples, i: Rows, probe: JoinProgram, tally: Tally
    ) -> tuple[Rows, Rows]:
        """The pairs that satisfy the conditions which no kernel can check."""
        for condition, label in zip(probe.external, probe.external_labels, strict=True):
            if not len(o):
                break
            tally.evaluations += len(o)
            rows = np.concatenate([outer.rows[o], inner.rows[i]], axis=1)
            columns = {name: rows[:, place] for place, name in enumerate((*probe.outer, *probe.inner))}
            good = self.scope.holds(condition, columns, len(o))
            o, i = o[good], i[good]
            tally.steps[label] += len(o)
        return o, i

    def probe(
        self,
        outer: Tuples,
        low: Rows,
        high: Rows,
        relation: Relation,
        probe: JoinProgram,
        tally: Tally,
        *,
        window: int = 2 * FOREVER - 1,
        exists: bool = False,
        gate: Gate = OPEN,
    ) -> tuple[Rows, Rows]:
        """The pairs that the kernel lets through; ``exists``: one inner tuple for each outer one is enough."""
        inner, store = relation.tuples, self.scope.store
        o, i, counts = join(  # type: ignore[no-untyped-call]
            outer.rows, outer.lo, outer.hi, inner.rows, inner.lo, inner.hi,
            low, high, window, probe.after, probe.before, probe.conditions,
            store.values, store.floats, store.base, self.scope.ties,
            probe.key_slot, probe.key_column, relation.keys, relation.heads, relation.links,
            relation.in_order, exists, self.limit, gate,
        )  # fmt: skip
        self._count(counts, probe, tally)
        return o, i

    def _count(self, counts: Rows, probe: JoinProgram, tally: Tally) -> None:
        """What a kernel has counted."""
        candidates, stopped, reached, *passed = counts.tolist()
        steps = tally.steps
        steps[CANDIDATES_STEP] += candidates
        steps[IN_ORDER] += reached
        for label, count in zip(probe.labels, passed, strict=True):
            tally.evaluations += reached
            steps[label] += count
            reached = count
        if stopped:
            raise self._too_many((*probe.outer, *probe.inner))

    def _too_many(self, names: tuple[str, ...]) -> LimitError:
        said = ", ".join(name for name in names if name.isprintable())
        return LimitError(
            f"more than {self.limit:,} partial matches over {said}. Make the window smaller, add a condition between "
            "them, or raise max_partial_matches."
        )

    def holding(self, condition: s.Expression, names: tuple[str, ...], tuples: Tuples, tally: Tally) -> Tuples:
        """The tuples that satisfy a condition."""
        tally.evaluations += len(tuples)
        return tuples.take(self.scope.holds(condition, columns_of(names, tuples), len(tuples)))
