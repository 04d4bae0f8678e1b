"""Tuples of events that a plan's node keeps: events of a leaf, partial matches of a join."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from cepheid.engine.kernels.join import link
from cepheid.engine.snapshot import Arrays

Rows: TypeAlias = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Tuples:
    """Tuples of row numbers, with the times of the first and the last event of each."""

    rows: Rows
    lo: Rows
    hi: Rows

    def __len__(self) -> int:
        return len(self.lo)

    def take(self, chosen: npt.NDArray[np.bool_] | Rows) -> Tuples:
        return Tuples(self.rows[chosen], self.lo[chosen], self.hi[chosen])

    def dump(self) -> Arrays:
        return {"rows": self.rows, "lo": self.lo, "hi": self.hi}

    @classmethod
    def loaded(cls, arrays: Arrays) -> Tuples:
        return cls(np.ascontiguousarray(arrays["rows"]), arrays["lo"], arrays["hi"])

    @classmethod
    def empty(cls, width: int) -> Tuples:
        none = np.empty(0, dtype=np.int64)
        return cls(np.empty((0, width), dtype=np.int64), none, none)


def concatenate(parts: list[Tuples]) -> Tuples:
    parts = [p for p in parts if len(p)] or parts[:1]
    if len(parts) == 1:
        return parts[0]
    return Tuples(
        np.concatenate([p.rows for p in parts]),
        np.concatenate([p.lo for p in parts]),
        np.concatenate([p.hi for p in parts]),
    )


class Relation:
    """Tuples that can be looked up: by time, sorted by their first event; or by key, in chains of one hash."""

    def __init__(self, width: int, *, keyed: bool = False) -> None:
        self.tuples = Tuples.empty(width)
        self.keyed = keyed
        self.keys = np.empty(0, dtype=np.int64)
        self.links = np.empty(0, dtype=np.int64)
        self.heads = np.full(64, -1, dtype=np.int64)

    def __len__(self) -> int:
        return len(self.tuples)

    def dump(self) -> Arrays:
        keys = {"keys": self.keys} if self.keyed else {}
        return {**self.tuples.dump(), **keys}

    def load(self, arrays: Arrays) -> None:
        self.tuples = Tuples.loaded(arrays)
        if self.keyed:
            self.keys = arrays["keys"]
            self.links = np.empty(len(self.keys), dtype=np.int64)
            self._relink()

    def insert(self, new: Tuples, keys: Rows | None = None) -> None:
        if not len(new):
            return
        before = len(self.tuples)
        if self.keyed:
            assert keys is not None
            self.tuples = concatenate([self.tuples, new])
            self.keys = np.concatenate([self.keys, keys])
            self.links = np.concatenate([self.links, np.empty(len(new), dtype=np.int64)])
            if len(self.tuples) > len(self.heads):
                self._relink()
            else:
                link(self.keys, self.heads, self.links, before, len(self.tuples))  # type: ignore[no-untyped-call]
        else:
            if len(new) > 1 and (new.lo[1:] < new.lo[:-1]).any():
                new = new.take(np.argsort(new.lo, kind="stable"))
            joined = concatenate([self.tuples, new])
            if before and new.lo[0] < self.tuples.lo[-1]:
                joined = joined.take(np.argsort(joined.lo, kind="stable"))
            self.tuples = joined

    def evict(self, time: int | Rows) -> None:
        """Forget the tuples whose first event is older than a time, the same for all or one for each."""
        if not len(self.tuples):
            return
        if isinstance(time, int) and not self.keyed:
            if self.tuples.lo[0] >= time:
                return
            start = int(np.searchsorted(self.tuples.lo, time))
            if start:
                self.tuples = self.tuples.take(np.arange(start, len(self.tuples)))
            return
        young: npt.NDArray[np.bool_] = self.tuples.lo >= time
        if young.sum() * 2 < len(young):  # the chains are made anew, so it must be worth it
            self.tuples, self.keys = self.tuples.take(young), self.keys[young]
            self.links = np.empty(len(self.keys), dtype=np.int64)
            self._relink()

    def _relink(self) -> None:
        size = 64
        while size < 2 * len(self.tuples):
            size *= 2
        self.heads = np.full(size, -1, dtype=np.int64)
        link(self.keys, self.heads, self.links, 0, len(self.tuples))  # type: ignore[no-untyped-call]
