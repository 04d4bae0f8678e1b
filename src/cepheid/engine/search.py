"""The lazy tree automaton: no fixed order, and no partial match that is kept.

A push looks for the matches that have a new event. From there on the variable comes next that has the fewest events in
reach, for each tuple apart: those that choose the same one are joined with it together. One that shares a condition
with what is bound goes before one that does not, since every event of the latter would fit.
"""

from __future__ import annotations

import numpy as np

from cepheid.engine.joiner import Joiner, Rows
from cepheid.engine.kernels.search import count_by_key
from cepheid.engine.negation import Negations
from cepheid.engine.program import BranchProgram, JoinProgram
from cepheid.engine.relation import Relation, Tuples, concatenate
from cepheid.engine.tally import CANDIDATES, IN_ORDER, Tally
from cepheid.pattern.order import transitive_closure

FAR = np.iinfo(np.int64).max


def _partners(name: str, program: BranchProgram) -> frozenset[str]:
    """The variables that a variable has conditions with."""
    shared = [c.variables for c in program.branch.conditions if name in c.variables and not c.derived]
    return frozenset().union(*shared) - {name}


class Searcher:
    """The events of each variable, ready to be looked up by time and by every key that a step can use."""

    def __init__(self, names: tuple[str, ...], program: BranchProgram, joiner: Joiner, negations: Negations) -> None:
        self._names = names
        self._step = program.step
        self._joiner = joiner
        self._negations = negations
        closed = transitive_closure(program.branch.order)
        self._earlier = {name: [x for x, y in closed if y == name and x in names] for name in names}
        self._later = {name: [y for x, y in closed if x == name and y in names] for name in names}
        # The key of a step is that of a pair of variables, so the pairs have all keys there are.
        pairs = ((name, other) for name in names for other in names if name != other)
        places = {self._place(name, self._step(frozenset({other}), name).probe) for name, other in pairs}
        self._relations = {place: Relation(1, keyed=place[1] >= 0) for place in sorted(places)}
        self._partners = {name: _partners(name, program) for name in names}
        conditions = [str(c) for c in program.branch.conditions if len(c.variables) > 1]
        self.tally = Tally("search", f"search({', '.join(names)})", (CANDIDATES, IN_ORDER, *conditions))

    @staticmethod
    def _place(name: str, probe: JoinProgram) -> tuple[str, int]:
        return name, probe.inner_key_column if probe.key_slot >= 0 else -1

    @property
    def relations(self) -> list[tuple[Relation, tuple[str, ...]]]:
        return [(relation, (name,)) for (name, _), relation in self._relations.items()]

    def push(self, new: dict[str, Rows]) -> Tuples:
        """The new tuples. A variable whose turn comes later sees the new events of those before it.

        So every match is found once: from that of its new events whose variable comes last. The rarest one does, and
        from it there is the least to look at.
        """
        found = [Tuples.empty(len(self._names))]
        for name in sorted(self._names, key=lambda v: -len(new[v])):
            events = self._joiner.tuples(new[name])
            if len(events):
                found.append(self._from(name, events))
                for (variable, column), relation in self._relations.items():
                    if variable == name:
                        self._insert(relation, events, column)
        return concatenate(found)

    def _insert(self, relation: Relation, events: Tuples, column: int) -> None:
        store = self._joiner.scope.store
        relation.insert(events, store.values[column][events.rows[:, 0] - store.base] if column >= 0 else None)

    def _from(self, name: str, events: Tuples) -> Tuples:
        """The matches that have one of these events."""
        complete = [Tuples.empty(len(self._names))]
        open_: list[tuple[frozenset[str], Tuples]] = [(frozenset({name}), events)]
        while open_:
            bound, tuples = open_.pop()
            if len(bound) == len(self._names):
                complete.append(tuples)
                continue
            rest = [v for v in self._names if v not in bound]
            reach = np.stack([self._in_reach(tuples, bound, v) for v in rest])
            possible = reach.min(axis=0) > 0
            tied = np.array([bool(self._partners[v] & bound) for v in rest])
            best = (reach if tied.all() or not tied.any() else np.where(tied[:, None], reach, FAR)).argmin(axis=0)
            for place, variable in enumerate(rest):
                chosen = np.flatnonzero(possible & (best == place))
                if len(chosen):
                    extended = self._extended(tuples.take(chosen), bound, variable)
                    if len(extended):
                        open_.append((bound | {variable}, extended))
        return concatenate(complete)

    def _in_reach(self, tuples: Tuples, bound: frozenset[str], variable: str) -> Rows:
        """For each tuple the events of a variable that are in its window, between those it must lie between."""
        store, window = self._joiner.scope.store, self._joiner.window
        names = [v for v in self._names if v in bound]
        low, high = tuples.hi - window, tuples.lo + window
        for place, name in enumerate(names):
            if name in self._earlier[variable]:
                low = np.maximum(low, store.times(tuples.rows[:, place]))
            elif name in self._later[variable]:
                high = np.minimum(high, store.times(tuples.rows[:, place]))
        probe = self._step(bound, variable).probe
        relation = self._relation(variable, probe)
        times = relation.tuples.lo
        if relation.keyed:
            wanted = store.values[probe.key_column][tuples.rows[:, probe.key_slot] - store.base]
            by_key: Rows = count_by_key(  # type: ignore[no-untyped-call]
                wanted, low, high, relation.keys, times, relation.heads, relation.links, relation.in_order
            )
            return by_key
        counts: Rows = np.searchsorted(times, high, "right") - np.searchsorted(times, low)
        return counts

    def _relation(self, variable: str, probe: JoinProgram) -> Relation:
        return self._relations[self._place(variable, probe)]

    def _extended(self, tuples: Tuples, bound: frozenset[str], variable: str) -> Tuples:
        """The tuples with one more variable, its column in the place that it has in the pattern."""
        step = self._step(bound, variable)
        found = self._joiner.pairs(tuples, self._relation(variable, step.probe), step.probe, self.tally)
        return self._negations.at_first_chance(found, step.negations)
