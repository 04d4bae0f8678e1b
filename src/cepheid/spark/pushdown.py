"""Which rows a pattern can use at all: the others never leave Spark.

What is asked of a row here is never more than what the engine asks of it, and may be less: the engine asks again.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Mapping
from functools import reduce
from typing import Any

import pyarrow as pa
from pyspark.sql import Column
from pyspark.sql import functions as F  # noqa: N812

from cepheid.engine.ingest import EventColumns
from cepheid.language import syntax as s
from cepheid.pattern.normal import Branch, Condition, ConditionKind, NormalForm

_COMPARE: dict[s.ComparisonOperator, Callable[[Any, Any], Any]] = {
    "=": operator.eq,
    "<>": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
_EXACT = 2**53
"""Up to here every integer is a double."""


def wanted_rows(
    normals: Iterable[NormalForm], columns: EventColumns, schema: pa.Schema, named: Mapping[str, Column]
) -> Column | None:
    """What rows of the events must satisfy to be of use; None if all are.

    ``named``: the columns of the DataFrame by their names. A row without a time is wanted, so that the engine can say
    what is wrong with it.
    """
    normals = tuple(normals)
    if columns.type is None or any(normal.needs_every_event for normal in normals):
        return None
    of_type: dict[str, list[Column | None]] = {}
    for type_, filters in (use for normal in normals for branch in normal.branches for use in _uses(branch)):
        of_type.setdefault(type_, []).append(_all(_pushed(c.expression, columns, schema, named) for c in filters))
    whole = [type_ for type_, conditions in of_type.items() if any(c is None for c in conditions)]
    wanted = [named[columns.type].isin(whole)] if whole else []
    for type_, conditions in of_type.items():
        if type_ not in whole:
            any_use = reduce(operator.or_, (c for c in conditions if c is not None))
            wanted.append((named[columns.type] == F.lit(type_)) & any_use)
    wanted += [named[name].isNull() for name in (columns.time, columns.tie_breaker) if name is not None]
    return reduce(operator.or_, wanted)


def _uses(branch: Branch) -> Iterable[tuple[str, list[Condition]]]:
    """The types of events that a branch looks for, with what each event must satisfy by itself."""
    if branch.never is not None:
        return
    parts = [(v.name, v.type, branch.conditions) for v in branch.variables]
    parts += [(n.name, n.type, n.conditions) for n in branch.negations]
    for name, type_, conditions in parts:
        yield type_, [c for c in conditions if c.kind is ConditionKind.FILTER and c.variables == {name}]


def _all(conditions: Iterable[Column | None]) -> Column | None:
    known = [c for c in conditions if c is not None]
    return reduce(operator.and_, known) if known else None


def _pushed(
    expression: s.Expression, columns: EventColumns, schema: pa.Schema, named: Mapping[str, Column]
) -> Column | None:
    """A condition as Spark understands it: true wherever the engine finds it true. None: it cannot be said."""

    def pushed(node: s.Expression) -> Column | None:
        match node:
            case s.And(operands):
                return _all(map(pushed, operands))
            case s.Or(operands):
                parts = [pushed(operand) for operand in operands]
                return None if any(p is None for p in parts) else reduce(operator.or_, parts)
            case s.Comparison(sign, s.Attribute() as attribute, s.Literal() as literal):
                return compared(sign, attribute, literal)
            case s.In(s.Attribute() as attribute, items):
                parts = [compared("=", attribute, i) if isinstance(i, s.Literal) else None for i in items]
                return None if any(p is None for p in parts) else reduce(operator.or_, parts)
        return None

    def compared(sign: s.ComparisonOperator, attribute: s.Attribute, literal: s.Literal) -> Column | None:
        name = attribute.name
        if name == "ts" and name not in named:
            name = columns.time
        if not _compares_alike(schema.field(name).type, sign, literal.value):
            return None
        column: Column = _COMPARE[sign](named[name], F.lit(literal.value))
        return column

    return pushed(expression)


def _compares_alike(type_: pa.DataType, sign: s.ComparisonOperator, value: s.Constant) -> bool:
    """Whether Spark and the engine agree on a comparison with a constant, but for NaN, which Spark lets pass.

    Spark turns an integer into a double to compare it with one, and the engine does not.
    """
    if isinstance(value, bool) or value is None:
        return False
    if pa.types.is_integer(type_):
        return isinstance(value, int) and -(2**63) <= value < 2**63
    if type_ == pa.float64():
        return isinstance(value, float) or (isinstance(value, int) and abs(value) <= _EXACT)
    return pa.types.is_string(type_) and isinstance(value, str) and sign == "="
