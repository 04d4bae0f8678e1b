"""skip_till_next and strict: each variable takes the first later event that fits.

A run starts at an event of the first variable. When the watermark has passed the end of its window, all of its events
are known, and it is followed to its end. All runs that are ready are followed together: a step binds a variable, or
looks at the next time of a set, for all of them at once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np
import numpy.typing as npt

from cepheid.engine.clock import Watermark
from cepheid.engine.joiner import Rows
from cepheid.engine.kernels.join import TIE, TIME
from cepheid.engine.matches import Matches
from cepheid.engine.program import BranchProgram, first_column, kleene_columns
from cepheid.engine.relation import Tuples
from cepheid.engine.run import BranchRun
from cepheid.engine.snapshot import Arrays
from cepheid.engine.store import RowStore
from cepheid.engine.tally import Tally
from cepheid.engine.vector import Mask, Unit
from cepheid.language import syntax as s
from cepheid.pattern.normal import judged_with

EVERY = "*"
"""In a strict pattern, the variable that takes every event."""


@dataclass(frozen=True, slots=True)
class _Line:
    """The events in order, a partition after the other; ``group`` numbers those of one time."""

    rows: Rows
    group: Rows
    begins: Rows  # where each group begins, and at last where the line ends
    time: Rows
    partition: Rows
    takes: dict[str, Mask]


@dataclass(frozen=True, slots=True)
class _Runs:
    """Runs that have bound the same variables.

    ``group``: that of the last event; ``open``: strict only, whether one may follow it.
    """

    columns: dict[str, Rows]
    start: Rows
    group: Rows
    limit: Rows
    open: Mask

    def __len__(self) -> int:
        return len(self.start)

    def take(self, chosen: Rows | Mask) -> _Runs:
        columns = {name: column[chosen] for name, column in self.columns.items()}
        return _Runs(columns, self.start[chosen], self.group[chosen], self.limit[chosen], self.open[chosen])


def _joined(parts: list[_Runs]) -> _Runs:
    if len(parts) == 1:
        return parts[0]
    columns = {name: np.concatenate([p.columns[name] for p in parts]) for name in parts[0].columns}
    return _Runs(
        columns,
        np.concatenate([p.start for p in parts]),
        np.concatenate([p.group for p in parts]),
        np.concatenate([p.limit for p in parts]),
        np.concatenate([p.open for p in parts]),
    )


class StepwiseRun(BranchRun):
    """The state of a branch whose events are selected one variable at a time."""

    def __init__(self, program: BranchProgram, store: RowStore, unit: Unit, *, ties: bool, limit: int) -> None:
        super().__init__(program, store, unit, ties=ties, limit=limit)
        self._strict = EVERY in program.leaves
        self._taken = {name: np.empty(0, dtype=np.int64) for name in program.leaves}
        self._starts = np.empty(0, dtype=np.int64)
        self._limits = np.empty(0, dtype=np.int64)
        self._windows = np.empty(0, dtype=np.int64)
        names = [v.name for v in program.branch.variables]
        self._steps = Tally("steps", " → ".join(names), [f"runs that bound {name}" for name in names])
        self._levels: list[list[s.Expression]] = [[] for _ in range(len(names) + 1)]
        for condition in program.branch.conditions:
            mentioned, closed = judged_with(condition.expression)
            level = max((names.index(v) for v in mentioned), default=0)
            self._levels[max([level, *(names.index(v) + 1 for v in closed)])].append(condition.expression)

    @property
    def tallies(self) -> list[Tally]:
        return [self._steps, *self.negations.tallies.values(), self.waiting_tally]

    # --- one push

    def push(self, new: dict[str, Rows], watermark: Watermark | None) -> Matches:
        self.negations.insert(new)
        for name in self._taken:
            if len(new[name]):
                self._taken[name] = np.concatenate([self._taken[name], new[name]])
        self._add_starts(new[self.program.branch.variables[0].name])
        ready = np.zeros(len(self._starts), dtype=np.bool_)
        if watermark is not None:
            ready = self._limits < watermark.of(self._starts, self._store)
        found = self._follow(self._starts[ready], self._limits[ready], self._windows[ready])
        self._starts, self._limits, self._windows = (a[~ready] for a in (self._starts, self._limits, self._windows))
        return self.negations.surviving(found)

    def _add_starts(self, rows: Rows) -> None:
        """A run for each event of the first variable; with SLIDE, for each window that holds it."""
        times = self._store.times(rows)
        if self._slide is None:
            starts, limits, windows = rows, times + self._window, times
        else:
            size, step = self.program.window, self._step
            first, last = (times - size) // step + 1, times // step
            counts = last - first + 1
            which = np.repeat(np.arange(len(rows)), counts)
            offset = np.arange(len(which)) - np.repeat(np.cumsum(counts) - counts, counts)
            windows = (first[which] + offset) * step
            starts, limits = rows[which], windows + size - 1
        self._starts = np.concatenate([self._starts, starts])
        self._limits = np.concatenate([self._limits, limits])
        self._windows = np.concatenate([self._windows, windows])

    def forget(self, watermark: Watermark | None) -> None:
        super().forget(watermark)
        if watermark is not None:
            oldest = watermark.back(self._window)
            for name, rows in self._taken.items():
                self._taken[name] = rows[self._store.times(rows) >= oldest.of(rows, self._store)]

    def events(self, name: str) -> Rows:
        return self._taken[name] if name in self._taken else super().events(name)

    def count_kept(self) -> None:
        super().count_kept()
        self._steps.keep(len(self._starts))

    def rows(self) -> list[Rows]:
        return [*super().rows(), *self._taken.values(), self._starts]

    def renumber(self, change: Callable[[Rows], Rows]) -> None:
        super().renumber(change)
        self._taken = {name: change(rows) for name, rows in self._taken.items()}
        self._starts = change(self._starts)

    @property
    def horizon(self) -> int:
        return 2 * self._window

    def dump(self) -> Arrays:
        taken = {f"taken {name}": rows for name, rows in self._taken.items()}
        pending = {"starts": self._starts, "limits": self._limits, "windows": self._windows}
        return {**super().dump(), **taken, **pending}

    def load(self, arrays: Arrays) -> None:
        super().load(arrays)
        self._taken = {name: arrays[f"taken {name}"] for name in self._taken}
        self._starts, self._limits, self._windows = arrays["starts"], arrays["limits"], arrays["windows"]

    # --- following runs

    def _follow(self, starts: Rows, limits: Rows, windows: Rows) -> Matches:
        names = self.program.columns
        nothing = Matches(names, Tuples.empty(len(names)), None if self._slide is None else windows[:0])
        if not len(starts):
            return nothing
        line = self._line()
        place = np.searchsorted(np.sort(line.rows), starts)
        position = np.argsort(line.rows)[place]
        runs = _Runs({}, np.arange(len(starts)), line.group[position] - 1, limits, np.ones(len(starts), dtype=np.bool_))
        done = self._bind(runs, 0, line, position)
        if not len(done):
            return nothing
        rows = np.stack([done.columns[name] for name in names], axis=1)
        variables = [v.name for v in self.program.branch.variables]
        lo = self._store.times(done.columns[first_column(variables[0], names)])
        last = variables[-1]
        hi = self._store.times(done.columns[f"last {last}" if f"last {last}" in names else last])
        found = Matches(names, Tuples(rows, lo, hi), None if self._slide is None else windows[done.start])
        key = np.concatenate([self._identity(found), windows[done.start].reshape(-1, 1)], axis=1)
        if self._slide is None:
            key = key[:, :-1]
        _, chosen = np.unique(
            key, axis=0, return_index=True
        )  # runs that begin with one set of tied events are the same
        return found.take(np.sort(chosen))

    def _identity(self, found: Matches) -> Rows:
        """The matches with equal sets under equal numbers."""
        rows = found.tuples.rows.copy()
        for name in self.scope.kleene:
            place = found.variables.index(name)
            which, members = self.sets.expand(rows[:, place])
            parts = np.split(members, np.flatnonzero(np.diff(which)) + 1)
            known: dict[bytes, int] = {}
            rows[:, place] = [known.setdefault(part.tobytes(), len(known)) for part in parts]
        return rows

    def _line(self) -> _Line:
        rows = np.unique(np.concatenate(list(self._taken.values())))
        at = rows - self._store.base
        values = self._store.values
        column = self.program.partition
        partition = np.zeros(len(rows), dtype=np.int64) if column is None else values[column][at]
        order = np.lexsort((values[TIE][at], values[TIME][at], partition))
        rows, at, partition = rows[order], at[order], partition[order]
        time, tie = values[TIME][at], values[TIE][at]
        fresh = np.ones(len(rows), dtype=np.bool_)
        fresh[1:] = (np.diff(partition) != 0) | (np.diff(time) != 0) | (np.diff(tie) != 0)
        begins = np.append(np.flatnonzero(fresh), len(rows))
        takes = {name: np.isin(rows, taken) for name, taken in self._taken.items()}
        return _Line(rows, np.cumsum(fresh) - 1, begins, time, partition, takes)

    def _bind(self, runs: _Runs, level: int, line: _Line, at: Rows | None = None) -> _Runs:
        """Bind the variables from a level on. ``at``: where the runs start, for the first variable."""
        variables = self.program.branch.variables
        if level == len(variables):
            return runs
        variable = variables[level]
        if variable.is_kleene:
            return self._grow(runs, level, line, at)
        which, positions = self._single(runs, line, variable.name) if at is None else (np.arange(len(runs)), at)
        which, positions = self._fitting(runs, which, positions, level, line)
        if at is None:
            which, positions = _first(which, positions, line, len(runs))
        self._steps.steps[f"runs that bound {variable.name}"] += len(which)
        return self._bind(self._extended(runs, which, positions, variable.name, line), level + 1, line)

    def _extended(self, runs: _Runs, which: Rows, positions: Rows, name: str, line: _Line) -> _Runs:
        chosen = runs.take(which)
        group = line.group[positions]
        # What else has the time of an event lies between that before it and that after it; only the first has none
        # before it.
        alone = line.begins[group + 1] - line.begins[group] == 1
        begins = np.array([not chosen.columns] * len(chosen), dtype=np.bool_)
        return replace(chosen, columns={**chosen.columns, name: line.rows[positions]}, group=group, open=alone | begins)

    def _after(self, runs: _Runs, line: _Line) -> tuple[Rows, Rows]:
        """For each run, the positions of the events that may come next: later, in its window and partition."""
        begin = line.begins[runs.group + 1]
        last = len(line.rows) - 1
        here = line.begins[np.maximum(runs.group, 0)]
        ends = np.searchsorted(line.partition, line.partition[here], side="right")
        within = _end_of_window(line.partition, line.time, line.partition[here], runs.limit)
        end = np.minimum(ends, within)
        if self._strict:
            following = np.minimum(runs.group + 2, len(line.begins) - 1)
            end = np.where(runs.open, np.minimum(end, line.begins[following]), begin)
        return begin, np.maximum(np.minimum(end, last + 1), begin)

    def _single(self, runs: _Runs, line: _Line, name: str) -> tuple[Rows, Rows]:
        """The events that a variable could take, for each run."""
        begin, end = self._after(runs, line)
        taken = np.flatnonzero(line.takes[name])
        first, last = np.searchsorted(taken, begin), np.searchsorted(taken, end)
        which = np.repeat(np.arange(len(runs)), last - first)
        offset = np.arange(len(which)) - np.repeat(np.cumsum(last - first) - (last - first), last - first)
        return which, taken[first[which] + offset]

    def _fitting(self, runs: _Runs, which: Rows, positions: Rows, level: int, line: _Line) -> tuple[Rows, Rows]:
        """The pairs of a run and an event for a single variable that satisfy the conditions judged with it."""
        name = self.program.branch.variables[level].name
        for condition in self._levels[level]:
            if len(which):
                self._steps.evaluations += len(which)
                columns = {n: column[which] for n, column in runs.columns.items()}
                good = self.scope.holds(condition, {**columns, name: line.rows[positions]}, len(which))
                which, positions = which[good], positions[good]
        return which, positions

    # --- sets

    def _grow(self, runs: _Runs, level: int, line: _Line, at: Rows | None) -> _Runs:
        """A KL variable takes every event that fits, a time after the other, until the next variable can be bound."""
        variables = self.program.branch.variables
        variable = variables[level]
        last = level + 1 == len(variables)
        finished: list[_Runs] = []
        if at is None:
            active = self._opened(runs, level, line)
        else:
            active = _joined(
                [*self._taking(replace(runs, columns={}), line.group[at], level, line, starting=True)]
                or [runs.take(runs.start[:0])]
            )
        while len(active):
            group, there = self._next_group(active, line, variable.name, None if last else variables[level + 1].name)
            if last:
                finished.append(active.take(~there))
            active, group = active.take(there), group[there]
            if not len(active):
                break
            if not last:
                closed = self._closing(active, group, level, line)
                if closed.any():
                    finished.append(active.take(closed))
                    active, group = active.take(~closed), group[~closed]
            parts = list(self._taking(active, group, level, line, starting=False))
            active = _joined(parts) if parts else active.take(np.zeros(len(active), dtype=np.bool_))
        if not finished:
            return self._empty(level)
        done = _joined(finished)
        self._steps.steps[f"runs that bound {variable.name}"] += len(done)
        if not last:
            return self._bind(done, level + 1, line)
        done = done.take(self.sets.sizes(done.columns[variable.name]) >= (variable.minimum or 1))
        for condition in self._levels[len(variables)]:  # on the set as a whole, which nothing else closes
            done = done.take(self.scope.holds(condition, done.columns, len(done)))
        return done

    def _empty(self, level: int) -> _Runs:
        none = np.empty(0, dtype=np.int64)
        columns = dict.fromkeys(self.program.columns, none)
        return _Runs(columns, none, none, none, np.empty(0, dtype=np.bool_))

    def _opened(self, runs: _Runs, level: int, line: _Line) -> _Runs:
        """The first time at which a set that is not the first variable takes something."""
        name = self.program.branch.variables[level].name
        which, positions = self._single(runs, line, name)
        good = self._may_join(runs, which, positions, level, line)
        which, positions = _first(which[good], positions[good], line, len(runs))
        if not len(which):
            return runs.take(runs.start[:0].astype(np.int64))
        chosen = runs.take(np.unique(which))
        group = np.zeros(len(runs), dtype=np.int64)
        group[which] = line.group[positions]
        parts = list(self._taking(chosen, group[np.unique(which)], level, line, starting=True))
        return _joined(parts) if parts else runs.take(runs.start[:0])

    def _may_join(self, runs: _Runs, which: Rows, positions: Rows, level: int, line: _Line) -> Mask:
        """Whether an event could be added to the set of a run, or begin one."""
        name = self.program.branch.variables[level].name
        good = np.ones(len(which), dtype=np.bool_)
        if not len(which):
            return good
        rows = line.rows[positions]
        columns = {n: column[which] for n, column in runs.columns.items()}
        numbers, first = self._added(columns.get(name), rows)
        bound = {**columns, **dict(zip(kleene_columns(name), (numbers, first, rows), strict=True))}
        for condition in self._levels[level]:
            self._steps.evaluations += len(which)
            good &= self.scope.holds(condition, bound, len(which))
        return good

    def _added(self, numbers: Rows | None, rows: Rows) -> tuple[Rows, Rows]:
        """Sets with one more member each, or new sets of one."""
        if numbers is None:
            begin = np.arange(len(rows) + 1, dtype=np.int64)
            return self.sets.add(begin, rows), rows
        _, members = self.sets.expand(numbers)
        sizes = self.sets.sizes(numbers) + 1
        begin = np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(sizes)])
        merged = np.empty(int(begin[-1]), dtype=np.int64)
        merged[begin[1:] - 1] = rows
        rest = np.ones(len(merged), dtype=np.bool_)
        rest[begin[1:] - 1] = False
        merged[rest] = members
        return self.sets.add(begin, merged), merged[begin[:-1]]

    def _next_group(self, runs: _Runs, line: _Line, name: str, following: str | None) -> tuple[Rows, Mask]:
        """For each run the next time with an event for the set or the variable after it; whether there is one."""
        begin, end = self._after(runs, line)
        wanted = line.takes[name] if following is None else line.takes[name] | line.takes[following]
        taken = np.flatnonzero(wanted)
        place = np.searchsorted(taken, begin)
        there = place < len(taken)
        position = taken[np.minimum(place, max(len(taken) - 1, 0))] if len(taken) else begin
        there = there & (position < end)
        return line.group[np.minimum(position, len(line.group) - 1)], there

    def _pairs_in(self, group: Rows, name: str, line: _Line) -> tuple[Rows, Rows]:
        """For each run the events of its group that a variable takes."""
        begin, end = line.begins[group], line.begins[group + 1]
        which = np.repeat(np.arange(len(group)), end - begin)
        offset = np.arange(len(which)) - np.repeat(np.cumsum(end - begin) - (end - begin), end - begin)
        positions = begin[which] + offset
        good = line.takes[name][positions]
        return which[good], positions[good]

    def _closing(self, runs: _Runs, group: Rows, level: int, line: _Line) -> Mask:
        """Which runs can bind the next variable at the time of their group."""
        variables = self.program.branch.variables
        variable, following = variables[level], variables[level + 1]
        which, positions = self._pairs_in(group, following.name, line)
        enough = self.sets.sizes(runs.columns[variable.name]) >= (variable.minimum or 1)
        kept = enough[which]
        which, positions = which[kept], positions[kept]
        if following.is_kleene:
            good = self._may_join(runs, which, positions, level + 1, line)
            which = which[good]
        else:
            which, _ = self._fitting(runs, which, positions, level + 1, line)
        closed = np.zeros(len(runs), dtype=np.bool_)
        closed[which] = True
        return closed

    def _taking(self, runs: _Runs, group: Rows, level: int, line: _Line, *, starting: bool) -> Iterator[_Runs]:
        """The runs after their sets have taken what fits of a group, and moved on to it."""
        variable = self.program.branch.variables[level]
        which, positions = self._pairs_in(group, variable.name, line)
        good = self._may_join(runs, which, positions, level, line)
        which, positions = which[good], positions[good]
        sizes = np.zeros(len(runs), dtype=np.int64)
        if variable.name in runs.columns:
            sizes = self.sets.sizes(runs.columns[variable.name])
        room = (variable.maximum or len(line.rows) + 1) - sizes
        counts = np.bincount(which, minlength=len(runs))
        crowded = counts > room
        # Taken together, one after the other; a run whose set has no room for all of them is split below.
        current = replace(runs, group=group)
        full = line.begins[group + 1] - line.begins[group] == counts
        first = starting and not runs.columns
        before = current = replace(current, open=np.ones_like(full) if first else full)
        plain = ~crowded
        step = 0
        place = np.arange(len(which)) - np.repeat(np.cumsum(counts) - counts, counts)
        while True:
            chosen = (place == step) & plain[which]
            if not chosen.any():
                break
            current = self._with_member(current, which[chosen], line.rows[positions[chosen]], variable.name)
            step += 1
        keep = plain & (counts > 0) if starting else plain
        if keep.any():
            yield current.take(keep)
        for run in np.flatnonzero(crowded):
            mine = positions[which == run]
            for choice in combinations(mine, max(int(room[run]), 0)):
                single = before.take(np.array([run]))
                all_taken = len(choice) == line.begins[group[run] + 1] - line.begins[group[run]]
                single = replace(single, open=np.array([first or all_taken]))
                for position in choice:
                    single = self._with_member(single, np.array([0]), line.rows[[position]], variable.name)
                if choice or not starting:
                    yield single

    def _with_member(self, runs: _Runs, which: Rows, rows: Rows, name: str) -> _Runs:
        known = runs.columns.get(name)
        columns = dict(runs.columns)
        if known is None:
            zero = np.zeros(len(runs), dtype=np.int64)
            columns.update(dict(zip(kleene_columns(name), (zero, zero.copy(), zero.copy()), strict=True)))
        else:
            columns.update({n: columns[n].copy() for n in kleene_columns(name)})
        numbers, first = self._added(None if known is None else known[which], rows)
        for column, value in zip(kleene_columns(name), (numbers, first, rows), strict=True):
            columns[column][which] = value
        return replace(runs, columns=columns)


def _first(which: Rows, positions: Rows, line: _Line, count: int) -> tuple[Rows, Rows]:
    """Of the pairs of each run those with the earliest time."""
    earliest = np.full(count, np.iinfo(np.int64).max)
    np.minimum.at(earliest, which, line.group[positions])
    good = line.group[positions] == earliest[which]
    return which[good], positions[good]


def _end_of_window(partition: Rows, time: Rows, of: Rows, limit: Rows) -> Rows:
    """For each run, the first position whose event is of a later partition, or of this one and beyond the limit."""
    order = np.lexsort(
        (
            np.concatenate([np.zeros(len(time)), np.ones(len(limit))]),
            np.concatenate([time, limit]),
            np.concatenate([partition, of]),
        )
    )
    is_run = order >= len(time)
    before = np.cumsum(~is_run)
    found: npt.NDArray[np.int64] = np.empty(len(limit), dtype=np.int64)
    found[order[is_run] - len(time)] = before[is_run]
    return found
