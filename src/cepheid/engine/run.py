"""Running one branch: batches of new events in, new matches out."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from cepheid.engine.evaluate import Reference, holds
from cepheid.engine.kernels.join import CANDIDATES, EVALUATIONS, STOPPED, join
from cepheid.engine.program import BranchProgram, JoinProgram, NegationProgram
from cepheid.engine.relation import Relation, Tuples, concatenate
from cepheid.engine.store import RowStore
from cepheid.engine.vector import Unit, Vector, from_arrow
from cepheid.language import syntax as s
from cepheid.plan.tree import Join, Leaf, Plan, nodes, variables

Rows: TypeAlias = npt.NDArray[np.int64]
FOREVER = 2**62
"""Longer than any window, and no sum of two of them overflows."""


class LimitError(RuntimeError):
    """A pattern makes more partial matches than was allowed."""


@dataclass(frozen=True, slots=True)
class Matches:
    """Matches of a branch: for each its rows, in the order of ``variables``, and with SLIDE the start of its window."""

    variables: tuple[str, ...]
    tuples: Tuples
    window_start: Rows | None = None

    def __len__(self) -> int:
        return len(self.tuples)

    def take(self, chosen: npt.NDArray[np.bool_] | Rows) -> Matches:
        start = None if self.window_start is None else self.window_start[chosen]
        return Matches(self.variables, self.tuples.take(chosen), start)


class BranchRun:
    """The state of one branch: what each node of its plan keeps, and matches that wait for a negated event."""

    def __init__(self, program: BranchProgram, store: RowStore, unit: Unit, *, ties: bool, limit: int) -> None:
        self.program = program
        self.counts: Counter[str] = Counter()
        self._store = store
        self._unit = unit
        self._ties = ties
        self._limit = limit
        self._slide = program.branch.slide
        # A window of SLIDE does not hold its end: its first and last event are less than its length apart.
        self._window = min(program.window - (1 if self._slide else 0), FOREVER)
        self._relations = {node: Relation(len(variables(node)), keyed=False) for node in nodes(program.plan)}
        for node in program.joins.values():
            self._relations[node.plan.left].keyed = node.from_right.key_slot >= 0
            self._relations[node.plan.right].keyed = node.from_left.key_slot >= 0
        self._negated = {n.negation.name: Relation(1, keyed=n.probe.key_slot >= 0) for n in program.negations}
        self._waiting: list[Matches] = []

    # --- one push

    def push(self, new: dict[str, Rows], watermark: int | None, closing: bool) -> Matches:
        """``new``: for each variable, negated ones too, the new rows that it takes. Matches that are decided now."""
        for program in self.program.negations:
            name = program.negation.name
            self._insert(self._negated[name], self._tuples(new[name]), program.probe)
        found = Matches(variables(self.program.plan), self._new(self.program.plan, new))
        if self._slide is not None:
            found = self._in_windows(found)
        if self.program.negations:
            found = self._decide(found, watermark, closing)
        if watermark is not None:
            self._evict(watermark)
        return found

    def _tuples(self, rows: Rows) -> Tuples:
        times = self._store.times(rows)
        return Tuples(rows.reshape(-1, 1), times, times)

    def _new(self, node: Plan, new: dict[str, Rows]) -> Tuples:
        """The new tuples of a node, semi-naively: new(L) ⋈ all(R) ∪ old(L) ⋈ new(R)."""
        if isinstance(node, Leaf):
            return self._tuples(new[node.variable])
        left, right = self._new(node.left, new), self._new(node.right, new)
        programs = self.program.joins[node]
        self._insert(self._relations[node.right], right, programs.from_left)
        found = [
            self._pairs(left, self._relations[node.right], programs.from_left, node),
            self._turned(
                self._pairs(right, self._relations[node.left], programs.from_right, node), programs.from_right
            ),
        ]
        self._insert(self._relations[node.left], left, programs.from_right)
        return concatenate(found)

    def _insert(self, relation: Relation, new: Tuples, probe: JoinProgram) -> None:
        """Keep tuples where ``probe`` will look for them."""
        keys = None
        if relation.keyed:
            rows = new.rows[:, probe.inner_key_slot] - self._store.base
            keys = self._store.values[probe.inner_key_column][rows]
        relation.insert(new, keys)

    def _pairs(self, outer: Tuples, relation: Relation, probe: JoinProgram, node: Join) -> Tuples:
        inner = relation.tuples
        width = len(probe.outer) + len(probe.inner)
        if not len(outer) or not len(inner):
            return Tuples.empty(width)
        low, high = outer.hi - self._window, outer.lo + self._window
        o, i = self._probe(outer, low, high, relation, probe, window=self._window)
        if len(o) >= self._limit:
            raise LimitError(self._too_many(variables(node)))
        rows = np.empty((len(o), width), dtype=np.int64)
        rows[:, : len(probe.outer)] = outer.rows[o]
        rows[:, len(probe.outer) :] = inner.rows[i]
        found = Tuples(rows, np.minimum(outer.lo[o], inner.lo[i]), np.maximum(outer.hi[o], inner.hi[i]))
        return self._passing(found, (*probe.outer, *probe.inner), probe.external)

    def _probe(
        self,
        outer: Tuples,
        low: Rows,
        high: Rows,
        relation: Relation,
        probe: JoinProgram,
        *,
        window: int = 2 * FOREVER - 1,
        exists: bool = False,
    ) -> tuple[Rows, Rows]:
        inner = relation.tuples
        o, i, counts = join(  # type: ignore[no-untyped-call]
            outer.rows, outer.lo, outer.hi, inner.rows, inner.lo, inner.hi,
            low, high, window, probe.after, probe.before, probe.conditions,
            self._store.values, self._store.floats, self._store.base, self._ties,
            probe.key_slot, probe.key_column, relation.keys, relation.heads, relation.links, exists, self._limit,
        )  # fmt: skip
        self.counts["candidates"] += int(counts[CANDIDATES])
        self.counts["evaluations"] += int(counts[EVALUATIONS])
        if counts[STOPPED]:
            raise LimitError(self._too_many((*probe.outer, *probe.inner)))
        return o, i

    @staticmethod
    def _turned(tuples: Tuples, program: JoinProgram) -> Tuples:
        """From (right, left) to (left, right)."""
        cut = len(program.outer)
        return Tuples(np.concatenate([tuples.rows[:, cut:], tuples.rows[:, :cut]], axis=1), tuples.lo, tuples.hi)

    def _passing(self, tuples: Tuples, names: tuple[str, ...], conditions: tuple[s.Expression, ...]) -> Tuples:
        """The tuples that satisfy conditions which no kernel can check."""
        for condition in conditions:
            if not len(tuples):
                break
            self.counts["evaluations"] += len(tuples)
            tuples = tuples.take(self._holds(condition, tuples.rows, names))
        return tuples

    def _holds(self, condition: s.Expression, rows: Rows, names: tuple[str, ...]) -> npt.NDArray[np.bool_]:
        def lookup(node: Reference) -> Vector:
            assert isinstance(node, s.Attribute)
            column = self._store.column(node.name, rows[:, names.index(node.variable)])
            return from_arrow(column, self._unit, node.name)

        return holds(condition, lookup, self._unit, len(rows))

    def _too_many(self, names: tuple[str, ...]) -> str:
        return (
            f"more than {self._limit:,} partial matches over {', '.join(names)}. Make the window smaller, add a condition "
            "between them, or raise max_partial_matches."
        )

    # --- windows that slide

    def _in_windows(self, found: Matches) -> Matches:
        """Each match once for each window that holds it."""
        assert self._slide is not None
        size, step = self.program.window, self._step
        first = (found.tuples.hi - size) // step + 1  # the smallest k with k·step + size > hi
        last = found.tuples.lo // step
        counts = np.maximum(last - first + 1, 0)
        which = np.repeat(np.arange(len(found)), counts)
        offset = np.arange(len(which)) - np.repeat(np.cumsum(counts) - counts, counts)
        return Matches(found.variables, found.tuples.take(which), (first[which] + offset) * step)

    @property
    def _step(self) -> int:
        assert self._slide is not None
        if self._slide.kind is s.WindowKind.TIME:
            return self._unit.ticks(self._slide.size)
        return self._slide.size

    # --- negation

    def _decide(self, found: Matches, watermark: int | None, closing: bool) -> Matches:
        """Of new and waiting matches, those for which no negated event can come any more, and for which there is none."""
        waiting = [m for m in [*self._waiting, found] if len(m)]
        self._waiting = []
        decided = []
        for matches in waiting:
            ready = np.full(len(matches), closing)
            if not closing and watermark is not None:
                ready = self._last_chance(matches) < watermark
            if not ready.all():
                self._waiting.append(matches.take(~ready))
            decided.append(self._surviving(matches.take(ready)))
        decided = [m for m in decided if len(m)]
        if not decided:
            return found.take(np.zeros(len(found), dtype=np.bool_))
        start = None if decided[0].window_start is None else np.concatenate([m.window_start for m in decided])
        return Matches(found.variables, concatenate([m.tuples for m in decided]), start)

    def _last_chance(self, matches: Matches) -> Rows:
        """For each match, the last time at which a negated event could still come."""
        latest = np.full(len(matches), -FOREVER)
        for program in self.program.negations:
            latest = np.maximum(latest, self._bounds(matches, program)[1])
        return latest

    def _bounds(self, matches: Matches, program: NegationProgram) -> tuple[Rows, Rows]:
        """Between which times a negated event can lie, both included."""
        if matches.window_start is None:
            low, high = matches.tuples.hi - self._window, matches.tuples.lo + self._window
        else:
            low, high = matches.window_start, matches.window_start + self.program.window - 1
        for name in program.negation.before:
            times = self._store.times(matches.tuples.rows[:, matches.variables.index(name)])
            high = np.minimum(high, times if self._ties else times - 1)
        return low, high

    def _surviving(self, matches: Matches) -> Matches:
        for program in self.program.negations:
            if len(matches):
                struck = self._struck(matches, program)
                self.counts["rejected by negation"] += int(struck.sum())
                matches = matches.take(~struck)
        return matches

    def _struck(self, matches: Matches, program: NegationProgram) -> npt.NDArray[np.bool_]:
        """For which matches there is a negated event."""
        struck = np.zeros(len(matches), dtype=np.bool_)
        asked = np.ones(len(matches), dtype=np.bool_)
        for condition in program.outer_conditions:
            asked &= self._holds(condition, matches.tuples.rows, matches.variables)
        relation = self._negated[program.negation.name]
        chosen = np.flatnonzero(asked)
        if not len(chosen) or not len(relation):
            return struck
        some = matches.take(chosen)
        low, high = self._bounds(some, program)
        external = program.probe.external
        o, i = self._probe(some.tuples, low, high, relation, program.probe, exists=not external)
        if external:
            rows = np.concatenate([some.tuples.rows[o], relation.tuples.rows[i]], axis=1)
            names = (*program.probe.outer, *program.probe.inner)
            good = np.ones(len(o), dtype=np.bool_)
            for condition in external:
                good &= self._holds(condition, rows, names)
            o = o[good]
        struck[chosen[o]] = True
        return struck

    # --- forgetting

    def _evict(self, watermark: int) -> None:
        for relation in self._relations.values():
            relation.evict(watermark - self._window)
        for relation in self._negated.values():
            relation.evict(watermark - 2 * self._window)

    @property
    def horizon(self) -> int:
        """How far back from the watermark rows are needed."""
        return self._window * (2 if self.program.negations else 1)
