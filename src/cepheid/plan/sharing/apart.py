"""Plans that a planner makes for each branch by itself, where what happens to be equal in them is evaluated once.

What is best for a branch alone may cost more than it saves: it gives up a part that the others pay for anyway.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from itertools import combinations
from typing import TypeAlias

from cepheid.pattern.normal import Branch
from cepheid.plan.cardinality import Cardinality
from cepheid.plan.cost import tree_steps
from cepheid.plan.sharing.identity import sub_patterns
from cepheid.plan.sharing.members import dropping
from cepheid.plan.tree import Join, Plan, Search, nodes

Key: TypeAlias = "tuple[Hashable, frozenset[Hashable] | None]"
"""What is asked for, and of which two parts it is put together; an event of none."""
Parts: TypeAlias = "Mapping[Key, float]"
"""What a plan evaluates, and what each of it costs in a unit of time."""


def in_common(branches: Iterable[Branch]) -> frozenset[Branch]:
    """The branches of which some part of two variables or more is a part of another branch as well."""
    having: dict[Hashable, set[Branch]] = {}
    for branch in branches:
        names = sorted(v.name for v in branch.variables if not v.is_kleene)
        for pair in combinations(names, 2):
            part = sub_patterns(branch).of(frozenset(pair))
            if part is not None:
                having.setdefault(part, set()).add(branch)
    return frozenset(branch for having_it in having.values() if len(having_it) > 1 for branch in having_it)


class Priced:
    """The plans of some branches at one time. A part that several have costs as much as it does for the dearest."""

    def __init__(self, looks: Mapping[Branch, Cardinality], plans: Mapping[Branch, Plan]) -> None:
        self._looks = looks
        self._users: dict[Key, dict[Branch, float]] = {}
        for branch in looks:
            self.add(branch, self.parts(branch, plans[branch]))

    @property
    def cost(self) -> float:
        return sum(max(users.values()) for users in self._users.values())

    @property
    def work(self) -> float:
        """What all of it costs of one event of the stream."""
        leaves = (max(users.values()) for (_, below), users in self._users.items() if below is None)
        return self.cost / max(sum(leaves), 1e-300)

    def parts(self, branch: Branch, plan: Plan, *, shares: bool = True) -> Parts:
        """What a plan evaluates for a branch, keyed by what is asked for and how it is put together."""
        look, length = self._looks[branch], max(branch.window.size, 1)
        known, own = sub_patterns(branch), list(dropping(branch, tuple(v.name for v in look.branch.variables)))
        keys: dict[Plan, Key] = {}
        found: dict[Key, float] = {}
        for part, (left, right) in zip(nodes(plan), tree_steps(plan), strict=True):
            names = left | right
            is_shared = shares and not isinstance(part, Search) and not any(needed <= names for needed in own)
            meaning: Hashable = (known.of(names) if is_shared else None) or (branch, names)
            below = frozenset({keys[part.left], keys[part.right]}) if isinstance(part, Join) else None
            keys[part] = meaning, below
            found[keys[part]] = look.step(left, right) / length
        return found

    def add(self, branch: Branch, parts: Parts) -> float:
        """How much more all of it costs."""
        more = 0.0
        for key, cost in parts.items():
            users = self._users.setdefault(key, {})
            more += max(0.0, cost - max(users.values(), default=0.0))
            users[branch] = cost
        return more

    def remove(self, branch: Branch, parts: Parts) -> float:
        """How much less all of it costs."""
        less = 0.0
        for key in parts:
            users = self._users[key]
            cost = users.pop(branch)
            less += max(0.0, cost - max(users.values(), default=0.0))
            if not users:
                del self._users[key]
        return less

    def change(self, branch: Branch, old: Parts, new: Parts) -> float:
        """How much more all of it costs."""
        less = self.remove(branch, old)
        return self.add(branch, new) - less


def gain(
    looks: Mapping[Branch, Cardinality], old: Mapping[Branch, Plan], new: Mapping[Branch, Plan], *, leaves: bool = False
) -> float:
    """Which part of the work of some branches other plans for some of them save.

    ``leaves``: a branch that changes shares nothing any more.
    """
    together = Priced(looks, old)
    before = together.cost
    for branch in new:
        changed = together.parts(branch, new[branch], shares=not leaves)
        together.change(branch, together.parts(branch, old[branch]), changed)
    return 1 - together.cost / max(before, 1e-300)


def worth_taking(
    looks: Mapping[Branch, Cardinality],
    plans: Mapping[Branch, Plan],
    answers: Mapping[Branch, Plan],
    *,
    leaves: bool = False,
) -> tuple[dict[Branch, Plan], float]:
    """Of the plans that each branch would have by itself, those that make less work together; what part they save.

    It is the better of two descents: from the plans in force, and from the answers. Where several share what has become
    costly, none can give it up alone.
    """
    other = {branch: plan for branch, plan in answers.items() if plan != plans[branch]}
    found = []
    for start in (frozenset[Branch](), frozenset(other)):
        taken = _descended(looks, plans, other, start, leaves=leaves)
        found.append((gain(looks, plans, taken, leaves=leaves), taken))
    saved, taken = max(found, key=lambda each: each[0])
    return taken, saved


def _descended(
    looks: Mapping[Branch, Cardinality],
    plans: Mapping[Branch, Plan],
    other: Mapping[Branch, Plan],
    start: frozenset[Branch],
    *,
    leaves: bool,
) -> dict[Branch, Plan]:
    """Take another plan, or the one in force again, for branch after branch until that saves nothing more."""
    together = Priced(looks, plans)
    old = {branch: together.parts(branch, plans[branch]) for branch in other}
    new = {branch: together.parts(branch, plan, shares=not leaves) for branch, plan in other.items()}
    taken = set(start)
    for branch in start:
        together.change(branch, old[branch], new[branch])
    better = True
    while better:
        better = False
        for branch in other:
            here, there = (new[branch], old[branch]) if branch in taken else (old[branch], new[branch])
            if together.change(branch, here, there) < -1e-9 * sum(here.values()):
                taken ^= {branch}
                better = True
            else:
                together.change(branch, there, here)
    return {branch: plan for branch, plan in other.items() if branch in taken}
