"""What pydantic finds wrong, in Cepheid's words."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from cepheid.job import description as d
from cepheid.job import engine_options as e
from cepheid.job.environment import shown
from cepheid.job.problems import FieldProblem
from cepheid.job.yaml_text import Document, Place, path_text
from cepheid.language.problems import closest, one_of
from cepheid.shed.strategies import STRATEGIES

_TAGS: dict[str, type[BaseModel]] = {
    "files": d.Files,
    "kafka": d.Kafka,
    "rate": d.Rate,
    "socket": d.Socket,
    "workload": d.Workload,
}
_SINK_TAGS: dict[str, type[BaseModel]] = {"files": d.FileSink, "kafka": d.KafkaSink, "shown": d.ShownSink}
_KINDS = {
    "str": "text", "string": "text", "int": "a whole number", "bool": "true or false", "float": "a number",
    "tuple": "a list", "mapping": "a mapping of names to values", "dict": "a mapping of names to values",
    "model": "a mapping of names to values", "list": "a list",
}  # fmt: skip
_COMPARISONS = {
    "greater_than_equal": "{ge} or more", "less_than_equal": "{le} or less", "greater_than": "more than {gt}"
}  # fmt: skip


def faults_in(error: ValidationError, document: Document) -> Iterator[FieldProblem]:
    """One problem for each place: alternatives that a value could have been are put together."""
    by_place: dict[Place, list[ErrorDetails]] = {}
    for fault in error.errors(include_url=False):
        by_place.setdefault(_place(fault, document.values), []).append(fault)
    for place, faults in by_place.items():
        yield _problem(place, faults, document)


def _problem(place: Place, faults: list[ErrorDetails], document: Document) -> FieldProblem:
    fault = faults[0]
    field, line = path_text(place), document.line(place)
    name = str(place[-1]) if place else ""
    match fault["type"]:
        case "missing":
            return FieldProblem(field, "this field is missing", expected=_about(place), line=line)
        case "extra_forbidden":
            known = _fields(place, fault)
            near = closest(name, known) or f"the fields here are {', '.join(known)}"
            return FieldProblem(field, "there is no such field", hint=near, line=line)
        case "union_tag_not_found" | "union_tag_invalid":
            return _kind(place, fault, line)
    expected = one_of(list(dict.fromkeys(map(_expected, faults))))
    words = expected.removeprefix("one of ").split(", ") if expected.startswith("one of ") else []
    value = fault["input"]
    hint = closest(value, words) if isinstance(value, str) else None
    return FieldProblem(field, "this value does not fit", expected, found(name, value), hint, line)


def _kind(place: Place, fault: ErrorDetails, line: int | None) -> FieldProblem:
    """A source or sink whose kind is not said or not known."""
    kinds = d.SOURCES if place == ("source",) else d.SINKS
    expected = f"one of {', '.join(kinds)}"
    field = f"{path_text(place)}.format"
    value = fault["input"]
    if not isinstance(value, Mapping):
        return FieldProblem(path_text(place), "this value does not fit",
                            "a mapping of names to values", found("", value), line=line)  # fmt: skip
    if "format" not in value:
        generated = ", or workload: for made-up events" if place == ("source",) else ""
        near = next((h for key in value if (h := closest(str(key), ("format", "workload")))), None)
        return FieldProblem(field, "this field is missing", expected + generated, hint=near, line=line)
    return FieldProblem(field, "this value does not fit", expected, found("format", value["format"]),
                        closest(str(value["format"]), kinds), line)  # fmt: skip


def _expected(fault: ErrorDetails) -> str:
    kind, context = fault["type"], fault.get("ctx", {})
    if kind == "value_error":
        return str(context["error"])
    if kind == "literal_error":
        return f"one of {context['expected']}".replace("'", "").replace(" or ", ", ")
    if kind in _COMPARISONS:
        return _COMPARISONS[kind].format(**context)
    if kind == "too_short":
        return "at least one"
    for ending in ("_type", "_parsing", "_from_float"):
        if kind.endswith(ending):
            return _KINDS.get(kind.removesuffix(ending), kind.removesuffix(ending))
    return fault["msg"]


def found(name: str, value: object) -> str:
    """A value as it stands in the file, short, and nothing that is secret.

    >>> found("port", "x"), found("port", [1, 2]), found("password", "hunter22")
    ("text 'x'", 'a list', '(hidden)')
    """
    match value:
        case None:
            return "nothing"
        case bool():
            return str(value).lower()
        case Mapping():
            return "a mapping"
        case list() | tuple():
            return "a list"
    visible = shown(name, value)
    if visible != str(value):
        return visible
    short = visible if len(visible) <= 60 else f"{visible[:59]}…"
    return f"text {short!r}" if isinstance(value, str) else short


def _place(fault: ErrorDetails, values: Any) -> Place:
    """Without what pydantic says about which alternative it tried."""
    place: list[str | int] = []
    here = values
    way = fault["loc"]
    if len(way) > 1 and way[0] in ("source", "sink"):  # then comes the kind that it was taken for
        way = (way[0], *way[2:])
    last = len(way) - 1
    for number, part in enumerate(way):
        if isinstance(here, Mapping) and (part in here or (number == last and fault["type"] == "missing")):
            here = here.get(part)
        elif isinstance(here, list) and isinstance(part, int) and part < len(here):
            here = here[part]
        else:
            continue
        place.append(part)
    return tuple(place)


def _model(place: Place, fault: ErrorDetails) -> type[BaseModel]:
    """The part of a description that a field is missing in, or is too much for."""
    match fault["loc"]:
        case ("source", str(tag), *_) if tag in _TAGS:
            return _TAGS[tag]
        case ("sink", str(tag), *_) if tag in _SINK_TAGS:
            return _SINK_TAGS[tag]
        case ("engine", "share", *_) if len(place) > 2:
            return e.SharingOptions
        case ("engine", "adapt", *_) if len(place) > 2:
            return e.AdaptOptions
        case ("engine", "shed", *_) if len(place) > 2:
            return e.ShedOptions
    parts: dict[str | int, type[BaseModel]] = {
        "events": d.EventColumns, "engine": e.EngineOptions, "spark": d.SparkSettings
    }  # fmt: skip
    return parts.get(place[0], d.Job) if len(place) > 1 else d.Job


def _fields(place: Place, fault: ErrorDetails) -> list[str]:
    model = _model(place, fault)
    return [info.alias or name for name, info in model.model_fields.items() if name != "folder"]


def _about(place: Place) -> str | None:
    """What belongs into a field that is missing."""
    known: dict[Place, str] = {
        ("source",): f"where the events come from: format: {', '.join(d.SOURCES)}; or workload: a generator",
        ("sink",): f"where the matches go: format: {', '.join(d.SINKS)}",
        ("engine", "adapt", "policy"): f"one of {', '.join(e.POLICIES)}",
        ("engine", "shed", "strategy"): f"one of {', '.join(STRATEGIES)}",
        ("engine", "shed", "latency_bound"): "how long an event may take, such as 5 seconds",
        ("patterns",): "a file of patterns, or a list of such files",
    }
    return known.get(place)
