"""The lines of the shedding model that plans have, and the gates at them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import TypeAlias

import numpy as np

from cepheid.engine.gate import OPEN, Gate, Gates, Opening, Places, Promise, in_control
from cepheid.engine.joiner import Rows
from cepheid.engine.kernels.join import DROPPED, PROCESSED
from cepheid.engine.matches import Matches
from cepheid.engine.network import Network, Node
from cepheid.engine.program import BranchProgram, a_row, first_column
from cepheid.engine.run import BranchRun
from cepheid.engine.stage import Stage
from cepheid.engine.stepwise import StepwiseRun
from cepheid.engine.store import RowStore
from cepheid.plan.tree import Search
from cepheid.shed.drops import ALL, CONTROL, EACH_PAIR, SAME_LEFT, Drops
from cepheid.shed.model import Line, Model, Numbers

Key: TypeAlias = "tuple[str, int]"
Paths: TypeAlias = "dict[int, Rows]"
BINS = 64
"""Places from a window before the origin of a pair to a window after it."""
COMPARED, EVALUATED = 0.5, 6.0
"""The work of a condition that a join compares, and of one that is evaluated behind it, in candidates."""
TURN, EXPRESSION = 2_500.0, 12_500.0
"""The work of a join in a push in which it has candidates, however few; and of each condition evaluated behind it."""
BOUND = 20.0
"""The work of finding the next event of a run that is followed step by step."""


@dataclass
class _Gating:
    """All gates, as they are set for one decision: of each line, and where they stand."""

    gates: list[list[Gate]]
    network: Gates | None = None
    stages: dict[int, Gate] = field(default_factory=dict)
    openings: dict[Key, dict[str, Opening]] = field(default_factory=dict)
    promises: dict[int, tuple[int, Promise]] = field(default_factory=dict)


@dataclass(frozen=True)
class Control:
    """Matches of which all pairs were kept, come what may: the events by which that was decided, and how many matches
    each stands for."""

    matches: Matches
    anchors: Rows
    each: Numbers


@dataclass
class Survey:
    """What there is to shed.

    ``line_of``: of each node. ``anchors``: the event of a node's tuples that says whether they are in the control
    group. ``opened``: by run, the variables whose events are dropped before the run gets them. ``needed``: the leaves
    whose events someone needs all. ``spared``: the nodes of critical patterns. ``whole``: by run, the variables that
    get all of their events, as those that have them from such a node. ``repetitions``: of each leaf whose events may be
    dropped, how many variables would lose some.
    """

    network: Network
    lines: list[Line] = field(default_factory=list)
    places: list[Places] = field(default_factory=list)
    active: _Gating | None = None
    counting: _Gating | None = None  # the last one that was: what it has counted may not have been read yet
    line_of: dict[int, int] = field(default_factory=dict)
    anchors: dict[int, int] = field(default_factory=dict)
    nodes: dict[int, Node] = field(default_factory=dict)
    stages: dict[int, tuple[Key, Stage, int]] = field(default_factory=dict)  # by line; with the slot of the anchor
    opened: dict[Key, list[str]] = field(default_factory=dict)
    opening_lines: dict[tuple[Key, str], int] = field(default_factory=dict)
    works: dict[int, BranchRun] = field(default_factory=dict)  # by line: the run whose work its events make
    needed: frozenset[int] = frozenset()
    spared: frozenset[int] = frozenset()
    whole: dict[Key, frozenset[str]] = field(default_factory=dict)
    repetitions: dict[int, int] = field(default_factory=dict)
    window: int = 1

    def add(self, line: Line, places: Places) -> int:
        self.lines.append(replace(line, zero=places.offset >> places.shift))
        self.places.append(places)
        return len(self.lines) - 1

    # --- what is left where events are dropped at random

    def left(self, thin: Mapping[int, float]) -> Numbers:
        """Of each line, the part of its pairs that are there although such parts of the leaves' events are dropped."""
        found = np.ones(len(self.lines))
        for place, line in enumerate(self.lines) if thin else ():  # children come before their parents
            found[place] = 1.0 if line.kept or line.whole else 1.0 - thin.get(line.leaf, 0.0)
            for side in {line.left, line.right} - {-1}:
                found[place] *= found[side]
        return found

    # --- gates

    def gating(self, drops: Drops | None) -> _Gating:
        """Gates that count pairs and, if it is said, drop some."""
        found = _Gating([[] for _ in self.lines])
        levels = None if drops is None or not drops.pairs else drops.levels
        alike = EACH_PAIR if drops is None else drops.alike

        def gate(line: int, *, anchor: int = 0, is_left: bool = True) -> Gate:
            mine = None if levels is None else levels[line]
            made = self.places[line].gate(mine, is_left=is_left, anchor=anchor, alike=alike)
            found.gates[line].append(made)
            return made

        joins, openings = {}, {}
        for number, node in self.nodes.items():
            line = self.line_of.get(number)
            if line is None:
                continue
            if node.join is not None:
                anchor = self.anchors[node.children[0].number]
                joins[number] = gate(line, anchor=anchor), gate(line, anchor=anchor, is_left=False)
            elif levels is None or not self.lines[line].kept:
                openings[number] = Opening(self.places[line], gate(line))
        if levels is not None and alike == SAME_LEFT:
            found.promises = self._promises(levels)
        found.network = Gates(joins, openings, {n: promise for n, (_, promise) in found.promises.items()})
        found.stages = {line: gate(line, anchor=anchor) for line, (_, _, anchor) in self.stages.items()}
        for (key, name), line in self.opening_lines.items():
            found.openings.setdefault(key, {})[name] = Opening(self.places[line], gate(line))
        return found

    def set(self, gating: _Gating | None) -> None:
        """Set all gates; None: all are open, and nothing is counted."""
        self.active = gating
        self.counting = self.counting if gating is None else gating
        self.network.gates = None if gating is None else gating.network
        for line, (_, stage, _) in self.stages.items():
            stage.gate = OPEN if gating is None else gating.stages[line]

    def peeked(self, line: int) -> tuple[Rows, Rows]:
        """How many pairs of a line were processed and dropped since they were last read, by place."""
        processed, dropped = np.zeros(BINS, dtype=np.int64), np.zeros(BINS, dtype=np.int64)
        for gate in () if self.counting is None else self.counting.gates[line]:
            processed += gate[PROCESSED]
            dropped += gate[DROPPED]
        return processed, dropped

    def counted(self, line: int) -> tuple[Rows, Rows]:
        """The same, and from now on they have been read."""
        found = self.peeked(line)
        for gate in () if self.counting is None else self.counting.gates[line]:
            gate[PROCESSED:] = 0
        return found

    def _promises(self, levels: Rows) -> dict[int, tuple[int, Promise]]:
        """Partial matches that only one join uses need not be kept for it."""
        found = {}
        for number, node in self.nodes.items():
            if node.join is None or self.lines[self.line_of[number]].kept:
                continue
            left, _ = node.children
            line, of = self.line_of.get(left.number), self.line_of[number]
            if line is None or left.users != 1 or not all(access[0] for access in left.kept):
                continue
            dropped = np.zeros(BINS, dtype=np.int64)
            probe = node.join.from_left
            after = sorted({int(slot) for slot in probe.after[:, 0]})
            in_order = bool(after) and not len(probe.before)
            promise = Promise(self.places[of], levels[of], self.anchors[left.number], dropped, after, in_order)
            found[left.number] = of, promise
        return found

    def unborn(self) -> list[tuple[int, int, Promise]]:
        """Where partial matches were dropped when they were made: their line, that of the join, and the place."""
        promises = {} if self.counting is None else self.counting.promises
        return [(self.line_of[number], user, promise) for number, (user, promise) in promises.items()]

    # --- how tuples came about

    def paths(self, node: Node, rows: Rows, store: RowStore, *, is_left: bool = True) -> tuple[Paths, Rows]:
        """For each line that tuples of a node went through, where; and the times of their first events."""
        if node.join is None:
            times = store.times(rows[:, 0])
            line = self.line_of.get(node.number)
            return ({line: self.places[line].bin_of(times, times)} if line is not None and is_left else {}), times
        left, right = node.children
        found, first = self.paths(left, rows[:, node.join.from_left.outer_to], store, is_left=True)
        more, other = self.paths(right, rows[:, node.join.from_left.inner_to], store, is_left=False)
        line = self.line_of[node.number]
        return {**more, **found, line: self.places[line].bin_of(first, other)}, np.minimum(first, other)

    def match_paths(self, key: Key, run: BranchRun, matches: Matches, store: RowStore) -> tuple[Paths, Paths]:
        """The same for matches; and, apart, for the further events of sets."""
        program, rows = run.program, matches.tuples.rows
        names = program.columns
        if program.branch.stepwise or isinstance(program.plan, Search):
            found: Paths = {}
            for name, line in zip(self.opened.get(key, ()), self._opening_lines(key), strict=True):
                column = rows[:, names.index(first_column(name, names))]
                times = store.times(column)
                found[line] = self.places[line].bin_of(times, times)
            return found, {}
        paths: Paths = {}
        more: Paths = {}
        lo: Rows | None = None
        core = run.cores[0]
        if core.nodes:
            paths, lo = self.paths(core.nodes[-1], rows[:, _planned(program)], store)
        for line, (owner, stage, _) in self.stages.items():
            if owner != key or stage not in core.stages:
                continue
            name = stage.program.variable.name
            which, members = run.sets.expand(rows[:, names.index(name)])
            times = store.times(members)
            first = np.full(len(rows), np.iinfo(np.int64).max)
            np.minimum.at(first, which, times)
            origin = first if lo is None else lo
            bins = self.places[line].bin_of(origin[which], times)
            lead = np.flatnonzero(np.diff(which, prepend=-1))
            paths[line] = bins[lead]
            rest = np.ones(len(bins), dtype=np.bool_)
            rest[lead] = False
            more[line] = bins[rest]
            lo = np.minimum(origin, first)
        return paths, more

    def control(self, key: Key, run: BranchRun, matches: Matches, store: RowStore, levels: Rows) -> Control:
        """The matches of the control group, while such ``levels`` of pairs are dropped."""
        program, core, rows = run.program, run.cores[0], matches.tuples.rows
        names, planned = program.columns, _planned(program)
        if core.nodes:
            root = core.nodes[-1].number
            slot, joins = planned[self.anchors[root]], self.line_of.get(root, -1)
            if joins < 0 and not core.stages:  # single events, before which there is no gate
                return Control(matches, rows[:, slot], np.ones(len(matches)))
        else:
            first = [stage.program.variable.name for owner, stage, _ in self.stages.values() if owner == key]
            slot, joins = names.index(first_column([*self.opened.get(key, ()), *first][0], names)), -1
        is_search = isinstance(program.plan, Search)
        shown = matches if is_search else matches.take(in_control(rows[:, slot]))
        others = self._beside(joins) if not is_search else [[line] for line in self._opening_lines(key)]
        there = np.full(len(shown), 1.0 if is_search else 1.0 / CONTROL)
        if others:
            paths, _ = self.match_paths(key, run, shown, store)
            for chain in others:
                kept = [1.0 - levels[line, paths[line]] / ALL for line in chain if line in paths]
                there *= 1.0 / CONTROL + (1.0 - 1.0 / CONTROL) * np.prod(kept, axis=0)
        return Control(shown, shown.tuples.rows[:, slot], 1.0 / there)

    def _beside(self, line: int) -> list[list[int]]:
        """The lines that tuples of a line went through, but for those of its own chain: of each chain, which has a
        control group of its own."""
        found = []
        while line >= 0:
            right = self.lines[line].right
            if right >= 0:
                found += [self._chain(right), *self._beside(right)]
            line = self.lines[line].left
        return found

    def _chain(self, line: int) -> list[int]:
        return [] if line < 0 else [line, *self._chain(self.lines[line].left)]

    def _opening_lines(self, key: Key) -> list[int]:
        return [self.opening_lines[key, name] for name in self.opened.get(key, ())]

    def measure(self, model: Model) -> None:
        """What a pair makes of work, where that has been counted."""
        for place, line in enumerate(self.lines):
            run = self.works.get(place)
            if isinstance(run, StepwiseRun):
                work = BOUND * sum(run.bound) + EVALUATED * run.evaluated
                self.lines[place] = line.with_work(max(1.0, work / max(run.bound[0], 1)))
            elif run is not None:
                events = max(sum(model.events.get(leaf, 0.0) for leaf in {line.leaf}), 1.0)
                self.lines[place] = line.with_work(max(1.0, min(run.work / events, 1e6)))
        model.lines = list(self.lines)


def _planned(program: BranchProgram) -> list[int]:
    return [program.columns.index(name) for name in program.planned]


def survey(
    network: Network,
    runs: Mapping[Key, BranchRun],
    reads: Mapping[Key, dict[str, int]],
    critical: frozenset[str],
    type_of: Callable[[int], str],
) -> Survey:
    """The lines of all plans in force."""
    found = Survey(network)
    used: dict[int, set[Key]] = {}
    for key, run in runs.items():
        for core in run.cores:
            for node in core.nodes:
                used.setdefault(node.number, set()).add(key)
    found.spared = frozenset(n for n, keys in used.items() if any(key[0] in critical for key in keys))
    whole = [key for key, run in runs.items() if key[0] in critical or run.program.branch.stepwise]
    found.needed = frozenset(leaf for key in whole for leaf in reads[key].values())
    found.window = max([1, *(run.program.window for run in runs.values())])
    for node in network.nodes():
        _add_node(found, node, {runs[key].step for key in used.get(node.number, ())}, type_of)
    for key, run in runs.items():
        kept = key[0] in critical
        places = Places.of(run.program.window, run.step, BINS)
        found.whole[key] = _whole(run, reads[key], found.spared)
        for name, leaf in reads[key].items():
            if not kept and name not in found.whole[key]:
                found.repetitions[leaf] = found.repetitions.get(leaf, 0) + 1
        if run.program.branch.stepwise or isinstance(run.program.plan, Search):
            names = [v.name for v in run.program.branch.variables]
            if run.program.branch.stepwise:
                names = names[:1]
            else:
                names = [name for name in names if name in run.program.planned]
            for name in names:
                leaf = reads[key][name]
                line = Line(f"{key} {name}", type_of(leaf), opens=True, leaf=leaf, kept=kept)
                found.opening_lines[key, name] = found.add(line, places)
                found.works[found.opening_lines[key, name]] = run
                found.opened.setdefault(key, []).append(name)
        for core in run.cores:
            before = found.line_of.get(core.nodes[-1].number, -1) if core.nodes else -1
            anchor = found.anchors[core.nodes[-1].number] if core.nodes else 0
            for number, stage in enumerate(core.stages):
                leaf = reads[key][stage.program.variable.name]
                line = Line(
                    f"{key} sets {number} {core is run.cores[0]}", type_of(leaf), left=before, leaf=leaf, kept=kept
                )
                before = found.add(line, places)
                outer = stage.program.from_tuples.outer
                found.stages[before] = (key, stage, anchor if core.nodes else a_row(outer))
    return found


def _whole(run: BranchRun, reads: Mapping[str, int], spared: Collection[int]) -> frozenset[str]:
    if run.program.branch.stepwise:  # only which runs begin is for shedding to say
        return frozenset(reads) - {run.program.branch.variables[0].name}
    leaves = {node.leaf for node in run.cores[0].nodes if node.join is None and node.number in spared}
    return frozenset(name for name in run.program.planned if reads[name] in leaves)


def _add_node(found: Survey, node: Node, steps: set[int], type_of: Callable[[int], str]) -> None:
    found.nodes[node.number] = node
    places = Places.of(node.window, steps.pop() if len(steps) == 1 else 0, BINS)
    kept = node.number in found.spared
    key = f"node {node.number}"
    if node.join is None:
        found.anchors[node.number] = 0
        opens = [access[0] for access in node.kept]
        if all(opens) or any(opens):  # on the left side of a join, or all there is
            line = Line(key, type_of(node.leaf), opens=True, leaf=node.leaf, kept=kept or not all(opens))
            found.line_of[node.number] = found.add(line, places)
        return
    left, right = node.children
    found.anchors[node.number] = int(node.join.from_left.outer_to[found.anchors[left.number]])
    is_leaf = right.join is None
    conditions = node.join.from_left
    line = Line(
        key,
        type_of(right.leaf) if is_leaf else f"node {right.number}",
        left=found.line_of.get(left.number, -1),
        right=-1 if is_leaf else found.line_of[right.number],
        leaf=right.leaf if is_leaf else -1,
        kept=kept,
        whole=is_leaf and right.number in found.spared,
        evaluations=1.0 + COMPARED * len(conditions.conditions) + EVALUATED * len(conditions.external),
        turn=TURN + EXPRESSION * len(conditions.external),
    )
    found.line_of[node.number] = found.add(line, places)
