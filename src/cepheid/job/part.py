"""What all parts of a description share: values that several of them have, and how strict they are."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, TypeAlias

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field

from cepheid.language import syntax as s
from cepheid.language.problems import CepheidError
from cepheid.language.reader import read_length
from cepheid.language.values import Interval

LENGTH = "a length of time such as 10 seconds or 1 day 12 hours"


def interval(text: str) -> Interval:
    """As patterns say it: ``10 seconds``, ``1 day 12 hours``; ValueError for anything else.

    >>> interval("1 minute 30 seconds")
    Interval(nanoseconds=90000000000)
    """
    try:
        window = read_length(text)
    except CepheidError:
        window = None
    if window is None or window.kind is not s.WindowKind.TIME:
        raise ValueError(LENGTH)
    if window.size % 1_000_000:
        raise ValueError("a length of time in whole milliseconds")
    return Interval(window.size)


def length(text: str) -> str:
    interval(text)
    return text.strip()


def as_length(value: object) -> str:
    """A number is one of seconds.

    >>> as_length(5), as_length("5 minutes")
    ('5 seconds', '5 minutes')
    """
    if isinstance(value, str):
        return value
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return f"{value} seconds"
    raise ValueError(LENGTH)


def one_of(*words: str) -> AfterValidator:
    def known(word: str) -> str:
        if word not in words:
            raise ValueError(f"one of {', '.join(words)}")
        return word

    return AfterValidator(known)


def _as_list(value: object) -> object:
    return [value] if isinstance(value, str) else value


Length = Annotated[str, BeforeValidator(as_length), AfterValidator(length)]
Texts = Annotated[tuple[str, ...], BeforeValidator(_as_list), Field(min_length=1)]
Options: TypeAlias = Mapping[str, str | bool | int | float]
Count = Annotated[int, Field(ge=1)]


class Part(BaseModel):
    """They do not change, and take no field that they do not know."""

    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True)
