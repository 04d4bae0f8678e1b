"""Negated events: which matches they strike, and when it is known that none will come."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from cepheid.engine.clock import Watermark
from cepheid.engine.joiner import FOREVER, Joiner, LimitError, Rows
from cepheid.engine.matches import Matches, columns_of
from cepheid.engine.program import NegationProgram, first_column
from cepheid.engine.relation import Relation, Tuples
from cepheid.engine.tally import CANDIDATES, IN_ORDER, Tally
from cepheid.engine.vector import Mask

REJECTED = "rejected"
SOME = 128
"""Of so many matches in a push it is counted how many events strike them."""


class Negations:
    """The negations of a branch, with the negated events that may still matter.

    Post-processing: a match waits until no negated event can come any more, and is reported if none has come. First
    chance: a partial match that has an event of the negated type where none may be is dropped where it is made.
    """

    def __init__(self, programs: tuple[NegationProgram, ...], joiner: Joiner, length: int) -> None:
        self.programs = programs
        self._joiner = joiner
        self._store = joiner.scope.store
        self._length = length
        self._kept = {p.negation.name: Relation(1, keyed=p.probe.key_slot >= 0) for p in programs}
        self.tallies = {p.negation.name: self._tally(p) for p in programs}
        self._few: dict[str, npt.NDArray[Any]] | None = None

    @staticmethod
    def _tally(program: NegationProgram) -> Tally:
        steps = (CANDIDATES, IN_ORDER, *program.probe.labels, *program.probe.external_labels, REJECTED)
        return Tally("negation", f"NOT({program.negation.name})", steps)

    @property
    def relations(self) -> list[Relation]:
        return list(self._kept.values())

    def relation(self, name: str) -> Relation:
        """The negated events of a variable that are kept."""
        return self._kept[name]

    def insert(self, new: dict[str, Rows]) -> None:
        for program in self.programs:
            name = program.negation.name
            if len(new[name]):
                self._joiner.insert(self._kept[name], self._joiner.tuples(new[name]), program.probe)
                self.tallies[name].keep(len(self._kept[name]))

    def forget(self, watermark: Watermark) -> None:
        for relation in self._kept.values():
            if len(relation):
                relation.evict(watermark.back(2 * self._joiner.window).of(relation.tuples.rows[:, 0], self._store))

    def last_chance(self, matches: Matches) -> Rows:
        """For each match, the last time at which a negated event could still come."""
        latest = np.full(len(matches), -FOREVER)
        for program in self.programs:
            latest = np.maximum(latest, self._bounds(matches, program)[1])
        return latest

    def surviving(self, matches: Matches) -> Matches:
        """The matches for which there is no negated event."""
        for program in self.programs:
            if len(matches):
                matches = matches.take(self._passing(matches, program))
        return matches

    def at_first_chance(self, tuples: Tuples, programs: tuple[NegationProgram, ...]) -> Tuples:
        """The partial matches for which no negated event has come yet."""
        for program in programs:
            if len(tuples):
                tuples = tuples.take(self._passing(Matches(program.probe.outer, tuples), program))
        return tuples

    # --- how few events strike

    def count_few(self) -> None:
        """From now on, count for each variable the matches that are struck by one event, and by two."""
        self._few = {name: np.zeros(4) for name in self.tallies}

    def few(self, odds: Mapping[str, float]) -> tuple[float, float, float]:
        """Of what was counted, the matches that are struck by one event of all these variables, and by two; and for
        those by one the sum of the odds of its variable. Nothing is counted any more."""
        counted, self._few = self._few or {}, None
        once = twice = weighed = one = 0.0
        none = 1.0  # the part that later variables strike with no event; with one: ``one``
        for name, (single, double, asked, struck) in reversed(counted.items()):
            passing = 1.0 - struck / max(asked, 1.0)
            alone = single / max(asked, 1.0) if name in odds else 0.0
            if name in odds:
                once, twice = once + single * none, twice + double * none + single * one
                weighed += odds[name] * single * none
            none, one = none * passing, alone * none + passing * one
        return once, twice, weighed

    def _by_few(self, struck: Matches, program: NegationProgram) -> npt.NDArray[Any]:
        """Of some of the matches that are struck: there may be many pairs."""
        some = struck.take(slice(None, None, -(-len(struck) // SOME)))
        try:
            o, _ = self._strikes(some, program, exists=False)
        except LimitError:
            return np.zeros(2)  # by many
        return np.bincount(np.bincount(o), minlength=3)[1:3] * (len(struck) / len(some))

    # --- which matches

    def _bounds(self, matches: Matches, program: NegationProgram) -> tuple[Rows, Rows]:
        """Between which times a negated event can lie, both included."""
        if matches.window_start is None:
            low, high = matches.tuples.hi - self._joiner.window, matches.tuples.lo + self._joiner.window
        else:
            low, high = matches.window_start, matches.window_start + self._length - 1
        for name in program.negation.before:
            column = matches.variables.index(first_column(name, matches.variables))
            times = self._store.times(matches.tuples.rows[:, column])
            high = np.minimum(high, times if self._joiner.scope.ties else times - 1)
        return low, high

    def _passing(self, matches: Matches, program: NegationProgram) -> Mask:
        """Which matches no negated event strikes."""
        struck = self._struck(matches, program)
        count = int(struck.sum())
        self.tallies[program.negation.name].steps[REJECTED] += count
        if self._few is not None:
            few = self._by_few(matches.take(struck), program) if count else (0.0, 0.0)
            self._few[program.negation.name] += [*few, len(matches), count]
        return ~struck

    def _struck(self, matches: Matches, program: NegationProgram) -> Mask:
        """For which matches there is a negated event."""
        scope = self._joiner.scope
        struck = np.zeros(len(matches), dtype=np.bool_)
        asked = np.ones(len(matches), dtype=np.bool_)
        for condition in program.outer_conditions:
            asked &= scope.holds(condition, columns_of(matches.variables, matches.tuples), len(matches))
        relation = self._kept[program.negation.name]
        chosen = np.flatnonzero(asked)
        if not len(chosen) or not len(relation):
            return struck
        some = matches.take(chosen)
        hit, _ = self._strikes(some, program, exists=True)
        struck[chosen[hit]] = True
        return struck

    def _strikes(self, matches: Matches, program: NegationProgram, *, exists: bool) -> tuple[Rows, Rows]:
        """The pairs of a match and an event that strikes it; ``exists``: one for each match may be enough."""
        relation, scope = self._kept[program.negation.name], self._joiner.scope
        low, high = self._bounds(matches, program)
        sets = [name for name in scope.kleene if name in matches.variables]
        tally = self.tallies[program.negation.name]
        exists = exists and not (program.probe.external or sets)
        o, i = self._joiner.probe(matches.tuples, low, high, relation, program.probe, tally, exists=exists)
        if sets:
            o, i = self._unused(matches, o, relation.tuples.rows[i, 0], i, sets)
        return self._joiner.passing(matches.tuples, o, relation.tuples, i, program.probe, tally)

    def _unused(self, matches: Matches, o: Rows, rows: Rows, i: Rows, sets: list[str]) -> tuple[Rows, Rows]:
        """Without pairs whose event is in a set of the match."""
        used = np.zeros(len(o), dtype=np.bool_)
        for name in sets:
            which, members = self._joiner.scope.sets.expand(matches.tuples.rows[o, matches.variables.index(name)])
            used[which[members == rows[which]]] = True
        return o[~used], i[~used]
