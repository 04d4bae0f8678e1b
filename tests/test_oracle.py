"""Laws that the reference matcher must obey, whatever the pattern."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from cepheid.language import syntax as s
from cepheid.language.pattern import Pattern
from tests import oracle
from tests.strategies import patterns_with_streams

Case = tuple[Pattern, list[dict[str, Any]], dict[str, Any]]


def contents(pattern: Pattern, events: list[dict[str, Any]], options: dict[str, Any]) -> list[str]:
    """The matches by what their events hold, not by their row numbers."""
    found = []
    for match in oracle.find(pattern, events, **options):
        bound = sorted((name, sorted(repr(events[row]) for row in rows)) for name, rows in match.binding)
        found.append(repr((match.window_start, bound)))
    return sorted(found)


@given(patterns_with_streams(), st.randoms(use_true_random=False))
def test_the_order_of_arrival_does_not_matter(case: Case, random: Any) -> None:
    pattern, events, options = case
    shuffled = events[:]
    random.shuffle(shuffled)
    assert contents(pattern, shuffled, options) == contents(pattern, events, options)


@given(patterns_with_streams())
def test_selected_matches_are_matches(case: Case) -> None:
    """Every strategy selects from what skip_till_any finds."""
    pattern, events, options = case
    everything = Pattern(
        pattern.structure,
        condition=pattern.condition,
        partition=pattern.partition,
        window=pattern.window,
        slide=pattern.slide,
    )
    assert set(oracle.find(pattern, events, **options)) <= set(oracle.find(everything, events, **options))


@given(patterns_with_streams())
def test_consumed_events_are_used_once(case: Case) -> None:
    pattern, events, options = case
    consuming = Pattern(
        pattern.structure,
        condition=pattern.condition,
        partition=pattern.partition,
        window=pattern.window,
        selection=s.Selection(pattern.selection.strategy, consume=True),
    )
    found = oracle.find(consuming, events, **options)
    used = [row for match in found for _, rows in match.binding for row in rows]
    assert len(used) == len(set(used))
    free = Pattern(
        pattern.structure,
        condition=pattern.condition,
        partition=pattern.partition,
        window=pattern.window,
        selection=s.Selection(pattern.selection.strategy),
    )
    for match in oracle.find(free, events, **options):
        assert {row for _, rows in match.binding for row in rows} & set(used), "a match that could have been reported"


@given(patterns_with_streams())
def test_rows_have_the_columns_of_the_output(case: Case) -> None:
    pattern, events, options = case
    for row in oracle.rows(pattern, events, **options):
        assert list(row)[:3] == ["pattern", "start", "end"]
        assert ("window_start" in row) == (pattern.slide is not None)
        if pattern.output is not None:
            assert list(row)[-len(pattern.output) :] == [item.name for item in pattern.output]
