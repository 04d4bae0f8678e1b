"""Text to patterns that have been checked."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from cepheid.language.parse import Draft, read_patterns
from cepheid.language.pattern import Pattern, with_names
from cepheid.language.problems import PatternError, Problem, Source, Span
from cepheid.pattern.check import problems_of


def parse(text: str, *, name: str = "<pattern>") -> Pattern:
    """Read one pattern. ``name`` is what to call the text in error messages.

    >>> import cepheid
    >>> pattern = cepheid.parse("PATTERN SEQ(Login l, Transfer t) WHERE l.user = t.user WITHIN 10 minutes")
    >>> print(pattern)
    PATTERN SEQ(Login l, Transfer t)
    WHERE l.user = t.user
    WITHIN 10 minutes
    """
    source = Source(text, name)
    drafts, problems = read_patterns(source)
    if len(drafts) > 1:
        hint = "read several patterns with cepheid.parse_all"
        problems.append(Problem("there is more than one pattern here", source, _span(drafts[1]), hint=hint))
    return _checked(drafts, problems)[0]


def parse_all(text: str, *, name: str = "<pattern>") -> tuple[Pattern, ...]:
    """Read all patterns of a text, separated by semicolons; an unnamed one is called pattern_1, … by its place.

    >>> import cepheid
    >>> rules = cepheid.parse_all("NAME up PATTERN SEQ(A a, B b) WITHIN 5; PATTERN KL(A a, 3) WITHIN 5")
    >>> [pattern.name for pattern in rules]
    ['up', 'pattern_2']
    """
    return with_names(read_all(text, name=name))


def read_all(text: str, *, name: str = "<pattern>") -> list[Pattern]:
    """The patterns of a text as they are, with or without a name."""
    drafts, problems = read_patterns(Source(text, name))
    seen: set[str | None] = set()
    for draft, pattern in zip(drafts, with_names(d.pattern for d in drafts), strict=True):
        if pattern.name in seen:
            message = f"there are two patterns called '{pattern.name}'"
            problems.append(Problem(message, Source(text, name), draft.name_span or _span(draft)))
        seen.add(pattern.name)
    return _checked(drafts, problems)


def patterns_in(patterns: str | Pattern | Iterable[str | Pattern]) -> Iterator[Pattern]:
    """What a caller may give: text, which may hold several patterns, a pattern, or some of either, named or not."""
    for pattern in [patterns] if isinstance(patterns, (str, Pattern)) else patterns:
        if isinstance(pattern, Pattern):
            yield pattern
        else:
            yield from read_all(pattern)


def _checked(drafts: Sequence[Draft], problems: list[Problem]) -> list[Pattern]:
    found = [*problems, *(problem for draft in drafts for problem in problems_of(draft))]
    if found:
        raise PatternError(found)
    return [draft.pattern for draft in drafts]


def _span(draft: Draft) -> Span:
    return draft.pattern.span or Span(0, 1)
