"""Text → pattern → text → pattern is the identity."""

from hypothesis import given

import cepheid
from cepheid.language.pattern import Pattern
from tests.strategies import patterns, written_patterns


@given(patterns() | written_patterns())
def test_a_pattern_is_read_back_from_its_text(pattern: Pattern) -> None:
    text = str(pattern)
    again = cepheid.parse(text)
    assert again == pattern
    assert str(again) == text


@given(written_patterns(), written_patterns())
def test_several_patterns_are_read_back_from_one_text(first: Pattern, second: Pattern) -> None:
    first, second = first.named("one"), second.named("two")
    assert cepheid.parse_all(f"{first};\n{second};") == (first, second)
