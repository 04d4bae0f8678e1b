"""What drops would save and cost: the work that is left, and the matches that are lost, with all that follows.

Many drops are reckoned at once. What is kept of pairs is a table of lines, places and drops; what is thinned out of
leaves has a number for each of the drops.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from cepheid.shed.drops import CONTROL
from cepheid.shed.model import Bins, Line, Model, Numbers

EVENT = 60.0
"""The work of taking an event in, in candidates: pairs that a join looks at. It is there whatever is dropped: which
events are of use is found out for all of them."""
TUPLE, MATCH, ROW = 6.0, 20.0, 12.0
"""The work of a tuple that is made and kept, of one that is a match, and of each row that tells it: with SLIDE, there
is one for each window that holds it."""
CHECK = 0.25
"""The work of a pair that is dropped: it was looked up, and where it stands."""
PATHS = 2048
"""So many tuples are reckoned with, of all joins together."""

Thin: TypeAlias = "Mapping[int, Numbers]"
"""Of each leaf, the part of its events that is dropped; for each of the drops."""


class Reckoning:
    """Reckons with a model as it was at one time, whatever is seen later."""

    def __init__(self, lines: Sequence[Line], arrays: Mapping[str, npt.NDArray[Any]], events: Mapping[int, float]):
        self.lines = list(lines)
        self.arrays = dict(arrays)
        self.events = dict(events)
        self.pairs: Numbers = arrays["pairs"]
        self.worth: Numbers = arrays["worth"]
        self.odd_worth: Numbers = arrays["odd worth"]
        self.costs: Numbers = np.array([[line.evaluations] for line in lines]).reshape(-1, 1) * self.pairs
        self.sheddable = np.array([not line.kept for line in lines], dtype=np.bool_)
        self._turns: Numbers = np.array([line.turn for line in lines])
        self._made: Numbers = arrays["made"]
        self._leaves = np.array([-1 if line.kept or line.whole else line.leaf for line in lines], dtype=np.int64)
        self._opens = np.array([line.opens for line in lines], dtype=np.bool_)
        self._sides = np.array([(line.left, line.right) for line in lines], dtype=np.int64).reshape(-1, 2).T
        is_side = np.isin(np.arange(len(lines)), self._sides)
        # What is told is learned of patterns that may lose something; a match of the others counts as one row.
        told = np.where(self.sheddable, arrays["told"], self._made)
        self._telling: Numbers = np.where(is_side, TUPLE * self._made, MATCH * self._made + ROW * told)
        self._ends = np.append(0, np.cumsum(arrays["counts"]))
        odd, weights = arrays["odd"], arrays["weights"]
        self._matches = {None: (arrays["matches"], weights)} | {
            which: (np.ascontiguousarray(arrays["matches"][:, odd == which]), weights[odd == which])
            for which in (False, True)
        }
        self.all = np.ones(1)
        self.all = np.maximum(self.work(np.ones((*self.pairs.shape, 1)), {}), 1e-300)

    @classmethod
    def of(cls, model: Model) -> Reckoning:
        # A tuple is made if all pairs that it comes of are kept: the places of these, side by side, in one table.
        most = max(1, PATHS // max(1, len(model.lines)))
        counts = np.array([min(sample.size, most) for sample in model.tuples], dtype=np.int64)
        some = [sample.paths[:n] for sample, n in zip(model.tuples, counts.tolist(), strict=True)]
        matches = model.matches
        arrays = {
            "pairs": model.counts("pairs"),
            "worth": model.counts("worth"),
            "odd worth": model.counts("odd_worth"),
            "made": model.counts("born").sum(axis=1),
            "told": model.counts("completed").sum(axis=1),  # each match is of one pair of the last join
            "pushes": np.array([model.pushes]),
            "counts": counts,
            "tuples": _cells(some, model.bins),
            "matches": _cells([matches.paths[: matches.size]], model.bins),
            "weights": matches.weights[: matches.size].copy(),
            "odd": matches.odd[: matches.size].copy(),
        }
        unknown = zip(model.lines, model.unknown.tolist(), strict=True)
        lines = [replace(line, kept=line.kept or new) for line, new in unknown]
        return cls(lines, arrays, {leaf: model.events_of(leaf) for leaf in model.events})

    def work(self, kept: Numbers, thin: Thin) -> Numbers:
        """Which part of the work is left, if of the pairs such parts are kept and events are thinned out."""
        there = self._there(thin, kept.shape[-1])
        each = _each(self.arrays["tuples"], kept, there)
        sums = np.concatenate([np.zeros((1, kept.shape[-1])), np.cumsum(each, axis=0)])[self._ends]
        counts = np.diff(self._ends)[:, None]
        made = np.where(counts > 0, np.diff(sums, axis=0) / np.maximum(counts, 1), 1.0)
        total = self.pairs.sum(axis=1, keepdims=True)
        processed = _over_places(self.pairs, kept)
        opened = np.where(total > 0, processed / np.maximum(total, 1e-300), 1.0) * there
        made = np.where(self._opens[:, None], opened, made)
        reached = np.concatenate([made, np.ones((1, kept.shape[-1]))])[self._sides].prod(axis=0)
        dropped = total - processed
        pairs = _over_places(self.costs, kept) + CHECK * dropped
        # A join has its turn if there is anything for it to do, and be it for the control group.
        pushes = self.arrays["pushes"][0]
        each_push = reached * there * (processed + dropped / CONTROL) / max(pushes, 1e-300)
        turns = pushes * self._turns @ -np.expm1(-each_push)
        taken = EVENT * sum(self.events.values())
        found: Numbers = taken + turns + (reached * there * pairs).sum(axis=0) + self._telling @ made
        return found / self.all

    def loss(self, kept: Numbers, thin: Thin, odd: bool | None = None) -> Numbers:
        """Which part of the matches' worth is lost; ``odd``: only of those in windows with odd, or even, numbers."""
        cells, weights = self._matches[odd]
        total = float(weights.sum())
        if not total:
            return np.asarray(1.0 - kept.mean(axis=(0, 1))) if kept.size else np.zeros(kept.shape[-1])
        return np.asarray(1.0 - weights @ _each(cells, kept, self._there(thin, kept.shape[-1])) / total)

    def _there(self, thin: Thin, drops: int) -> Numbers:
        """For each line, which part of its events is left: it loses the pairs of the others as if they were dropped."""
        there = np.ones((len(self.lines), drops))
        for leaf, part in thin.items():
            there[self._leaves == leaf] = 1.0 - part
        return there

    def downstream(self) -> Numbers:
        """The work of a pair of each line, and of all that is expected to follow from it."""
        pairs = np.maximum(self.pairs.sum(axis=1), 1e-300)
        each: Numbers = (self.costs.sum(axis=1) + self._telling) / pairs
        users: dict[int, list[int]] = {}
        for place, line in enumerate(self.lines):
            for side in (line.left, line.right):
                users.setdefault(side, []).append(place)
        # Children come before their parents, so what follows is known when it is asked for from the back.
        for place in range(len(self.lines) - 1, -1, -1):
            for user in users.get(place, ()):
                each[place] += each[user] * pairs[user] / pairs[place]
        return each


def _cells(paths: Sequence[Bins], bins: int) -> Bins:
    """For each path, in a column, the cells that it goes through in a table of lines and places; -1 after the last."""
    together = np.concatenate(paths) if paths else np.empty((0, 0), dtype=np.int64)
    rows, lines = np.nonzero(together >= 0)
    lengths = np.bincount(rows, minlength=len(together))
    order = np.arange(len(rows)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    cells = np.full((int(lengths.max(initial=0)), len(together)), -1, dtype=np.int64)
    cells[order, rows] = lines * bins + together[rows, lines]
    return cells


def _each(cells: Bins, kept: Numbers, there: Numbers) -> Numbers:
    """Which part of each path is left."""
    lines, bins, drops = kept.shape
    table = np.ones((lines * bins + 1, drops))
    np.multiply(kept, there[:, None, :], out=table[:-1].reshape(kept.shape))
    found = np.ones((cells.shape[1], drops))
    for step in cells:
        found *= table[step]
    return found


def _over_places(weights: Numbers, kept: Numbers) -> Numbers:
    """The sum over the places of each line, by weight."""
    found: Numbers = np.matmul(weights[:, None, :], kept)[:, 0, :]
    return found
