"""What the checks look at: a pattern, the variables it declares, and the schema if one is known."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum

from cepheid.language import syntax as s
from cepheid.language.parse import Draft
from cepheid.language.pattern import Pattern
from cepheid.language.problems import Problem, Source, Span
from cepheid.pattern.expand import MAX_BRANCHES, branch_count, expand
from cepheid.pattern.schema import Columns


class Kind(Enum):
    SINGLE = "a single event"
    KLEENE = "a KL variable"
    NEGATED = "a negated variable"


@dataclass(frozen=True)
class Subject:
    draft: Draft
    columns: Columns | None = None
    kinds: dict[str, Kind] = field(init=False)
    branches: list[frozenset[str]] = field(init=False)

    def __post_init__(self) -> None:
        kinds = {s.event_of(leaf).variable: _kind(leaf) for leaf in s.leaves(self.pattern.structure)}
        few = branch_count(self.pattern.structure) <= MAX_BRANCHES
        branches = expand(self.pattern.structure) if few else []
        object.__setattr__(self, "kinds", kinds)
        object.__setattr__(self, "branches", [frozenset(s.event_of(e).variable for e in s.leaves(b)) for b in branches])

    @property
    def pattern(self) -> Pattern:
        return self.draft.pattern

    @property
    def complete(self) -> bool:
        """Whether the whole structure could be read."""
        return self.draft.possible is None

    def problem(
        self, message: str, at: s.Node | Span | None, *, expected: str | None = None, hint: str | None = None
    ) -> Problem:
        span = at.span if isinstance(at, s.Node) else at
        return Problem(
            message, self.pattern.source or Source(""), span or self.pattern.span or Span(0, 1), expected, hint
        )


def _kind(leaf: s.Leaf) -> Kind:
    match leaf:
        case s.Event():
            return Kind.SINGLE
        case s.Kleene():
            return Kind.KLEENE
        case s.Negated():
            return Kind.NEGATED
