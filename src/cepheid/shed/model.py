"""What is known about pairs of a partial match and an event: how many there are, and how many matches come of them.

The utility table, the virtual window and the threshold array of hSPICE. A line of the table is a state with a type of
events: in a plan of joins a state takes events of one type, so most of the paper's cells need not be there.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

Numbers: TypeAlias = "npt.NDArray[np.float64]"
Bins: TypeAlias = "npt.NDArray[np.int64]"

FADES = 0.5
"""When a model is made anew, what was known before counts so much less, …"""
WINDOWS = 32
"""… if so many windows were looked at, and so many of their matches remembered as there is room for. Matches come in
bursts: thousands of a few moments say little about others."""
PRIOR, FEW = 8.0, 0.01
"""A place with few pairs is judged with so many of its line's average, and with a hundredth of what places have."""


def utility(worth: Numbers, pairs: Numbers, prior: float | Numbers = 0.0, mean: float | Numbers = 0.0) -> Numbers:
    """The utility table (equation 5): the worth of the matches that come of a pair, on average.

    Where a partial match completes at most once, as in the paper, this is the probability that the event belongs to it
    and it completes. ``prior``: what was seen of few pairs is judged with so many more, of a ``mean`` worth.

    >>> utility(np.array([1.0, 1.0]), np.array([2.0, 0.0])).tolist()
    [0.5, 0.0]
    >>> utility(np.array([1.0, 1.0]), np.array([2.0, 0.0]), 8.0, 0.25).tolist()
    [0.3, 0.375]
    """
    every, total = worth + prior * mean, pairs + prior
    return np.divide(every, total, out=np.zeros_like(every), where=total > 0)


@dataclass(frozen=True)
class ThresholdArray:
    """For each number of pairs to drop from a window, up to which utility they are to be dropped.

    The paper's has a place for each pair of the virtual window; this one has a place for each utility, and in
    ``dropped`` how many pairs have it or less. ``rank``: of each kind of pairs, the place of its utility.

    >>> import numpy as np
    >>> array = ThresholdArray.of(np.array([0.0, 0.5, 0.2]), np.array([2.0, 4.0, 1.0]))
    >>> array.utilities.tolist(), array.dropped.tolist()
    ([0.0, 0.2, 0.5], [2.0, 3.0, 7.0])
    >>> array.shares(np.array([1.0, 4.0])).T.tolist()
    [[0.5, 0.0, 0.0], [1.0, 0.25, 1.0]]
    """

    utilities: Numbers
    dropped: Numbers
    rank: Bins

    @classmethod
    def of(cls, utilities: Numbers, occurrences: Numbers) -> ThresholdArray:
        """From the pairs of a virtual window: their utilities, and how often each occurs."""
        different, rank = np.unique(utilities, return_inverse=True)
        return cls(different, np.cumsum(np.bincount(rank, occurrences, minlength=len(different))), rank)

    @property
    def total(self) -> float:
        """All pairs of the window."""
        return float(self.dropped[-1]) if len(self.dropped) else 0.0

    def shares(self, pairs: Numbers) -> Numbers:
        """Which part of each kind of pairs to drop, the least useful first, so that ``pairs`` of them are dropped.

        Algorithm 1 of the paper drops all that are as useful as the threshold; where these are many, and in patterns
        with ANY they are, only so many of them are dropped as must be. A column for each number of pairs.
        """
        before = np.diff(self.dropped, prepend=0.0)
        before = (self.dropped - before)[:, None]
        equal = np.maximum(self.dropped[:, None] - before, 1e-300)
        with np.errstate(over="ignore"):  # of what has no pairs, all or nothing
            parts: Numbers = np.clip((pairs[None, :] - before) / equal, 0.0, 1.0)
        return parts[self.rank]


@dataclass
class Sample:
    """Some of the tuples that were made last: for each line that they went through, the place; -1 for the others."""

    room: int
    paths: Bins
    weights: Numbers
    odd: npt.NDArray[np.bool_]
    size: int = 0
    next: int = 0

    @classmethod
    def of(cls, room: int, lines: int) -> Sample:
        return cls(room, np.full((room, lines), -1, dtype=np.int64), np.ones(room), np.zeros(room, dtype=np.bool_))

    def leave_out(self, lines: npt.NDArray[np.bool_]) -> None:
        """Forget the tuples that went through one of these lines."""
        order = (self.next + np.arange(self.room))[-self.size :] % self.room if self.size else np.arange(0)
        left = order[~(self.paths[order][:, lines] >= 0).any(axis=1)]
        self.size = len(left)
        self.next = self.size % self.room
        for array in (self.paths, self.weights, self.odd):
            array[: self.size] = array[left]

    def add(self, paths: Mapping[int, Bins], count: int, weight: float = 1.0, *, odd: bool = False) -> None:
        """Some tuples, by line; the oldest leave for them. ``odd``: of a window with an odd number."""
        where = (self.next + np.arange(count)) % self.room
        self.paths[where] = -1
        for line, bins in paths.items():
            self.paths[where, line] = bins
        self.weights[where] = weight
        self.odd[where] = odd
        self.next = int((self.next + count) % self.room)
        self.size = min(self.room, self.size + count)


@dataclass(frozen=True)
class Line:
    """A state, with the type of the events that it takes.

    ``opens``: its pairs are of an event and no partial match yet. ``left``, ``right``: the lines of the joins that make
    its tuples, -1 where that is an event; ``leaf``: which leaf it takes its event from, -1 where it takes tuples of a
    join. ``kept``: none of its pairs may be dropped; ``whole``: it gets all events of its leaf, even if others lose
    some at random. ``evaluations``: the work of a pair, in candidates; ``turn``: that of a push in which it has any,
    however few.
    ``zero``: the place of an event that has the time of the partial match's origin.
    """

    key: Hashable
    type: str
    opens: bool = False
    left: int = -1
    right: int = -1
    leaf: int = -1
    kept: bool = False
    whole: bool = False
    evaluations: float = 1.0
    turn: float = 0.0
    zero: int = 0

    def with_work(self, evaluations: float) -> Line:
        return replace(self, evaluations=evaluations)


COUNTED = ("pairs", "completed", "worth", "odd_worth", "born")
MATCHES, TUPLES = 2048, 128
"""So many of the last matches, and tuples of each join, are remembered."""


@dataclass
class Model:
    """Counts, by line and place."""

    bins: int
    lines: list[Line] = field(default_factory=list)
    pairs: Numbers = field(init=False)  # by ``windows``, the paper's virtual window
    completed: Numbers = field(init=False)  # matches that such pairs are in
    worth: Numbers = field(init=False)  # the same, by the weights of their patterns
    odd_worth: Numbers = field(init=False)  # … in every other window
    windows: float = 0.0  # of the time that was looked at
    seen: Numbers = field(init=False)  # the same, since a line is there
    unknown: npt.NDArray[np.bool_] = field(init=False)  # which lines have come since the model was last made
    odd: bool = False  # whether this is every other window, or push if it is longer: some are judged by the others
    since: float = 0.0  # windows since it was last the other way round
    pushes: float = 0.0  # in it
    observed: float = 0.0  # pairs, since the model was last made
    ready: bool = False
    settled: bool = False  # whether it has seen enough for more of the same to change little
    fresh: int = 0  # matches that were remembered since what is known last faded
    matches: Sample = field(init=False)
    tuples: list[Sample] = field(default_factory=list)  # of each line
    born: Numbers = field(init=False)  # tuples of each line, by the place of their last event
    events: dict[int, float] = field(default_factory=dict)  # of each leaf
    seen_events: dict[int, float] = field(default_factory=dict)  # windows that were looked at since it is there

    def __post_init__(self) -> None:
        self.pairs, self.seen, self.unknown = np.zeros((0, self.bins)), np.zeros(0), np.zeros(0, dtype=np.bool_)
        self.completed, self.worth, self.odd_worth, self.born = (self.pairs.copy() for _ in range(4))
        self.matches = Sample.of(MATCHES, 0)

    @property
    def keys(self) -> list[Hashable]:
        return [line.key for line in self.lines]

    def measure_by(self, ratio: float) -> None:
        """The window that time is measured by is another: so many of the new ones are one of the old."""
        self.windows *= ratio
        self.since *= ratio
        self.seen *= ratio
        self.seen_events = {leaf: ratio * windows for leaf, windows in self.seen_events.items()}

    def place(self, lines: Sequence[Line], leaves: Collection[int] | None = None) -> None:
        """Have these lines; what is known of those that were there before is kept. New ones are to be learned first.

        Where they come beside others that make most of the work, as with another pattern, the model is of use until
        then: of what it does not know, nothing is dropped. ``leaves``: whose events there are; if it is not said, those
        of the lines.
        """
        leaves = {line.leaf for line in lines} - {-1} if leaves is None else leaves
        self.events = {leaf: self.events.get(leaf, 0.0) for leaf in leaves}
        self.seen_events = {leaf: self.seen_events.get(leaf, 0.0) for leaf in leaves}
        if list(lines) == self.lines:
            return
        old = {line.key: place for place, line in enumerate(self.lines)}
        source = np.array([old.get(line.key, -1) for line in lines], dtype=np.int64)
        gone = np.ones(len(self.lines), dtype=np.bool_)
        gone[source[source >= 0]] = False
        if (source < 0).any():
            self.settled, self.observed, self.fresh = False, 0.0, 0
            self.ready = self.ready and self._mostly_known(gone)

        def moved(array: Any, empty: float) -> Any:
            found = np.full((*array.shape[:-1], len(lines)), empty, dtype=array.dtype)
            found[..., source >= 0] = array[..., source[source >= 0]]
            return found

        for name in COUNTED:
            setattr(self, name, np.ascontiguousarray(moved(getattr(self, name).T, 0).T))
        self.seen, self.unknown = moved(self.seen, 0), moved(self.unknown, True)
        samples = [self.tuples[place] if place >= 0 else Sample.of(TUPLES, 0) for place in source.tolist()]
        for sample in (self.matches, *samples):
            knows = sample.paths.shape[1] == len(self.lines)
            if knows and gone.any():
                sample.leave_out(gone)
            sample.paths = moved(sample.paths, -1) if knows else np.full((sample.room, len(lines)), -1, dtype=np.int64)
        self.tuples, self.lines = samples, list(lines)

    def _mostly_known(self, gone: npt.NDArray[np.bool_]) -> bool:
        """Whether most of the work was not that of these lines."""
        work = self.pairs.sum(axis=1) * np.array([line.evaluations for line in self.lines])
        return not gone.all() and bool(work[gone].sum() <= work.sum() / 2)

    # --- observations

    def saw(self, line: int, bins: Numbers | Bins, each: float = 1.0) -> None:
        """So many pairs, by place: events that were processed with partial matches, the paper's contribution
        observations. ``each`` counts for so many."""
        self.pairs[line] += bins * each
        self.observed += float(bins.sum())

    def saw_completed(self, line: int, places: Bins, weight: float = 1.0, count: float = 1.0) -> None:
        """Pairs that matches have come of."""
        found = np.bincount(places, minlength=self.bins) * count
        self.completed[line] += found
        self.worth[line] += weight * found
        if self.odd:
            self.odd_worth[line] += weight * found

    def passed(self, windows: float) -> None:
        """So much of the time was looked at."""
        self.windows += windows
        self.seen += windows
        self.seen_events = {leaf: before + windows for leaf, before in self.seen_events.items()}
        self.since += windows
        if self.since >= 1.0:
            self.odd, self.since = not self.odd, 0.0

    def make(self) -> None:
        """Use what was seen from now on, and let it fade as more is seen."""
        self.ready = True
        self.observed = 0.0
        self.unknown[:] = False
        windows = float(self.seen.min(initial=self.windows))
        enough = windows >= WINDOWS and self.fresh >= self.matches.room
        self.settled = self.settled or enough or windows >= 64 * WINDOWS
        if not enough:
            return  # what is known of matches is not forgotten before others have taken their place
        self.fresh = 0
        for name in COUNTED:
            getattr(self, name)[:] *= FADES
        self.windows *= FADES
        self.seen *= FADES
        self.pushes *= FADES
        self.events = {leaf: FADES * count for leaf, count in self.events.items()}
        self.seen_events = {leaf: FADES * windows for leaf, windows in self.seen_events.items()}

    # --- what it says

    def counts(self, name: str) -> Numbers:
        """What was counted, as if all lines had been there all the time that was looked at."""
        found: Numbers = getattr(self, name) * (self.windows / np.where(self.seen > 0, self.seen, np.inf))[:, None]
        return found

    def events_of(self, leaf: int) -> float:
        """The same for the events of a leaf."""
        seen = self.seen_events.get(leaf, self.windows)
        return self.events.get(leaf, 0.0) * (self.windows / seen if seen else 0.0)

    def completions(self) -> Numbers:
        """How many matches come of a pair, on average, whatever their pattern's weight.

        A place with few pairs, for its line, is judged by the line: else many matches of a single pair would be
        expected of all that are dropped there. Of a line with no pairs nothing is known, whatever has come of it.
        """
        pairs, completed = (counts.sum(axis=1, keepdims=True) for counts in (self.pairs, self.completed))
        prior = PRIOR + FEW * pairs / np.maximum((self.pairs > 0).sum(axis=1, keepdims=True), 1)
        found = utility(self.completed, self.pairs, prior, completed / np.maximum(pairs, 1.0))
        return np.where(pairs >= 1.0, found, 0.0)

    def promises(self, line: int, of: int, *, in_order: bool) -> Numbers:
        """For each place of a partial match of one line, how many matches come of it there and later, at the join of
        another. ``in_order``: it meets only what comes after it was made; else all are met at all places.
        """
        zero, born = self.lines[of].zero, self.counts("born")[line]
        alive = np.cumsum(born)
        alive[: zero if in_order else None] = alive[-1]  # events from before meet it when it is made
        found: Numbers = np.cumsum((self.counts("completed")[of] / (alive + PRIOR))[::-1])[::-1]
        return found

    # --- snapshots

    def dump(self) -> dict[str, npt.NDArray[Any]]:
        arrays: dict[str, npt.NDArray[Any]] = {name: getattr(self, name) for name in (*COUNTED, "seen", "unknown")}
        for place, sample in enumerate((self.matches, *self.tuples)):
            arrays[f"paths {place}"] = sample.paths[: sample.size]
            arrays[f"weights {place}"] = sample.weights[: sample.size]
            arrays[f"odd {place}"] = sample.odd[: sample.size]
        return arrays

    def meta(self) -> dict[str, Any]:
        return {
            "windows": self.windows,
            "odd": self.odd,
            "since": self.since,
            "pushes": self.pushes,
            "observed": self.observed,
            "ready": self.ready,
            "settled": self.settled,
            "fresh": self.fresh,
            "next": [sample.next for sample in (self.matches, *self.tuples)],
            "events": list(self.events.items()),
            "seen events": list(self.seen_events.items()),
        }

    def load(self, arrays: Mapping[str, npt.NDArray[Any]], meta: Mapping[str, Any], now_at: Mapping[int, int]) -> None:
        """Take what :meth:`dump` and :meth:`meta` gave, for the same lines; ``now_at``: which leaf is which now."""
        for name in (*COUNTED, "seen", "unknown"):
            setattr(self, name, arrays[name].copy())
        for place, (sample, then) in enumerate(zip((self.matches, *self.tuples), meta["next"], strict=True)):
            found = arrays[f"paths {place}"]
            sample.size, sample.next = len(found), then
            sample.paths[: len(found)], sample.weights[: len(found)] = found, arrays[f"weights {place}"]
            sample.odd[: len(found)] = arrays[f"odd {place}"]
        self.windows, self.observed, self.ready = meta["windows"], meta["observed"], meta["ready"]
        self.odd, self.since = meta["odd"], meta["since"]
        self.fresh, self.settled, self.pushes = meta["fresh"], meta["settled"], meta["pushes"]
        self.events = {now_at[leaf]: count for leaf, count in meta["events"] if leaf in now_at}
        self.seen_events = {now_at[leaf]: windows for leaf, windows in meta["seen events"] if leaf in now_at}
