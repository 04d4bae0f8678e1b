"""Tuples of events that a plan's node keeps: events of a leaf, partial matches of a join."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from cepheid.engine.kernels.tuples import FAR_FROM_SORTED, IN_ORDER, insert, link
from cepheid.engine.snapshot import Arrays

Rows: TypeAlias = npt.NDArray[np.int64]
_NONE = np.empty(0, dtype=np.int64)
_LONG_AGO = -(2**62)


@dataclass(slots=True)
class Tuples:
    """Tuples of row numbers, with the times of the first and the last event of each."""

    rows: Rows
    lo: Rows
    hi: Rows

    def __len__(self) -> int:
        return len(self.lo)

    def take(self, chosen: npt.NDArray[np.bool_] | Rows | slice) -> Tuples:
        if isinstance(chosen, slice):  # a view of every so many would not be in one piece, as kernels want it
            chosen = np.arange(len(self))[chosen]
        return Tuples(self.rows[chosen], self.lo[chosen], self.hi[chosen])

    def renumbered(self, change: Callable[[Rows], Rows]) -> Tuples:
        """Rows have new numbers; below zero are numbers of sets."""
        return Tuples(np.where(self.rows < 0, self.rows, change(np.maximum(self.rows, 0))), self.lo, self.hi)

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
    """Tuples that can be looked up: by time, sorted by their first event; or by key, in chains of one hash.

    They stand in arrays with room to grow, from ``_begin`` to ``_end``, so that to add a few costs little.
    ``newest``: no event in them is later. ``in_order``: whether the tuples are sorted by their first event, which by
    key they need not be.
    """

    def __init__(self, width: int, *, keyed: bool = False) -> None:
        self.keyed = keyed
        self.in_order = True
        self.keys = _NONE
        self.links = _NONE
        self.heads = np.full(64, -1, dtype=np.int64) if keyed else _NONE
        self._rows = np.empty((0, width), dtype=np.int64)
        self._lo = self._hi = self._keys = _NONE
        self._begin = self._end = 0
        self._tuples = Tuples.empty(width)
        self.newest = _LONG_AGO

    def __len__(self) -> int:
        return self._end - self._begin

    @property
    def tuples(self) -> Tuples:
        return self._tuples

    @tuples.setter
    def tuples(self, tuples: Tuples) -> None:
        """Put others in their place, with the same keys."""
        self._rows, self._lo, self._hi = tuples.rows, tuples.lo, tuples.hi
        self._begin, self._end = 0, len(tuples)
        self._tuples = tuples
        self.newest = int(tuples.hi.max(initial=_LONG_AGO))

    def settle(self) -> None:
        """Be as one that was made of these tuples at once: whoever is restored looks at no less than who goes on."""
        if self.keyed and not self.in_order:
            self._keep(np.arange(len(self)))
        elif self.keyed:
            self._relink()

    def dump(self) -> Arrays:
        self.settle()
        keys = {"keys": self.keys} if self.keyed else {}
        return {**self.tuples.dump(), **keys}

    def load(self, arrays: Arrays) -> None:
        self.tuples = Tuples.loaded(arrays)
        if self.keyed:
            self._rekey(arrays["keys"])
            self.in_order = bool((np.diff(self._lo) >= 0).all())

    def insert(self, new: Tuples, keys: Rows | None = None) -> None:
        if not len(new):
            return
        before, count = self._end, len(new)
        if before + count > len(self._lo):
            self._make_room(count)
            before = self._end
        if keys is None:
            keys = _NONE
        order = _NONE
        while True:
            found, self.newest = insert(  # type: ignore[no-untyped-call]
                self._rows, self._lo, self._hi, self._keys, self._begin, before,
                new.rows, new.lo, new.hi, keys, order, self.newest,
            )  # fmt: skip
            if found != FAR_FROM_SORTED:
                break
            order = np.argsort(new.lo, kind="stable")
        self._end += count
        self._view()
        if self.keyed:
            self.in_order = self.in_order and found == IN_ORDER
            self.keys = self._keys[: self._end]
            if self._end > len(self.heads):
                self._relink()
            else:
                link(self.keys, self.heads, self.links, before, self._end)  # type: ignore[no-untyped-call]

    def _make_room(self, count: int) -> None:
        """For so many more."""
        kept, room = len(self), 2 * (len(self) + count) + 16
        rows = np.empty((room, self._rows.shape[1]), dtype=np.int64)
        lo, hi = np.empty(room, dtype=np.int64), np.empty(room, dtype=np.int64)
        rows[:kept], lo[:kept], hi[:kept] = self._tuples.rows, self._tuples.lo, self._tuples.hi
        self._rows, self._lo, self._hi = rows, lo, hi
        self._begin, self._end = 0, kept
        if self.keyed:
            keys, links = np.empty(room, dtype=np.int64), np.empty(room, dtype=np.int64)
            keys[:kept], links[:kept] = self.keys[:kept], self.links[:kept]
            self._keys, self.links = keys, links

    def _view(self) -> None:
        here = slice(self._begin, self._end)
        self._tuples = Tuples(self._rows[here], self._lo[here], self._hi[here])

    def evict(self, time: int | Rows) -> None:
        """Forget the tuples whose first event is older than a time, the same for all or one for each."""
        if not len(self):
            return
        if isinstance(time, int) and not self.keyed:
            if self._tuples.lo[0] < time:
                self._begin += int(np.searchsorted(self._tuples.lo, time))
                self._view()
            return
        young: npt.NDArray[np.bool_] = self._tuples.lo >= time
        if young.sum() * 2 < len(young):  # the chains are made anew, so it must be worth it
            self._keep(np.flatnonzero(young))

    def purge(self, base: int) -> None:
        """Forget the tuples that have a row before ``base``, which is there no more."""
        here = (self._tuples.rows >= base).all(axis=1)
        if not here.all():
            self._keep(np.flatnonzero(here))

    def _keep(self, rest: Rows) -> None:
        if not self.in_order:
            rest = rest[np.argsort(self._tuples.lo[rest], kind="stable")]
            self.in_order = True
        keys = self.keys[rest] if self.keyed else _NONE
        self.tuples = self._tuples.take(rest)
        if self.keyed:
            self._rekey(keys)

    def _rekey(self, keys: Rows) -> None:
        self._keys = self.keys = keys
        self.links = np.empty(len(keys), dtype=np.int64)
        self._relink()

    def _relink(self) -> None:
        size = 64
        while size < 2 * len(self):
            size *= 2
        self.heads = np.full(size, -1, dtype=np.int64)
        link(self.keys, self.heads, self.links, 0, len(self))  # type: ignore[no-untyped-call]
