"""What depends on the plan of a branch: how new events become new tuples."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TypeAlias

import numpy as np

from cepheid.engine.joiner import NONE, Joiner, Rows
from cepheid.engine.negation import Negations
from cepheid.engine.network import Network, Node
from cepheid.engine.program import BranchProgram, is_set, kleene_columns
from cepheid.engine.relation import Relation, Tuples
from cepheid.engine.search import Searcher
from cepheid.engine.stage import Stage
from cepheid.engine.tally import Tally
from cepheid.plan.tree import Join, Leaf, Search, nodes

Kept: TypeAlias = "tuple[Relation, tuple[str, ...]]"
"""A relation, with the names of its columns."""


class Core:
    """A plan: its nodes in the network, or a search; then the KL variables. New events in, new tuples out.

    ``reads``: which of the leaves each variable reads. ``since``: the first row that matches may have.
    ``numbers``: of the nodes, if they are those of a snapshot. ``known``: the rows of a variable that a plan before has
    kept.
    """

    def __init__(
        self,
        program: BranchProgram,
        joiner: Joiner,
        negations: Negations,
        network: Network,
        reads: dict[str, int],
        *,
        since: int = 0,
        numbers: Sequence[int] | None = None,
        known: Callable[[str], Rows] | None = None,
    ) -> None:
        self.program = program
        self._joiner = joiner
        self._network = network
        self._since = since
        self._nodes: list[Node] = []
        self._searcher: Searcher | None = None
        if isinstance(program.plan, Search):
            self._searcher = Searcher(program.planned, program, joiner, negations)
        elif program.plan is not None and not program.branch.stepwise:
            self._nodes = network.add(
                program, reads, negations, joiner.window, since=since, numbers=numbers, known=known
            )
        self._stages = [Stage(stage, joiner) for stage in program.kleene]
        names = (*program.planned, *(c for stage in program.kleene for c in kleene_columns(stage.variable.name)))
        self._order = None if names == program.columns else [names.index(name) for name in program.columns]

    def leave(self) -> list[Tally]:
        """It is used no more. What was counted for it and for no other."""
        dropped = self._network.remove(self._nodes[-1]) if self._nodes else []
        self._nodes = []
        return [*dropped, *self.own_tallies]

    def push(self, new: dict[str, Rows]) -> Tuples:
        """The new tuples, with the columns of the program."""
        tuples: Tuples | None = None
        if self._searcher is not None:
            tuples = self._searcher.push(new)
        elif self._nodes:
            tuples = self._own(self._network.new(self._nodes[-1]))
        for stage in self._stages:
            tuples = stage.push(tuples, new[stage.program.variable.name])
        assert tuples is not None
        return (
            tuples if self._order is None else Tuples(np.take(tuples.rows, self._order, axis=1), tuples.lo, tuples.hi)
        )

    def fill(self, events: Callable[[str], Rows]) -> None:
        """Make the partial matches of the events that another plan has kept. Their matches have been found."""
        tuples: Tuples | None = None
        if self._searcher is not None:
            tuples = self._searcher.push({name: events(name) for name in self.program.planned})
        elif self._nodes and self._stages:
            tuples = self._own(self._network.all(self._nodes[-1]))
        for stage in self._stages:
            tuples = stage.push(tuples, events(stage.program.variable.name))

    def _own(self, tuples: Tuples) -> Tuples:
        """Others may have a longer window, or have been there before."""
        if len(tuples) and self._nodes[-1].window > self._joiner.window:
            tuples = tuples.take(tuples.hi - tuples.lo <= self._joiner.window)
        if len(tuples) and self._since > self._joiner.scope.store.base:
            tuples = tuples.take(np.flatnonzero((tuples.rows >= self._since).all(axis=1)))
        return tuples

    # --- what it keeps and has counted

    @property
    def nodes(self) -> list[Node]:
        return self._nodes

    @property
    def stages(self) -> list[Stage]:
        return self._stages

    @property
    def numbers(self) -> list[int]:
        """Of its nodes."""
        return [node.number for node in self._nodes]

    @property
    def shared_tallies(self) -> list[Tally]:
        """What the nodes of its plan have counted by now, in its own words: other plans may have them too."""
        plans = () if self.program.plan is None else nodes(self.program.plan)
        return [
            node.tally.seen_as(str(plan), self.program.joins[plan].labels)
            for plan, node in zip(plans, self._nodes, strict=False)
            if isinstance(plan, Join) and node.tally is not None
        ]

    @property
    def own_tallies(self) -> list[Tally]:
        own = [] if self._searcher is None else [self._searcher.tally]
        return [*own, *(stage.tally for stage in self._stages)]

    @property
    def worked(self) -> list[Tally]:
        """What has counted its work, be it for others too."""
        shared = (node.tally for node in self._nodes if node.join is not None)
        return [tally for tally in (*shared, *self.own_tallies) if tally is not None]

    def relations(self) -> list[Kept]:
        """What it keeps beside the nodes of the network."""
        own = [] if self._searcher is None else self._searcher.relations
        return [*own, *(kept for stage in self._stages for kept in stage.relations)]

    def rows(self) -> Iterator[Rows]:
        """The rows of all tuples that are kept for it."""
        yield from (relation.tuples.rows for relation, _ in self.relations())
        yield from (kept.relation.tuples.rows for node in self._nodes for kept in node.kept.values())

    def events(self, name: str) -> Rows:
        """The rows that are kept of a variable."""
        base = self._joiner.scope.store.base
        for relation, names in self.relations():
            if names == (name,) and len(relation):
                rows: Rows = relation.tuples.rows[:, 0]
                return rows[rows >= base]
        for plan, node in zip(nodes(self.program.plan) if self.program.plan else (), self._nodes, strict=False):
            if plan == Leaf(name):
                rows = self._network.rows_of(node)
                return rows[rows >= max(base, self._since)]
        return NONE

    def set_columns(self) -> list[Rows]:
        """The columns that hold numbers of sets."""
        kept = [(stage.tuples.tuples.rows, stage.program.from_tuples.outer) for stage in self._stages[1:]]
        return [rows[:, names.index(n)] for rows, names in kept for n in names if is_set(n, names)]
