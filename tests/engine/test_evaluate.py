"""The vectorised evaluator gives what the reference matcher computes, row by row."""

from __future__ import annotations

import math
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cepheid.engine.evaluate import evaluate
from cepheid.engine.vector import MICROSECONDS, Vector, from_arrow
from cepheid.language import syntax as s
from cepheid.language.reader import read_expression
from tests.oracle_expressions import Scope, Stream
from tests.strategies import Expressions, streams

SCHEMA = pa.schema(
    {"ts": pa.int64(), "type": pa.string(), "x": pa.int64(), "y": pa.float64(), "k": pa.string(), "f": pa.bool_(),
     "h": pa.list_(pa.float64()), "seq": pa.int64()}
)  # fmt: skip


@st.composite
def expressions(draw: st.DrawFn) -> s.Expression:
    maker = Expressions(draw, ["a"], [])
    return draw(st.sampled_from([maker.number, maker.boolean, maker.string]))()


def python_value(vector: Vector, row: int) -> Any:
    if not vector.mask()[row]:
        return None
    value = vector.data[row]
    return value.as_py() if vector.is_arrow else value.item()


def agree(expression: s.Expression, events: list[dict[str, Any]]) -> None:
    table = pa.Table.from_pylist(events, SCHEMA)
    found = evaluate(expression, lambda node: from_arrow(table[node.name], MICROSECONDS), MICROSECONDS, len(events))  # type: ignore[union-attr]
    stream = Stream(events)
    for row in range(len(events)):
        expected = Scope({"a": row}, {}, {"a": [row]}, stream).value(expression)
        value = python_value(found, row)
        if isinstance(expected, float) and isinstance(value, float):
            assert math.isclose(value, expected, rel_tol=1e-12), (expression, events[row])
        else:
            assert value == expected, (expression, events[row])


@given(expressions(), streams())
def test_random_expressions(expression: s.Expression, events: list[dict[str, Any]]) -> None:
    agree(expression, events)


BIG = [2**63 - 1, -(2**63), 2**53 + 1, -(2**53) - 1, 0, 1, -1, 3, None]
REAL = [2.0**63, -(2.0**63), 2.0**53, 0.5, -0.5, 0.0, 1e300, -1e300, float("inf"), float("-inf"), float("nan"), None]


@pytest.mark.parametrize("operator", ["=", "<>", "<", "<=", ">", ">=", "+", "-", "*", "/", "%"])
def test_numbers_at_the_edges(operator: str) -> None:
    template = {"type": "A", "k": None, "f": None, "h": None, "seq": 0}
    mixed = [{"ts": z or 0, "x": x, "y": y, **template} for x in BIG for y in REAL for z in BIG]
    events = [dict(zip(SCHEMA.names, (e[name] for name in SCHEMA.names), strict=True)) for e in mixed]
    agree(read_expression(f"a.x {operator} a.y"), events)
    agree(read_expression(f"a.y {operator} a.x"), events)
    agree(read_expression(f"a.x {operator} a.ts"), events)
    agree(read_expression(f"a.y {operator} 0.5"), events)


@pytest.mark.parametrize(
    "text",
    [
        "a.k LIKE a.k", "a.k LIKE '%_'", "SUBSTR(a.k, a.x)", "SUBSTR(a.k, 1, a.x)", "SUBSTR(a.k, 2, 1)", "CONCAT(a.k, '-', a.k)",
        "GREATEST(a.x, a.y, 1)", "NULLIF(a.x, 1)", "NULLIF(a.k, 'p')", "COALESCE(a.k, 'none')", "COALESCE(NULL, a.x, a.y)",
        "CASE WHEN a.f THEN a.k ELSE 'no' END", "CASE WHEN a.f THEN a.x WHEN a.x > 1 THEN a.y END", "POWER(a.y, a.x)", "EXP(a.y)",
        "CORR(a.h, a.h)", "-a.x", "ABS(a.x)", "NULL", "a.x IN (NULL, 1)", "NOT (a.f AND NULL)", "LENGTH(CONCAT(a.k, a.k))",
    ],
)  # fmt: skip
@given(events=streams())
def test_functions(text: str, events: list[dict[str, Any]]) -> None:
    agree(read_expression(text), events)
