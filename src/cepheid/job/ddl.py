"""The columns of a schema in Spark's words, as Arrow has them, without Spark."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import pyarrow as pa

UNKNOWN = pa.large_binary()
"""Stands for a type that Arrow does not have: no condition can use such a column."""
TYPES: Mapping[str, pa.DataType] = {
    "boolean": pa.bool_(),
    **dict.fromkeys(("tinyint", "byte"), pa.int8()),
    **dict.fromkeys(("smallint", "short"), pa.int16()),
    **dict.fromkeys(("int", "integer"), pa.int32()),
    **dict.fromkeys(("bigint", "long"), pa.int64()),
    **dict.fromkeys(("float", "real"), pa.float32()),
    "double": pa.float64(),
    **dict.fromkeys(("string", "char", "character", "varchar"), pa.string()),
    "binary": pa.binary(),
    "date": pa.date32(),
    **dict.fromkeys(("timestamp", "timestamp_ltz"), pa.timestamp("us", tz="UTC")),
    "timestamp_ntz": pa.timestamp("us"),
    **dict.fromkeys(("decimal", "dec", "numeric"), pa.decimal128(10, 0)),
    **dict.fromkeys(("interval", "void", "variant", "time", "geometry", "geography"), UNKNOWN),
}
_TOKEN = re.compile(r"\s*(?:`((?:[^`]|``)*)`|('(?:[^'\\]|\\.)*')|(\w+)|(.))", re.DOTALL)


class DdlError(ValueError):
    """A text that only Spark can judge."""


class UnknownTypeError(ValueError):
    """``column``: of which; ``word``: what stands where its type should."""

    def __init__(self, column: str, word: str) -> None:
        super().__init__(f"there is no type {word!r}")
        self.column = column
        self.word = word


def columns_in(ddl: str) -> pa.Schema:
    """DdlError if this is more than names and types.

    >>> columns_in("ts TIMESTAMP, `the type` STRING NOT NULL, prices ARRAY<DECIMAL(10, 2)>")
    ts: timestamp[us, tz=UTC]
    the type: string
    prices: list<element: decimal128(10, 2)>
      child 0, element: decimal128(10, 2)
    """
    reader = _Reader(list(_tokens(ddl)))
    fields = list(reader.fields(""))
    if reader.next is not None:
        raise DdlError(ddl)
    return pa.schema(fields)


@dataclass(frozen=True, slots=True)
class _Token:
    text: str
    quoted: bool = False


def _tokens(ddl: str) -> Iterator[_Token]:
    for found in _TOKEN.finditer(ddl.strip()):
        name, text, word, sign = found.groups()
        if name is not None:
            yield _Token(name.replace("``", "`"), quoted=True)
        else:
            yield _Token(text or word or sign)


class _Reader:
    def __init__(self, tokens: list[_Token]) -> None:
        self._tokens = tokens
        self._place = 0

    @property
    def next(self) -> str | None:
        """In lower case; None at the end."""
        if self._place == len(self._tokens):
            return None
        token = self._tokens[self._place]
        return token.text if token.quoted else token.text.lower()

    def take(self) -> _Token:
        if self._place == len(self._tokens):
            raise DdlError("the text ends too early")
        self._place += 1
        return self._tokens[self._place - 1]

    def passed(self, *words: str) -> bool:
        """Go past words, if they come now."""
        coming = [token.text.lower() for token in self._tokens[self._place : self._place + len(words)]]
        if coming != list(words):
            return False
        self._place += len(words)
        return True

    def must(self, word: str) -> None:
        if not self.passed(word):
            raise DdlError(f"{word} is missing")

    def fields(self, within: str) -> Iterator[pa.Field]:
        """``within``: the column that they are parts of."""
        while True:
            name = self.take()
            if not name.quoted and not name.text.isidentifier():
                raise DdlError(f"{name.text} is no name")
            self.passed(":")
            type_ = self.type(within or name.text)
            self.passed("not", "null")
            if self.passed("comment"):
                self.take()
            yield pa.field(name.text, type_)
            if not self.passed(","):
                return

    def type(self, column: str) -> pa.DataType:
        word = self.take().text
        match word.lower():
            case "array":
                self.must("<")
                inner = self.type(column)
                self.must(">")
                return pa.list_(pa.field("element", inner))
            case "map":
                self.must("<")
                key = self.type(column)
                self.must(",")
                value = self.type(column)
                self.must(">")
                return pa.map_(key, pa.field("value", value))
            case "struct":
                self.must("<")
                parts = [] if self.next == ">" else list(self.fields(column))
                self.must(">")
                return pa.struct(parts)
            case "interval":
                raise DdlError("units follow")
            case known if known in TYPES:
                return self._sized(known)
        raise UnknownTypeError(column, word)

    def _sized(self, word: str) -> pa.DataType:
        sizes = []
        if self.passed("("):
            while not self.passed(")"):
                sizes.append(self.take().text)
                self.passed(",")
        if sizes and word in ("decimal", "dec", "numeric"):
            try:
                return pa.decimal128(*map(int, sizes))
            except (ValueError, TypeError):
                raise DdlError("no such decimal") from None
        return TYPES[word]
