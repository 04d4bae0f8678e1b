"""The values of a description as they were read, before they are known to fit."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, TypeAlias

from cepheid.job.yaml_text import Place

Found: TypeAlias = Iterator[tuple[Place, str, str | None]]
"""What a check finds: where, what is wrong, and what would help."""
Values: TypeAlias = Mapping[str, Any]


def mode(values: Values) -> object:
    return values.get("mode", "batch")


def at(values: Values, part: str, name: str) -> Any:
    """A field of a part; None where there is none."""
    inner = values.get(part)
    return inner.get(name) if isinstance(inner, Mapping) else None


def texts(value: Any, place: Place = ()) -> Iterator[tuple[Place, str]]:
    """All texts in a value."""
    match value:
        case str():
            yield place, value
        case Mapping():
            for name, inner in value.items():
                yield from texts(inner, (*place, name))
        case list():
            for number, inner in enumerate(value):
                yield from texts(inner, (*place, number))
