"""``cepheid.explain``: the plan of a pattern, what was expected of it and what it did."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from cepheid.engine.engine import Engine
from cepheid.engine.ingest import EventColumns
from cepheid.engine.lower import lower
from cepheid.engine.planning import Share
from cepheid.engine.program import BranchProgram, FieldTable
from cepheid.engine.sample import estimate_all
from cepheid.engine.session import Session
from cepheid.engine.tally import Tally
from cepheid.language import syntax as s
from cepheid.language.functions import DataType
from cepheid.language.pattern import Pattern, with_names
from cepheid.local.explain.build import Scale, clauses_of, tree_of
from cepheid.local.explain.drawing import PALE, Sketch
from cepheid.local.explain.plan_nodes import BranchPlan, PatternPlan
from cepheid.local.explain.shared import SharedParts, shared_parts
from cepheid.local.explain.shared_svg import draw_shared
from cepheid.local.explain.svg import draw_patterns
from cepheid.local.explain.tree_text import count_of, pattern_text
from cepheid.local.match import prepare, run
from cepheid.pattern.normal import Branch, NormalForm
from cepheid.pattern.normalise import normalise
from cepheid.pattern.read import patterns_in
from cepheid.pattern.schema import Columns
from cepheid.plan.cardinality import Cardinality
from cepheid.plan.cost import tree_cost
from cepheid.stats.estimates import Estimates, nothing_known

NOTHING = (s.ReturnItem(s.Literal(1), "one"),)
"""What a pattern returns, if only the number of its matches matters."""
ASSUMED = (
    "Without events, one event of each variable in a window is assumed, and of conditions what is usual of their kind."
)


MOST_DRAWN = 12
"""The plans of more patterns than that are not drawn one by one beside what they share."""


@dataclass(frozen=True, slots=True)
class Explanation:
    """Plans as a value: print it, or show it in a notebook. ``events``: how many were run, None without a run.

    ``shared``: the parts of plans that several patterns share.
    """

    patterns: tuple[PatternPlan, ...]
    events: int | None = None
    notes: tuple[str, ...] = ()
    shared: SharedParts | None = None

    def __str__(self) -> str:
        shared = [] if self.shared is None else [str(self.shared)]
        return "\n\n".join([*(pattern_text(p, self.events) for p in self.patterns), *self.notes, *shared])

    def to_svg(self) -> str:
        """A drawing: each part of a plan is a box, and its funnel stands in it.

        What patterns share comes first. The plans of many patterns are not drawn one by one below it.
        """
        sketch = Sketch()
        if self.shared is not None:
            draw_shared(sketch, self.shared)
        if self.shared is None or len(self.patterns) <= MOST_DRAWN:
            draw_patterns(sketch, self.patterns, self.events)
        else:
            sketch.line(f"The plans of all {len(self.patterns)} patterns with their numbers are in the text.", PALE)
        for note in self.notes:
            sketch.line(note, PALE)
        return sketch.page()

    def save(self, path: str | Path) -> None:
        """Write the drawing to a file."""
        Path(path).write_text(self.to_svg(), encoding="utf-8")

    def _repr_svg_(self) -> str:
        return self.to_svg()

    def _repr_html_(self) -> str:
        """A wide drawing is scrolled, not shrunk."""
        return f'<div style="overflow-x: auto">{self.to_svg()}</div>'


def explain(
    patterns: str | Pattern | Iterable[str | Pattern],
    events: Any = None,
    *,
    time: str = "ts",
    type: str | None = "type",
    tie_breaker: str | None = None,
    planner: str = "auto",
    order: Sequence[str] | None = None,
    statistics: Mapping[Branch, Estimates] | None = None,
    batch_size: int | None = None,
    negation: str = "auto",
    share: Share = None,
    max_partial_matches: int = 100_000_000,
) -> Explanation:
    """The plan of each pattern as a tree: what is looked up how, which conditions are checked where, what it costs.

    With events the plans are run, and the real numbers stand beside the expected ones: of events, candidates, partial
    matches and what each condition let through. Options as for :func:`cepheid.match`.

    >>> import cepheid
    >>> events = [{"ts": 1, "type": "A", "x": 5}, {"ts": 2, "type": "B", "x": 7}, {"ts": 9, "type": "B", "x": 8}]
    >>> explanation = cepheid.explain("PATTERN SEQ(A a, B b) WHERE a.x < b.x WITHIN 5", events)
    >>> print(explanation)  # doctest: +ELLIPSIS
    pattern_1: 1 match in 3 events
      USING skip_till_any, WITHIN 5
    <BLANKLINE>
      planner auto: (a ⋈ b), cost 2.4
      expected       found
          0.86           1  a with b
                         1  │  candidates by time
          0.86           1  │  in the window, a before b
          0.86           1  │  a.x < b.x
             1           1  ├─ A a
             2           2  └─ B b
    <BLANKLINE>
    In all 1 candidate, 1 condition evaluation, 0 rejected by negation. Kept at most ...
    """
    options: dict[str, Any] = {"planner": planner, "order": order, "negation": negation, "share": share}
    columns = EventColumns(time, type, tie_breaker)
    if events is None:
        return _by_the_pattern_alone(
            Engine(with_names(patterns_in(patterns)), columns, estimates=dict(statistics or {}), **options)
        )
    engine, table = prepare(
        patterns, events, time=time, type=type, tie_breaker=tie_breaker, statistics=statistics,
        max_partial_matches=max_partial_matches, **options,
    )  # fmt: skip
    estimates = dict(engine.estimates) or estimate_all(engine.patterns, table, columns)
    counted = [replace(pattern, output=NOTHING, source=None) for pattern in engine.patterns]
    session = replace(engine, patterns=counted).open()
    matches = run(session, table, time, batch_size)
    counts = {item["values"]: item["counts"] for item in pc.value_counts(matches["pattern"]).to_pylist()}
    plans = []
    for normal, tallies in session.tallies():
        scale = Scale(_share(normal.branches[0].window, table[time]))
        programs = zip(session.programs()[normal.name], tallies, strict=True)
        plans.append(_plan(engine, normal, programs, estimates, scale, counts.get(normal.name, 0)))
    return Explanation(tuple(plans), table.num_rows, (_totals(session.report()),), _shared(session, engine.patterns))


def _shared(session: Session, patterns: Iterable[Pattern]) -> SharedParts | None:
    found = session.shared_plan()
    return None if found is None else shared_parts(found, map(normalise, patterns))


class _AnyTypes(FieldTable):
    """Where no events say what an attribute is, all values are taken to be of a type that kernels compare."""

    def type_of(self, expression: s.Expression) -> DataType:
        return DataType.INTEGER


def _by_the_pattern_alone(engine: Engine) -> Explanation:
    session = engine.open()
    types = _AnyTypes(Columns({}), engine.columns.type is not None)
    plans = []
    for normal in map(normalise, engine.patterns):
        live = (b for b in normal.branches if b.never is None)
        programs = ((lower(b, session.plans[b], types, 0, engine.negation), ()) for b in live)
        estimates = {b: engine.estimates.get(b) or nothing_known(b) for b in normal.branches}
        plans.append(_plan(engine, normal, programs, estimates, Scale(), None))
    notes = () if engine.estimates else (ASSUMED,)
    return Explanation(tuple(plans), None, notes, _shared(session, engine.patterns))


def _plan(
    engine: Engine,
    normal: NormalForm,
    programs: Iterable[tuple[BranchProgram, Sequence[Tally]]],
    estimates: Mapping[Branch, Estimates],
    scale: Scale,
    matches: int | None,
) -> PatternPlan:
    """``programs``: of the branches that can match, each with what it has counted."""
    rest = iter(programs)
    branches = []
    for branch in normal.branches:
        if branch.never is not None:
            branches.append(BranchPlan("", None, never=branch.never))
            continue
        program, tallies = next(rest)
        known = estimates.get(branch)
        cost = None
        if known is not None and program.plan is not None and not branch.stepwise:
            cost = tree_cost(program.plan, Cardinality(branch, known))
        branches.append(BranchPlan(_words(engine, program), tree_of(program, tallies, known, scale), cost))
    clauses = clauses_of(normal.branches[0], normal.selection.strategy.value, consume=normal.selection.consume)
    return PatternPlan(normal.name, tuple(clauses), tuple(branches), matches)


def _words(engine: Engine, program: BranchProgram) -> str:
    """How the plan was found, and what it is."""
    if program.branch.stepwise:
        return f"variables in the order of the pattern: {', '.join(v.name for v in program.branch.variables)}"
    parts = [] if program.plan is None else [str(program.plan)]
    parts += [f"KL({stage.variable.name})" for stage in program.kleene]
    how = "the order that was given" if engine.order is not None else f"planner {engine.planner}"
    return f"{how}: {', then '.join(parts)}"


def _share(window: s.Window, times: pa.ChunkedArray) -> float | None:
    """Which part of the stream a window is."""
    if len(times) < 2:
        return None
    match window.kind:
        case s.WindowKind.EVENTS:
            return window.size / len(times)
        case s.WindowKind.TIME:
            first, last = (time.cast(pa.timestamp("us")).value for time in (times[0], times[-1]))
            return float(max(window.size / 1000, 1) / max(last - first, 1))
    return float(max(window.size, 1) / max(times[-1].as_py() - times[0].as_py(), 1))


def _totals(report: Mapping[str, Any]) -> str:
    return (
        f"In all {count_of(report['candidates'], 'candidate')}, "
        f"{count_of(report['condition evaluations'], 'condition evaluation')}, "
        f"{report['rejected by negation']:,} rejected by negation. Kept at most "
        f"{count_of(report['peak buffered events'], 'event')} and "
        f"{count_of(report['peak partial matches'], 'partial match')}."
    )
