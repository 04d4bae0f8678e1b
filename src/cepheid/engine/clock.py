"""The clock of a session: what a tick is, and how far the stream is known."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from cepheid.engine.store import RowStore
from cepheid.engine.vector import MICROSECONDS, NANOSECONDS, Unit
from cepheid.language import syntax as s
from cepheid.language.values import Interval, Timestamp
from cepheid.pattern.normal import NormalForm

Rows: TypeAlias = npt.NDArray[np.int64]

END = 2**63 - 1
"""After the last event."""


@dataclass(frozen=True, slots=True)
class Watermark:
    """No event before ``ticks`` will come any more.

    Where events are counted, a tick is a place in the stream of a partition: then ``ticks`` has one for each, by the
    partition's number, which is in the column ``partition`` of the row store.
    """

    ticks: int | Rows
    partition: int | None = None

    def of(self, rows: Rows, store: RowStore) -> int | Rows:
        """For tuples with these rows in them."""
        if self.partition is None or isinstance(self.ticks, int):
            return self.ticks
        partitions = store.values[self.partition][rows - store.base]
        # A partition that is newer than the watermark has nothing behind it.
        return np.where(partitions < len(self.ticks), self.ticks[np.minimum(partitions, len(self.ticks) - 1)], 0)

    def back(self, ticks: int) -> Watermark:
        """The same some ticks earlier; the end of the stream stays the end."""
        if isinstance(self.ticks, int) and self.ticks == END:
            return self
        return Watermark(self.ticks - ticks, self.partition)


def unit_of(normals: tuple[NormalForm, ...], schema: pa.Schema) -> Unit:
    """Nanoseconds if a column or a constant has them, else microseconds, which reach further."""
    for field in schema:
        if (pa.types.is_timestamp(field.type) or pa.types.is_duration(field.type)) and field.type.unit == "ns":
            return NANOSECONDS
    lengths = [
        w.size for n in normals for b in n.branches for w in (b.window, b.slide) if w and w.kind is s.WindowKind.TIME
    ]
    expressions = [c.expression for n in normals for b in n.branches for c in b.conditions]
    expressions += [c.expression for n in normals for b in n.branches for g in b.negations for c in g.conditions]
    expressions += [item.expression for n in normals for item in n.output or ()]
    for expression in expressions:
        for node in s.walk(expression):
            if isinstance(node, s.Literal) and isinstance(node.value, (Timestamp, Interval)):
                lengths.append(node.value.nanoseconds)
    return MICROSECONDS if all(length % 1000 == 0 for length in lengths) else NANOSECONDS
