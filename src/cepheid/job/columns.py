"""The columns of the events, where they are known without Spark, and what must fit them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa

from cepheid.engine.engine import Engine
from cepheid.engine.ingest import EventColumns, InputError
from cepheid.job.ddl import TYPES, DdlError, UnknownTypeError, columns_in
from cepheid.job.description import ddl_of
from cepheid.job.generated import made
from cepheid.job.problems import FieldProblem
from cepheid.job.values import Values, at, mode
from cepheid.job.yaml_text import Document, Place, path_text
from cepheid.language.pattern import Pattern
from cepheid.language.problems import PatternError, closest
from cepheid.pattern.check import check
from cepheid.pattern.schema import SchemaError, columns_of

_OF_A_RECORD = {
    "record_time": pa.timestamp("us", tz="UTC"), "record_key": pa.string(), "record_partition": pa.int32(),
    "record_offset": pa.int64(),
}  # fmt: skip
_ROLES = {"time": "ts", "type": "type", "tie_breaker": None}
_TRIAL = 10


def column_problems(document: Document, patterns: Sequence[Pattern]) -> tuple[list[FieldProblem], list[PatternError]]:
    """What does not fit the columns: in the description, and in the patterns. ``patterns``: those that can be read."""
    found = _Columns(document, patterns)
    return list(found.problems()), found.wrong_patterns


class _Columns:
    def __init__(self, document: Document, patterns: Sequence[Pattern]) -> None:
        self._document = document
        self._values: Values = document.values if isinstance(document.values, Mapping) else {}
        self._patterns = patterns
        self.wrong_patterns: list[PatternError] = []

    def problems(self) -> Iterator[FieldProblem]:
        yield from self._order()
        try:
            schema = self._schema()
        except UnknownTypeError as error:
            written = at(self._values, "source", "schema")
            place: Place = ("source", "schema", *([error.column] if isinstance(written, Mapping) else []))
            hint = closest(error.word.lower(), TYPES) or "types are those of Spark, such as timestamp, string, double"
            yield self._problem(place, str(error), hint=hint)
            return
        if schema is None:
            return
        roles = self._roles()
        if roles is None:
            return
        wrong = list(self._wrong_roles(schema, roles))
        yield from wrong
        unfit = {problem.field for problem in wrong}
        if unfit & {"events.time", "source"}:
            return
        yield from self._lateness(schema.field(roles.time))
        # The patterns can be judged without the other roles.
        type_, tie_breaker = (
            None if f"events.{role}" in unfit else getattr(roles, role) for role in ("type", "tie_breaker")
        )
        yield from self._fitting(schema, EventColumns(roles.time, type_, tie_breaker))

    def _problem(self, place: Place, message: str, **more: Any) -> FieldProblem:
        return FieldProblem(path_text(place), message, line=self._document.line(place), **more)

    def _schema(self) -> pa.Schema | None:
        """None where only Spark can say which columns there are."""
        source = self._values.get("source")
        if not isinstance(source, Mapping):
            return None
        schema = None
        try:
            written = ddl_of(source.get("schema"))
            schema = columns_in(written) if isinstance(written, str) else None
        except UnknownTypeError:
            raise
        except (DdlError, ValueError):
            return None
        if source.get("select") is not None:
            return None
        if "workload" in source:
            return _made_up(source)
        for field, type_ in _OF_A_RECORD.items():
            if schema is not None and isinstance(source.get(field), str):
                schema = schema.append(pa.field(source[field], type_))
        return schema

    def _roles(self) -> EventColumns | None:
        said = self._values.get("events", {})
        if not isinstance(said, Mapping):
            return None
        names = {role: said.get(role, usual) for role, usual in _ROLES.items()}
        if not isinstance(names["time"], str) or not all(isinstance(n, (str, type(None))) for n in names.values()):
            return None
        return EventColumns(**names)

    def _wrong_roles(self, schema: pa.Schema, roles: EventColumns) -> Iterator[FieldProblem]:
        lines: list[str] = []
        try:
            columns_of(schema, time=roles.time, type=roles.type, tie_breaker=roles.tie_breaker)
        except SchemaError as error:
            lines = str(error).splitlines()
        for role in _ROLES:
            name = getattr(roles, role)
            start = f"{role}={name!r}: "
            said = [line.removeprefix(start) for line in lines if line.startswith(start)]
            lines = [line for line in lines if not line.startswith(start)]
            if not said and role != "type" and name is not None and pa.types.is_date(schema.field(name).type):
                said = ["this column holds dates: expected are timestamps, or whole numbers"]
            for message in said:
                yield self._problem(("events", role), f"{name!r}: {message}")
        for line in lines:
            yield self._problem(("source",), line)

    def _lateness(self, time: pa.Field) -> Iterator[FieldProblem]:
        late = at(self._values, "engine", "allowed_lateness")
        numbers = pa.types.is_integer(time.type)
        if mode(self._values) != "stream" or isinstance(late, bool) or not isinstance(late, (int, str)):
            return
        if numbers == isinstance(late, int) or (isinstance(late, int) and late < 0):  # which has been said
            return
        said = f"the times in {time.name!r} are {'numbers' if numbers else 'timestamps'}"
        expected = "a whole number" if numbers else "a length of time such as 10 seconds"
        shown = f"text {late!r}" if isinstance(late, str) else str(late)
        yield self._problem(("engine", "allowed_lateness"), said, expected=expected, found=shown)

    def _order(self) -> Iterator[FieldProblem]:
        order = at(self._values, "engine", "order")
        if not self._patterns or not isinstance(order, list) or not all(isinstance(name, str) for name in order):
            return
        try:
            Engine(tuple(self._patterns), EventColumns("ts", None, None), order=order).open()
        except ValueError as error:
            yield self._problem(("engine", "order"), str(error))

    def _fitting(self, schema: pa.Schema, roles: EventColumns) -> Iterator[FieldProblem]:
        try:
            check(self._patterns, schema, time=roles.time, type=roles.type, tie_breaker=roles.tie_breaker)
        except PatternError as error:
            self.wrong_patterns.append(error)
            return
        if not self._patterns:
            return
        try:
            names = Engine(tuple(self._patterns), roles).output_schema(schema).names
        except InputError as error:
            yield self._problem(("patterns",), str(error))
            return
        yield from self._alike(names)
        for field in ("key", "partition_by"):
            said = at(self._values, "sink", field)
            for number, name in enumerate([said] if isinstance(said, str) else said if isinstance(said, list) else ()):
                if name not in names:
                    place: Place = ("sink", field) if isinstance(said, str) else ("sink", field, number)
                    hint = closest(str(name), names) or f"they have {', '.join(names)}"
                    yield self._problem(place, f"matches have no column {name!r}", hint=hint)

    def _alike(self, names: Sequence[str]) -> Iterator[FieldProblem]:
        """Columns of the matches that Spark takes for the same."""
        settings = at(self._values, "spark", "settings")
        if isinstance(settings, Mapping) and str(settings.get("spark.sql.caseSensitive")).lower() == "true":
            return
        seen: dict[str, str] = {}
        for name in names:
            first = seen.setdefault(name.lower(), name)
            if first != name:
                message = f"the columns {first!r} and {name!r} differ in case only, and Spark takes them for one"
                hint = "another name after AS; or spark: {settings: {spark.sql.caseSensitive: true}}"
                yield self._problem(("patterns",), message, hint=hint)


def _made_up(source: Mapping[str, Any]) -> pa.Schema | None:
    arguments = source.get("arguments", {})
    try:
        return made(str(source["workload"]), _TRIAL, arguments if isinstance(arguments, Mapping) else {}).schema
    except Exception:  # has been said
        return None
