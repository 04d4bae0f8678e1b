"""A KL variable at work: the sets of events that it adds to tuples."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from cepheid.engine.gate import OPEN, Gate
from cepheid.engine.joiner import FOREVER, Joiner, LimitError, Rows
from cepheid.engine.kernels.join import TIE, TIME
from cepheid.engine.kernels.kleene import GREATEST, LEAST, SUM, enumerate_sets
from cepheid.engine.matches import columns_of
from cepheid.engine.program import KleeneProgram, kleene_columns
from cepheid.engine.relation import Relation, Tuples, concatenate
from cepheid.engine.tally import CANDIDATES, IN_ORDER, Tally
from cepheid.engine.vector import Numbers

SETS = "sets"
_KINDS = {"SUM": SUM, "COUNT": SUM, "MIN": LEAST, "MAX": GREATEST}


class Stage:
    """A KL variable: its events, and the tuples that sets of them can be added to."""

    def __init__(self, program: KleeneProgram, joiner: Joiner) -> None:
        self.program = program
        self.events = Relation(1, keyed=program.from_tuples.key_slot >= 0)
        self.tuples = Relation(len(program.from_tuples.outer), keyed=program.from_events.key_slot >= 0)
        one_by_one = (*program.from_tuples.labels, *program.from_tuples.external_labels)
        steps = (CANDIDATES, IN_ORDER, *one_by_one, SETS, *program.external_labels)
        self.tally = Tally("sets", f"KL({program.variable.name})", steps)
        self._joiner = joiner
        self.gate: Gate = OPEN  # a pair is a tuple with an event that may be in its sets
        # With nothing but sets, each begins with one of its events.
        self._anchored = program.from_tuples.outer == program.from_tuples.inner

    @property
    def relations(self) -> tuple[tuple[Relation, tuple[str, ...]], ...]:
        return (self.events, self.program.from_tuples.inner), (self.tuples, self.program.from_tuples.outer)

    def push(self, new: Tuples | None, rows: Rows) -> Tuples:
        """New tuples with each of their sets, and old ones with the sets that hold a new event."""
        program, joiner = self.program, self._joiner
        events = joiner.tuples(rows)
        if new is None:
            new = events
        joiner.insert(self.events, events, program.from_tuples)
        found = [self._sets_of(new, None)]
        if len(events) and len(self.tuples):
            ignored = Tally("", "", self.tally.steps)
            _, concerned = joiner.candidates(events, self.tuples, program.from_events, ignored)
            found.append(self._sets_of(self.tuples.tuples.take(np.unique(concerned)), events))
        joiner.insert(self.tuples, new, program.from_events)
        self.tally.keep(0 if self._anchored else len(self.tuples))
        return concatenate(found)

    def _sets_of(self, outer: Tuples, must_have: Tuples | None) -> Tuples:
        """The tuples with each of their sets; ``must_have``: only those with one of these events."""
        program, joiner, store = self.program, self._joiner, self._joiner.scope.store
        anchored, sets = self._anchored, joiner.scope.sets
        if not len(outer):
            return Tuples.empty(3 if anchored else outer.rows.shape[1] + 3)
        o, i = joiner.candidates(outer, self.events, program.from_tuples, self.tally, self.gate)
        rows = self.events.tuples.rows[i, 0]
        if anchored:
            later = self._is_later(rows, outer.rows[o, 0])
            o = np.concatenate([np.arange(len(outer)), o[later]])
            rows = np.concatenate([outer.rows[:, 0], rows[later]])
        place = rows - store.base
        order = np.lexsort((rows, store.values[TIE][place], store.values[TIME][place], o))
        o, rows = o[order], rows[order]
        fresh = np.zeros(len(rows), dtype=np.bool_) if must_have is None else np.isin(rows, must_have.rows[:, 0])
        owner, begin, members, stopped = enumerate_sets(  # type: ignore[no-untyped-call]
            np.searchsorted(o, np.arange(len(outer) + 1)), rows, fresh, outer.lo, outer.hi,
            np.full(len(outer), must_have is not None), anchored, program.variable.minimum or 1,
            program.variable.maximum or FOREVER, joiner.window, program.neighbours,
            *self._bounds(outer, rows), store.values, store.floats, store.base, joiner.scope.ties, joiner.limit,
        )  # fmt: skip
        if stopped:
            raise LimitError(
                f"more than {joiner.limit:,} sets for the variable {program.variable.name}. Give it a maximum, add a "
                "condition on neighbours, use skip_till_next, or raise max_partial_matches."
            )
        numbers = sets.add(begin, members)
        first, last = members[begin[:-1]], members[begin[1:] - 1]
        parts = [numbers.reshape(-1, 1), first.reshape(-1, 1), last.reshape(-1, 1)]
        found = Tuples(
            np.concatenate(parts if anchored else [outer.rows[owner], *parts], axis=1),
            np.minimum(outer.lo[owner], store.times(first)),
            np.maximum(outer.hi[owner], store.times(last)),
        )
        names = (*(() if anchored else program.from_tuples.outer), *kleene_columns(program.variable.name))
        found = self._apart(found, names)
        self.tally.steps[SETS] += len(found)
        for condition, label in zip(program.external, program.external_labels, strict=True):
            found = joiner.holding(condition, names, found, self.tally)
            self.tally.steps[label] += len(found)
        return found

    def _bounds(self, outer: Tuples, rows: Rows) -> tuple[Rows, Numbers, Numbers, Numbers]:
        """For each bound its kind, what each candidate adds to it, and between what it must lie for each tuple."""
        bounds, scope = self.program.bounds, self._joiner.scope
        kinds = np.array([_KINDS[b.function] for b in bounds], dtype=np.int64)
        amounts = np.empty((len(bounds), len(rows)))
        low, high = np.full((len(bounds), len(outer)), -np.inf), np.full((len(bounds), len(outer)), np.inf)
        names = () if self._anchored else self.program.from_tuples.outer
        for place, bound in enumerate(bounds):
            # What is NULL adds nothing.
            nothing = {"MIN": np.inf, "MAX": -np.inf}.get(bound.function, 0.0)
            if bound.argument is None:
                amounts[place] = 1.0
            else:
                found = scope.value(bound.argument, {self.program.variable.name: rows}, len(rows))
                each = np.ones(len(rows)) if bound.function == "COUNT" else found.floats()
                amounts[place] = np.where(found.mask(), each, nothing)
            limit = scope.value(bound.other, columns_of(names, outer), len(outer))
            if bound.operator in ("<", "<=", "="):
                high[place] = np.where(limit.mask(), limit.floats(), -np.inf)  # nothing is less than NULL
            if bound.operator in (">", ">=", "="):
                low[place] = np.where(limit.mask(), limit.floats(), np.inf)
        slack = (
            1e-9 * np.abs(np.where(np.isfinite(low), low, 0.0)),
            1e-9 * np.abs(np.where(np.isfinite(high), high, 0.0)),
        )
        return kinds, amounts, low - slack[0], high + slack[1]

    def _is_later(self, rows: Rows, than: Rows) -> npt.NDArray[np.bool_]:
        """Whether one row stands behind another in the order of time, of ties and, at last, of arrival."""
        values, base = self._joiner.scope.store.values, self._joiner.scope.store.base
        time, other = values[TIME][rows - base], values[TIME][than - base]
        tie, its = values[TIE][rows - base], values[TIE][than - base]
        later: npt.NDArray[np.bool_] = (time > other) | (
            (time == other) & ((tie > its) | ((tie == its) & (rows > than)))
        )
        return later

    def _apart(self, found: Tuples, names: tuple[str, ...]) -> Tuples:
        """Without the tuples that have an event of one set in another as well."""
        name, scope = self.program.variable.name, self._joiner.scope
        for other in scope.kleene & set(names) - {name}:
            which, members = scope.sets.expand(found.rows[:, names.index(name)])
            again, others = scope.sets.expand(found.rows[:, names.index(other)])
            pairs = np.stack([np.concatenate([which, again]), np.concatenate([members, others])], axis=1)
            unique, counts = np.unique(pairs, axis=0, return_counts=True)
            twice = np.zeros(len(found), dtype=np.bool_)
            twice[unique[counts > 1, 0]] = True
            found = found.take(~twice)
        return found
