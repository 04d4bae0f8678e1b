"""What is wrong with a pattern, said so that its author can mend it."""

from __future__ import annotations

import difflib
import traceback
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Span:
    """A stretch of a source text: offsets of its first character and of the one after its last."""

    start: int
    end: int

    def to(self, other: Span) -> Span:
        return Span(min(self.start, other.start), max(self.end, other.end))


@dataclass(frozen=True, slots=True)
class Source:
    """A text that patterns were read from, and what to call it in messages."""

    text: str
    name: str = "<pattern>"

    def locate(self, offset: int) -> tuple[int, int]:
        """Line and column of an offset, both counted from 1."""
        offset = min(max(offset, 0), len(self.text))
        return self.text.count("\n", 0, offset) + 1, offset - self.text.rfind("\n", 0, offset)

    def line(self, number: int) -> str:
        return self.text.split("\n")[number - 1].rstrip("\r")


@dataclass(frozen=True, slots=True)
class Problem:
    """One mistake: where it is, what was expected there, and what may help."""

    message: str
    source: Source
    span: Span
    expected: str | None = None
    hint: str | None = None

    @property
    def line(self) -> int:
        return self.source.locate(self.span.start)[0]

    @property
    def column(self) -> int:
        return self.source.locate(self.span.start)[1]

    def __str__(self) -> str:
        line, column = self.source.locate(self.span.start)
        text, column = _clip(self.source.line(line), column)
        # Tabs stay tabs in the line with the caret, so that both lines are equally wide on any terminal.
        indent = "".join("\t" if c == "\t" else " " for c in text[: column - 1])
        width = max(1, min(self.span.end - self.span.start, len(text) - column + 1))
        gutter = " " * len(str(line))
        rows = [
            f"{self.source.name}:{self.line}:{self.column}: {self.message}",
            f" {line} | {text}",
            f" {gutter} | {indent}{'^' * width}",
        ]
        if self.expected:
            rows.append(f" {gutter} = expected: {self.expected}")
        if self.hint:
            rows.append(f" {gutter} = hint: {self.hint}")
        return "\n".join(rows)


def _clip(text: str, column: int, width: int = 100) -> tuple[str, int]:
    """The part of a long line around a column, and the column in it."""
    if len(text) <= width:
        return text, column
    start = max(0, min(column - width // 2, len(text) - width))
    end = start + width
    head = "…" if start else ""
    return f"{head}{text[start:end]}{'…' if end < len(text) else ''}", column - start + len(head)


class CepheidError(Exception):
    """The base of all errors that Cepheid raises on purpose."""


class PatternError(CepheidError, ValueError):
    """A pattern that cannot be run. It carries every independent problem that was found.

    >>> import cepheid
    >>> try:
    ...     cepheid.parse("PATTERN SEQ(Login l, Transfer t) WHERE l.user = x.user WITHIN 10 minutes")
    ... except cepheid.PatternError as error:
    ...     print(error.problems[0].line, error.problems[0].column, error.problems[0].message)
    1 49 unknown variable 'x'
    """

    def __init__(self, problems: Iterable[Problem]) -> None:
        unique = dict.fromkeys(problems)
        self.problems: tuple[Problem, ...] = tuple(sorted(unique, key=lambda p: (p.span.start, p.span.end)))
        super().__init__("\n\n".join(str(p) for p in self.problems))

    def __reduce__(self) -> tuple[type[PatternError], tuple[tuple[Problem, ...]]]:
        return type(self), (self.problems,)  # Exception's own would hand the message to __init__


def told(error: BaseException, folder: Path) -> str:
    """An error of somebody else's code, which is looked for in a folder: of what kind it is, and where, as there is no
    traceback."""
    if isinstance(error, (ImportError, SyntaxError)):  # they say it themselves
        return str(error) if isinstance(error, ImportError) else f"SyntaxError: {error}"
    own = [f for f in traceback.extract_tb(error.__traceback__) if Path(f.filename).is_relative_to(folder.resolve())]
    where = f" ({Path(own[-1].filename).name}, line {own[-1].lineno})" if own else ""
    return f"{type(error).__name__}: {error}{where}"


def closest(word: str, candidates: Iterable[str], *, quote: str = "'") -> str | None:
    """'did you mean …?' for a mistyped word, or None where nothing is near."""
    known = {candidate.lower(): candidate for candidate in candidates}
    near = [known[match] for match in difflib.get_close_matches(word.lower(), known, n=3, cutoff=0.6)]
    return f"did you mean {one_of([f'{quote}{n}{quote}' for n in near])}?" if near else None


def one_of(words: Sequence[str]) -> str:
    """'a, b or c'."""
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} or {words[-1]}"
