"""Sub-patterns are equal when they ask the same, whatever their variables are called, and only then."""

from __future__ import annotations

import itertools
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import cepheid
from cepheid.language import syntax as s
from cepheid.language.text import expression_text
from cepheid.pattern.normal import Branch
from cepheid.pattern.order import transitive_closure
from cepheid.plan.sharing import identity
from cepheid.plan.sharing.identity import SubPattern, SubPatterns, sub_pattern
from cepheid.plan.tree import chain


def branch_of(pattern: str) -> Branch:
    return cepheid.normalise(cepheid.parse(f"PATTERN {pattern}")).branches[0]


def part(pattern: str, names: str) -> SubPattern:
    found = sub_pattern(branch_of(pattern), frozenset(names.split()))
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("one", "two"),
    [
        ("SEQ(A a, B b) WITHIN 5", "SEQ(A x, B y) WITHIN 7"),
        ("SEQ(A a, C c, B b) WITHIN 5", "SEQ(A a, B b) WITHIN 5"),  # ordered by way of c
        ("SEQ(A a, KL(C c), B b) WITHIN 5", "SEQ(A a, B b) WITHIN 5"),
        ("AND(A a, B b) WHERE a.x < b.x WITHIN 5", "AND(B b, A a) WHERE a.x < b.x WITHIN 5"),
        ("AND(A a, B b) WHERE a.x = b.y AND a.z > 3 WITHIN 5", "AND(A a, B b) WHERE 3 < a.z AND b.y = a.x WITHIN 5"),
        (
            "AND(A a, B b) WHERE a.x + b.x > 3 OR a.y = 1 WITHIN 5",
            "AND(B b, A a) WHERE 1 = a.y OR 3 < a.x + b.x WITHIN 5",
        ),
        ("AND(A a, B b) PARTITION BY k, l WITHIN 5", "AND(A a, B b) PARTITION BY l, k WITHIN 5"),
        ("AND(A a, B b, C c) WHERE a.k = b.k AND b.k = c.k WITHIN 5", "AND(A a, B b) WHERE a.k = b.k WITHIN 5"),
    ],
)
def test_the_same_is_asked(one: str, two: str) -> None:
    assert part(one, "a b") == part(two, "x y" if "x," in two else "a b")


@pytest.mark.parametrize(
    ("one", "two"),
    [
        ("SEQ(A a, B b) WITHIN 5", "SEQ(B b, A a) WITHIN 5"),
        ("SEQ(A a, B b) WITHIN 5", "AND(A a, B b) WITHIN 5"),
        ("SEQ(A a, A b) WHERE a.x > 1 WITHIN 5", "SEQ(A a, A b) WHERE b.x > 1 WITHIN 5"),
        ("AND(A a, B b) WHERE a.x < b.x WITHIN 5", "AND(A a, B b) WHERE a.x > b.x WITHIN 5"),
        ("AND(A a, B b) WHERE a.x = 1 WITHIN 5", "AND(A a, B b) WHERE a.x = 1.0 WITHIN 5"),
        ("AND(A a, B b) PARTITION BY k WITHIN 5", "AND(A a, B b) WITHIN 5"),
        # b's events need a y to be compared with c's, so one without is taken here and not there
        ("AND(A a, B b, C c) WHERE b.y < c.y WITHIN 5", "AND(A a, B b) WITHIN 5"),
        # a.k = b.k follows, but only if c is looked at
        ("AND(A a, B b, C c) WHERE a.k = c.k AND b.k = c.k WITHIN 5", "AND(A a, B b) WHERE a.k = b.k WITHIN 5"),
    ],
)
def test_something_else_is_asked(one: str, two: str) -> None:
    assert part(one, "a b") != part(two, "a b")


def test_which_equalities_are_written_does_not_matter_where_all_are_checked() -> None:
    one = part("AND(A a, B b, C c) WHERE a.k = b.k AND b.k = c.k WITHIN 5", "a b c")
    assert one == part("AND(A a, B b, C c) WHERE a.k = c.k AND b.k = a.k WITHIN 5", "a b c")
    assert one != part("AND(A a, B b, C c) WHERE a.k = b.k WITHIN 5", "a b c")


def test_what_is_never_null_makes_no_difference() -> None:
    one, two = branch_of("AND(A a, B b, C c) WHERE b.y < c.y WITHIN 5"), branch_of("AND(A a, B b) WITHIN 5")
    names = frozenset("ab")
    assert sub_pattern(one, names) != sub_pattern(two, names)
    assert sub_pattern(one, names, frozenset("y")) == sub_pattern(two, names, frozenset("y"))
    # b.y + 0.5 is NULL where b.y is; a whole number may leave 64 bits
    three = branch_of("AND(A a, B b, C c) WHERE b.y + 0.5 < c.y WITHIN 5")
    four = branch_of("AND(A a, B b, C c) WHERE b.y + 1 < c.y WITHIN 5")
    assert sub_pattern(one, names) == sub_pattern(three, names)
    assert sub_pattern(one, names) != sub_pattern(four, names, frozenset("y"))


def test_what_nobody_can_share() -> None:
    step = branch_of("SEQ(A a, B b) USING skip_till_next WITHIN 5")
    assert sub_pattern(step, frozenset("ab")) is None
    assert sub_pattern(branch_of("SEQ(A a, B b) WITHIN 5 events"), frozenset("ab")) is None
    assert sub_pattern(branch_of("SEQ(A a, KL(B b)) WITHIN 5"), frozenset("ab")) is None
    assert sub_pattern(branch_of("SEQ(A a, KL(B b)) WITHIN 5"), frozenset("a")) is not None


def test_the_shape_of_a_plan_does_not_matter() -> None:
    branch = branch_of("SEQ(A a, B b, C c) WHERE a.x < c.x WITHIN 5")
    assert (
        sub_pattern(branch, chain("abc")) == sub_pattern(branch, chain("cab")) == sub_pattern(branch, frozenset("abc"))
    )


def test_variables_that_look_alike_in_every_way(monkeypatch: pytest.MonkeyPatch) -> None:
    names = "abcdefgh"
    pattern = f"AND({', '.join(f'A {name}' for name in names)}) WITHIN 5"
    same = part(pattern, " ".join(names))
    assert same == part(pattern, " ".join(names))  # too many ways to number them: names count
    assert same != part(pattern.replace("A a", "A z"), "z b c d e f g h")
    monkeypatch.setattr(identity, "MAX_LABELLINGS", 50_000)
    assert part(pattern, " ".join(names)) == part(pattern.replace("A a", "A z"), "z b c d e f g h")


# --- against brute force ----------------------------------------------------------------------------------

_SHAPES = ("AND({})", "SEQ({})", "SEQ({0}, AND({1}))")
_CONDITIONS = (
    "{0}.x < {1}.x", "{0}.x > {1}.x", "{0}.x = {1}.x", "{0}.x = {1}.y", "{0}.x + {1}.x > 3", "{0}.y > 1",
    "({0}.x < {1}.x OR {1}.y = 2)", "({0}.x < {1}.x OR {0}.x < {2}.x)",
)  # fmt: skip


@st.composite
def branches(draw: st.DrawFn) -> Branch:
    names = [f"v{i}" for i in range(draw(st.integers(2, 4)))]
    events = [f"{draw(st.sampled_from('AAB'))} {name}" for name in names]
    shape = draw(st.sampled_from(_SHAPES))
    structure = shape.format(events[0], ", ".join(events[1:])) if "{1}" in shape else shape.format(", ".join(events))
    chosen = draw(st.lists(st.sampled_from(_CONDITIONS), max_size=3))
    conditions = [c.format(*draw(st.permutations([*names, "v0", "v1"]))) for c in chosen]
    where = f" WHERE {' AND '.join(conditions)}" if conditions else ""
    branch = branch_of(f"{structure}{where} WITHIN 10")
    return replace(branch, never=None)


def renamed(branch: Branch, names: dict[str, str]) -> Branch:
    def change(node: s.Expression) -> s.Expression:
        if isinstance(node, s.Attribute):
            return replace(node, variable=names[node.variable])
        return s.map_children(node, change)

    return replace(
        branch.map_expressions(change),
        variables=tuple(replace(v, name=names[v.name]) for v in branch.variables),
        order=frozenset((names[x], names[y]) for x, y in branch.order),
    )


def written(branch: Branch, names: tuple[str, ...]) -> tuple[object, ...]:
    """What is asked of some variables, in that order, without any attempt to be clever: an independent definition."""
    number = {name: f"#{i}" for i, name in enumerate(names)}

    def text(e: s.Expression) -> str:
        match e:
            case s.Attribute(variable, name):
                return f"{number[variable]}.{name}"
            case s.Literal():
                return expression_text(e)
            case s.Or(operands):
                return f"({' OR '.join(sorted(map(text, operands)))})"
            case s.Arithmetic(operator, left, right):
                return f"({text(left)} {operator} {text(right)})"
            case s.Comparison(operator, left, right):
                return min(
                    f"{text(left)} {operator} {text(right)}", f"{text(right)} {s.MIRRORED[operator]} {text(left)}"
                )
        raise AssertionError(e)

    here = [c for c in branch.conditions if c.variables <= set(names)]
    groups: list[set[s.Expression]] = []  # what must be equal by conditions that are checked here
    for c in here:
        if not c.derived and isinstance(c.expression, s.Comparison) and c.expression.operator == "=":
            groups.append({c.expression.left, c.expression.right})
    for one, two in itertools.permutations(groups, 2):
        if one & two:
            one |= two
            two |= one
    for _ in groups:
        for one, two in itertools.permutations(groups, 2):
            if one & two:
                one |= two

    def checked(e: s.Expression, derived: bool) -> bool:
        return not derived or any(e.left in g and e.right in g for g in groups)  # type: ignore[union-attr]

    compared = {
        (number[v], text(side))
        for c in branch.conditions
        if isinstance(c.expression, s.Comparison) and len(c.variables) == 2
        for side in (c.expression.left, c.expression.right)
        if len(s.variables(side)) == 1
        for v in s.variables(side)
        if v in number
    }
    return (
        tuple(next(v.type for v in branch.variables if v.name == name) for name in names),
        frozenset((number[x], number[y]) for x, y in transitive_closure(branch.order) if {x, y} <= set(names)),
        frozenset((text(c.expression), len(c.variables) < 2 or checked(c.expression, c.derived)) for c in here),
        frozenset(compared),
    )


@settings(max_examples=60)
@given(branches(), branches(), st.data())
def test_equal_exactly_if_some_renaming_makes_them_the_same(one: Branch, two: Branch, data: st.DataObject) -> None:
    if data.draw(st.booleans()):  # the same in other words
        names = [v.name for v in one.variables]
        two = renamed(one, dict(zip(names, data.draw(st.permutations(names)), strict=True)))
        two = replace(
            two,
            conditions=tuple(data.draw(st.permutations(two.conditions))),
            variables=tuple(data.draw(st.permutations(two.variables))),
        )
    subsets = lambda b: [  # noqa: E731
        chosen for size in (1, 2, 3, 4) for chosen in itertools.combinations([v.name for v in b.variables], size)
    ]
    first, second = SubPatterns(one), SubPatterns(two)
    for mine in subsets(one):
        here = first.of(frozenset(mine))
        assert here is not None
        meant = written(one, mine)
        for theirs in subsets(two):
            there = second.of(frozenset(theirs))
            assert there is not None
            same = [order for order in itertools.permutations(theirs) if written(two, order) == meant]
            assert (here == there) == bool(same)
            if same:
                assert written(one, here.slots) == written(two, there.slots)
                assert hash(here) == hash(there)
