"""CONSUME: an event of a reported match is not used again."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from cepheid.engine.clock import Watermark
from cepheid.engine.kernels.consume import choose
from cepheid.engine.kernels.join import TIE, TIME
from cepheid.engine.matches import Matches
from cepheid.engine.program import first_column, last_column
from cepheid.engine.run import BranchRun
from cepheid.engine.snapshot import Arrays
from cepheid.engine.vector import Mask

Rows: TypeAlias = npt.NDArray[np.int64]


class Consumption:
    """Decides between the competing matches of one pattern, over all of its branches.

    The match that ends first is reported, then the one that starts first, then the one with the earliest events. So a
    match is decided when every match that ends as early is known: ``slack`` after its end.
    """

    def __init__(self, variables: tuple[str, ...], runs: list[BranchRun], slack: int) -> None:
        self._variables = variables
        self._runs = runs
        self._slack = slack
        self._used = np.empty((0, 2), dtype=np.int64)  # window start (0 without SLIDE) and row

    def decide(self, found: list[Matches], watermark: Watermark | None) -> list[Matches]:
        """Keep the new matches back; those that are decided now, and win."""
        for run, matches in zip(self._runs, found, strict=True):
            run.hold(matches)
        ready = [run.release(None if watermark is None else watermark.back(self._slack)) for run in self._runs]
        if not any(map(len, ready)):
            return ready
        order = self._ranked(ready)
        owner, events = self._events(ready)
        count = len(order)
        everything = np.concatenate([self._used, events])
        _, ids = np.unique(everything, axis=0, return_inverse=True)
        ids = ids.reshape(-1)
        used = np.zeros(int(ids.max(initial=-1)) + 1, dtype=np.bool_)
        used[ids[: len(self._used)]] = True
        starts = np.searchsorted(owner, np.arange(count + 1))
        won: Mask = choose(order, starts, ids[len(self._used) :], used)  # type: ignore[no-untyped-call]
        self._used = np.concatenate([self._used, events[won[owner]]])
        cuts = np.cumsum([0, *map(len, ready)])
        return [matches.take(won[cuts[i] : cuts[i + 1]]) for i, matches in enumerate(ready)]

    def forget(self, oldest: int) -> None:
        """Rows before a number are gone from the store; no match has them any more."""
        self._used = self._used[self._used[:, 1] >= oldest]

    def renumber(self, change: Callable[[Rows], Rows]) -> None:
        """Rows have new numbers; a used event that nothing else refers to matters no more."""
        rows = change(self._used[:, 1])
        self._used = np.stack([self._used[:, 0], rows], axis=1)[rows >= 0]

    def dump(self) -> Arrays:
        return {"used": self._used}

    def load(self, arrays: Arrays) -> None:
        self._used = arrays["used"]

    def _events(self, ready: list[Matches]) -> tuple[Rows, Rows]:
        """For each event of each match: the number of the match; and its window and row."""
        owners, events, offset = [], [], 0
        for run, matches in zip(self._runs, ready, strict=True):
            window = np.zeros(len(matches), dtype=np.int64) if matches.window_start is None else matches.window_start
            for name in matches.variables:
                if name not in self._variables:
                    continue
                which, rows = self._rows_of(run, matches, name)
                owners.append(which + offset)
                events.append(np.stack([window[which], rows], axis=1))
            offset += len(matches)
        owner = np.concatenate(owners) if owners else np.empty(0, dtype=np.int64)
        order = np.argsort(owner, kind="stable")
        return owner[order], (np.concatenate(events) if events else np.empty((0, 2), dtype=np.int64))[order]

    @staticmethod
    def _rows_of(run: BranchRun, matches: Matches, name: str) -> tuple[Rows, Rows]:
        column = matches.tuples.rows[:, matches.variables.index(name)]
        if name in run.scope.kleene:
            return run.sets.expand(column)
        return np.arange(len(matches), dtype=np.int64), column

    def _ranked(self, ready: list[Matches]) -> Rows:
        """The matches in the order in which they are served."""
        keys: list[Rows] = []
        for pick in (last_column, first_column):
            keys += self._edges(ready, pick)
        per_variable = [self._keys_of(ready, name) for name in self._variables]
        keys += [times for times, _ in per_variable]
        keys += [contents for _, contents in per_variable]
        return np.lexsort(keys[::-1])

    def _edges(self, ready: list[Matches], pick: object) -> list[Rows]:
        """Time and tie-breaker of the last, or first, event of each match."""
        latest = pick is last_column
        found: list[list[Rows]] = [[], []]
        for run, matches in zip(self._runs, ready, strict=True):
            columns = [
                matches.variables.index((last_column if latest else first_column)(name, matches.variables))
                for name in matches.variables
                if name in self._variables
            ]
            at = matches.tuples.rows[:, columns] - run.scope.store.base
            times, ties = run.scope.store.values[TIME][at], run.scope.store.values[TIE][at]
            edge = (times.max(axis=1) if latest else times.min(axis=1)) if len(matches) else times[:, 0]
            outside = times != edge[:, None]
            extreme = np.iinfo(np.int64).min if latest else np.iinfo(np.int64).max
            masked = np.where(outside, extreme, ties)
            found[0].append(edge)
            found[1].append((masked.max(axis=1) if latest else masked.min(axis=1)) if len(matches) else edge)
        return [np.concatenate(part) for part in found]

    def _keys_of(self, ready: list[Matches], name: str) -> tuple[Rows, Rows]:
        """What orders matches by the events of one variable: their times, and apart from them their contents."""
        owners, rows, offset = [], [], 0
        for run, matches in zip(self._runs, ready, strict=True):
            if name in matches.variables:
                which, found = self._rows_of(run, matches, name)
                owners.append(which + offset)
                rows.append(found)
            offset += len(matches)
        owner, events = (np.concatenate(part) if part else np.empty(0, dtype=np.int64) for part in (owners, rows))
        store = self._runs[0].scope.store
        at = events - store.base
        times, ties = store.values[TIME][at].tolist(), store.values[TIE][at].tolist()
        contents = store.contents(events).tolist() if len(events) else []
        cuts = np.searchsorted(owner, np.arange(offset + 1)).tolist()
        by_time: list[tuple[object, ...]] = []
        by_content: list[tuple[object, ...]] = []
        for begin, end in itertools.pairwise(cuts):
            bound = sorted(zip(times[begin:end], ties[begin:end], strict=True))
            by_time.append((0, tuple(bound)) if bound else (1,))  # what is not bound comes last
            by_content.append(tuple(sorted(contents[begin:end])))
        return _ranks(by_time), _ranks(by_content)


def _ranks(values: list[tuple[object, ...]]) -> Rows:
    places = {value: place for place, value in enumerate(sorted(set(values)))}
    return np.array([places[value] for value in values], dtype=np.int64)
