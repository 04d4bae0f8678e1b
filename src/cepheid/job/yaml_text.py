"""YAML as plain values, and the line that each of them stands in."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import yaml

from cepheid.job.problems import FieldProblem

Place: TypeAlias = tuple[str | int, ...]
"""The way to a value: names of fields and numbers in lists."""


@dataclass(frozen=True, slots=True)
class Document:
    """``problems``: what is wrong with the text itself; the values are as far as it could be read."""

    values: Any
    lines: Mapping[Place, int] = field(default_factory=dict)
    problems: tuple[FieldProblem, ...] = ()

    def line(self, place: Place) -> int | None:
        """That of a value or, where it is missing, of what should hold it."""
        while place and place not in self.lines:
            place = place[:-1]
        return self.lines.get(place)


def load(text: str) -> Document:
    """Read a text; only plain values come out of it, whatever tags it has.

    >>> document = load("a: 1\\nb:\\n  - x\\n  - y\\n")
    >>> document.values, document.line(("b", 1)), document.line(("b", "missing"))
    ({'a': 1, 'b': ['x', 'y']}, 4, 2)
    """
    loader = yaml.SafeLoader(text)
    try:
        node = loader.get_single_node()
        if node is None:
            return Document(None)
        if (line := _circle(node, ())) is not None:
            return Document(None, {}, (FieldProblem("", "this holds itself", line=line),))
        repeated = tuple(_repeated(node, (), set()))
        values = loader.construct_document(node)
        return Document(values, dict(_lines(node, (), set())), repeated)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = None if mark is None else mark.line + 1
        said = " ".join(part for part in (error.context, error.problem) if part)
        tabs = "indent with blanks, not with tabs" if "\\t" in said else None
        return Document(None, {}, (FieldProblem("", f"this is not YAML: {said}", hint=tabs, line=line),))
    except yaml.YAMLError as error:
        return Document(None, {}, (FieldProblem("", f"this is not YAML: {error}"),))
    finally:
        loader.dispose()


def path_text(place: Place) -> str:
    """
    >>> path_text(("source", "topics", 1))
    'source.topics[1]'
    """
    text = ""
    for part in place:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else str(part)
    return text


def _children(node: yaml.Node, place: Place) -> Iterator[tuple[Place, yaml.Node, yaml.Node]]:
    """The places in a node, what names each (or is it), and what is there."""
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            yield (*place, str(key.value)), key, value
    elif isinstance(node, yaml.SequenceNode):
        for number, value in enumerate(node.value):
            yield (*place, number), value, value


def _circle(node: yaml.Node, above: tuple[int, ...]) -> int | None:
    """The line of a value that an alias leads back to from within itself."""
    if id(node) in above:
        return int(node.start_mark.line) + 1
    found = (_circle(value, (*above, id(node))) for _, _, value in _children(node, ()))
    return next((line for line in found if line is not None), None)


def _lines(node: yaml.Node, place: Place, seen: set[int]) -> Iterator[tuple[Place, int]]:
    if id(node) in seen:  # an alias: it was written where it is first
        return
    seen.add(id(node))
    if not place:
        yield place, node.start_mark.line + 1
    for inner, name, value in _children(node, place):
        yield inner, name.start_mark.line + 1
        yield from _lines(value, inner, seen)


def _repeated(node: yaml.Node, place: Place, seen: set[int]) -> Iterator[FieldProblem]:
    """YAML itself would keep the last of two fields of a name, and say nothing."""
    if id(node) in seen:
        return
    seen.add(id(node))
    first: dict[Place, int] = {}
    for inner, name, value in _children(node, place):
        line = name.start_mark.line + 1
        if isinstance(node, yaml.MappingNode) and inner in first and inner[-1] != "<<":
            yield FieldProblem(path_text(inner), f"this is said twice, first in line {first[inner]}", line=line)
        first.setdefault(inner, line)
        yield from _repeated(value, inner, seen)
