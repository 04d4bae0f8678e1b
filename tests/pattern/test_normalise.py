"""What the branches of a pattern are."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys

import pytest

import cepheid
from cepheid.pattern.normal import Branch, ConditionKind


def branches(text: str) -> tuple[Branch, ...]:
    return cepheid.normalise(cepheid.parse(f"{text} WITHIN 5")).branches


def test_the_order_is_a_transitive_reduction() -> None:
    (branch,) = branches("PATTERN SEQ(A a, AND(B b, SEQ(C c, D d)), E e)")
    assert branch.order == {("a", "b"), ("a", "c"), ("c", "d"), ("b", "e"), ("d", "e")}


def test_and_has_no_order() -> None:
    (branch,) = branches("PATTERN AND(A a, B b)")
    assert branch.order == frozenset()


@pytest.mark.parametrize(
    ("pattern", "after", "before"),
    [
        ("SEQ(A a, NOT(N n), B b)", ("a",), ("b",)),
        ("SEQ(NOT(N n), A a, B b)", (), ("a",)),
        ("SEQ(A a, B b, NOT(N n))", ("b",), ()),
        ("AND(A a, B b, NOT(N n))", (), ()),
        ("SEQ(AND(A a, B b), NOT(N n), AND(C c, D d))", ("a", "b"), ("c", "d")),
        ("SEQ(A a, NOT(M m), NOT(N n), B b)", ("a",), ("b",)),
        ("SEQ(A a, AND(NOT(N n), B b), C c)", ("a",), ("c",)),
        ("SEQ(A a, SEQ(NOT(N n), B b), C c)", ("a",), ("b",)),
        ("AND(SEQ(A a, NOT(N n), B b), C c)", ("a",), ("b",)),
    ],
)
def test_a_negation_knows_its_nearest_positive_neighbours(
    pattern: str, after: tuple[str, ...], before: tuple[str, ...]
) -> None:
    (branch,) = branches(f"PATTERN {pattern}")
    negation = next(n for n in branch.negations if n.name == "n")
    assert (negation.after, negation.before) == (after, before)


def test_or_and_any_become_branches() -> None:
    found = branches("PATTERN SEQ(OR(A a, B b), ANY(2, C c, D d, E e))")
    assert [[v.name for v in branch.variables] for branch in found] == [
        ["a", "c", "d"], ["a", "c", "e"], ["a", "d", "e"], ["b", "c", "d"], ["b", "c", "e"], ["b", "d", "e"],
    ]  # fmt: skip


def test_kl_bounds_and_windows_are_kept() -> None:
    (branch,) = cepheid.normalise(
        cepheid.parse("PATTERN SEQ(A a, B{2,3} b, KL(C c)) PARTITION BY k WITHIN 5 minutes SLIDE 1 minute")
    ).branches
    assert [(v.minimum, v.maximum, v.is_kleene) for v in branch.variables] == [
        (None, None, False),
        (2, 3, True),
        (1, None, True),
    ]
    assert (str(branch.window), str(branch.slide), branch.partition) == ("5 minutes", "1 minute", ("k",))


@pytest.mark.parametrize(
    ("condition", "kind"),
    [
        ("a.x > 5", ConditionKind.FILTER),
        ("a.x > a.y + 1", ConditionKind.FILTER),
        ("c.x > 5", ConditionKind.FILTER),
        ("a.k = b.k", ConditionKind.EQUALITY),
        ("LOWER(a.k) = CONCAT(b.k, '!')", ConditionKind.EQUALITY),
        ("a.x + 1 < b.x * 2", ConditionKind.COMPARISON),
        ("a.x <> c.x", ConditionKind.COMPARISON),
        ("a.x + b.x < 5", ConditionKind.GENERAL),
        ("a.x < b.x OR a.f", ConditionKind.GENERAL),
        ("CORR(a.h, b.h) > 0.5", ConditionKind.GENERAL),
        ("c[i].x > c[i-1].x", ConditionKind.NEIGHBOUR),
        ("COUNT(c) > 2", ConditionKind.AGGREGATE),
        ("AVG(c.x) < a.x", ConditionKind.AGGREGATE),
        ("c.x > AVG(c.x)", ConditionKind.AGGREGATE),
    ],
)
def test_conditions_are_sorted_by_how_they_can_be_evaluated(condition: str, kind: ConditionKind) -> None:
    (branch,) = branches(f"PATTERN AND(A a, B b, KL(C c)) WHERE {condition}")
    assert [c.kind for c in branch.conditions] == [kind]


def test_a_condition_goes_to_the_branches_that_have_its_variables() -> None:
    found = branches("PATTERN OR(SEQ(A a, B b), C c) WHERE a.x = 1 AND a.x < b.x AND c.x = 2")
    assert [[str(c) for c in branch.conditions] for branch in found] == [["a.x = 1", "a.x < b.x"], ["c.x = 2"]]


def test_a_conjunct_is_not_taken_apart_before_it_is_given_to_branches() -> None:
    found = branches("PATTERN SEQ(A a, OR(B b, C c)) WHERE NOT (a.x = 1 OR b.x = 2)")
    assert [[str(c) for c in branch.conditions] for branch in found] == [["a.x <> 1", "b.x <> 2"], []]


def test_the_description_of_a_normal_form() -> None:
    pattern = cepheid.parse("""
        NAME account_taken
        PATTERN SEQ(Login l, NOT(Confirm c), Transfer{3,} t, OR(Logout o, `Time-out` x))
        USING skip_till_next CONSUME
        WHERE l.user = t.user AND c.user = l.user AND t[i].amount > t[i-1].amount AND o.x = NULL
        PARTITION BY bank
        WITHIN 10 minutes
        RETURN l.user, COUNT(t) AS n
    """)
    assert (
        str(cepheid.normalise(pattern))
        == """\
account_taken: 2 branches
branch 1
  events      Login l, Transfer t (3 or more), Logout o
  order       l < t, t < o
  equality    l.user = t.user
  neighbour   t[i].amount > t[i-1].amount
  filter      NULL
  not         Confirm c after l, before t
    equality    l.user = c.user
  never       o.x = NULL can never hold (a comparison with NULL is never true: write IS NULL)
branch 2
  events      Login l, Transfer t (3 or more), `Time-out` x
  order       l < t, t < x
  equality    l.user = t.user
  neighbour   t[i].amount > t[i-1].amount
  not         Confirm c after l, before t
    equality    l.user = c.user
  within 10 minutes
  partitioned by bank
  using skip_till_next, consuming events
  returns l.user AS user, COUNT(t) AS n"""
    )


def test_a_branch_is_found_again_in_another_process() -> None:
    """Hashes of text differ from process to process, so a branch must not take its own along."""
    text = "PATTERN SEQ(A a, NOT(N n), B b) WHERE a.x < b.x AND n.y = 'z' WITHIN 10"
    make = "import pickle, sys, cepheid; [b] = cepheid.normalise(cepheid.parse(sys.argv[1])).branches; hash(b)"
    say = f"{make}; sys.stdout.buffer.write(pickle.dumps(b))"
    for seed in ("1", "2"):
        environment = {**os.environ, "PYTHONHASHSEED": seed}
        made = subprocess.run([sys.executable, "-c", say, text], env=environment, capture_output=True, check=True)
        found: Branch = pickle.loads(made.stdout)  # ours, of a moment ago
        [branch] = cepheid.normalise(cepheid.parse(text)).branches
        assert found == branch
        assert {branch: 1}[found] == 1


def test_branches_that_differ_in_a_number_have_hashes_of_their_own() -> None:
    texts = [f"PATTERN SEQ(A a, B b) WHERE a.x < b.x AND a.y > {n} WITHIN 10" for n in range(100)]
    branches = [branch for text in texts for branch in cepheid.normalise(cepheid.parse(text)).branches]
    assert len({hash(branch) for branch in branches}) == 100
