"""Is a pattern one that can be run? Every independent mistake is found, not only the first."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, TypeAlias

from cepheid.language.parse import Draft, read_patterns
from cepheid.language.pattern import Pattern
from cepheid.language.problems import PatternError, Problem, Source
from cepheid.pattern.checks import conditions, structure, types
from cepheid.pattern.schema import Columns, columns_of
from cepheid.pattern.subject import Subject

if TYPE_CHECKING:
    import pyarrow as pa

Check: TypeAlias = Callable[[Subject], Iterator[Problem]]

CHECKS: tuple[Check, ...] = (
    structure.duplicate_variables,
    structure.negation_in_place,
    structure.bounds,
    structure.few_branches,
    structure.strategy_fits,
    structure.window,
    structure.output_columns,
    structure.partition_columns,
    conditions.known_variables,
    conditions.whole_events,
    conditions.aggregates,
    conditions.neighbours,
    conditions.negated_variables,
    conditions.fits_a_branch,
    conditions.returned,
    types.types_fit,
    types.window_fits,
    types.partition_exists,
)


def check(
    patterns: Pattern | Iterable[Pattern],
    schema: pa.Schema | None = None,
    *,
    time: str = "ts",
    type: str | None = "type",
    tie_breaker: str | None = None,
) -> None:
    """Raise PatternError if a pattern cannot be run; with a schema, also if its attributes or types do not fit.

    >>> import cepheid, pyarrow
    >>> pattern = cepheid.parse("PATTERN SEQ(A a, B b) WHERE a.x < b.name WITHIN 5 seconds")
    >>> schema = pyarrow.schema({"ts": pyarrow.timestamp("us"), "type": "string", "x": "int64", "name": "string"})
    >>> cepheid.check(pattern, schema)
    Traceback (most recent call last):
    ...
    cepheid.language.problems.PatternError: <pattern>:1:29: an integer and a string cannot be compared
     1 | PATTERN SEQ(A a, B b) WHERE a.x < b.name WITHIN 5 seconds
       |                             ^^^^^^^^^^^^
       = expected: a.x and b.name of one type
    """
    columns = None if schema is None else columns_of(schema, time=time, type=type, tie_breaker=tie_breaker)
    problems: list[Problem] = []
    for pattern in [patterns] if isinstance(patterns, Pattern) else patterns:
        drafts, found = _drafts(pattern)
        problems += found
        for draft in drafts:
            problems += problems_of(draft, columns)
    if problems:
        raise PatternError(problems)


def problems_of(draft: Draft, columns: Columns | None = None) -> list[Problem]:
    """What the checks find in a pattern as far as it could be read."""
    subject = Subject(draft, columns)
    return [problem for check in CHECKS for problem in check(subject)]


def _drafts(pattern: Pattern) -> tuple[list[Draft], list[Problem]]:
    """A pattern with places in a text to point at. One that was built in Python is shown as the text it stands for."""
    if pattern.source is not None:
        return [Draft(pattern)], []
    return read_patterns(Source(str(pattern), pattern.name or "<pattern>"))
