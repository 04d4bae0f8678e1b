"""Whatever the text, the answer is patterns or a PatternError with places in that text."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

import cepheid
from cepheid.language.functions import AGGREGATES, SCALARS
from cepheid.language.pattern import Pattern
from cepheid.language.words import KEYWORDS
from tests.strategies import written_patterns

VOCABULARY = [
    *sorted(KEYWORDS),
    *(
        "NAME",
        "CONSUME",
        "skip_till_any",
        "strict",
        "TIMESTAMP",
        "a",
        "b",
        "A",
        "Stock",
        "i",
        "x",
        "`q`",
        "E'\\n'",
        "'s'",
    ),
    *(
        "(",
        ")",
        "[",
        "]",
        "{",
        "}",
        ",",
        ".",
        ";",
        "+",
        "-",
        "*",
        "/",
        "%",
        "<",
        "=",
        "<>",
        ">=",
        "--",
        "\n",
        "'",
        '"',
        "`",
    ),
    *(
        "1",
        "2",
        "0.5",
        "1e9",
        "9" * 30,
        "1e999",
        "1e-99999999999999999999",
        "TIMESTAMP '9999-12-31 23:59:59-02:00'",
        "TIMESTAMP '2024-01-01'",
        "hours",
        "events",
        "ms",
        "a.x",
        "b[i].x",
        "b[i-1].x",
        "A a",
        "KL(B b)",
    ),
    *sorted(AGGREGATES),
    *sorted(SCALARS),
]
token_soups = st.lists(st.sampled_from(VOCABULARY), max_size=40).map(" ".join)
whole = st.lists(st.sampled_from(VOCABULARY), max_size=12).map(
    lambda words: f"PATTERN SEQ(A a, KL(B b)) WHERE {' '.join(words)} WITHIN 5"
)


@st.composite
def edited_patterns(draw: st.DrawFn) -> str:
    """The text of a good pattern with a few random edits."""
    text = str(draw(written_patterns()))
    for _ in range(draw(st.integers(1, 4))):
        start = draw(st.integers(0, len(text)))
        end = min(len(text), start + draw(st.integers(0, 8)))
        inserted = draw(
            st.one_of(st.just(""), st.sampled_from(VOCABULARY), st.text(max_size=3), st.just(text[start:end] * 2))
        )
        text = text[:start] + inserted + text[end:]
    return text


def check_answer(text: str) -> None:
    patterns: tuple[Pattern, ...] = ()
    error = None
    try:
        patterns = cepheid.parse_all(text)
    except cepheid.PatternError as raised:
        error = raised
    lines = text.split("\n")
    for problem in error.problems if error else ():
        assert 1 <= problem.line <= len(lines)
        assert 1 <= problem.column <= len(lines[problem.line - 1]) + 1
        assert problem.message in str(error)
    assert patterns or (error and error.problems)
    for pattern in patterns:
        assert isinstance(pattern, Pattern)
        assert cepheid.parse(str(pattern)) == pattern
        assert str(cepheid.normalise(pattern)).startswith(pattern.name or "")


@given(st.text())
def test_random_text(text: str) -> None:
    check_answer(text)


@given(st.binary())
def test_random_bytes(content: bytes) -> None:
    check_answer(content.decode("utf-8", errors="replace"))
    check_answer(content.decode("latin-1"))


@given(token_soups)
def test_random_words(text: str) -> None:
    check_answer(text)


@given(whole)
def test_random_conditions(text: str) -> None:
    check_answer(text)


@given(edited_patterns())
def test_random_edits_of_good_patterns(text: str) -> None:
    check_answer(text)


def test_deep_nesting_is_a_pattern_error() -> None:
    for condition in (
        "(" * 5000 + "a.x = 1" + ")" * 5000,
        "NOT " * 5000 + "a.f",
        "-" + " -" * 3000 + "a.x = 1",
        "+".join(["a.x"] * 3000) + " = 1",
    ):
        check_answer(f"PATTERN SEQ(A a) WHERE {condition} WITHIN 5")
    check_answer("PATTERN " + "SEQ(" * 3000 + "A a" + ")" * 3000 + " WITHIN 5")
    check_answer("PATTERN SEQ(" + ", ".join(f"OR(A a{i}, B b{i})" for i in range(3000)) + ") WITHIN 5")
