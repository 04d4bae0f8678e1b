"""Tokens to nodes, one clause at a time; a clause that cannot be read is searched for all of its mistakes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

from lark import Token, Tree
from lark.exceptions import UnexpectedToken

from cepheid.language import syntax as s
from cepheid.language.grammar import grammar
from cepheid.language.hints import syntax_hint
from cepheid.language.nodes import build
from cepheid.language.problems import PatternError, Problem, Source, Span, one_of
from cepheid.language.tokens import span_of, split, tokenize

_SYMBOLS = {
    "LPAR": "'('", "RPAR": "')'", "COMMA": "','", "DOT": "'.'", "LSQB": "'['", "RSQB": "']'", "LBRACE": "'{'",
    "RBRACE": "'}'", "PLUS": "'+'", "NAME": "a name", "QUOTED": "a name", "INTEGER": "a whole number",
    "DECIMAL": "a number", "STRING": "a string", "ESCAPED_STRING": "a string", "NAME_KEYWORD": "NAME",
    "MINUS": "'-'",
}  # fmt: skip
_VALUE = frozenset(
    {
        *("NAME", "QUOTED", "INTEGER", "DECIMAL", "STRING", "ESCAPED_STRING", "TRUE", "FALSE", "NULL"),
        *("LPAR", "CASE", "MINUS", "PLUS", "NOT"),
    }
)
_OPERATOR = frozenset(["COMPARE", "PLUS", "MINUS", "STAR", "SLASH", "PERCENT", "IN", "BETWEEN", "LIKE", "IS", "NOT"])
_STRUCTURE = frozenset({"SEQ", "AND", "OR", "NOT", "KL", "ANY"})


class Reader:
    """Reads the clauses of one source and collects what is wrong with them."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.problems: list[Problem] = []
        self.tokens = tokenize(source, self.problems)
        self._unreadable = [problem.span for problem in self.problems]

    def clause(self, tokens: Sequence[Token], following: Token | None) -> Any:
        """The node of a whole clause, or as much of it as could be read."""
        word = tokens[0].type.removesuffix("_KEYWORD")
        before = len(self.problems)
        if not self.shallow(tokens):
            return None
        node = self.parse(f"{word.lower()}_clause", tokens, following)
        if node is None:
            node = self._recover(word, tokens[1:], following, before)
        if self.unreadable_in(tokens):
            # What follows an unreadable character is more likely its consequence than another mistake.
            del self.problems[before:]
        return node

    def unreadable_in(self, tokens: Sequence[Token]) -> bool:
        """Whether something between these tokens, or right behind them, could not be read."""
        start, end = span_of(tokens[0]).start, span_of(tokens[-1]).end
        behind = len(self.source.text) - len(self.source.text[end:].lstrip())
        return any(start <= span.start <= behind for span in self._unreadable)

    def parse(self, rule: str, tokens: Sequence[Token], following: Token | None, end: str = "the next clause") -> Any:
        """The node that a rule makes of these tokens, or None with a problem added.

        ``following`` is the token after them, and ``end`` says what may stand there.
        """
        parser = grammar().parse_interactive(start=rule)
        token = previous = None
        try:
            for token in tokens:
                parser.feed_token(token)
                previous = token
            tree: Tree[Any] | Token = parser.feed_token(Token("$END", ""))
        except UnexpectedToken:
            found = following if token is previous else token
            self._unexpected(found, tokens, previous, _accepted(rule, tokens, previous), end)
            return None
        if isinstance(tree, Tree) and _depth(tree) > s.MAX_DEPTH:
            self._too_deep(tokens)
            return None
        return build(tree, self.source, self.problems)

    def _recover(self, clause: str, tokens: Sequence[Token], following: Token | None, mark: int) -> Any:
        """Read the pieces of a broken clause apart, for the mistakes in each."""
        match clause:
            case "WHERE":
                found = self._pieces("expression", "AND", tokens, following, mark)
                return s.conjunction(found) if found else None
            case "RETURN":
                return tuple(self._pieces("return_item", "COMMA", tokens, following, mark)) or None
            case "PATTERN" if len(tokens) > 2 and tokens[0].type in ("SEQ", "AND", "OR") and tokens[1].type == "LPAR":
                closing = _closing(tokens)
                if closing is not None and closing < len(tokens) - 1:
                    return None  # the mistake is behind a structure that may be in order
                inner, after = (tokens[2:], following) if closing is None else (tokens[2:-1], tokens[-1])
                found = self._pieces("structure", "COMMA", inner, after, mark)
                return s.Conjunction(tuple(found)) if found else None
        return None

    def _pieces(
        self, rule: str, separator: str, tokens: Sequence[Token], following: Token | None, mark: int
    ) -> list[Any]:
        """Read each piece. If all is well with each, the mistake is between them and stays as it was reported."""
        as_a_whole = self.problems[mark:]
        del self.problems[mark:]
        found = []
        end = {"AND": "the next clause", "COMMA": "','"}[separator] + (" or ')'" if rule == "structure" else "")
        position = 0
        for piece in split(tokens, separator):
            position += len(piece) + 1
            after = tokens[position - 1] if position <= len(tokens) else following
            before = len(self.problems)
            node = self.parse(rule, piece, after, end)
            if node is None and rule == "structure":
                node = self._recover("PATTERN", piece, after, before)
            if node is not None:
                found.append(node)
        if len(self.problems) == mark:
            self.problems.extend(as_a_whole)
        return found

    def shallow(self, tokens: Sequence[Token]) -> bool:
        """Whether the brackets nest as deeply as can be read; a problem if not."""
        depth = 0
        for token in tokens:
            depth += (token.type in ("LPAR", "CASE")) - (token.type in ("RPAR", "END"))
            if depth > s.MAX_DEPTH:
                self._too_deep(tokens)
                return False
        return True

    def _too_deep(self, tokens: Sequence[Token]) -> None:
        self.problems.append(
            Problem(
                f"this nests more than {s.MAX_DEPTH} levels deep",
                self.source,
                span_of(tokens[0]),
                hint="split it into several conditions with AND, or use IN for long lists",
            )
        )

    def _unexpected(
        self, token: Token | None, tokens: Sequence[Token], previous: Token | None, accepted: set[str], end: str
    ) -> None:
        if token is None:
            place = len(self.source.text.rstrip())
            message, span = "the text ends too early", Span(place, place + 1)
        else:
            message, span = f"unexpected '{token}'", span_of(token)
        hint = syntax_hint(token, tokens, previous, accepted)
        self.problems.append(Problem(message, self.source, span, describe(accepted, end), hint))


def _accepted(rule: str, tokens: Sequence[Token], last: Token | None) -> set[str]:
    """What could have come after the last good token. (A parser that has failed has moved on and does not know.)"""
    parser = grammar().parse_interactive(start=rule)
    for token in tokens if last is not None else ():
        parser.feed_token(token)
        if token is last:
            break
    accepted: set[str] = parser.accepts()  # type: ignore[no-untyped-call]
    return accepted


def describe(accepted: set[str], end: str) -> str:
    """What may come next, in words."""
    rest = set(accepted)
    words = []
    if "STRING" in rest and "LPAR" in rest:
        words.append("a value")
        rest -= _VALUE
    elif "SEQ" in rest:
        words += ["an event (Type variable)", *sorted(rest & _STRUCTURE)]
        rest -= _STRUCTURE | {"NAME", "QUOTED"}
    if "STAR" in rest:
        words.append("an operator")
        rest -= _OPERATOR
    if "NAME" in rest and "QUOTED" not in rest:
        words.append("a unit of time")
        rest -= {"NAME"}
    if {"INTEGER", "DECIMAL"} <= rest:
        words.append("a number")
        rest -= {"INTEGER", "DECIMAL"}
    words += sorted({_SYMBOLS.get(t, t) for t in rest - {"$END"}})
    return one_of([*words, end] if "$END" in rest else words)


def _closing(tokens: Sequence[Token]) -> int | None:
    """Where the bracket closes that ``tokens[1]`` opens."""
    depth = 0
    for place, token in enumerate(tokens):
        depth += (token.type == "LPAR") - (token.type == "RPAR")
        if place and depth == 0:
            return place
    return None


def _depth(tree: Tree[Any]) -> int:
    deepest = 0
    stack = [(tree, 1)]
    while stack:
        node, depth = stack.pop()
        deepest = max(deepest, depth)
        if depth > s.MAX_DEPTH:
            break
        stack += [(child, depth + 1) for child in node.children if isinstance(child, Tree)]
    return deepest


def read_expression(text: str) -> s.Expression:
    """One expression; PatternError where it cannot be read."""
    return cast(s.Expression, _read("expression", text))


def read_length(text: str) -> s.Window:
    """The length of a window: ``4 hours``, ``500 events``, ``1000``."""
    return cast(s.Window, _read("length", text))


def read_return(text: str) -> tuple[s.ReturnItem, ...]:
    """The columns of a RETURN clause, without the word."""
    return cast("tuple[s.ReturnItem, ...]", _read("return_items", text))


def _read(rule: str, text: str) -> Any:
    reader = Reader(Source(text))
    node = reader.parse(rule, reader.tokens, None) if reader.shallow(reader.tokens) else None
    if reader.problems:
        raise PatternError(reader.problems)
    return node
