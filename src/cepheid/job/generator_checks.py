"""Whether a workload is one of Cepheid's, and takes the arguments that it is given."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from cepheid import workloads
from cepheid.job.faults import found
from cepheid.job.generated import made
from cepheid.job.values import Found, Values, at
from cepheid.language.problems import closest

_TRIAL = 100
"""Events to make for a trial."""
_WORDS = {"int": "a whole number", "float": "a number", "bool": "true or false", "str": "text",
          "datetime.datetime": "a moment such as 2024-05-17 08:00:00"}  # fmt: skip


def generator(values: Values, folder: Path) -> Found:
    name = at(values, "source", "workload")
    if not isinstance(name, str):
        return
    if name not in workloads.__all__:
        known = ", ".join(workloads.__all__)
        yield ("source", "workload"), f"there is no workload {name!r}", closest(name, workloads.__all__) or known
        return
    parameters = inspect.signature(getattr(workloads, name)).parameters
    taken = {p.name: str(p.annotation) for p in parameters.values() if p.name != "count"}
    arguments = at(values, "source", "arguments")
    given = arguments if isinstance(arguments, Mapping) else {}
    for argument in given:
        if argument not in taken:
            near = closest(str(argument), taken) or f"it takes {', '.join(taken)}"
            yield ("source", "arguments", argument), f"{name} has no such argument", near
    fitting = {argument: value for argument, value in given.items() if argument in taken}
    trouble = _trouble(name, fitting)
    if trouble is None:
        return
    # Each is tried alone to find out which it is; if it is none of them, they do not fit each other.
    alone = {argument: error for argument in fitting if (error := _trouble(name, {argument: fitting[argument]}))}
    for argument, error in alone.items():
        yield ("source", "arguments", argument), _said(error, taken[argument], argument, fitting[argument]), None
    if not alone:
        yield ("source", "arguments"), f"{name} cannot be made with these: {trouble}", None


def _trouble(name: str, arguments: Mapping[str, Any]) -> Exception | None:
    try:
        made(name, _TRIAL, arguments)
    except Exception as error:  # whatever an argument of the wrong kind makes of it
        return error
    return None


def _said(error: Exception, kind: str, argument: str, value: object) -> str:
    if isinstance(error, ValueError) and str(error).startswith(argument):  # said of this argument, in words
        return str(error)
    words = [_WORDS.get(word, word) for word in kind.split(" | ") if word != "None"]
    return f"expected {' or '.join(words)}, found {found(argument, value)}"
