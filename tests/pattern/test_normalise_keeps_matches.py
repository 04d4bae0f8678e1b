"""The branches of the normal form have the matches of the tree that they were made from."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

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
