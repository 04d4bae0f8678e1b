"""Shedding: nothing changes while it is only armed; under overload, matches are lost and none made up; and critical
patterns lose nothing."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

import pyarrow as pa
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import cepheid
from cepheid.engine.engine import Engine
from cepheid.engine.ingest import EventColumns, InputError
from cepheid.engine.session import Session
from cepheid.language import syntax as s
from cepheid.language.pattern import Pattern
from cepheid.plan.planner import PLANNERS
from cepheid.shed.strategies import Strategy
from tests.contracts.test_engine_is_exact import Case, canonical, change_plans, expected, schema
from tests.contracts.test_sharing_is_exact import MODES, come_and_go, workloads
from tests.contracts.test_sharing_is_exact import expected as expected_of
from tests.contracts.test_sharing_is_exact import found as found_of
from tests.strategies import patterns, patterns_with_streams

KINDS = (cepheid.HSpice, cepheid.ESpice, cepheid.PSpice, cepheid.WeightedSampling, cepheid.CostAware)
strategies = st.builds(
    lambda kind, observations: kind(observations=observations),
    st.sampled_from(KINDS),
    st.sampled_from([1, 3, 10, 1000]),
)
planners = st.sampled_from([*PLANNERS, "auto"])
monotone = patterns(selection=False).filter(
    lambda p: not any(isinstance(leaf, s.Negated) for leaf in s.leaves(p.structure))
)


def run(
    session: Session, engine: Engine, events: list[dict[str, Any]], table: pa.Table, data: st.DataObject, sheds: bool
) -> list[pa.Table]:
    """Push events in any order, with restarts, changes of plan and, if it sheds, any overload."""
    order: list[int] = data.draw(st.permutations(range(len(events))))
    size: int = data.draw(st.integers(1, 4))
    found = []
    for start in range(0, len(events), size):
        later = [events[i]["ts"] for i in order[start + size :]]
        advance: bool = data.draw(st.booleans())
        watermark = min(later) if later and advance else None
        session.overload(data.draw(st.sampled_from([0.0, 0.3, 0.8, 0.99])) if sheds else 0.0)
        if data.draw(st.integers(0, 3)) == 0:
            change_plans(session, data)
        if data.draw(st.integers(0, 3)) == 0:
            session = engine.restore(session.snapshot())
        found.append(session.push(table.take(pa.array(order[start : start + size], pa.int64())), watermark=watermark))
    found.append(session.close())
    return found


@settings(max_examples=60)
@given(patterns_with_streams(patterns()), planners, strategies, st.data())
def test_armed_is_exact(case: Case, planner: str, shed: Strategy, data: st.DataObject) -> None:
    pattern, events, options = case
    table = pa.Table.from_pylist(events, schema(pattern))
    engine = Engine([pattern], EventColumns(tie_breaker=options["tie_breaker"]), planner, shed=shed)
    found = run(engine.open(), engine, events, table, data, sheds=False)
    assert canonical([row for part in found for row in part.to_pylist()]) == expected(case)


@settings(max_examples=120)
@given(patterns_with_streams(monotone), planners, strategies, st.data())
def test_overload_makes_nothing_up(case: Case, planner: str, shed: Strategy, data: st.DataObject) -> None:
    pattern, events, options = case
    table = pa.Table.from_pylist(events, schema(pattern))
    engine = Engine([pattern], EventColumns(tie_breaker=options["tie_breaker"]), planner, shed=shed)
    found = run(engine.open(), engine, events, table, data, sheds=True)
    assert Counter(canonical([row for part in found for row in part.to_pylist()])) <= Counter(expected(case))


@settings(max_examples=60)
@given(workloads(), st.sampled_from(MODES), strategies, st.data())
def test_critical_patterns_lose_nothing(case: Any, share: Any, shed: Strategy, data: st.DataObject) -> None:
    some, events, options = case
    some = [replace(pattern, critical=data.draw(st.booleans())) for pattern in some]
    assume(any(pattern.critical for pattern in some))
    engine = Engine(some, EventColumns(tie_breaker=options["tie_breaker"]), share=share, shed=shed)
    session = engine.open()
    try:
        session.prepare(schema(some[0]))
    except InputError:  # columns of one name and different types
        assume(False)
    table = pa.Table.from_pylist(events, schema(some[0]))
    found = run(session, engine, events, table, data, sheds=True)
    for pattern in some:
        if pattern.critical:
            columns = engine_columns(pattern, table, options)
            assert found_of(found, str(pattern.name), columns) == expected_of(pattern, events, options)


@settings(max_examples=60)
@given(workloads(), st.sampled_from(MODES), strategies, st.data())
def test_critical_patterns_that_come_and_go_lose_nothing(
    case: Any, share: Any, shed: Strategy, data: st.DataObject
) -> None:
    some, events, options = case
    some = [replace(pattern, critical=data.draw(st.booleans())) for pattern in some]
    for pattern, mine, wanted, is_exact in come_and_go((some, events, options), share, data, shed):
        if pattern.critical:
            assert mine == wanted if is_exact else not set(mine) - set(wanted)


def engine_columns(pattern: Pattern, table: pa.Table, options: dict[str, Any]) -> list[str]:
    engine = Engine([pattern], EventColumns(tie_breaker=options["tie_breaker"]))
    return list(engine.output_schema(table.schema).names)
