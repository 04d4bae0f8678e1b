"""The patterns of a workload as a search sees them: variables as bits, sub-patterns as numbers, costs at hand."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from cepheid.pattern.normal import Branch
from cepheid.plan.cardinality import HUGE, Cardinality
from cepheid.plan.sharing.identity import SubPattern, sub_patterns
from cepheid.plan.sharing.local import (
    MAX_EXACT,
    Mask,
    Tree,
    as_chain,
    as_plan,
    best_order,
    best_tree,
    bits,
    from_plan,
    translated,
)
from cepheid.plan.tree import Plan
from cepheid.stats.estimates import Estimates

Number: TypeAlias = int
"""A sub-pattern, whoever has it."""
Node: TypeAlias = "tuple[Number, Number, Number]"
"""A join: the sub-pattern that it makes, and those of its sides, the smaller number first."""


@dataclass(slots=True)
class Catalogue:
    """A number for each sub-pattern of a workload, and what is known of it.

    Costs are those in a window of ``window``: a larger one has more partial matches of n events by its n-th power.
    """

    not_null: frozenset[str] = frozenset()
    window: float = 0.0
    most: int = MAX_EXACT  # of so many parts all trees are considered
    sizes: dict[Number, float] = field(default_factory=dict)
    widths: dict[Number, int] = field(default_factory=dict)
    work: dict[Node, float] = field(default_factory=dict)
    trees: dict[tuple[Number, bool], Tree] = field(default_factory=dict)  # over slots; True: a chain
    sub_patterns: dict[Number, SubPattern] = field(default_factory=dict)
    _numbers: dict[SubPattern, Number] = field(default_factory=dict)
    _holders: dict[Number, int] = field(default_factory=dict)
    _next: int = 0

    def number(self, found: SubPattern | None, width: int, size: float) -> Number:
        """The number of a sub-pattern; one of its own for what nobody can share."""
        number = None if found is None else self._numbers.get(found)
        if number is None:
            number, self._next = self._next, self._next + 1
            self.sizes[number], self.widths[number], self._holders[number] = size, width, 0
            if found is not None:
                self._numbers[found] = number
                self.sub_patterns[number] = found
        self._holders[number] += 1
        return number

    def release(self, numbers: Iterable[Number]) -> None:
        """One pattern less has these. What no pattern has is forgotten."""
        gone = set()
        for number in numbers:
            self._holders[number] -= 1
            if not self._holders[number]:
                gone.add(number)
                del self._holders[number], self.sizes[number], self.widths[number]
                found = self.sub_patterns.pop(number, None)
                if found is not None:
                    del self._numbers[found]
        if gone:
            self.work = {node: work for node, work in self.work.items() if not gone.intersection(node)}
            self.trees = {key: tree for key, tree in self.trees.items() if key[0] not in gone}

    def cost(self, node: Node, window: float) -> float:
        return self.scaled(self.sizes[node[0]] + self.work[node], node[0], window)

    def scaled(self, cost: float, number: Number, window: float) -> float:
        """What costs so much in the common window, in another one."""
        if window == self.window:
            return cost
        return min(cost * (window / self.window) ** self.widths[number], HUGE)


def dropping(branch: Branch, names: tuple[str, ...]) -> Iterator[frozenset[str]]:
    """Variables after which a negation is judged: what it leaves is of no use to others.

    The last join of all has no need to judge it; but if there are sets to be found yet, it does.
    """
    for negation in branch.negations:
        needed = frozenset().union(negation.after, negation.before, *(c.variables for c in negation.conditions))
        needed -= {negation.name}
        if negation.after and negation.before and (len(names) < len(branch.variables) or needed < frozenset(names)):
            yield needed


class Member:
    """A pattern of a workload (a branch, to be precise)."""

    def __init__(self, branch: Branch, estimates: Estimates, catalogue: Catalogue) -> None:
        single = tuple(v for v in branch.variables if not v.is_kleene)
        self.branch = branch
        # A negation strikes out matches of this pattern only, so what is shared is counted without it.
        self.single = replace(branch, variables=single, negations=())
        self.cardinality = Cardinality(self.single, estimates)
        self.names = tuple(v.name for v in single)
        self.full: Mask = (1 << len(single)) - 1
        self.window = float(max(branch.window.size, 1))  # events of one time are in a window of no length too
        self._sub_patterns = sub_patterns(branch, catalogue.not_null)
        self._dropping = tuple(dropping(branch, self.names))
        self._catalogue = catalogue
        if not catalogue.window:
            catalogue.window = self.window
        self._sizes: dict[Mask, float] = {}
        self._work: dict[tuple[Mask, Mask], float] = {}
        self._numbers: dict[Mask, Number] = {}
        self._named: dict[Mask, frozenset[str]] = {}
        self._planned: dict[tuple[bool, tuple[Mask, ...]], Tree] = {}
        self._nodes: dict[Tree, tuple[Node, ...]] = {}

    def __str__(self) -> str:
        return ", ".join(self.names)

    @property
    def most(self) -> int:
        """Of so many parts all trees are considered."""
        return self._catalogue.most

    @property
    def variables(self) -> tuple[Mask, ...]:
        return tuple(bits(self.full))

    # --- costs, in the pattern's own window

    def named(self, mask: Mask) -> frozenset[str]:
        if mask not in self._named:
            self._named[mask] = frozenset(name for place, name in enumerate(self.names) if mask >> place & 1)
        return self._named[mask]

    def size(self, mask: Mask) -> float:
        """The partial matches over some variables in a window."""
        if mask not in self._sizes:
            self._sizes[mask] = self.cardinality.of(self.named(mask))
        return self._sizes[mask]

    def work(self, left: Mask, right: Mask) -> float:
        """What a join costs: the partial matches that it makes and the pairs that it looks at."""
        key = (left, right) if left < right else (right, left)
        found = self._work.get(key)
        if found is None:
            found = self._work[key] = self.cardinality.step(self.named(key[0]), self.named(key[1]))
        return found

    def cost(self, tree: Tree) -> float:
        """What a plan costs that is shared with nobody: the papers' Cost_tree."""
        return sum(self.size(single) for single in self.variables) + sum(self.work(*join) for join in tree)

    # --- sub-patterns

    def number(self, mask: Mask) -> Number:
        """The sub-pattern over some variables."""
        found = self._numbers.get(mask)
        if found is None:
            named, catalogue = self.named(mask), self._catalogue
            size = self.size(mask) * (catalogue.window / self.window) ** len(named)
            shared = None if any(names <= named for names in self._dropping) else self._sub_patterns.of(named)
            found = self._numbers[mask] = catalogue.number(shared, len(named), size)
        return found

    def leaves(self) -> tuple[Number, ...]:
        return tuple(self.number(single) for single in self.variables)

    def nodes(self, tree: Tree) -> tuple[Node, ...]:
        """The joins of a tree as others may have them too."""
        found = self._nodes.get(tree)
        if found is None:
            found = self._nodes[tree] = tuple(self._node(left, right) for left, right in tree)
        return found

    def _node(self, left: Mask, right: Mask) -> Node:
        one, two = sorted((self.number(left), self.number(right)))
        node = self.number(left | right), one, two
        if node not in self._catalogue.work:
            pairs = max(0.0, self.work(left, right) - self.size(left | right))
            window = (self._catalogue.window / self.window) ** (left | right).bit_count()
            self._catalogue.work[node] = pairs * window
        return node

    def places(self, mask: Mask) -> tuple[Mask, ...]:
        """The bits of a sub-pattern's slots."""
        found = self._sub_patterns.of(self.named(mask))
        slots = found.slots if found is not None else tuple(n for n in self.names if n in self.named(mask))
        return tuple(1 << self.names.index(name) for name in slots)

    def release(self) -> None:
        """Nothing is asked of this pattern any more."""
        self._catalogue.release(self._numbers.values())
        self._numbers = {}
        self._nodes = {}

    # --- plans

    def own(self, *, chains: bool = False) -> Tree:
        """The best plan of this pattern alone."""
        return self.given((), chains=chains)

    def given(self, masks: Iterable[Mask], *, chains: bool = False) -> Tree:
        """The best plan with the common trees of some disjoint sub-patterns in it; a chain begins with one."""
        key = chains, tuple(sorted(masks))
        if key not in self._planned:
            made = self._chain if chains else self._tree
            self._planned[key] = made(key[1])
        return self._planned[key]

    def _tree(self, masks: tuple[Mask, ...]) -> Tree:
        covered = sum(masks)
        parts = sorted([*masks, *(single for single in self.variables if not single & covered)])
        shared = (join for mask in masks for join in self.common(mask))
        return (*shared, *best_tree(parts, self.work, most=self.most)[1])

    def _chain(self, masks: tuple[Mask, ...]) -> Tree:
        (first,) = masks or (0,)
        before = self.common(first, chains=True) if first else ()
        return (*before, *best_order(first, self.full ^ first, self.work)[1])

    def common(self, mask: Mask, *, chains: bool = False) -> Tree:
        """The tree that all patterns have in common for a sub-pattern: the best for the first that asks."""
        number = self.number(mask)
        places = self.places(mask)
        slots = tuple(1 << place for place in range(len(places)))
        known = self._catalogue.trees.get((number, chains))
        if known is None:
            parts = sorted(places)
            own = best_order(0, mask, self.work)[1] if chains else best_tree(parts, self.work, most=self.most)[1]
            known = translated(own, list(zip(places, slots, strict=True)))
            self._catalogue.trees[number, chains] = known
        return translated(known, list(zip(slots, places, strict=True)))

    def in_pattern_order(self) -> Tree:
        return as_chain(self.variables)

    def plan(self, tree: Tree) -> Plan:
        return as_plan(tree, self.names)

    def tree(self, plan: Plan) -> Tree:
        return from_plan(plan, self.names)
