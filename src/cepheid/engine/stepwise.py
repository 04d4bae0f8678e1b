"""skip_till_next and strict: each variable takes the first later event that fits.

A run starts at an event of the first variable. It is followed as far as the watermark, up to which all events are
known, and goes on from there when the watermark does. All runs are followed together: a step binds a variable, or looks
at the next time of a set, for all of them at once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import combinations
from typing import TypeAlias

import numpy as np

from cepheid.engine.clock import Watermark
from cepheid.engine.joiner import NONE, Rows
from cepheid.engine.line import Line, Runs, end_of_window, joined_runs, line_of
from cepheid.engine.matches import Matches
from cepheid.engine.program import EVERY, STARTS, BranchProgram, first_column, kleene_columns, last_column
from cepheid.engine.relation import Tuples
from cepheid.engine.run import BranchRun, Setting
from cepheid.engine.snapshot import Arrays, below, prefixed
from cepheid.engine.tally import Tally
from cepheid.engine.vector import Mask
from cepheid.language import syntax as s
from cepheid.pattern.normal import judged_with

Fitting: TypeAlias = "Callable[[Runs, Rows, Rows, int, Line], tuple[Rows, Rows]]"
"""Of pairs of a run and an event, those that satisfy the conditions of a variable."""


class StepwiseRun(BranchRun):
    """The state of a branch whose events are selected one variable at a time."""

    def __init__(
        self,
        program: BranchProgram,
        setting: Setting,
        reads: dict[str, int],
        *,
        since: int = 0,
        numbers: Sequence[int] | None = None,
    ) -> None:
        super().__init__(program, setting, reads, since=since, numbers=numbers)
        self._strict = EVERY in program.leaves
        self._taken = {name: np.empty(0, dtype=np.int64) for name in program.leaves}
        self._starts = NONE  # events of the first variable that the watermark has not passed
        # Runs that wait for an event: for a variable's place in the pattern, and whether it has a set that is growing.
        self._pending: dict[tuple[int, bool], list[Runs]] = {}
        self._known: Watermark | None = None  # how far all runs have been followed …
        self._now: Watermark | None = None  # … and how far they can be
        names = [v.name for v in program.branch.variables]
        self._steps = Tally("steps", " → ".join(names), [f"runs that bound {name}" for name in names])
        self._levels: list[list[s.Expression]] = [[] for _ in range(len(names) + 1)]
        for condition in program.branch.conditions:
            mentioned, closed = judged_with(condition.expression)
            level = max((names.index(v) for v in mentioned), default=0)
            self._levels[max([level, *(names.index(v) + 1 for v in closed)])].append(condition.expression)

    @property
    def own_tallies(self) -> list[Tally]:
        return [self._steps, *self.negations.tallies.values(), self.waiting_tally, self._past]

    @property
    def bound(self) -> list[int]:
        """How many runs have bound each of the variables."""
        return list(self._steps.steps.values())

    @property
    def evaluated(self) -> int:
        """How many times a condition was evaluated for it."""
        return self._steps.evaluations

    # --- one push

    def push(self, new: dict[str, Rows], watermark: Watermark | None) -> Matches:
        self.negations.insert(new)
        for name in self._taken:
            if len(new[name]):
                self._taken[name] = np.concatenate([self._taken[name], new[name]])
        starts = new.get(STARTS, new[self.program.branch.variables[0].name])
        self._starts = np.concatenate([self._starts, starts])
        if watermark is None:
            return self._nothing()
        self._now = watermark
        found = self._follow(watermark)
        self._known = watermark
        return self._decide(found, watermark) if self.program.negations else found

    def _begun(self, rows: Rows, line: Line) -> tuple[Runs, Rows]:
        """A run for each event of the first variable; with SLIDE, for each window that holds it. And their places."""
        times = self._store.times(rows)
        if self._slide is None:
            limits, windows = times + self._window, times
        else:
            size, step = self.program.window, self._step
            first, last = (times - size) // step + 1, times // step
            counts = last - first + 1
            which = np.repeat(np.arange(len(rows)), counts)
            offset = np.arange(len(which)) - np.repeat(np.cumsum(counts) - counts, counts)
            windows = (first[which] + offset) * step
            rows, limits = rows[which], windows + size - 1
        places = line.place(rows)
        return Runs({}, windows, line.group[places] - 1, limits, np.ones(len(rows), dtype=np.bool_)), places

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
        self._steps.keep(len(self._starts) + sum(len(part) for parts in self._pending.values() for part in parts))

    def rows(self) -> list[Rows]:
        columns = [column for _, runs in self._open_runs() for column in runs.columns.values()]
        return [*super().rows(), *self._taken.values(), self._starts, *columns]

    def renumber(self, change: Callable[[Rows], Rows]) -> None:
        super().renumber(change)
        self._taken = {name: change(rows) for name, rows in self._taken.items()}
        self._starts = change(self._starts)
        for _, runs in self._open_runs():
            for name, column in runs.columns.items():
                runs.columns[name] = np.where(column < 0, column, change(np.maximum(column, 0)))

    def _open_runs(self) -> list[tuple[tuple[int, bool], Runs]]:
        return [(key, runs) for key, parts in self._pending.items() for runs in parts]

    def _set_columns(self) -> list[Rows]:
        return [
            *super()._set_columns(),
            *(r.columns[n] for _, r in self._open_runs() for n in self.scope.kleene & {*r.columns}),
        ]

    @property
    def horizon(self) -> int:
        return 2 * self._window

    def dump(self) -> Arrays:
        found = {**super().dump(), "starts": self._starts}
        found |= {f"taken {name}": rows for name, rows in self._taken.items()}
        for place, ((level, growing), runs) in enumerate(self._open_runs()):
            parts = {"key": np.array([level, growing]), "window": runs.window, "limit": runs.limit, "open": runs.open}
            columns = {f"column {name}": column for name, column in runs.columns.items()}
            found |= prefixed(f"pending {place}", {**parts, **columns})
        return found

    def load(self, arrays: Arrays) -> None:
        super().load(arrays)
        self._taken = {name: arrays[f"taken {name}"] for name in self._taken}
        self._starts = arrays["starts"]
        place = 0
        while found := below(f"pending {place}", arrays):
            level, growing = found["key"].tolist()
            columns = {n.removeprefix("column "): column for n, column in found.items() if n.startswith("column ")}
            runs = Runs(
                columns, found["window"], np.zeros(len(found["limit"]), np.int64), found["limit"], found["open"]
            )
            self._pending.setdefault((level, bool(growing)), []).append(runs)
            place += 1

    # --- following runs

    def _follow(self, watermark: Watermark) -> Matches:
        """Go on with all runs as far as events are known; the matches that this makes."""
        nothing = self._nothing()
        ready = self._store.times(self._starts) < watermark.of(self._starts, self._store)
        starts, self._starts = self._starts[ready], self._starts[~ready]
        pending, self._pending = self._pending, {}
        if not len(starts) and not pending:
            return nothing
        rows = np.unique(np.concatenate(list(self._taken.values())))
        known = rows[self._store.times(rows) < watermark.of(rows, self._store)]
        line = line_of(self._taken, known, self._store, self.program.partition)
        parts = []
        for (level, growing), waiting in pending.items():
            runs = joined_runs(waiting)
            runs = replace(runs, group=line.group[line.place(self._last_rows(runs, level, growing))])
            parts.append(self._growing(runs, level, line) if growing else self._bind(runs, level, line))
        if len(starts):
            runs, places = self._begun(starts, line)
            parts.append(self._bind(runs, 0, line, places))
        parts = [part for part in parts if len(part)]
        if not parts:
            return nothing
        done = joined_runs(parts)
        names = self.program.columns
        rows = np.stack([done.columns[name] for name in names], axis=1)
        variables = [v.name for v in self.program.branch.variables]
        lo = self._store.times(done.columns[first_column(variables[0], names)])
        hi = self._store.times(done.columns[last_column(variables[-1], names)])
        found = Matches(names, Tuples(rows, lo, hi), None if self._slide is None else done.window)
        key = self._identity(found)
        if self._slide is not None:
            key = np.concatenate([key, done.window.reshape(-1, 1)], axis=1)
        # Runs that begin with one set of tied events are the same.
        _, chosen = np.unique(key, axis=0, return_index=True)
        return found.take(np.sort(chosen))

    def _last_rows(self, runs: Runs, level: int, growing: bool) -> Rows:
        """The last event of each run."""
        name = self.program.branch.variables[level if growing else level - 1].name
        return runs.columns[last_column(name, tuple(runs.columns))]

    def _wait(self, runs: Runs, level: int, line: Line, *, growing: bool) -> Mask:
        """Keep those runs for later that an event to come could help; which they are."""
        assert self._now is not None
        waiting: Mask = runs.limit >= self._now.of(self._last_rows(runs, level, growing), self._store)
        if self._strict:
            begin, end = self._after(runs, line)
            waiting = waiting & runs.open & (begin == end)
        if waiting.any():
            self._pending.setdefault((level, growing), []).append(runs.take(waiting))
        return waiting

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

    def _bind(self, runs: Runs, level: int, line: Line, at: Rows | None = None) -> Runs:
        """Bind the variables from a level on. ``at``: where the runs start, for the first variable."""
        variables = self.program.branch.variables
        if level == len(variables):
            return runs
        variable = variables[level]
        if variable.is_kleene:
            return self._grow(runs, level, line, at)
        if at is None:
            group = self._next_fit(runs, level, line, self._fitting)
            self._wait_without(runs, np.flatnonzero(group >= 0), level, line)
            hit = np.flatnonzero(group >= 0)
            which, positions = self._pairs_in(group[hit], variable.name, line)
            which = hit[which]
        else:
            which, positions = np.arange(len(runs)), at
        which, positions = self._fitting(runs, which, positions, level, line)
        self._steps.steps[f"runs that bound {variable.name}"] += len(which)
        return self._bind(self._extended(runs, which, positions, variable.name, line), level + 1, line)

    def _wait_without(self, runs: Runs, which: Rows, level: int, line: Line) -> None:
        """Of the runs that found nothing for a variable, those may wait that still can."""
        missing = np.ones(len(runs), dtype=np.bool_)
        missing[which] = False
        if missing.any():
            self._wait(runs.take(missing), level, line, growing=False)

    def _extended(self, runs: Runs, which: Rows, positions: Rows, name: str, line: Line) -> Runs:
        chosen = runs.take(which)
        group = line.group[positions]
        # What else has the time of an event lies between that before it and that after it; only the first has none
        # before it.
        alone = line.begins[group + 1] - line.begins[group] == 1
        begins = np.array([not chosen.columns] * len(chosen), dtype=np.bool_)
        return replace(chosen, columns={**chosen.columns, name: line.rows[positions]}, group=group, open=alone | begins)

    def _after(self, runs: Runs, line: Line) -> tuple[Rows, Rows]:
        """For each run, the positions of the events that may come next: later, in its window and partition."""
        begin = line.begins[runs.group + 1]
        last = len(line.rows) - 1
        here = line.begins[np.maximum(runs.group, 0)]
        ends = np.searchsorted(line.partition, line.partition[here], side="right")
        within = end_of_window(line.partition, line.time, line.partition[here], runs.limit)
        end = np.minimum(ends, within)
        if self._strict:
            following = np.minimum(runs.group + 2, len(line.begins) - 1)
            end = np.where(runs.open, np.minimum(end, line.begins[following]), begin)
        elif self._known is not None:  # what was known before has been looked at
            known = self._known.back(1).of(line.rows[here], self._store)
            first = end_of_window(line.partition, line.time, line.partition[here], np.broadcast_to(known, len(runs)))
            begin = np.maximum(begin, first)
        return begin, np.maximum(np.minimum(end, last + 1), begin)

    def _next_fit(self, runs: Runs, level: int, line: Line, fitting: Fitting) -> Rows:
        """For each run the first time with an event that fits a variable, as a group of the line; -1 if there is none.

        Most runs find one soon, so a few events are tried first, and then four times as many as before.
        """
        name = self.program.branch.variables[level].name
        begin, end = self._after(runs, line)
        taken = np.flatnonzero(line.takes[name])
        first, last = np.searchsorted(taken, begin), np.searchsorted(taken, end)
        group = np.full(len(runs), -1, dtype=np.int64)
        width = 4
        while len(open_ := np.flatnonzero((group < 0) & (first < last))):
            counts = np.minimum(last[open_] - first[open_], width)
            which = np.repeat(open_, counts)
            offset = np.arange(len(which)) - np.repeat(np.cumsum(counts) - counts, counts)
            which, positions = fitting(runs, which, taken[first[which] + offset], level, line)
            found, places = np.unique(which, return_index=True)  # by run, in the order of time
            group[found] = line.group[positions[places]]
            first[open_] += counts
            width *= 4
        return group

    def _fitting(self, runs: Runs, which: Rows, positions: Rows, level: int, line: Line) -> tuple[Rows, Rows]:
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

    def _grow(self, runs: Runs, level: int, line: Line, at: Rows | None) -> Runs:
        """A KL variable takes every event that fits, a time after the other, until the next variable can be bound."""
        if at is None:
            active = self._opened(runs, level, line)
        else:
            parts = list(self._taking(runs, line.group[at], level, line, starting=True))
            active = joined_runs(parts) if parts else runs.take(NONE)
        return self._growing(active, level, line)

    def _growing(self, active: Runs, level: int, line: Line) -> Runs:
        variables = self.program.branch.variables
        variable = variables[level]
        last = level + 1 == len(variables)
        finished: list[Runs] = []
        while len(active):
            group, there = self._next_group(active, line, variable.name, None if last else variables[level + 1].name)
            if not there.all():
                ended = active.take(~there)
                waiting = self._wait(ended, level, line, growing=True)
                if last:
                    finished.append(ended.take(~waiting))
            active, group = active.take(there), group[there]
            if not len(active):
                break
            if not last:
                closed = self._closing(active, group, level, line)
                if closed.any():
                    finished.append(active.take(closed))
                    active, group = active.take(~closed), group[~closed]
            parts = list(self._taking(active, group, level, line, starting=False))
            active = joined_runs(parts) if parts else active.take(NONE)
        if not finished:
            return self._empty()
        done = joined_runs(finished)
        self._steps.steps[f"runs that bound {variable.name}"] += len(done)
        if not last:
            return self._bind(done, level + 1, line)
        done = done.take(self.sets.sizes(done.columns[variable.name]) >= (variable.minimum or 1))
        for condition in self._levels[len(variables)]:  # on the set as a whole, which nothing else closes
            done = done.take(self.scope.holds(condition, done.columns, len(done)))
        return done

    def _empty(self) -> Runs:
        columns = dict.fromkeys(self.program.columns, NONE)
        return Runs(columns, NONE, NONE, NONE, np.empty(0, dtype=np.bool_))

    def _opened(self, runs: Runs, level: int, line: Line) -> Runs:
        """The first time at which a set that is not the first variable takes something."""
        group = self._next_fit(runs, level, line, self._joining)
        hit = np.flatnonzero(group >= 0)
        self._wait_without(runs, hit, level, line)
        parts = list(self._taking(runs.take(hit), group[hit], level, line, starting=True)) if len(hit) else []
        return joined_runs(parts) if parts else runs.take(NONE)

    def _joining(self, runs: Runs, which: Rows, positions: Rows, level: int, line: Line) -> tuple[Rows, Rows]:
        """The pairs of a run and an event that could begin its set."""
        good = self._may_join(runs, which, positions, level, line)
        return which[good], positions[good]

    def _may_join(self, runs: Runs, which: Rows, positions: Rows, level: int, line: Line) -> Mask:
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

    def _next_group(self, runs: Runs, line: Line, name: str, following: str | None) -> tuple[Rows, Mask]:
        """For each run the next time with an event for the set or the variable after it; whether there is one."""
        begin, end = self._after(runs, line)
        wanted = line.takes[name] if following is None else line.takes[name] | line.takes[following]
        taken = np.flatnonzero(wanted)
        place = np.searchsorted(taken, begin)
        there = place < len(taken)
        position = taken[np.minimum(place, max(len(taken) - 1, 0))] if len(taken) else begin
        there = there & (position < end)
        return line.group[np.minimum(position, len(line.group) - 1)], there

    def _pairs_in(self, group: Rows, name: str, line: Line) -> tuple[Rows, Rows]:
        """For each run the events of its group that a variable takes."""
        begin, end = line.begins[group], line.begins[group + 1]
        which = np.repeat(np.arange(len(group)), end - begin)
        offset = np.arange(len(which)) - np.repeat(np.cumsum(end - begin) - (end - begin), end - begin)
        positions = begin[which] + offset
        good = line.takes[name][positions]
        return which[good], positions[good]

    def _closing(self, runs: Runs, group: Rows, level: int, line: Line) -> Mask:
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

    def _taking(self, runs: Runs, group: Rows, level: int, line: Line, *, starting: bool) -> Iterator[Runs]:
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

    def _with_member(self, runs: Runs, which: Rows, rows: Rows, name: str) -> Runs:
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
