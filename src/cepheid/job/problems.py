"""What is wrong with the description of a job, said so that its author can mend it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from cepheid.language.problems import CepheidError, PatternError


@dataclass(frozen=True, slots=True)
class FieldProblem:
    """One mistake. ``field``: its path, such as ``source.path``. ``found``: None where nothing was."""

    field: str
    message: str
    expected: str | None = None
    found: str | None = None
    hint: str | None = None
    line: int | None = None

    def __str__(self) -> str:
        rows = [f"{self.field}: {self.message}" if self.field else self.message]
        for word, text in (("expected", self.expected), ("found", self.found), ("hint", self.hint)):
            if text:
                rows.append(f"   = {word}: {text}")
        return "\n".join(rows)


class JobError(CepheidError, ValueError):
    """A job that cannot be run. It carries every problem that was found.

    ``name``: what the description is called in messages. ``patterns``: what is wrong with the patterns themselves,
    which point into files of their own.
    """

    def __init__(self, name: str, problems: Iterable[FieldProblem], patterns: Iterable[PatternError] = ()) -> None:
        self.name = name
        unique = dict.fromkeys(problems)
        self.problems: tuple[FieldProblem, ...] = tuple(sorted(unique, key=lambda p: (p.line or 0, p.field)))
        self.patterns = tuple(patterns)
        super().__init__("\n\n".join([*(self._placed(p) for p in self.problems), *map(str, self.patterns)]))

    def __reduce__(self) -> tuple[type[JobError], tuple[object, ...]]:
        return type(self), (self.name, self.problems, self.patterns)

    @property
    def count(self) -> int:
        """How many mistakes there are, with those of the patterns."""
        return len(self.problems) + sum(len(error.problems) for error in self.patterns)

    def _placed(self, problem: FieldProblem) -> str:
        place = self.name if problem.line is None else f"{self.name}:{problem.line}"
        return f"{place}: {problem}"
