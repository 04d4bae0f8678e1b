"""How far the stream is known."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from cepheid.engine.store import RowStore

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
        found: Rows = self.ticks[store.values[self.partition][rows - store.base]]
        return found

    def back(self, ticks: int) -> Watermark:
        """The same some ticks earlier; the end of the stream stays the end."""
        if isinstance(self.ticks, int) and self.ticks == END:
            return self
        return Watermark(self.ticks - ticks, self.partition)
