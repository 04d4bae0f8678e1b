"""The branches of the normal form have the matches of the tree that they were made from."""

from collections import Counter
from typing import Any

import pytest
from hypothesis import given, seed, settings
from hypothesis import strategies as st

import cepheid
from cepheid.language.pattern import Pattern
from cepheid.pattern.normalise import REWRITES, normalise
from tests import oracle
from tests.strategies import patterns_with_streams

Case = tuple[Pattern, list[dict[str, Any]], dict[str, Any]]


@given(patterns_with_streams())
def test_normal_form_has_the_same_matches(case: Case) -> None:
    pattern, events, options = case
    expected = set(oracle.find(pattern, events, **options))
    assert set(oracle.find_normal(normalise(pattern), events, **options)) == expected


@given(patterns_with_streams(), st.integers(0, len(REWRITES) - 1))
def test_each_step_on_the_way_keeps_the_matches(case: Case, steps: int) -> None:
    pattern, events, options = case
    expected = set(oracle.find(pattern, events, **options))
    assert set(oracle.find_normal(normalise(pattern, REWRITES[:steps]), events, **options)) == expected


A_STEP_TOO_EARLY = [
    {"ts": 1, "type": "A", "k": "p", "x": 1},
    {"ts": 2, "type": "B", "k": "q", "x": 0},
    {"ts": 3, "type": "B", "k": "p", "x": 5},
    {"ts": 4, "type": "C", "k": "p", "x": 5},
]


@pytest.mark.parametrize(
    ("structure", "where"),
    [
        ("SEQ(A a, B b, C c)", "a.k = c.k AND b.k = c.k"),
        ("SEQ(A a, B b, C c)", "c.k = 'p' AND b.k = c.k"),
        ("SEQ(A a, B b, C c)", "NOT (b.x < 1 OR c.x < 1)"),
        ("SEQ(A a, B b, C c)", "b.x > 1 OR (c.x > 1 AND FALSE)"),
        ("SEQ(A a, KL(B b), C c)", "b.x > 1 OR (COUNT(b) > 10 AND FALSE)"),
        ("SEQ(A a, KL(B b), C c)", "NOT (b.x < 1 OR COUNT(b) > 10)"),
    ],
)
def test_no_rewrite_makes_a_condition_select_an_event_earlier(structure: str, where: str) -> None:
    """skip_till_next takes e2 for b, which a condition that is judged with c rules out too late."""
    pattern = cepheid.parse(f"PATTERN {structure} USING skip_till_next WHERE {where} WITHIN 9")
    assert oracle.find(pattern, A_STEP_TOO_EARLY) == []
    assert oracle.find_normal(normalise(pattern), A_STEP_TOO_EARLY) == []


def test_consumed_events_are_chosen_in_pattern_order_across_branches() -> None:
    pattern = cepheid.parse(
        "PATTERN AND(OR(A a, B b), C c, D d) USING skip_till_any CONSUME WHERE b.ts <> c.ts WITHIN 9"
    )
    events = [{"ts": t, "type": kind} for t, kind in [(1, "A"), (1, "B"), (2, "C"), (1, "D")]]
    assert oracle.find_normal(normalise(pattern), events) == oracle.find(pattern, events)


def test_the_random_cases_are_worth_their_time() -> None:
    """Many of them have matches, also of the kinds that rewrites could break."""
    seen: Counter[str] = Counter()

    def count(case: Case) -> None:
        pattern, events, options = case
        if oracle.find(pattern, events, **options):
            normal = normalise(pattern)
            conditions = [c for branch in normal.branches for c in branch.conditions]
            seen["match"] += 1
            seen["match with conditions"] += bool(conditions)
            seen["match, stepwise, with conditions on two variables"] += normal.branches[0].stepwise and any(
                len(c.variables) > 1 for c in conditions
            )
            seen["match with a derived condition"] += any(c.derived for c in conditions)
            seen["match with a negation"] += any(branch.negations for branch in normal.branches)

    # What one seed draws depends on much, even on which modules are loaded: so there are several.
    for number in range(3):
        drawn = settings(max_examples=1000, derandomize=False, database=None)(given(patterns_with_streams())(count))
        seed(number)(drawn)()
    assert seen["match"] > 300
    assert seen["match with conditions"] > 120
    assert seen["match, stepwise, with conditions on two variables"] > 8
    assert seen["match with a derived condition"] > 8
    assert seen["match with a negation"] > 40
