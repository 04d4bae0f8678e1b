"""Local search for a shared plan: simulated annealing and tabu search, with the neighbourhoods of the paper.

The search holds a plan for all patterns at any moment and remembers the best it has seen, so it can be ended whenever
time is up. What costs time is the patterns that a step changes, not the size of the workload.
"""

from __future__ import annotations

import math
import random
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from cepheid.plan.sharing.graph import MultiPatternGraph
from cepheid.plan.sharing.local import Mask, Tree, best_order, best_tree, inside, translated
from cepheid.plan.sharing.members import Member, Number
from cepheid.plan.sharing.multitree import MultiTree

Move: TypeAlias = "dict[Member, Tree]"

PROBES = 1000
"""So many neighbours of the first plan are looked at for the first threshold (the paper's I)."""
COOLING = 1e-7
"""The last threshold, as part of the first. The paper lowers it by α = 0.99 a step, however long the search is."""
NEIGHBOURS = 100
"""So many neighbours are compared in a step of tabu search (the paper's L)."""
MEMORY = 10_000
"""So many plans are not gone back to (the paper's C)."""
CLEARLY = 0.85
"""Of two plans one is clearly better if it is expected to cost no more than this part of the other."""
PATIENCE = 100
"""A search ends before its time when it has taken so many steps for each sub-pattern that a pattern can share."""


@dataclass(slots=True)
class Budget:
    """How long a search may go on: until a moment, and for so many steps at the most."""

    end: float
    steps: int | None = None
    start: float = field(default_factory=time.monotonic)
    taken: int = 0

    def is_over(self) -> bool:
        return (self.steps is not None and self.taken >= self.steps) or time.monotonic() >= self.end

    def spent(self) -> float:
        """The part of it that is spent, from 0 to 1."""
        by_steps = self.taken / self.steps if self.steps else 0.0
        if self.end == math.inf:
            return min(1.0, by_steps)
        return min(1.0, max(by_steps, (time.monotonic() - self.start) / max(self.end - self.start, 1e-9)))


@dataclass(slots=True)
class LocalSearch:
    """A search over some patterns, which have nothing in common with the others of the workload."""

    tree: MultiTree
    graph: MultiPatternGraph
    members: Sequence[Member]
    random: random.Random
    chains: bool = False
    k: int = 2  # how many patterns a step changes; 2: the edge neighbourhood
    history: list[tuple[int, float]] = field(default_factory=list)  # steps, the best cost so far
    _common: dict[Member, list[tuple[Mask, Number]]] = field(init=False)
    _sharing: list[Member] = field(init=False)
    _having: dict[Number, list[Member]] = field(init=False)
    _before: int = field(default=0, init=False)  # the steps of a search before this one
    _chained: tuple[Move, int, float] = field(default=({}, 0, 0.0), init=False)
    _best: Move = field(init=False)
    _best_cost: float = field(init=False)

    def __post_init__(self) -> None:
        place = {member: place for place, member in enumerate(self.members)}
        self._common = {m: found for m in self.members if (found := self.graph.common(m))}
        self._sharing = list(self._common)
        numbers = {number for found in self._common.values() for _, number in found}
        self._having = {n: sorted(self.graph.having(n), key=place.__getitem__) for n in numbers}
        self._remember(0)

    @property
    def patience(self) -> int:
        """The steps after which to end."""
        return PATIENCE * sum(map(len, self._common.values()))

    # --- neighbours (section 4.2, and 5 for sub-trees that are kept or given up)

    def neighbour(self) -> Move:
        """A few patterns planned anew so that they share a sub-pattern; or one on its own, sharing it no more."""
        first = self.random.choice(self._sharing)
        options = self._common[first]
        chosen = self.random.randrange(len(options) + 1)
        if chosen == len(options):  # the empty sub-pattern
            return {first: first.own(chains=self.chains)}
        _, number = options[chosen]
        having = self._having[number]
        others = [m for m in self.random.sample(having, min(self.k, len(having))) if m is not first]
        return {member: self._with(member, number) for member in (first, *others[: self.k - 1])}

    def _with(self, member: Member, number: Number) -> Tree:
        """A pattern's best plan with a sub-pattern in it. What else it shares now it keeps, or not, at random."""
        mask = self.random.choice(self.graph.having(number)[member])
        if self.chains or self.random.random() < 0.5:
            return member.given((mask,), chains=self.chains)
        kept = [other for other in self.tree.shared(member) if not other & mask]
        return member.given((mask, *kept))

    # --- the whole of it

    def run(self, how: str, budget: Budget, is_over: Callable[[], bool] | None) -> None:
        """Search, and then descend if there is a moment at which that is to be over."""
        (self.anneal if how == "annealing" else self.tabu)(budget)
        if is_over is not None:
            self.descend(is_over)

    def over_chains(self, how: str, budget: Budget, is_over: Callable[[], bool] | None) -> None:
        """A search over chains first, which a search over trees goes on from."""
        self.chains = True
        self.run(how, budget, is_over)
        self.chains = False
        self._before = budget.taken
        self._chained = dict(self._best), len(self.history), self.tree.cost_for(self.members)

    def prefer_chains(self) -> None:
        """Go back to the chains unless trees are clearly better: what is expected of either is not that exact."""
        chains, steps, cost = self._chained
        if chains and self.tree.cost_for(self.members) > CLEARLY * cost:
            self.tree.change_all(chains)
            self._remember(self.history[-1][0])
            del self.history[steps:]

    # --- meta-heuristics (appendix B)

    def anneal(self, budget: Budget) -> None:
        """Simulated annealing: a step that costs more is taken too, the less likely the later it comes."""
        first = self._largest_difference(budget)
        while not budget.is_over():
            threshold = first * COOLING ** budget.spent()
            budget.taken += 1
            before = self.tree.cost
            old = self.tree.change_all(self.neighbour())
            more = self.tree.cost - before
            if more > 0 and self.random.random() >= math.exp(-min(more / max(threshold, 1e-300), 700.0)):
                self.tree.change_all(old)
                self.tree.cost = before
            elif self.tree.cost < self._best_cost * (1 - 1e-12):
                self._remember(self._before + budget.taken)
        self._go_back()

    def _largest_difference(self, budget: Budget) -> float:
        largest = 0.0
        probes = PROBES if budget.steps is None else min(PROBES, budget.steps // 10)
        for _ in range(probes):
            if budget.spent() > 0.1 and budget.end != math.inf:
                break
            before = self.tree.cost
            old = self.tree.change_all(self.neighbour())
            largest = max(largest, abs(self.tree.cost - before))
            self.tree.change_all(old)
            self.tree.cost = before
        return largest

    def tabu(self, budget: Budget) -> None:
        """Tabu search: of some neighbours the cheapest, where the search has not been lately."""
        marks = {member: self.random.getrandbits(64) for member in self.members}

        def mark(trees: Mapping[Member, Tree]) -> int:
            found = 0
            for member, tree in trees.items():
                found ^= hash((marks[member], tree))
            return found

        here = mark(self._best)
        visited: OrderedDict[int, None] = OrderedDict({here: None})
        while not budget.is_over():
            best: tuple[float, int, Move] | None = None
            before = self.tree.cost
            for _ in range(NEIGHBOURS):
                if budget.is_over():
                    break
                budget.taken += 1
                move = self.neighbour()
                old = self.tree.change_all(move)
                there = here ^ mark(old) ^ mark(move)
                if there not in visited and (best is None or self.tree.cost < best[0]):
                    best = self.tree.cost, there, move
                self.tree.change_all(old)
                self.tree.cost = before
            if best is None:
                continue
            _, here, move = best
            self.tree.change_all(move)
            visited[here] = None
            if len(visited) > MEMORY:
                visited.popitem(last=False)
            if self.tree.cost < self._best_cost * (1 - 1e-12):
                self._remember(self._before + budget.taken)
        self._go_back()

    def _remember(self, step: int) -> None:
        self._best = {member: self.tree.trees[member] for member in self.members}
        self._best_cost = self.tree.cost
        self.history.append((step, self._best_cost))

    def _go_back(self) -> None:
        self.tree.change_all(self._best)

    # --- descent

    def descend(self, is_over: Callable[[], bool]) -> None:
        """Plan pattern after pattern anew, each the best for what the others have, until that changes nothing more."""
        better = True
        while better:
            better = False
            for member in self._common:
                if is_over():
                    better = False
                    break
                before = self.tree.cost
                old = self.tree.change(member, respond(self.tree, self.graph, member, chains=self.chains))
                if self.tree.cost < before * (1 - 1e-9):
                    better = True
                else:
                    self.tree.change(member, old)
                    self.tree.cost = before
        if self.tree.cost <= self._best_cost:
            self._remember(self.history[-1][0])

    def descend_afresh(self, is_over: Callable[[], bool]) -> None:
        """The better of two descents: from the present plans, and from the best that each pattern has by itself.

        Where patterns share what has become costly, none of them can give it up alone.
        """
        self.descend(is_over)
        cost = self.tree.cost
        old = self.tree.change_all({member: member.own(chains=self.chains) for member in self.members})
        self.descend(is_over)
        if self.tree.cost >= cost:
            self.tree.change_all(old)
            self.tree.cost = cost


def respond(tree: MultiTree, graph: MultiPatternGraph, member: Member, *, chains: bool = False) -> Tree:
    """The best plan of a pattern where all that the others evaluate can be had for nothing."""
    held = member in tree.trees
    own = tree.remove(member) if held else ()
    free = {mask: number for mask, number in graph.common(member) if tree.window_of(number) >= member.window}
    if chains:
        found = _respond_with_chain(tree, graph, member, free)
    else:
        _, joins = best_tree(member.variables, member.work, free.__contains__, member.most)
        sides = {side for join in joins for side in join} | ({member.full} & free.keys())
        there = (borrowed(tree, graph, member, mask, free[mask]) for mask in sides & free.keys())
        found = (*(join for part in there for join in part), *joins)
    if held:
        tree.add(member, own)
    return found


def _respond_with_chain(tree: MultiTree, graph: MultiPatternGraph, member: Member, free: Mapping[Mask, Number]) -> Tree:
    """The best of the chains that begin with what another chain begins with."""
    options = [(*best_order(first, member.full ^ first, member.work), first) for first in (0, *free)]
    _, rest, first = min(options, key=lambda option: option[0])
    return (*(borrowed(tree, graph, member, first, free[first]) if first else ()), *rest)


def borrowed(tree: MultiTree, graph: MultiPatternGraph, member: Member, mask: Mask, number: Number) -> Tree:
    """How another pattern puts a sub-pattern together."""
    for other, masks in graph.having(number).items():
        if other is member or other not in tree.trees:
            continue
        for theirs in masks:
            if any(left | right == theirs for left, right in tree.trees[other]):
                places = list(zip(other.places(theirs), member.places(mask), strict=True))
                return translated(inside(tree.trees[other], theirs), places)
    return member.common(mask)  # of a pattern that was read in a hurry, so that the graph does not know of it
