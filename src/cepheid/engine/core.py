"""What depends on the plan of a branch: how new events become new tuples."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np

from cepheid.engine.joiner import NONE, Joiner, Rows
from cepheid.engine.negation import Negations
from cepheid.engine.program import BranchProgram, NegationProgram, is_set, kleene_columns
from cepheid.engine.relation import Relation, Tuples, concatenate
from cepheid.engine.search import Searcher
from cepheid.engine.stage import Stage
from cepheid.engine.tally import CANDIDATES, IN_ORDER, Tally
from cepheid.plan.tree import Join, Leaf, Plan, Search, variables

Kept: TypeAlias = "tuple[Relation, tuple[str, ...]]"
"""A relation, with the names of its columns."""


class _Node:
    """A node of the plan at work: what it asks for, and what its parent finds of it."""

    def __init__(self, plan: Plan, program: BranchProgram, *, keyed: bool = False) -> None:
        self.variables = variables(plan)
        self.relation = Relation(len(self.variables), keyed=keyed)
        self.nothing = Tuples.empty(len(self.variables))
        self.variable = plan.variable if isinstance(plan, Leaf) else None
        self.negations: tuple[NegationProgram, ...] = ()
        if isinstance(plan, Join):
            node = program.joins[plan]
            self.from_left, self.from_right, self.negations = node.from_left, node.from_right, node.negations
            self.left = _Node(plan.left, program, keyed=self.from_right.key_slot >= 0)
            self.right = _Node(plan.right, program, keyed=self.from_left.key_slot >= 0)
            labels = (*self.from_left.labels, *self.from_left.external_labels)
            self.tally = Tally("join", str(plan), (CANDIDATES, IN_ORDER, *labels))

    def relations(self) -> list[Kept]:
        below = [] if self.variable is not None else [*self.left.relations(), *self.right.relations()]
        return [*below, (self.relation, self.variables)]

    def joins(self) -> list[_Node]:
        return [] if self.variable is not None else [*self.left.joins(), *self.right.joins(), self]


class Core:
    """The nodes of a plan, then the KL variables: from new events to new tuples over all variables."""

    def __init__(self, program: BranchProgram, joiner: Joiner, negations: Negations) -> None:
        self.program = program
        self._joiner = joiner
        self._negations = negations
        self._root: _Node | Searcher | None = None
        single: tuple[str, ...] = ()
        if isinstance(program.plan, Search):
            self._root = Searcher(program.plan.variables, program, joiner, negations)
        elif program.plan is not None:
            self._root = _Node(program.plan, program)
        if program.plan is not None:
            single = variables(program.plan)
        self._stages = [Stage(stage, joiner) for stage in program.kleene]
        names = [*single, *(column for stage in program.kleene for column in kleene_columns(stage.variable.name))]
        self._order = [names.index(name) for name in program.columns]
        self._as_is = self._order == sorted(self._order)
        joins = self._root.joins() if isinstance(self._root, _Node) else []
        self._counted = [(node.tally, node.relation) for node in joins]

    def push(self, new: dict[str, Rows]) -> Tuples:
        """The new tuples, with the columns of the program."""
        tuples: Tuples | None = None
        if isinstance(self._root, Searcher):
            tuples = self._root.push(new)
        elif self._root is not None:
            tuples = self._new(self._root, new)
        for stage in self._stages:
            tuples = stage.push(tuples, new[stage.program.variable.name])
        assert tuples is not None
        return tuples if self._as_is else Tuples(np.take(tuples.rows, self._order, axis=1), tuples.lo, tuples.hi)

    def _new(self, node: _Node, new: dict[str, Rows]) -> Tuples:
        """The new tuples of a node, semi-naively: new(L) ⋈ all(R) ∪ old(L) ⋈ new(R)."""
        if node.variable is not None:
            rows = new[node.variable]
            return self._joiner.tuples(rows) if len(rows) else node.nothing
        left, right = self._new(node.left, new), self._new(node.right, new)
        if not len(left) and not len(right):
            return node.nothing
        joiner = self._joiner
        joiner.insert(node.right.relation, right, node.from_left)
        found = [node.nothing]
        if len(left):
            found.append(joiner.pairs(left, node.right.relation, node.from_left, node.tally))
        if len(right):
            found.append(joiner.pairs(right, node.left.relation, node.from_right, node.tally, turned=True))
        joiner.insert(node.left.relation, left, node.from_right)
        return self._negations.at_first_chance(concatenate(found), node.negations)

    # --- what it keeps and has counted

    @property
    def tallies(self) -> list[Tally]:
        own: list[Tally] = []
        if isinstance(self._root, Searcher):
            own = [self._root.tally]
        elif self._root is not None:
            own = [node.tally for node in self._root.joins()]
        return [*own, *(stage.tally for stage in self._stages)]

    def count_kept(self) -> None:
        for tally, relation in self._counted:
            tally.keep(len(relation))

    def relations(self) -> list[Kept]:
        if self._root is None:
            own: list[Kept] = []
        else:
            own = self._root.relations if isinstance(self._root, Searcher) else self._root.relations()
        return [*own, *(kept for stage in self._stages for kept in stage.relations)]

    def events(self, name: str) -> Rows:
        """The rows that are kept of a variable."""
        for relation, names in self.relations():
            if names == (name,) and len(relation):
                rows: Rows = relation.tuples.rows[:, 0]
                return rows[rows >= self._joiner.scope.store.base]
        return NONE

    def set_columns(self) -> list[Rows]:
        """The columns that hold numbers of sets."""
        kept = [(stage.tuples.tuples.rows, stage.program.from_tuples.outer) for stage in self._stages[1:]]
        return [rows[:, names.index(n)] for rows, names in kept for n in names if is_set(n, names)]
