"""From a workload of patterns to one plan for all of them."""

from __future__ import annotations

import math
import random
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Literal, TypeAlias

from cepheid.pattern.normal import Branch
from cepheid.plan.orders import greedy
from cepheid.plan.sharing.graph import MultiPatternGraph
from cepheid.plan.sharing.identity import SubPattern
from cepheid.plan.sharing.local import Mask, Tree
from cepheid.plan.sharing.members import Catalogue, Member
from cepheid.plan.sharing.multitree import MultiTree, unified
from cepheid.plan.sharing.peers import PEERS
from cepheid.plan.sharing.search import Budget, LocalSearch, respond
from cepheid.plan.tree import Plan, chain
from cepheid.stats.estimates import Estimates, nothing_known

APART = ("none", "reorder")
"""The modes in which no pattern shares anything."""
MODES = (*APART, *PEERS, "prefix")
HURRY, HURRIED = 0.4, (4, 3)
"""When this part of the time is over and patterns are still to be read, how large the trees are that are compared with
all others, and the sub-patterns that are looked for."""
CHAINS = 0.4
"""This part of the time a search over trees is one over chains, of which there are fewer."""
DESCENT = 0.1
"""This part of the time is kept for the descent at the end, which is quick."""


@dataclass(frozen=True, slots=True)
class Sharing:
    """How to search for a plan that patterns share.

    ``search``: ``"annealing"`` or ``"tabu"``. ``neighbourhood``: what a step changes: ``"edge"``, two patterns, or
    ``"vertex"``, up to ``k`` of them. ``plans``: ``"trees"`` may share any sub-pattern (the multi-pattern multitree),
    ``"chains"`` only what they begin with (the multi-pattern tree). ``descend``: what the paper has not: to begin with
    chains, and to take trees where they are clearly better; and in the end to plan each pattern anew for what the
    others have, until that saves nothing more.

    The search ends after ``seconds``, or after ``steps`` if these are given: then the same seed gives the same plan,
    on any machine. It ends sooner where little can be shared.
    """

    search: Literal["annealing", "tabu"] = "annealing"
    neighbourhood: Literal["edge", "vertex"] = "edge"
    k: int = 4
    seconds: float = 5.0
    seed: int = 0
    steps: int | None = None
    plans: Literal["trees", "chains"] = "trees"
    descend: bool = True

    def __post_init__(self) -> None:
        for name, known in (
            ("search", ("annealing", "tabu")), ("neighbourhood", ("edge", "vertex")), ("plans", ("trees", "chains")),
        ):  # fmt: skip
            if getattr(self, name) not in known:
                raise ValueError(f"{name} is {' or '.join(map(repr, known))}; got {getattr(self, name)!r}")
        if self.k < 2:
            raise ValueError(f"k is how many patterns a step changes, 2 or more; got {self.k}")
        if not self.seconds >= 0:
            raise ValueError(f"seconds are 0 or more; got {self.seconds}")
        if self.steps is not None and self.steps < 0:
            raise ValueError(f"steps are 0 or more; got {self.steps}")


Mode: TypeAlias = str | Sharing


@dataclass(frozen=True, slots=True)
class SharedNode:
    """A sub-pattern that is evaluated once for several branches; ``users``: these, and their names for its slots."""

    sub_pattern: SubPattern
    users: tuple[tuple[Branch, tuple[str, ...]], ...]
    cost: float


@dataclass(frozen=True)
class SharedPlan:
    """A plan for each branch, and what they have in common.

    ``cost``: the partial matches and pairs in a window, each sub-pattern counted once. ``cost_alone``: the same for the
    best plans that share nothing. ``shares``: whether equal sub-plans are to be evaluated once.
    ``history``: after how many steps which cost was reached.
    """

    plans: dict[Branch, Plan]
    cost: float
    cost_alone: float
    shares: bool
    steps: int = 0
    seconds: float = 0.0
    history: tuple[tuple[int, float], ...] = ()
    _workload: Workload | None = field(default=None, repr=False, compare=False)

    @property
    def shared(self) -> list[SharedNode]:
        """Sub-patterns of two variables or more that several branches have, those with the most users first."""
        return [] if self._workload is None or not self.shares else self._workload.shared()

    def changed(self, add: Mapping[Branch, Estimates], remove: Iterable[Branch] = ()) -> SharedPlan:
        """The plan for some more branches and some less. Those that stay keep their plans, and nothing is searched.

        A new branch takes the best plan for what the others have. Only the latest of several plans can be changed.
        """
        assert self._workload is not None
        return self._workload.changed(add, remove, self)


class Workload:
    """All branches with their plans of the moment."""

    def __init__(self, *, chains: bool = False, not_null: frozenset[str] = frozenset()) -> None:
        self.catalogue = Catalogue(not_null)
        self.graph = MultiPatternGraph()
        self.tree = MultiTree(self.catalogue)
        self.members: dict[Branch, Member] = {}
        self.chains = chains
        self.alone = 0.0

    def enter(self, branch: Branch, estimates: Estimates) -> Member | None:
        """A branch without a plan yet; nothing if it has no single events to plan for."""
        member = Member(branch, estimates, self.catalogue)
        if not member.names:
            return None
        self.members[branch] = member
        self.graph.add(member)
        self.alone += member.cost(member.own())
        return member

    def hurry(self) -> None:
        """From now on, plan quickly rather than well, and look for small sub-patterns only."""
        self.catalogue.most, self.graph.widest = HURRIED

    def remove(self, branch: Branch) -> None:
        member = self.members.pop(branch, None)
        if member is not None:
            self.alone -= member.cost(member.own())
            self.tree.remove(member)
            self.graph.remove(member)
            member.release()

    def plans(self) -> dict[Branch, Plan]:
        return {branch: member.plan(self.tree.trees[member]) for branch, member in self.members.items()}

    def unify(self) -> None:
        """Every sub-pattern put together in one way, where that is no worse."""
        before = dict(self.tree.trees)
        cost = self.tree.full_cost()
        self.tree.change_all(unified(self.tree, self.members.values()))
        if self.tree.full_cost() > cost * (1 + 1e-9):
            self.tree.change_all(before)
        self.tree.cost = self.tree.full_cost()

    def changed(self, add: Mapping[Branch, Estimates], remove: Iterable[Branch], old: SharedPlan) -> SharedPlan:
        for branch in remove:
            self.remove(branch)
        for branch, estimates in add.items():
            member = self.enter(branch, estimates)
            if member is not None:
                tree = respond(self.tree, self.graph, member, chains=self.chains) if old.shares else member.own()
                self.tree.add(member, tree)
        cost = self.tree.full_cost() if old.shares else self.cost_apart()
        return SharedPlan(self.plans(), cost, self.alone, old.shares, _workload=self)

    def cost_apart(self) -> float:
        return sum(member.cost(self.tree.trees[member]) for member in self.members.values())

    def shared(self) -> list[SharedNode]:
        users: dict[int, list[tuple[Member, Mask]]] = {}
        for member, tree in self.tree.trees.items():
            for left, right in tree:
                users.setdefault(member.number(left | right), []).append((member, left | right))
        found = [
            SharedNode(
                self.catalogue.sub_patterns[number],
                tuple((m.branch, tuple(m.names[p.bit_length() - 1] for p in m.places(mask))) for m, mask in using),
                self.tree.cost_of(number),
            )
            for number, using in users.items()
            if len({member for member, _ in using}) > 1
        ]
        return sorted(found, key=lambda node: -len(node.users))


def share_plans(
    branches: Sequence[Branch],
    estimates: Mapping[Branch, Estimates],
    mode: Mode = "none",
    start: Mapping[Branch, Plan] | None = None,
    not_null: frozenset[str] = frozenset(),
) -> SharedPlan:
    """Plans for some branches that share what is worth sharing.

    ``mode``: ``"none"``, each branch by itself, with the plans of ``start`` or in the order of the pattern;
    ``"reorder"``, each by itself, greedily ordered; ``"maximal"``, ``"spass"``, ``"motto"``, ``"prefix"`` or a
    :class:`Sharing`, which search from ``start`` on where that has a plan. If it has one for all, the time that it
    takes to read the branches is not part of ``seconds``. ``not_null``: see :func:`sub_pattern`.
    """
    began = time.monotonic()
    if isinstance(mode, str) and mode not in MODES:
        raise ValueError(f"share is one of {', '.join(map(repr, MODES))}, or a cepheid.Sharing; got {mode!r}")
    sharing = mode if isinstance(mode, Sharing) else Sharing(plans="chains") if mode == "prefix" else None
    workload = Workload(chains=sharing is not None and sharing.plans == "chains", not_null=not_null)
    given = start or {}
    is_planned = bool(given) and all(branch in given for branch in branches)
    hurries = sharing is not None and sharing.steps is None and not is_planned
    for branch in dict.fromkeys(branches):
        if hurries and sharing is not None and time.monotonic() > began + HURRY * sharing.seconds:
            workload.hurry()
        if not branch.stepwise and branch.never is None:
            workload.enter(branch, estimates.get(branch) or nothing_known(branch))
    if sharing is not None:
        # Going on from a plan for all takes a short time, most of which would be over when all patterns are read.
        return _searched(workload, sharing, given, began, time.monotonic() if is_planned else began)
    members = workload.members.values()
    if mode in PEERS:
        trees: Mapping[Member, Tree] = PEERS[str(mode)](workload.catalogue, workload.graph)
    else:
        trees = {member: _apart(member, str(mode), given) for member in members}
    for member, tree in trees.items():
        workload.tree.add(member, tree)
    shares = mode not in APART
    if shares:
        workload.unify()
    cost = workload.tree.full_cost() if shares else workload.cost_apart()
    seconds = time.monotonic() - began
    return SharedPlan(workload.plans(), cost, workload.alone, shares, seconds=seconds, _workload=workload)


def _apart(member: Member, mode: str, given: Mapping[Branch, Plan]) -> Tree:
    if mode == "reorder":
        return member.tree(chain(greedy(member.single, member.cardinality)))
    return member.tree(given[member.branch]) if member.branch in given else member.in_pattern_order()


def _searched(
    workload: Workload, sharing: Sharing, given: Mapping[Branch, Plan], began: float, counted: float
) -> SharedPlan:
    """``counted``: from when on the time of the search counts."""
    tree, graph, chains = workload.tree, workload.graph, workload.chains
    end = math.inf if sharing.steps is not None else counted + sharing.seconds
    fresh = []
    for branch, member in workload.members.items():
        if branch in given:
            tree.add(member, member.tree(given[branch]))
        else:
            fresh.append(member)
    from_chains = sharing.descend and not chains and not given
    for member in fresh:  # to what is there already a new pattern is fitted; where nothing is, its best plan is taken
        own = partial(member.own, chains=chains or from_chains)
        tree.add(member, respond(tree, graph, member, chains=chains) if given else own())
    steps, history = 0, [(0, tree.cost)]
    source = random.Random(sharing.seed)
    k = 2 if sharing.neighbourhood == "edge" else sharing.k
    components = graph.components()
    for member, *others in components:  # one that has nothing in common with others is planned, not searched for
        own_tree = member.own(chains=chains)
        if not others and sharing.descend and _is_cheaper(member, own_tree, tree.trees[member]):
            tree.change(member, own_tree)
    searches = [LocalSearch(tree, graph, some, source, chains, k) for some in components if len(some) > 1]
    weights = [search.patience for search in searches]
    for place, search in enumerate(searches):
        now, share = time.monotonic(), weights[place] / sum(weights[place:])
        until = now + (end - now) * share * (1 - DESCENT if sharing.descend else 1)
        most = weights[place]
        if sharing.steps is not None:
            most = min(most, round(sharing.steps * weights[place] / sum(weights)))
        if sharing.descend and given:  # for what is known by now; the search goes on from there
            search.descend_afresh(partial(_is_past, until))
        last = partial(_is_past, end - 0.02 * sharing.seconds) if sharing.descend else None
        taken = 0
        if from_chains:
            budget = Budget(now + CHAINS * (until - now), round(CHAINS * most))
            search.over_chains(sharing.search, budget, last)
            taken, most = budget.taken, most - budget.taken
        budget = Budget(until, most)
        search.run(sharing.search, budget, last)
        if from_chains:
            search.prefer_chains()
        history += [(steps + step, cost) for step, cost in search.history[1:]]
        steps += taken + budget.taken
    workload.unify()
    history.append((steps, workload.tree.cost))
    return SharedPlan(
        workload.plans(), workload.tree.cost, workload.alone, True, steps, time.monotonic() - began, tuple(history),
        workload,
    )  # fmt: skip


def _is_cheaper(member: Member, tree: Tree, than: Tree) -> bool:
    return member.cost(tree) < member.cost(than) * (1 - 1e-9)


def _is_past(moment: float) -> bool:
    return time.monotonic() >= moment
