"""Lines of JSON to tables that all have the same columns."""

from __future__ import annotations

import io
import re
from collections.abc import Callable

import pyarrow as pa
import pyarrow.json

from cepheid.language.problems import CepheidError
from cepheid.local.stream.rejected import Rejected

NULL = re.compile(rb"\s*null")


class LinesError(CepheidError):
    """Lines that are no events."""


class LineParser:
    """Blocks of lines to tables that all have the same columns.

    ``schema`` says the columns, and other fields are left out. Without one the first block does, and a later line that
    has more, or other types, is an error: to lose an attribute silently would be worse. Times are text as ISO 8601 has
    it, or numbers.

    >>> parser = LineParser("lines", None, "ts")
    >>> parser.table(b'{"ts": "2024-05-17T09:30:00.5Z", "type": "A", "x": 1}').schema.types
    [TimestampType(timestamp[us]), DataType(string), DataType(int64)]
    """

    def __init__(self, name: str, schema: pa.Schema | None, time: str, rejected: Rejected | None = None) -> None:
        """``rejected``: takes lines that are no events; without it, the first is an error."""
        self._name = name
        self._time = time
        self._rejected = rejected
        self._schema = schema
        self._unexpected = "ignore"
        self._lines = 0

    def table(self, block: bytes) -> pa.Table:
        """The events of some whole lines."""
        lines = block.count(b"\n") + 1
        try:
            try:
                table = self._events(block)
            except pa.ArrowInvalid:
                if self._rejected is None:
                    raise
                table = self._sifted(block, self._rejected)
        except pa.ArrowInvalid as error:
            raise LinesError(self._explained(str(error), lines)) from None
        self._lines += lines
        return table.combine_chunks()

    def _events(self, block: bytes) -> pa.Table:
        if self._schema is None:
            self._schema, self._unexpected = self._guessed(_parse(block)), "error"
        return _parse(block, explicit_schema=self._schema, unexpected_field_behavior=self._unexpected)

    def _sifted(self, block: bytes, rejected: Rejected) -> pa.Table:
        """The events of those lines that are some."""
        lines = [(number, line) for number, line in enumerate(block.split(b"\n"), self._lines + 1) if line.strip()]
        if self._schema is None:  # what is no JSON does not say which columns there are
            lines = self._good(lines, _parse, rejected)
            if not lines:
                return pa.table({})
            self._schema, self._unexpected = self._guessed(_parse(_block_of(lines))), "error"
        lines = self._good(lines, self._events, rejected)
        return self._events(_block_of(lines)) if lines else self._schema.empty_table()

    def _good(
        self, lines: list[tuple[int, bytes]], parse: Callable[[bytes], pa.Table], rejected: Rejected
    ) -> list[tuple[int, bytes]]:
        """By halves, as most lines are events."""
        try:
            parse(_block_of(lines))
            return lines
        except pa.ArrowInvalid as error:
            if len(lines) == 1:
                number, line = lines[0]
                rejected.add(f"{self._name}, line {number}", line, str(error))
                return []
        half = len(lines) // 2
        return [*self._good(lines[:half], parse, rejected), *self._good(lines[half:], parse, rejected)]

    def _guessed(self, first: pa.Table) -> pa.Schema:
        """Times to the microsecond, also where the first have whole seconds or were taken for text."""
        unknown = [repr(found.name) for found in first.schema if pa.types.is_null(found.type)]
        if unknown:
            column = f"the column {unknown[0]} has" if len(unknown) == 1 else f"the columns {', '.join(unknown)} have"
            raise LinesError(
                f"{self._where(first.num_rows)}: {column} no value in these first lines, so its type is not known. "
                f"Say which columns there are, with a schema (schema=, --schema) such as {_in_words(first.schema)!r}"
            )
        fields = []
        for found in first.schema:
            text_time = found.name == self._time and pa.types.is_string(found.type)
            moment = text_time or pa.types.is_timestamp(found.type)
            fields.append(found.with_type(pa.timestamp("us")) if moment else found)
        return pa.schema(fields)

    def _explained(self, error: str, lines: int) -> str:
        hint = ""
        if self._unexpected == "error" and self._schema is not None:
            found = ", ".join(f"{f.name} {f.type}" for f in self._schema)
            hint = f"\nThe first lines had the columns {found}. Say which columns there are, with a schema."
        elif self._rejected is not None:  # each line alone is an event
            hint = "\nSay which columns there are, with a schema: then it is known which of the lines are wrong."
        return f"{self._where(lines)}: expected a JSON object in each line; {error}{hint}"

    def _where(self, lines: int) -> str:
        return f"{self._name}, line {self._lines + 1}" + (f" to {self._lines + lines}" if lines > 1 else "")


def _in_words(schema: pa.Schema) -> str:
    """As a user may write it, with a guess for what is not known."""

    def word(type_: pa.DataType) -> str:
        if pa.types.is_timestamp(type_):
            return "timestamp"
        return "double" if pa.types.is_null(type_) else str(type_)

    return ", ".join(f"{field.name} {word(field.type)}" for field in schema)


def _block_of(lines: list[tuple[int, bytes]]) -> bytes:
    return b"\n".join(line for _, line in lines)


def _parse(block: bytes, **options: object) -> pa.Table:
    if NULL.match(block) or b"\nnull" in block:  # to Arrow it is a row without values, and where it is the only one …
        raise pa.ArrowInvalid("null is no object")  # … Arrow 26 crashes
    return pa.json.read_json(
        io.BytesIO(block),
        # One block: a line must not be cut. The thread of the source is the one that should work.
        read_options=pa.json.ReadOptions(use_threads=False, block_size=len(block) + 64),
        parse_options=pa.json.ParseOptions(**options),
    )
