"""The multi-pattern graph knows what all pairs of patterns have in common."""

from __future__ import annotations

import itertools

from hypothesis import given
from hypothesis import strategies as st

from cepheid.pattern.normal import Branch
from cepheid.plan.sharing.graph import MultiPatternGraph
from cepheid.plan.sharing.identity import SubPattern
from cepheid.plan.sharing.members import Catalogue, Member
from tests.plan.sharing.workloads import branch_of, known, meaning, workloads


def members_of(branches: list[Branch]) -> tuple[MultiPatternGraph, list[Member]]:
    catalogue, graph = Catalogue(), MultiPatternGraph()
    estimates = known(branches)
    members = [Member(branch, estimates[branch], catalogue) for branch in branches]
    for member in members:
        graph.add(member)
    return graph, members


def parts(member: Member) -> dict[frozenset[str], SubPattern | None]:
    sets = (frozenset(c) for size in range(2, 6) for c in itertools.combinations(member.names, size))
    return {names: meaning(member.branch, names) for names in sets}


def in_common(one: Member, two: Member) -> set[SubPattern]:
    return ({*parts(one).values()} & {*parts(two).values()}) - {None}  # type: ignore[return-value]


def is_right(graph: MultiPatternGraph, members: list[Member]) -> None:
    for member in members:
        others = {found for other in members if other is not member for found in in_common(member, other)}
        wanted = {names for names, found in parts(member).items() if found in others}
        assert {member.named(mask) for mask, _ in graph.common(member)} == wanted
        assert graph.peers(member) == {other for other in members if other is not member and in_common(member, other)}


@given(workloads(), st.data())
def test_what_is_common_after_any_additions_and_removals(branches: list[Branch], data: st.DataObject) -> None:
    graph, members = members_of(branches)
    is_right(graph, members)
    left = [member for member in members if data.draw(st.booleans())]
    for member in members:
        if member not in left:
            graph.remove(member)
            member.release()
    is_right(graph, left)
    back = data.draw(st.permutations([member for member in members if member not in left]))
    for member in back:
        graph.add(member)
    is_right(graph, [*left, *back])


@given(workloads(most=3))
def test_maximal_common_sub_patterns(branches: list[Branch]) -> None:
    graph, members = members_of(branches)
    for one, two in itertools.combinations(members, 2):
        common = in_common(one, two)
        mine = [names for names, found in parts(one).items() if found in common]
        part_of_another = {parts(one)[names] for names in mine if any(names < larger for larger in mine)}
        found = [
            {parts(one)[one.named(m)] for m, n in graph.common(one) if n == number}
            for number in graph.maximal(one, two)
        ]
        assert {next(iter(some)) for some in found} == common - part_of_another


@given(workloads())
def test_components_have_nothing_in_common(branches: list[Branch]) -> None:
    graph, members = members_of(branches)
    components = graph.components()
    assert sorted((m for c in components for m in c), key=id) == sorted(members, key=id)
    place = {member: number for number, component in enumerate(components) for member in component}
    for one, two in itertools.combinations(members, 2):
        if in_common(one, two):
            assert place[one] == place[two]
    for component in components:  # and each hangs together
        reached, open_ = {component[0]}, [component[0]]
        while open_:
            new = graph.peers(open_.pop()) - reached
            reached |= new
            open_ += new
        assert reached == set(component)


def test_the_example_of_the_paper() -> None:
    """Appendix A: both SEQ(A, B) and SEQ(A, C) are maximal in SEQ(A, B, C) and SEQ(A, C, B)."""
    branches = [branch_of("SEQ(A a, B b, C c) WITHIN 5"), branch_of("SEQ(A a, C c, B b) WITHIN 7")]
    graph, (one, two) = members_of(branches)
    names = [one.named(m) for n in graph.maximal(one, two) for m in graph.having(n)[one]]
    assert names == [frozenset("ab"), frozenset("ac")]
    assert graph.density() == 1.0
    assert list(graph.pairs()) == [(one, two)]
