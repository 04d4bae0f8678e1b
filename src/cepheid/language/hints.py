"""Help for the mistakes that are made most, many of them habits from other languages."""

from __future__ import annotations

from collections.abc import Sequence

from lark import Token

from cepheid.language.problems import closest
from cepheid.language.words import CLAUSES, KEYWORDS

STRUCTURE_WORDS = ("SEQ", "AND", "OR", "NOT", "KL", "ANY")

_UNREADABLE = {
    "&": "write AND",
    "|": "write OR; strings are joined with CONCAT",
    "!": "write NOT, or <> for unequal",
    "≥": "write >=",
    "≤": "write <=",
    "≠": "write <>",
    "#": "a comment starts with --",
    "‘": "strings stand in plain single quotes: 'text'",
    "’": "strings stand in plain single quotes: 'text'",
    "“": "strings stand in plain single quotes: 'text'",
    "”": "strings stand in plain single quotes: 'text'",
    "$": "there are no parameters: put the value into the text, or build the pattern in Python",
    ":": "there are no parameters: put the value into the text, or build the pattern in Python",
    "@": "there are no parameters: put the value into the text, or build the pattern in Python",
    "?": "there are no parameters: put the value into the text, or build the pattern in Python",
}
_OTHER_LANGUAGES = {
    "PREV": "the event before it in a set is b[i-1]: b[i].x > b[i-1].x",
    "NEXT": "neighbours in a set are b[i-1] and b[i]: b[i].x > b[i-1].x",
    "MEAN": "write AVG",
    "STD": "write STDDEV",
    "LEN": "write LENGTH",
    "POW": "write POWER",
    "CEILING": "write CEIL",
    "IFNULL": "write COALESCE",
    "NVL": "write COALESCE",
    "CORRELATION": "write CORR",
}


def unreadable_hint(text: str) -> str | None:
    """For a character that has no meaning."""
    return _UNREADABLE.get(text[0])


def function_hint(name: str, known: Sequence[str]) -> str:
    """For a function that does not exist."""
    found = _OTHER_LANGUAGES.get(name.upper()) or closest(name, known)
    return found or "cepheid.register_function adds functions"


def syntax_hint(token: Token | None, tokens: Sequence[Token], previous: Token | None, accepted: set[str]) -> str | None:
    """For a token where others were expected; ``previous`` is the last one that fitted."""
    if token is None:
        return None
    kind, before = token.type, None if previous is None else previous.type
    clause = tokens[0].type if tokens else None
    return (
        _in_structure(token, tokens, previous, accepted)
        or _keyword_as_name(token, clause, accepted)
        or _next_clause(token, clause, accepted)
        or (
            "a window is a number with a unit: WITHIN 1 hour"
            if clause == "WITHIN" and kind in ("NAME", "STRING")
            else None
        )
        or (
            _CHAINED
            if kind == "COMPARE" and before != "COMPARE" and _has(tokens, "COMPARE", other_than=token)
            else None
        )
        or ("a, then b, is SEQ(A a, B b)" if kind == "MINUS" and clause == "PATTERN" and "$END" in accepted else None)
        or ("neighbours are b[i-1] and b[i]" if kind == "PLUS" and "RSQB" in accepted else None)
        or ("how many events a set has is COUNT(b)" if kind == "STAR" and before == "LPAR" else None)
        or ("a comment starts with --" if kind in ("SLASH", "STAR") and before == "SLASH" else None)
        or (
            "PARTITION BY names columns, not variables: PARTITION BY region"
            if kind == "DOT" and clause == "PARTITION"
            else None
        )
    )


_CHAINED = "comparisons do not chain: write a.x < b.x AND b.x < c.x"


def _has(tokens: Sequence[Token], kind: str, *, other_than: Token) -> bool:
    return any(t.type == kind and t is not other_than for t in tokens)


def _in_structure(token: Token, tokens: Sequence[Token], previous: Token | None, accepted: set[str]) -> str | None:
    if previous is None:
        return None
    place = next((i for i, t in enumerate(tokens) if t is token), len(tokens))
    words = [t for t in tokens[max(0, place - 2) : place] if t.type in ("NAME", "QUOTED")]
    wants_variable = {"QUOTED", "PLUS", "LBRACE"} <= accepted
    if accepted == {"LPAR"}:
        return f"write {previous.upper()}(…)"
    if wants_variable and token.type == "LPAR":
        return closest(previous, STRUCTURE_WORDS) or f"the parts of a pattern are {', '.join(STRUCTURE_WORDS)}"
    if wants_variable and token.type == "MINUS":
        return f"a name with other characters than letters, digits and _ stands in backquotes: `{previous}-…`"
    if wants_variable and token.type == "STAR":
        return "a set has at least one event (Type+ variable); for an optional part, use OR"
    if wants_variable and token.type == "AS":
        return "the variable follows the type: Type variable"
    if wants_variable and token.type in ("COMMA", "RPAR"):
        return f"each event has a type and a variable: {previous} {previous.strip('`')[:1].lower()}"
    if accepted <= {"COMMA", "RPAR", "$END"} and len(words) == 2:
        if token.type in ("PLUS", "STAR", "LBRACE"):
            return f"the sign follows the type: {words[0]}+ {words[1]}"
        if token.type in ("NAME", "QUOTED"):
            return (
                f"parts are separated by commas; a name of several words stands in backquotes: `{words[0]} {words[1]}`"
            )
    return None


def _keyword_as_name(token: Token, clause: str | None, accepted: set[str]) -> str | None:
    if "QUOTED" not in accepted or "STRING" in accepted or token.type not in KEYWORDS:
        return None
    if token.type in CLAUSES and clause != "NAME_KEYWORD":
        return None
    return f"{token.type} is a keyword; as a name, write it in backquotes: `{token}`"


def _next_clause(token: Token, clause: str | None, accepted: set[str]) -> str | None:
    """For a word where a clause could begin."""
    if "$END" not in accepted or token.type != "NAME":
        return None
    return closest(token, CLAUSES) or ("conditions follow the word WHERE" if clause == "PATTERN" else None)
