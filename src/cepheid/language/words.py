"""The words of the language, and how a name is written that could be taken for one."""

from __future__ import annotations

import re

CLAUSES = ("NAME", "PATTERN", "USING", "WHERE", "PARTITION", "WITHIN", "RETURN", "NEVER")
"""The words that open a clause, in the order of the clauses."""

KEYWORDS = frozenset(
    {
        *("PATTERN", "USING", "WHERE", "PARTITION", "BY", "WITHIN", "SLIDE", "RETURN", "AS"),
        *("SEQ", "AND", "OR", "NOT", "KL", "ANY", "IN", "BETWEEN", "IS", "NULL", "LIKE"),
        *("CASE", "WHEN", "THEN", "ELSE", "END", "TRUE", "FALSE"),
    }
)
"""Reserved in any case, except after a dot. NAME is one only where a pattern begins, NEVER SHED where a clause does."""

_IDENTIFIER = re.compile(r"[^\W\d]\w*")


def is_plain_identifier(name: str) -> bool:
    return _IDENTIFIER.fullmatch(name) is not None


def is_name(name: str) -> bool:
    """Whether a name can be written at all: not empty, and nothing in it that a line cannot show."""
    return bool(name) and name.isprintable()


def quote_name(name: str) -> str:
    """A name as a pattern writes it: in backquotes unless it is a plain identifier and no keyword.

    >>> quote_name("price"), quote_name("card-payment"), quote_name("end")
    ('price', '`card-payment`', '`end`')
    """
    if is_plain_identifier(name) and name.upper() not in KEYWORDS:
        return name
    return "`" + name.replace("`", "``") + "`"


def quote_string(text: str) -> str:
    """A string as a pattern writes it; with escapes where a line could not show it."""
    if text.isprintable():
        return "'" + text.replace("'", "''") + "'"
    return "E'" + "".join(_escape(c) for c in text) + "'"


_ESCAPES = {"\n": r"\n", "\r": r"\r", "\t": r"\t", "\\": r"\\", "'": r"\'"}
_UNESCAPES = {v[1]: k for k, v in _ESCAPES.items()}


def _escape(character: str) -> str:
    if character in _ESCAPES:
        return _ESCAPES[character]
    code = ord(character)
    return character if character.isprintable() else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def unescape(body: str) -> str:
    """The text of an E'…' string; ValueError names the first escape that is none."""

    def replace(found: re.Match[str]) -> str:
        word = found.group()
        if word[1] in "uU" and len(word) > 2:
            code = int.from_bytes(bytes.fromhex(word[2:]), "big")
            if code > 0x10FFFF:
                raise ValueError(word)
            return chr(code)
        if word == "''":
            return "'"
        if word[1] in _UNESCAPES:
            return _UNESCAPES[word[1]]
        raise ValueError(word)

    return re.sub(r"''|\\u[0-9a-fA-F]{4}|\\U[0-9a-fA-F]{8}|\\.", replace, body)
