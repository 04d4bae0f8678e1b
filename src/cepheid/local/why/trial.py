"""Running patterns to see what comes out: all of the events once, and variants on as many as is bearable."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from cepheid.engine.engine import Engine
from cepheid.engine.ingest import EventColumns
from cepheid.engine.joiner import LimitError
from cepheid.language import syntax as s
from cepheid.language.pattern import Pattern
from cepheid.local.explain.build import Scale, tree_of
from cepheid.local.explain.plan_nodes import PlanNode
from cepheid.local.match import match, run
from cepheid.local.why.variants import within

VARIANT_EVENTS = 200_000
"""How many events a variant is tried on."""
VARIANT_LIMIT = 500_000
"""How many partial matches it may make; with more, it is tried on fewer events."""
FEWEST_EVENTS = 1_000
"""On fewer events than that it is not tried: then what it would do is not known."""
LIMIT = 20_000_000


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a pattern has done, and on how many events."""

    matches: int
    events: int
    root: PlanNode


@dataclass(frozen=True)
class Trial:
    """Events, and the patterns that have been tried on them."""

    table: pa.Table
    columns: EventColumns
    _known: dict[Pattern, tuple[pa.Table, int]] = field(default_factory=dict)

    def funnel(self, pattern: Pattern) -> Outcome:
        """What comes how far in a pattern without OR, variable by variable in its order."""
        events = self.table.num_rows
        while True:
            engine = Engine(
                [pattern], self.columns, "pattern_order", max_partial_matches=LIMIT, negation="post"
            )  # fmt: skip
            session = engine.open()
            try:
                found = run(session, self.table.slice(0, events), self.columns.time)
            except LimitError:
                events //= 2
                continue
            [(normal, [tallies])] = session.tallies()
            [program] = session.programs()[normal.name]
            return Outcome(found.num_rows, events, tree_of(program, tallies, None, Scale()))

    def matches(self, pattern: Pattern) -> int:
        return int(self.found(pattern).num_rows)

    def found(self, pattern: Pattern, *returning: s.Expression) -> pa.Table:
        """The matches of a variant, with the values of some expressions in columns 0, 1, …."""
        if returning:
            items = tuple(s.ReturnItem(e, str(place)) for place, e in enumerate(returning))
            pattern = replace(pattern, output=items)
        if pattern not in self._known:
            self._known[pattern] = self._run(pattern)
        return self._known[pattern][0]

    def where(self, pattern: Pattern) -> str:
        """What to add to a number of matches where not all events were looked at."""
        events = self._known[pattern][1]
        return "" if events == self.table.num_rows else f" in the first {events:,} events"

    def _run(self, pattern: Pattern) -> tuple[pa.Table, int]:
        events = self.table.num_rows
        if not isinstance(pattern.structure, s.Event):
            events = min(events, VARIANT_EVENTS)
        names: dict[str, Any] = {
            "time": self.columns.time, "type": self.columns.type, "tie_breaker": self.columns.tie_breaker
        }  # fmt: skip
        while True:
            try:
                found = match(pattern, self.table.slice(0, events), max_partial_matches=VARIANT_LIMIT, **names)
                return found, events
            except LimitError:
                events = events // 8 if events >= 8 * FEWEST_EVENTS else 0

    # --- windows

    def nearest(self, pattern: Pattern) -> s.Window | None:
        """The smallest window in which a pattern has a match, if a larger one than it has would do."""
        assert pattern.window is not None
        size, most = max(pattern.window.size, 1), self._span(pattern.window.kind)
        while size < most:
            size *= 2
            wider = within(pattern, size)
            if self.matches(wider):
                return s.Window(pattern.window.kind, self._smallest(wider, size // 2))
            if self._known[wider][1] < min(self.table.num_rows, VARIANT_EVENTS):
                return None  # with a still larger window still fewer events could be looked at
        return None

    def _smallest(self, pattern: Pattern, too_small: int) -> int:
        assert pattern.window is not None
        found = self.found(pattern)
        match pattern.window.kind:
            case s.WindowKind.TIME:
                start, end = (found[name].cast(pa.timestamp("ns")).cast(pa.int64()) for name in ("start", "end"))
                return int(pc.min(pc.subtract(end, start)).as_py())
            case s.WindowKind.NUMBER:
                return int(pc.min(pc.subtract(found["end"], found["start"])).as_py())
        enough = pattern.window.size
        while enough - too_small > 1:
            middle = (too_small + enough) // 2
            if self.matches(within(pattern, middle)):
                enough = middle
            else:
                too_small = middle
        return enough

    def _span(self, kind: s.WindowKind) -> int:
        if kind is s.WindowKind.EVENTS or self.table.num_rows < 2:
            return int(self.table.num_rows)
        first, last = (self.table[self.columns.time][place] for place in (0, -1))
        if kind is s.WindowKind.TIME:
            return int(last.cast(pa.timestamp("us")).value - first.cast(pa.timestamp("us")).value) * 1000
        return int(last.as_py() - first.as_py())
