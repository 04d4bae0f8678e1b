"""Whatever the plan, the batches and the order of arrival: the matches of the reference matcher, no more and no fewer."""

from __future__ import annotations

import math
from typing import Any

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from cepheid.engine.engine import NEGATIONS, Engine
from cepheid.engine.ingest import EventColumns
from cepheid.engine.session import Session
from cepheid.language import syntax as s
from cepheid.language.pattern import Pattern
from cepheid.local.match import match
from cepheid.plan.planner import PLANNERS
from cepheid.plan.tree import chain, search, variables
from tests import oracle
from tests.strategies import patterns, patterns_with_streams

Case = tuple[Pattern, list[dict[str, Any]], dict[str, Any]]
cases = patterns_with_streams(patterns())


def schema(pattern: Pattern) -> pa.Schema:
    assert pattern.window is not None
    time = pa.timestamp("us") if pattern.window.kind is s.WindowKind.TIME else pa.int64()
    return pa.schema(
        {"ts": time, "type": pa.string(), "x": pa.int64(), "y": pa.float64(), "k": pa.string(), "f": pa.bool_(),
         "h": pa.list_(pa.float64()), "seq": pa.int64()}
    )  # fmt: skip


def canonical(rows: list[dict[str, Any]]) -> list[str]:
    """Rows without their order; numbers that are equal look equal, and doubles are compared to twelve digits."""

    def plain(value: Any) -> Any:
        match value:
            case bool() | None:
                return value
            case int() | float():
                return "NaN" if math.isnan(value) else float(f"{value:.12g}") + 0.0  # no -0.0
            case dict():
                return {k: plain(v) for k, v in value.items()}
            case list():
                return [plain(v) for v in value]
        return value

    return sorted(repr(plain(row)) for row in rows)


def expected(case: Case) -> list[str]:
    pattern, events, options = case
    return canonical(oracle.rows(pattern, events, **options))


def change_plans(session: Session, data: st.DataObject) -> None:
    """Give every branch with a choice some other plan, in the middle of the stream."""
    plans = {}
    for branch, plan in session.plans.items():
        if plan is not None and len(variables(plan)) > 1:
            names = data.draw(st.permutations(variables(plan)))
            plans[branch] = data.draw(st.sampled_from([chain(names), search(names)]))
    session.change_plans(plans, data.draw(st.sampled_from(["rebuild", "parallel"])))


@given(cases, st.sampled_from([*PLANNERS, "auto"]), st.sampled_from([1, 2, 7, None]), st.sampled_from(NEGATIONS))
def test_every_plan_and_batch_size(case: Case, planner: str, batch_size: int | None, negation: str) -> None:
    pattern, events, options = case
    table = pa.Table.from_pylist(events, schema(pattern))
    found = match(pattern, table, planner=planner, batch_size=batch_size, negation=negation, **options)
    assert canonical(found.to_pylist()) == expected(case)


@given(cases, st.sampled_from([*PLANNERS, "auto"]), st.sampled_from(NEGATIONS), st.data())
def test_any_order_of_arrival_restarts_and_changes_of_plan(
    case: Case, planner: str, negation: str, data: st.DataObject
) -> None:
    pattern, events, options = case
    table = pa.Table.from_pylist(events, schema(pattern))
    engine = Engine([pattern], EventColumns(tie_breaker=options["tie_breaker"]), planner, negation=negation)
    session = engine.open()
    order: list[int] = data.draw(st.permutations(range(len(events))))
    size: int = data.draw(st.integers(1, 4))
    rows = []
    for start in range(0, len(events), size):
        chosen = order[start : start + size]
        later = [events[i]["ts"] for i in order[start + size :]]
        advance: bool = data.draw(st.booleans())
        watermark = min(later) if later and advance else None
        if data.draw(st.integers(0, 3)) == 0:
            change_plans(session, data)
        if data.draw(st.booleans()):
            session = engine.restore(session.snapshot())
        rows += session.push(table.take(pa.array(chosen, pa.int64())), watermark=watermark).to_pylist()
    rows += session.close().to_pylist()
    assert canonical(rows) == expected(case)
    assert session.late_events() is None
