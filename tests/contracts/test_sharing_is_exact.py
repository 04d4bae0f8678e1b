"""However patterns share work: each has the matches of the reference matcher, as if it were alone."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pyarrow as pa
from hypothesis import assume, given
from hypothesis import strategies as st

from cepheid.engine.engine import Engine
from cepheid.engine.ingest import EventColumns, InputError
from cepheid.engine.planning import Share
from cepheid.engine.session import Session
from cepheid.language import syntax as s
from cepheid.language.pattern import Pattern
from cepheid.plan.planner import PLANNERS
from cepheid.plan.sharing.plan import Sharing
from cepheid.shed.strategies import Strategy
from tests import oracle
from tests.contracts.test_engine_is_exact import canonical, change_plans, schema
from tests.strategies import Draw, patterns, patterns_with_streams

QUICK = Sharing(steps=20)
MODES: list[Share] = [
    "none",
    "maximal",
    "reorder",
    "prefix",
    QUICK,
    replace(QUICK, search="tabu", neighbourhood="vertex"),
]

Case = tuple[list[Pattern], list[dict[str, Any]], dict[str, Any]]


@st.composite
def relatives(draw: Draw, pattern: Pattern) -> Pattern:
    """A pattern that has much in common with another one."""
    assert pattern.window is not None
    match draw(st.integers(0, 4)):
        case 0:
            unit = 1_000_000_000 if pattern.window.kind is s.WindowKind.TIME else 1
            least = 1 if pattern.window.kind is s.WindowKind.EVENTS else 0
            size = draw(st.integers(least, 9)) * unit
            return replace(pattern, window=replace(pattern.window, size=size), slide=None)
        case 1:
            return replace(pattern, condition=None)
        case 2:
            return replace(pattern, partition=())
        case 3:
            return pattern
    clock = pattern.window.kind
    other = draw(patterns(events_window=clock is s.WindowKind.EVENTS))
    assert other.window is not None
    if other.window.kind is not clock:  # one column of times fits both
        other = replace(other, window=pattern.window, slide=None)
    return other


@st.composite
def workloads(draw: Draw) -> Case:
    pattern, events, options = draw(patterns_with_streams(patterns()))
    some = [pattern, *(draw(relatives(pattern)) for _ in range(draw(st.integers(1, 3))))]
    return [replace(p, name=f"p{place}") for place, p in enumerate(some)], events, options


def found(tables: list[pa.Table], name: str, columns: list[str]) -> list[str]:
    return canonical([{c: row[c] for c in columns} for t in tables for row in t.to_pylist() if row["pattern"] == name])


def expected(pattern: Pattern, events: list[dict[str, Any]], options: dict[str, Any]) -> list[str]:
    return canonical(oracle.rows(pattern, events, **options))


def opened(engine: Engine, pattern: Pattern) -> tuple[Session, dict[str, list[str]]]:
    """A session, and the columns of each pattern's matches."""
    session = engine.open()
    try:
        session.prepare(schema(pattern))
    except InputError:  # a column with two types
        assume(False)
    return session, {name: f.names for state in session._states for name, f in state.schemas.items()}


@given(workloads(), st.sampled_from(MODES), st.sampled_from([*PLANNERS, "auto"]), st.data())
def test_every_way_to_share(case: Case, share: Share, planner: str, data: st.DataObject) -> None:
    some, events, options = case
    engine = Engine(some, EventColumns(tie_breaker=options["tie_breaker"]), planner, share=share)
    session, columns = opened(engine, some[0])
    table = pa.Table.from_pylist(events, schema(some[0]))
    order: list[int] = data.draw(st.permutations(range(len(events))))
    size: int = data.draw(st.integers(1, 4))
    tables = []
    for start in range(0, len(events), size):
        later = [events[i]["ts"] for i in order[start + size :]]
        advance: bool = data.draw(st.booleans())
        watermark = min(later) if later and advance else None
        if data.draw(st.integers(0, 3)) == 0:
            change_plans(session, data)
        if data.draw(st.integers(0, 2)) == 0:
            session = engine.restore(session.snapshot())
        tables.append(session.push(table.take(pa.array(order[start : start + size], pa.int64())), watermark=watermark))
    tables.append(session.close())
    for pattern in some:
        assert found(tables, str(pattern.name), columns[str(pattern.name)]) == expected(pattern, events, options)


@given(workloads(), st.sampled_from(MODES), st.data())
def test_patterns_that_come_and_go(case: Case, share: Share, data: st.DataObject) -> None:
    for _, mine, wanted, is_exact in come_and_go(case, share, data):
        assert mine == wanted if is_exact else not set(mine) - set(wanted)


def come_and_go(
    case: Case, share: Share, data: st.DataObject, shed: Strategy | None = None
) -> Iterator[tuple[Pattern, list[str], list[str], bool]]:
    """For each pattern its matches, those whose events all came while it was there, and whether they must be equal:
    not where the pattern goes while some wait for the watermark. With ``shed`` there is any overload."""
    some, events, options = case
    assume(len(events) > 1 and some[0].window is not None and some[0].window.kind is not s.WindowKind.EVENTS)
    columns_ = EventColumns(tie_breaker=options["tie_breaker"])
    _, columns = opened(Engine(some, columns_, share=share), some[0])
    comes = {str(p.name): data.draw(st.integers(0, len(events) - 1)) for p in some}
    comes["p0"] = 0
    goes = {name: data.draw(st.integers(at + 1, len(events) + 3)) for name, at in comes.items() if name != "p0"}
    there = [p for p in some if comes[str(p.name)] == 0]
    session = Engine(there, columns_, share=share, shed=shed).open()
    table = pa.Table.from_pylist(events, schema(some[0]))
    order: list[int] = data.draw(st.permutations(range(len(events))))
    tables: list[pa.Table] = []
    for place, row in enumerate(order):
        for pattern in some:
            if comes[str(pattern.name)] == place > 0:
                session.add(pattern)
                there.append(pattern)
            if goes.get(str(pattern.name)) == place:
                session.remove(str(pattern.name))
                there.remove(pattern)
        if shed is not None:
            session.overload(data.draw(st.sampled_from([0.0, 0.5, 0.99])))
        if data.draw(st.integers(0, 3)) == 0:
            change_plans(session, data)
        if data.draw(st.integers(0, 2)) == 0:
            session = Engine(there, columns_, share=share, shed=shed).restore(session.snapshot())
        tables.append(session.push(table.take(pa.array([row], pa.int64()))))
    tables.append(session.close())
    for pattern in some:
        name = str(pattern.name)
        until = goes.get(name, len(events))
        wanted = expected(pattern, [events[i] for i in sorted(order[comes[name] : until])], options)
        yield pattern, found(tables, name, columns[name]), wanted, until >= len(events) or _is_monotone(pattern)


def _is_monotone(pattern: Pattern) -> bool:
    """Whether a match stays one, whatever comes later."""
    negated = any(isinstance(leaf, s.Negated) for leaf in s.leaves(pattern.structure))
    return not negated and pattern.selection == s.Selection()
