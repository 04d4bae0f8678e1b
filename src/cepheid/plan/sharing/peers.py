"""Other ways to share, for comparison. What each leaves out of the system that it is named after: docs/sharing.md."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TypeAlias

from cepheid.plan.sharing.graph import MultiPatternGraph
from cepheid.plan.sharing.local import Mask, Tree, as_chain, best_in_order
from cepheid.plan.sharing.members import Catalogue, Member, Number
from cepheid.plan.sharing.multitree import MultiTree
from cepheid.plan.sharing.search import borrowed

Peer: TypeAlias = "Callable[[Catalogue, MultiPatternGraph], dict[Member, Tree]]"


def maximal(catalogue: Catalogue, graph: MultiPatternGraph) -> dict[Member, Tree]:
    """SH: the variables as written, and all that chains have in common from their beginning on is shared."""
    return {member: member.in_pattern_order() for member in graph.members}


def spass(catalogue: Catalogue, graph: MultiPatternGraph) -> dict[Member, Tree]:
    """SPASS: runs of neighbouring variables, the one with the highest redundancy ratio first, until none is left."""
    runs: dict[Number, dict[Member, Mask]] = {}
    alone = {member: member.cost(member.in_pattern_order()) for member in graph.members}
    for member in graph.members:
        common = dict(graph.common(member))
        for run in _runs(member):
            if run in common:
                runs.setdefault(common[run], {}).setdefault(member, run)

    def ratio(number: Number) -> float:
        """What is saved if a run is shared, as part of what the patterns that have it cost."""
        users = runs[number]
        before = sum(alone[member] for member in users)
        after = sum(member.cost(_with_runs(member, [run])) for member, run in users.items())
        once = min(_cost_in_order(member, run) for member, run in users.items())
        return (before - after + (len(users) - 1) * once) / before

    ratios = {number: ratio(number) for number, users in runs.items() if len(users) > 1}
    taken: dict[Member, list[Mask]] = {member: [] for member in graph.members}
    for number in sorted((n for n, found in ratios.items() if found > 0), key=ratios.__getitem__, reverse=True):
        free = {m: run for m, run in runs[number].items() if not any(run & other for other in taken[m])}
        if len(free) > 1:
            for member, run in free.items():
                taken[member].append(run)
    return {member: _with_runs(member, taken[member]) for member in graph.members}


def _runs(member: Member) -> Iterator[Mask]:
    count = len(member.variables)
    for length in range(count, 1, -1):
        for first in range(count - length + 1):
            yield ((1 << length) - 1) << first


def _cost_in_order(member: Member, run: Mask) -> float:
    return sum(member.work(*join) for join in as_chain([single for single in member.variables if single & run]))


def _with_runs(member: Member, runs: Sequence[Mask]) -> Tree:
    """The variables as written, each run put together first."""
    covered = sum(runs)
    parts = sorted([*runs, *(single for single in member.variables if not single & covered)])
    made = [join for run in runs for join in as_chain([single for single in member.variables if single & run])]
    return (*made, *as_chain(parts))


def motto(catalogue: Catalogue, graph: MultiPatternGraph) -> dict[Member, Tree]:
    """MOTTO: each pattern is derived from raw events and from what is there already, by the cheapest way; twice around.

    That is the shortest-path heuristic for a directed Steiner tree whose points are runs of neighbouring variables:
    a run that another pattern has is merged with it, and a pattern is decomposed where that lets it share more.
    """
    tree = MultiTree(catalogue)
    for _ in range(2):
        for member in graph.members:
            if member in tree.trees:
                tree.remove(member)
            tree.add(member, _cheapest_in_order(tree, graph, member))
    return dict(tree.trees)


def _cheapest_in_order(tree: MultiTree, graph: MultiPatternGraph, member: Member) -> Tree:
    free = {mask: number for mask, number in graph.common(member) if tree.window_of(number) >= member.window}
    _, joins = best_in_order(member.variables, member.work, free.__contains__)
    sides = {side for join in joins for side in join} | {member.full}
    parts = (borrowed(tree, graph, member, mask, free[mask]) for mask in sorted(sides & free.keys()))
    return (*(join for part in parts for join in part), *joins)


PEERS: Mapping[str, Peer] = {"maximal": maximal, "spass": spass, "motto": motto}
