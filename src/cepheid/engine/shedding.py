"""Dropping work under overload: what the strategy decides, applied to the plans; and what it learns from."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any, TypeAlias

import numpy as np

from cepheid.engine.gate import Promise
from cepheid.engine.intake import Intake
from cepheid.engine.joiner import Rows
from cepheid.engine.learning import COUNTS, learn_matches, learn_tuples, rooms
from cepheid.engine.matches import Matches
from cepheid.engine.network import Network
from cepheid.engine.program import STARTS
from cepheid.engine.run import BranchRun
from cepheid.engine.snapshot import Arrays, below, prefixed
from cepheid.engine.store import RowStore
from cepheid.engine.survey import BINS, Survey, survey
from cepheid.engine.thinning import Thinning
from cepheid.shed.decisions import STEPS, Decisions
from cepheid.shed.drops import CONTROL, Drops
from cepheid.shed.lost import Lost
from cepheid.shed.model import Model, Numbers
from cepheid.shed.strategies import Strategy

Key: TypeAlias = "tuple[str, int]"

SAMPLED = 32
"""Once there is a model that has seen enough, one of so many pushes is looked at; of a few events, still fewer."""
FIRST, MANY, TOGETHER = 64, 256, 16
"""The first pushes are all looked at, and those of many events until enough is known. Gates are read after so many
pushes, or after many events."""
REMEMBERED = 4
"""While pairs are dropped, it is remembered in one of so many pushes how tuples came about: it takes time then."""
GROUPS = 4096
"""The control group is told apart in so many groups, to know how much the matches of single events weigh in it."""
FEWEST = 1e-3


class Shedder:
    """Sheds the patterns of one clock; ``critical`` are those that must not lose anything."""

    def __init__(self, strategy: Strategy, network: Network, intake: Intake, store: RowStore) -> None:
        self.strategy = strategy
        self.critical: frozenset[str] = frozenset()
        self.ratio = 0.0
        self.lost = Lost()
        self.model = Model(BINS)
        self._network = network
        self._intake = intake
        self._store = store
        self._pushes = 0
        self._begun = 0  # at which push there were last joins of which nothing is known
        self._thinning = Thinning()
        self._runs: Mapping[Key, BranchRun] = {}
        self._reads: Mapping[Key, dict[str, int]] = {}
        self._survey: Survey | None = None
        self._known: Any = None
        self._decisions = Decisions(strategy)
        self._changes = 0
        self._gatings: dict[int, Any] = {}
        self._uncounted = 0  # pushes since gates were last read
        self._rows = 0  # events in them
        self._carried: Rows = np.zeros((2, 0, BINS), dtype=np.int64)  # read for a snapshot
        self._shown = np.zeros(GROUPS)  # what the control group stands for, by group
        self._drops: Drops | None = None
        self._step = 0
        self._observes = False
        self._latest: int | None = None
        self._taken: Counter[int] = Counter()

    # --- one push

    def begin(self, runs: Mapping[Key, BranchRun], reads: Mapping[Key, dict[str, int]], events: int) -> None:
        """Before a push of so many events: set the gates."""
        self._pushes += 1
        self.look(runs, reads)
        assert self._survey is not None
        step = 0 if not self.ratio else int(np.ceil(self.ratio * STEPS - FEWEST))
        if self._uncounted and step != self._step:
            self._count()  # as it was seen
        self._decisions.advance(self.model, self._pushes, step, events)
        before, was = self._drops, self._observes
        drops = self._decisions.at(step) if step else None
        observes = self._learns(events, drops)
        if self._uncounted and drops is not before:
            self._count()
        self._step, self._drops, self._observes = step, drops, observes
        self._network.sheds = drops is not None
        if observes and not was:
            self._latest = self._intake.newest  # what was not looked at does not count
        if self._changes != self._decisions.changes:
            self._changes = self._decisions.changes
            self._gatings = {of: gating for of, gating in self._gatings.items() if not of}
        if drops is not before or observes != was:
            self._survey.set(self._gating())
        self._thinning.chances.note(self._thin, self._store.base + self._store.size, self._store.base)
        if self.thinning is not None and drops is not None:
            self.thinning.begin(drops.thin, self._survey.needed, runs.values())

    @property
    def active(self) -> bool:
        """Whether anything is dropped or learned in this push."""
        return self._observes or self._drops is not None

    def _learns(self, events: int, drops: Drops | None) -> bool:
        """Whether this push is looked at: all at first, and while there is no model to drop by; many of them until
        enough is known."""
        if drops is not None and drops.thin and self.model.settled:
            return False  # what there is then is not what there would be
        if drops is not None and drops.pairs:
            return True
        many = events >= MANY
        if self.model.settled:
            return self._is_sampled(SAMPLED if many else 2 * SAMPLED)
        blind = drops is not None and not self.model.ready
        return many or blind or self._pushes - self._begun <= FIRST or self._is_sampled(SAMPLED // 2)

    def _gating(self) -> Any:
        assert self._survey is not None
        if not self._observes and not self._sheds_pairs:
            return None
        step = self._step if self._sheds_pairs else 0
        if step not in self._gatings:
            self._gatings[step] = self._survey.gating(self._drops if step else None)
        return self._gatings[step]

    @property
    def _sheds_pairs(self) -> bool:
        """Then only the control group is looked at."""
        return self._drops is not None and self._drops.pairs

    def _is_sampled(self, one_of: int) -> bool:
        """In no rhythm that a stream could have as well."""
        return (self._pushes * 2654435761 >> 7) % one_of == 0

    def look(self, runs: Mapping[Key, BranchRun], reads: Mapping[Key, dict[str, int]]) -> None:
        """Whether the plans are others: before each push, and before a snapshot, which is of what is known by then."""
        if self._known != (self._network.changes, self.critical, list(runs.items())) or self._reads != reads:
            self._look(runs, reads)

    def _look(self, runs: Mapping[Key, BranchRun], reads: Mapping[Key, dict[str, int]]) -> None:
        """The plans are others, or not known yet."""
        self._runs, self._reads = runs, dict(reads)
        self._known = self._network.changes, self.critical, list(runs.items())
        if self._survey is not None:
            if self._uncounted:
                self._count()
            self._survey.set(None)
        before = self._survey
        self._survey = survey(self._network, runs, reads, self.critical, self._intake.type_of)
        if before is not None:
            self.model.measure_by(before.window / self._survey.window)
        self.model.place(self._survey.lines, self._intake.leaves)
        if self.model.unknown.any():
            self._begun = self._pushes
        self._network.spared = self._survey.spared
        self._decisions.forget(self.model, self._survey.repetitions)
        self._changes = self._decisions.changes
        self._gatings.clear()
        self._drops, self._observes = None, False

    @property
    def _thin(self) -> Mapping[int, float]:
        """The part of each leaf's events that is dropped."""
        return {} if self._drops is None else self._drops.thin

    @property
    def thinning(self) -> Thinning | None:
        """Drops events, if any are to be dropped."""
        return self._thinning if self._thin else None

    def after_intake(self, taken: dict[int, Rows]) -> dict[int, Rows]:
        """The rows that those get who do not need all."""
        if self._observes:
            for place, rows in taken.items():
                self._taken[place] += len(rows)
        return taken if self.thinning is None else self.thinning.kept(taken)

    def rows_for(self, key: Key, run: BranchRun, taken: dict[int, Rows], thinned: dict[int, Rows]) -> dict[str, Rows]:
        """For each variable of a run the rows that it gets. One that is followed step by step needs all, but at the
        start."""
        assert self._survey is not None
        branch, whole = run.program.branch, key[0] in self.critical
        source = taken if whole or branch.stepwise else thinned
        new = {name: source[place] for name, place in self._reads[key].items()}
        if branch.stepwise:
            new[STARTS] = (taken if whole else thinned)[self._reads[key][branch.variables[0].name]]
        gating = self._survey.active
        if gating is not None:
            for name, opening in gating.openings.get(key, {}).items():
                opened = STARTS if branch.stepwise else name
                rows = new[opened]
                passes = opening.passing(rows, self._store.times(rows)) if len(rows) else None
                if passes is not None:
                    new[opened] = rows[passes]
        return new

    def after_joins(self) -> None:
        """While the new tuples are still there: remember how some of them came about."""
        if self._observes and self._survey is not None:
            control = self._sheds_pairs
            remember = not control or self._is_sampled(REMEMBERED)
            left = self._survey.left(self._thin)
            learn_tuples(self.model, self._survey, self._network, self._store, left, control=control, remember=remember)

    def found(self, matches: Mapping[Key, Matches]) -> None:
        """In each push."""
        self.lost.every += sum(len(some) for key, some in matches.items() if key[0] not in self.critical)

    def end(self, found: Mapping[Key, Matches], taken: Mapping[int, Rows]) -> None:
        """After a push in which something was dropped or learned."""
        assert self._survey is not None
        found = {key: matches for key, matches in found.items() if key[0] not in self.critical and len(matches)}
        room, counts = rooms(found), COUNTS / CONTROL if self._sheds_pairs else 1.0
        chances: dict[Key, Numbers] = {}
        for key, matches in found.items():
            if self.thinning is not None:
                chances[key] = self._chances(key, matches)
                told = self.thinning.told(self._runs[key], self._reads[key], self._survey.whole[key], chances[key])
                matches, chances[key] = matches.take(told), chances[key][told]
            shown, every = matches, float(len(matches))
            if self._drops is not None:
                self.lost.matches += len(matches)
                if self._sheds_pairs:
                    shown, every = self._control(key, matches, self._drops)
            if self._observes and len(shown):
                weight = float(self.strategy.weights.get(key[0], 1.0))
                if key in chances:
                    every *= float((1.0 / chances[key]).mean())
                learn_matches(
                    self.model, self._survey, key, self._runs[key], shown, self._store, weight, every, counts, room[key]
                )
        if self.thinning is not None:
            self._lost_events(self.thinning, chances)
        self._uncounted += 1
        self._rows += sum(map(len, taken.values()))
        if self._uncounted >= TOGETHER or self._rows >= MANY:
            self._count()

    def _control(self, key: Key, matches: Matches, drops: Drops) -> tuple[Matches, float]:
        """The control group of some matches, and how many matches there would be if no pairs were dropped."""
        assert self._survey is not None
        shown = self._survey.control(key, self._runs[key], matches, self._store, drops.levels)
        every = float(shown.each.sum())
        self.lost.beside += len(matches)
        self.lost.would_be += every
        np.add.at(self._shown, shown.anchors % len(self._shown), shown.each)
        return shown.matches, every

    def _chances(self, key: Key, matches: Matches) -> Numbers:
        """How likely it was for each match that none of its events is dropped at random."""
        assert self._survey is not None
        whole = self._survey.whole[key]
        return self._thinning.chances_of(self._runs[key], self._reads[key], whole, matches)

    def _lost_events(self, thinning: Thinning, chances: Mapping[Key, Numbers]) -> None:
        """Where events were dropped at random, by the chances that matches had to be found nevertheless."""
        assert self._survey is not None
        self.lost.events, thinning.dropped = self.lost.events + thinning.dropped, 0
        for key, run in self._runs.items():
            if key[0] not in self.critical:
                lost = thinning.lost(run, self._reads[key], self._survey.whole[key], chances.get(key, np.zeros(0)))
                if self._sheds_pairs:
                    lost.thinned, lost.both = 0.0, lost.thinned
                self.lost.add(lost)

    def _count(self) -> None:
        """Read the gates: what was seen since they were last read."""
        assert self._survey is not None
        pushes, self._uncounted, self._rows = self._uncounted, 0, 0
        lines = range(len(self._survey.lines))
        each = COUNTS if self._sheds_pairs else 1.0
        looked_at = each / CONTROL if self._sheds_pairs else 1.0  # of all that there was
        completions = self.model.completions() if self._drops is not None else None
        left = self._survey.left(self._thin)
        for line, (processed, dropped) in zip(lines, map(self._read, lines), strict=True):
            self.model.saw(line, processed, each / left[line])
            if completions is not None:
                self.lost.pairs += int(dropped.sum())
                self.lost.foregone += float((dropped * completions[line]).sum())
        self._carried = np.zeros((2, 0, BINS), dtype=np.int64)
        for line, user, promise in self._survey.unborn():
            self.lost.partial_matches += int(promise.dropped.sum())
            self.lost.foregone += self._promised(line, user, promise)
            promise.dropped[:] = 0
        for place, count in self._taken.items():
            self.model.events[place] = self.model.events.get(place, 0.0) + looked_at * count
        self._taken.clear()
        self.model.pushes += looked_at * pushes
        now = self._intake.newest
        before, self._latest = self._latest, now
        if before is not None and now is not None:
            self.model.passed(looked_at * max(0, now - before) / self._survey.window)
        if self.model.observed >= self.strategy.observations and self.model.seen.min(initial=np.inf) > FEWEST:
            self._survey.measure(self.model)
            self.model.make()

    def _peeked(self, line: int) -> tuple[Rows, Rows]:
        assert self._survey is not None
        counted = self._survey.peeked(line)
        return (
            counted
            if not self._carried.shape[1]
            else (counted[0] + self._carried[0, line], counted[1] + self._carried[1, line])
        )

    def _read(self, line: int) -> tuple[Rows, Rows]:
        assert self._survey is not None
        processed, dropped = self._survey.counted(line)
        if self._carried.shape[1]:
            processed, dropped = processed + self._carried[0, line], dropped + self._carried[1, line]
        return processed, dropped

    # --- what it has done

    def reckoned(self) -> Lost:
        """What was lost by now."""
        found = Lost(**asdict(self.lost))
        found.groups = float(self._shown.sum() ** 2 / max((self._shown**2).sum(), 1e-300))
        if self._survey is not None and self._drops is not None:
            completions = self.model.completions()
            for line in range(len(self._survey.lines)):
                _, dropped = self._peeked(line)
                found.pairs += int(dropped.sum())
                found.foregone += float((dropped * completions[line]).sum())
            for line, user, promise in self._survey.unborn():
                found.partial_matches += int(promise.dropped.sum())
                found.foregone += self._promised(line, user, promise)
        return found

    def _promised(self, line: int, user: int, promise: Promise) -> float:
        """How many matches would have come of the partial matches that were dropped as they were made."""
        if not promise.dropped.any():
            return 0.0
        each = self.model.promises(line, user, in_order=promise.in_order)
        return float((promise.dropped * each).sum())

    @property
    def kind(self) -> str:
        """What it drops now."""
        return self._drops.kind if self._drops is not None and self._drops.any else "nothing"

    # --- snapshots

    def dump(self) -> Arrays:
        """What the gates have counted stays apart until it is time to read them: so a snapshot changes nothing."""
        if self._survey is not None and self._uncounted:
            counted = [self._read(line) for line in range(len(self._survey.lines))]
            self._carried = np.array(counted, dtype=np.int64).reshape(-1, 2, BINS).transpose(1, 0, 2).copy()
        promised = {} if self._survey is None else {f"unborn {n}": p.dropped for n, _, p in self._survey.unborn()}
        return {
            **self.model.dump(),
            **self._thinning.chances.dump(self._intake.leaves),
            "carried": self._carried,
            "shown": self._shown,
            **promised,
            **prefixed("decided", self._decisions.dump()),
        }

    def meta(self) -> dict[str, Any]:
        return {
            "model": self.model.meta(),
            "lines": [line.key for line in self.model.lines],
            "strategy": type(self.strategy).__name__,
            "lost": asdict(self.lost),
            "reckoned": asdict(self.reckoned()),
            "pushes": [self._pushes, self._begun],
            "events": self._thinning.events,
            "leaves": self._intake.leaves,
            "latest": self._latest,
            "step": self._step,
            "decisions": self._decisions.meta(),
            "uncounted": [self._uncounted, self._rows, self._observes, list(self._taken.items())],
            "evaluations": [line.evaluations for line in self.model.lines],
        }

    def load(
        self,
        arrays: Arrays,
        meta: Mapping[str, Any],
        runs: Mapping[Key, BranchRun],
        reads: Mapping[Key, dict[str, int]],
        *,
        same_rows: bool,
    ) -> None:
        """Go on with what a snapshot has. What was decided stays so until the model is made anew. ``same_rows``: rows
        have the numbers that they had then.

        Of another strategy, only what it has learned of the stream is of use, not what it has decided.
        """
        self._look(runs, reads)
        assert self._survey is not None
        now_at = dict(zip(meta["leaves"], self._intake.leaves, strict=False))
        knows = meta["lines"] == [line.key for line in self._survey.lines]
        goes_on = knows and meta["strategy"] == type(self.strategy).__name__
        self.lost.add(Lost(**meta["lost" if goes_on else "reckoned"]))
        self._shown = self._shown + arrays["shown"]
        self._pushes, self._begun = meta["pushes"]
        self._thinning.events, self._latest = meta["events"], meta["latest"]
        if knows:
            known = zip(self._survey.lines, meta["evaluations"], strict=True)
            self._survey.lines = [line.with_work(found) for line, found in known]
            self.model.place(self._survey.lines, self._intake.leaves)
            self.model.load(arrays, meta["model"], now_at)
        if goes_on:
            self._carried = arrays["carried"]
            self._uncounted, self._rows, self._observes, taken = meta["uncounted"]
            self._taken = Counter({now_at[leaf]: count for leaf, count in taken if leaf in now_at})
            self._step = meta["step"]
            self._decisions.load(below("decided", arrays), meta["decisions"], self._survey.lines, now_at)
            self._changes = self._decisions.changes
            self._resume(arrays)
        if same_rows and knows:
            self._thinning.chances.load(arrays, self._intake.leaves)

    def renumber(self, kept: Rows, first: int) -> None:
        """Of all rows only these are left, and the first of them has another number now."""
        self._thinning.chances.renumber(kept, first)

    def _resume(self, arrays: Arrays) -> None:
        """Set the gates as they were, so that what they had counted is read with them."""
        assert self._survey is not None
        self._drops = self._decisions.at(self._step) if self._step else None
        self._survey.set(self._gating())
        for line, _, promise in self._survey.unborn():
            promise.dropped += arrays.get(f"unborn {line}", 0)
