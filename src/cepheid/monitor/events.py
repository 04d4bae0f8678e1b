"""What a monitor tells: changes of the model, alerts, and what they cost."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable
from dataclasses import dataclass, fields
from typing import Any, ClassVar, TypeAlias

import numpy as np
import pyarrow as pa

from cepheid.monitor.kernels import Floats, Ints

Time: TypeAlias = int | float | dt.datetime | np.datetime64


@dataclass(frozen=True)
class Started:
    """The first model is in force."""

    type: ClassVar = "ModelStart"
    time: Time
    model: Floats
    messages: int


@dataclass(frozen=True)
class ModelDrift:
    """A new model is in force, since the old one may have been further than ε from the present one.

    ``change`` is how far the new one is from the old one; ``violators`` are the nodes that reported.
    """

    type: ClassVar = "ModelDrift"
    time: Time
    model: Floats
    change: float
    violators: Ints
    messages: int


@dataclass(frozen=True)
class Balanced:
    """Nodes reported, and a few of the others made up for them: the model stays in force."""

    type: ClassVar = "Balanced"
    time: Time
    violators: Ints
    asked: Ints
    messages: int


@dataclass(frozen=True)
class Pooled:
    """Nodes reported, and the others' drifts leave room for theirs: the model stays in force."""

    type: ClassVar = "Pooled"
    time: Time
    violators: Ints
    messages: int


@dataclass(frozen=True)
class Waiting:
    """There is no model in force: the observations do not determine one, for the reason that is said."""

    type: ClassVar = "ModelWaiting"
    time: Time
    reason: str
    messages: int


@dataclass(frozen=True)
class ThresholdCrossed:
    """The average has crossed the threshold. ``below``: to which side; ``average``: what it is now."""

    type: ClassVar = "ThresholdCrossed"
    time: Time
    average: float
    threshold: float
    below: bool
    messages: int


MonitorEvent: TypeAlias = Started | ModelDrift | Balanced | Pooled | Waiting | ThresholdCrossed


def event_table(events: Iterable[MonitorEvent]) -> pa.Table:
    """Events as a table that patterns can be matched on: ts, type, and a column for each attribute.

    A model is the list ``model``, a set of nodes the list of their numbers.

    >>> crossed = [ThresholdCrossed(5, 48.5, 50.0, True, 12), ThresholdCrossed(9, 51.0, 50.0, False, 20)]
    >>> import cepheid
    >>> slow = "PATTERN SEQ(ThresholdCrossed a, ThresholdCrossed b) WHERE a.below AND NOT b.below WITHIN 10"
    >>> cepheid.match(slow, event_table(crossed)).num_rows
    1
    """
    rows: list[dict[str, Any]] = []
    for event in events:
        values = {field.name: getattr(event, field.name) for field in fields(event)}
        plain = {name: value.tolist() if isinstance(value, np.ndarray) else value for name, value in values.items()}
        rows.append({"ts": plain.pop("time"), "type": event.type} | plain)
    names = list(dict.fromkeys(name for row in rows for name in row))
    return pa.table({name: pa.array([row.get(name) for row in rows]) for name in names or ["ts", "type"]})
