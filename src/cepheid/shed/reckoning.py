"""What drops would save and cost: the work that is left, and the matches that are lost, with all that follows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from cepheid.shed.model import Bins, Model, Numbers, Sample

EVENT = 100.0
"""The work of taking an event in, in candidates: pairs that a join looks at."""
TUPLE = 20.0
"""The work of a tuple that is made and kept."""
CHECK = 0.25
"""The work of a pair that is dropped: it was looked up, and where it stands."""
PATHS = 2048
"""So many tuples are reckoned with, of all joins together."""


class Reckoning:
    """Reckons with one model, as it is now."""

    def __init__(self, model: Model) -> None:
        self._lines = model.lines
        self._pairs = model.pairs
        self._made = model.born.sum(axis=1)
        self._events = dict(model.events)
        self.costs: Numbers = np.array([[line.evaluations] for line in model.lines]).reshape(-1, 1) * model.pairs
        self.sheddable = np.array([not line.kept for line in model.lines], dtype=np.bool_)
        self._leaves = np.array([-1 if line.kept else line.leaf for line in model.lines], dtype=np.int64)
        # A tuple is made if all pairs that it comes of are kept: the places of these, side by side, in one table.
        most = max(1, PATHS // max(1, len(model.lines)))
        self._counts = np.array([min(sample.size, most) for sample in model.tuples], dtype=np.int64)
        self._tuples = _cells(
            [sample.paths[:n] for sample, n in zip(model.tuples, self._counts, strict=True)], model.bins
        )
        self._matches = _cells([_first(model.matches)], model.bins)
        self._weights = model.matches.weights[: len(self._matches)]
        self._odd = model.matches.odd[: len(self._matches)]
        self.all = max(self._work(np.ones_like(model.pairs), {}), 1e-300)

    def work(self, kept: Numbers, thin: Mapping[int, float]) -> float:
        """Which part of the work is left, if of the pairs such parts are kept and events are thinned out."""
        return self._work(kept, thin) / self.all

    def loss(self, kept: Numbers, thin: Mapping[int, float], odd: bool | None = None) -> float:
        """Which part of the matches' worth is lost; ``odd``: only of those in windows with odd, or even, numbers."""
        weights = self._weights if odd is None else np.where(self._odd == odd, self._weights, 0.0)
        total = float(weights.sum())
        if not total:
            return 1.0 - float(kept.mean()) if kept.size else 0.0
        return 1.0 - float(_each(self._matches, self._thinned(kept, thin)) @ weights) / total

    def _there(self, thin: Mapping[int, float]) -> Numbers:
        """For each line, which part of its events is left."""
        return np.array([1.0 - thin.get(leaf, 0.0) for leaf in self._leaves.tolist()])

    def _thinned(self, kept: Numbers, thin: Mapping[int, float]) -> Numbers:
        """A line loses the pairs of the events that are not there, as if they had been dropped."""
        found: Numbers = kept * self._there(thin)[:, None] if thin else kept
        return found

    def _work(self, kept: Numbers, thin: Mapping[int, float]) -> float:
        each = _each(self._tuples, self._thinned(kept, thin))
        owner = np.repeat(np.arange(len(self._lines)), self._counts)
        sums = np.bincount(owner, each, minlength=len(self._lines))
        made = np.where(self._counts > 0, sums / np.maximum(self._counts, 1), 1.0)
        reached = np.ones(len(self._lines))
        for place, line in enumerate(self._lines):
            if line.opens:
                made[place] = self._opened(place, kept, thin)
            for side in (line.left, line.right):
                reached[place] *= made[side] if side >= 0 else 1.0
        pairs = (self.costs * kept + CHECK * self._pairs * (1.0 - kept)).sum(axis=1)
        events = sum(count * (1.0 - thin.get(leaf, 0.0)) for leaf, count in self._events.items())
        there = self._there(thin) if thin else 1.0
        return float(EVENT * events + (reached * there * pairs).sum() + TUPLE * (self._made * made).sum())

    def _opened(self, place: int, kept: Numbers, thin: Mapping[int, float]) -> float:
        pairs = self._pairs[place]
        total = float(pairs.sum())
        part = float((pairs * kept[place]).sum()) / total if total else 1.0
        return part * (1.0 - thin.get(int(self._leaves[place]), 0.0))

    def downstream(self) -> Numbers:
        """The work of a pair of each line, and of all that is expected to follow from it."""
        pairs = np.maximum(self._pairs.sum(axis=1), 1e-300)
        each: Numbers = self.costs.sum(axis=1) / pairs + TUPLE * self._made / pairs
        users: dict[int, list[int]] = {}
        for place, line in enumerate(self._lines):
            for side in (line.left, line.right):
                users.setdefault(side, []).append(place)
        # Children come before their parents, so what follows is known when it is asked for from the back.
        for place in range(len(self._lines) - 1, -1, -1):
            for user in users.get(place, ()):
                each[place] += each[user] * pairs[user] / pairs[place]
        return each


def _first(sample: Sample) -> Bins:
    return sample.paths[: sample.size]


def _cells(paths: Sequence[Bins], bins: int) -> Bins:
    """For each path the cells that it goes through, in a table of lines and places; -1 after the last."""
    together = np.concatenate(paths) if paths else np.empty((0, 0), dtype=np.int64)
    rows, lines = np.nonzero(together >= 0)
    order = np.concatenate([np.arange(n) for n in np.bincount(rows, minlength=len(together)).tolist()] or [rows])
    cells = np.full((len(together), int(order.max(initial=-1)) + 1), -1, dtype=np.int64)
    cells[rows, order] = lines * bins + together[rows, lines]
    return cells


def _each(cells: Bins, kept: Numbers) -> Numbers:
    """Which part of each path is left."""
    found: Numbers = np.append(kept.ravel(), 1.0)[cells].prod(axis=1)
    return found
