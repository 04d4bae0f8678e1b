"""Events that complete no match: they wait until one comes that can.

A push of one event costs much the same as a push of many. So while events come in the order of time, those that cannot
come last in any match are put aside, and go through the plan together with the next one that can.
"""

from __future__ import annotations

import pyarrow as pa

from cepheid.engine.ingest import Batch
from cepheid.engine.joiner import FOREVER
from cepheid.engine.vector import Unit
from cepheid.language import syntax as s
from cepheid.language.functions import SCALARS
from cepheid.pattern.normal import NormalForm

AT_MOST = 64
"""So many events are put aside: what they cost is paid by the push that comes after them."""


class Postponed:
    """What was put aside. ``last``: the types of which one comes last in every match."""

    def __init__(self, last: frozenset[str]) -> None:
        self._last = last
        self.latest = -FOREVER  # no event of those types is newer
        self._batches: list[Batch] = []
        self._rows = 0

    def __len__(self) -> int:
        return self._rows

    @property
    def events(self) -> list[pa.RecordBatch]:
        return [batch.events for batch in self._batches]

    def takes(self, batch: Batch) -> bool:
        """Put these events aside, if they complete no match: nothing that could come last is newer than they."""
        first, newest = batch.span
        if batch.has(self._last):
            self.latest = max(self.latest, newest)
            return False
        if not 0 < len(batch) <= AT_MOST - self._rows or first <= self.latest:
            return False
        self._batches.append(batch)
        self._rows += len(batch)
        return True

    def taken(self, *more: Batch) -> Batch:
        """All that was put aside, and more."""
        batches, self._batches, self._rows = self._batches, [], 0
        return Batch.joined([*batches, *more])


def postponed_of(normals: tuple[NormalForm, ...], schema: pa.Schema, time: str, unit: Unit) -> Postponed | None:
    """None where each push has to be looked at: for its watermark, or because something about it may be wrong."""
    branches = [branch for normal in normals for branch in normal.branches]
    expressions = [condition.expression for branch in branches for condition in branch.conditions]
    calls = [node for e in expressions for node in s.walk(e) if isinstance(node, s.Call)]
    if (
        any(normal.selection.consume for normal in normals)
        or any(b.negations or b.stepwise or b.window.kind is s.WindowKind.EVENTS for b in branches)
        or not all(call.function in SCALARS for call in calls)
        or not all(_is_plain(field.type, unit) for field in schema if field.name != time)  # times have been looked at
    ):
        return None
    return Postponed(frozenset(v.type for b in branches for v in b.variables if all(v.name != x for x, _ in b.order)))


def _is_plain(type_: pa.DataType, unit: Unit) -> bool:
    """Whether every value can be taken as it is."""
    if pa.types.is_timestamp(type_) or pa.types.is_duration(type_):
        return bool(type_.unit == unit.name)
    plain = (
        pa.types.is_integer,
        pa.types.is_floating,
        pa.types.is_boolean,
        pa.types.is_string,
        pa.types.is_large_string,
    )
    return type_ != pa.uint64() and any(test(type_) for test in plain)
