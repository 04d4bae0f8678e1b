"""Text to tokens, and tokens to pieces that can be parsed apart."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise

from lark import Token

from cepheid.language.grammar import grammar
from cepheid.language.hints import unreadable_hint
from cepheid.language.problems import Problem, Source, Span
from cepheid.language.words import CLAUSES, KEYWORDS

_OPENING = frozenset({"LPAR", "LSQB", "LBRACE", "CASE"})
_CLOSING = frozenset({"RPAR", "RSQB", "RBRACE", "END"})
_NAMED = frozenset({"PATTERN", "NAME_KEYWORD", "AS", "DOT", "BY", "COMMA", "USING"})
"""A word after one of these is a name."""


def span_of(token: Token) -> Span:
    start = token.start_pos or 0
    return Span(start, token.end_pos or start + len(token))


def tokenize(source: Source, problems: list[Problem]) -> list[Token]:
    """All tokens of a text, keywords told apart from names.

    What cannot be read becomes a problem. Where it is clear what was meant, a token of that kind takes its place.
    """
    tokens: list[Token] = []
    previous = "SEMICOLON"
    for token in grammar().lex(source.text):
        if token.type in ("UNCLOSED", "DOUBLE_QUOTED", "UNKNOWN"):
            problems.append(_unreadable(token, source))
            if token.type == "UNKNOWN":
                continue
            token = _meant(token)
        if token.type == "NAME" and previous != "DOT":
            word = token.upper()
            if word in KEYWORDS:
                token.type = word
            elif word == "NAME" and previous == "SEMICOLON":
                token.type = "NAME_KEYWORD"
        tokens.append(token)
        previous = token.type
    _find_never_shed(tokens)
    return tokens


def _find_never_shed(tokens: Sequence[Token]) -> None:
    """The two words are no keywords: elsewhere they are names."""
    depth = 0
    for place, (one, other) in enumerate(pairwise(tokens)):
        depth += (one.type in _OPENING) - (one.type in _CLOSING)
        if depth or (one.type, other.type) != ("NAME", "NAME") or (one.upper(), other.upper()) != ("NEVER", "SHED"):
            continue
        if place and tokens[place - 1].type not in _NAMED:
            one.type, other.type = "NEVER", "SHED"


def _unreadable(token: Token, source: Source) -> Problem:
    span = span_of(token)
    if token.type == "DOUBLE_QUOTED":
        body = token[1:-1]
        wanted = f"a string in single quotes ('{body}') or a name in backquotes (`{body}`)"
        return Problem("double quotes have no meaning here", source, span, expected=wanted)
    if token.type == "UNCLOSED":
        kind = "string" if token[0] == "'" else "quoted name"
        hint = "a quote inside a string is doubled: 'it''s'" if token[0] == "'" else None
        return Problem(f"this {kind} is not closed on its line", source, span, f"a closing {token[0]}", hint)
    return Problem(f"unexpected {str(token)!r}", source, span, hint=unreadable_hint(token))


def _meant(token: Token) -> Token:
    body = token[1:-1] if token.type == "DOUBLE_QUOTED" else token[1:]
    kind, mark = ("QUOTED", "`") if token[0] == "`" else ("STRING", "'")
    return token.update(kind, f"{mark}{body.replace(mark, mark * 2) or '?'}{mark}")


def split(tokens: Sequence[Token], separator: str) -> list[list[Token]]:
    """Cut at a separator that stands outside all brackets. The AND of a BETWEEN does not separate."""
    pieces: list[list[Token]] = [[]]
    depth = 0
    between = 0
    for token in tokens:
        depth += (token.type in _OPENING) - (token.type in _CLOSING)
        between += token.type == "BETWEEN" and depth == 0
        if token.type == separator and depth <= 0:
            if separator == "AND" and between:
                between -= 1
            else:
                pieces.append([])
                continue
        pieces[-1].append(token)
    return pieces


def split_patterns(tokens: Iterable[Token]) -> list[tuple[list[Token], Token | None]]:
    """The tokens of each pattern, and the semicolon after it. Nothing between two semicolons is no pattern."""
    pieces: list[tuple[list[Token], Token | None]] = []
    piece: list[Token] = []
    for token in tokens:
        if token.type != "SEMICOLON":
            piece.append(token)
        elif piece:
            pieces.append((piece, token))
            piece = []
    return [*pieces, (piece, None)] if piece else pieces


def split_clauses(tokens: Iterable[Token]) -> list[list[Token]]:
    """The tokens of one pattern, cut before each word that opens a clause."""
    pieces: list[list[Token]] = [[]]
    for token in tokens:
        if clause_of(token) is not None:
            pieces.append([])
        pieces[-1].append(token)
    return [piece for piece in pieces if piece]


def clause_of(token: Token) -> str | None:
    """The clause that a token opens."""
    word = "NAME" if token.type == "NAME_KEYWORD" else token.type
    return word if word in CLAUSES and token.type != "NAME" else None
