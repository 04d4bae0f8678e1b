"""Text to patterns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from lark import Token

from cepheid.language import syntax as s
from cepheid.language.pattern import Pattern
from cepheid.language.problems import Problem, Source, Span, closest
from cepheid.language.reader import Reader
from cepheid.language.tokens import clause_of, span_of, split_clauses, split_patterns
from cepheid.language.words import CLAUSES


@dataclass(frozen=True, slots=True)
class Draft:
    """A pattern as far as it could be read.

    Where its structure could not be read whole, ``possible`` has every name that stands in it: each may be a variable.
    """

    pattern: Pattern
    name_span: Span | None = None
    possible: frozenset[str] | None = None


def read_patterns(source: Source) -> tuple[list[Draft], list[Problem]]:
    """Every pattern of a text, and every mistake of its syntax. A pattern without any structure is left out."""
    reader = Reader(source)
    pieces = split_patterns(reader.tokens)
    if not pieces and not reader.problems:
        end = len(source.text.rstrip())
        problem = Problem("there is no pattern here", source, Span(end, end + 1), expected="PATTERN … WITHIN …")
        reader.problems.append(problem)
    drafts = [_PatternReader(reader).read(tokens, following) for tokens, following in pieces]
    return [draft for draft in drafts if draft is not None], reader.problems


class _PatternReader:
    """Reads the clauses of one pattern and puts them together."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader
        self._spans: dict[str, Span] = {}
        self._nodes: dict[str, Any] = {}
        self._possible: frozenset[str] | None = None
        self._lost = False  # whether something stands where a clause should begin

    def read(self, tokens: Sequence[Token], following: Token | None) -> Draft | None:
        clauses = split_clauses(tokens)
        for clause, next_token in zip(clauses, [*(c[0] for c in clauses[1:]), following], strict=True):
            self._clause(clause, next_token)
        whole = not self._lost and not self._reader.unreadable_in(tokens)
        if whole and "PATTERN" not in self._spans:
            self._problem("this pattern has no PATTERN clause", tokens[0], expected="PATTERN SEQ(A a, B b)")
        if whole and "WITHIN" not in self._spans:
            self._problem(
                "this pattern has no window", tokens[0], expected="a WITHIN clause, such as WITHIN 10 minutes"
            )
        if "PATTERN" not in self._nodes:
            return None
        window, slide = self._nodes.get("WITHIN", (None, None))
        name = self._nodes.get("NAME")
        pattern = Pattern(
            structure=self._nodes["PATTERN"],
            name=None if name is None else str(name),
            condition=self._nodes.get("WHERE"),
            partition=self._nodes.get("PARTITION", ()),
            window=window,
            slide=slide,
            selection=self._nodes.get("USING", s.Selection()),
            output=self._nodes.get("RETURN"),
            critical=self._nodes.get("NEVER", False),
            source=self._reader.source,
            span=span_of(tokens[0]).to(span_of(tokens[-1])),
        )
        return Draft(pattern, None if name is None else name.span, self._possible)

    def _clause(self, tokens: Sequence[Token], following: Token | None) -> None:
        word = clause_of(tokens[0])
        if word is None:
            hint = closest(tokens[0], CLAUSES)
            self._problem(f"unexpected '{tokens[0]}'", tokens[0], expected="NAME or PATTERN at the start", hint=hint)
            self._lost = True
            return
        if word in self._spans:
            hint = "join conditions with AND" if word == "WHERE" else "patterns are separated by ';'"
            if word == "PATTERN" and "NAME" in self._spans:
                hint += "; a keyword or several words as a name stand in backquotes"
            self._problem(f"{word} is given twice", tokens[0], hint=hint)
        elif late := [w for w in self._spans if CLAUSES.index(w) > CLAUSES.index(word)]:
            order = " ".join(CLAUSES).replace("PARTITION", "PARTITION BY").replace("NEVER", "NEVER SHED")
            self._problem(f"{word} stands after {late[0]}", tokens[0], expected=f"clauses in the order {order}")
        self._spans.setdefault(word, span_of(tokens[0]))
        before = len(self._reader.problems)
        node = self._reader.clause(tokens, following)
        if word == "PATTERN" and len(self._reader.problems) > before:
            names = (t for t in tokens if t.type in ("NAME", "QUOTED"))
            self._possible = frozenset(str(t).strip("`") for t in names)
        if node is not None:
            self._nodes.setdefault(word, node)

    def _problem(self, message: str, token: Token, *, expected: str | None = None, hint: str | None = None) -> None:
        self._reader.problems.append(Problem(message, self._reader.source, span_of(token), expected, hint))
