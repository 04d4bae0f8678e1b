"""Which rows a pattern can use at all: the others never leave Spark.

What is asked of a row here is never more than what the engine asks of it, and may be less: the engine asks again.
Spark follows an expression down with a call for each level, so that what is long must not be deep; and what is very
long costs it more than the rows.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
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
MOST = 300
"""Comparisons that Spark is asked to make for a row. Beyond that, types that need many are asked for as a whole."""


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
    uses: dict[str, dict[tuple[s.Expression, ...], None]] = {}  # each once, in their order
    for type_, filters in (use for normal in normals for branch in normal.branches for use in _uses(branch)):
        uses.setdefault(type_, {})[tuple(condition.expression for condition in filters)] = None
    affordable = _affordable(uses)
    whole, wanted = [type_ for type_ in uses if type_ not in affordable], []
    for type_ in affordable:
        conditions = [_all(_pushed(e, columns, schema, named) for e in filters) for filters in uses[type_]]
        any_use = _any(conditions)
        if any_use is None:
            whole.append(type_)
        else:
            wanted.append((named[columns.type] == F.lit(type_)) & any_use)
    wanted += [named[columns.type].isin(whole)] if whole else []
    wanted += [named[name].isNull() for name in (columns.time, columns.tie_breaker) if name is not None]
    return any_of(wanted)


def any_of(columns: Sequence[Column]) -> Column:
    """Whether any of some conditions holds; there is at least one."""
    return _joined(operator.or_, columns)


def _joined(sign: Callable[[Any, Any], Any], columns: Sequence[Column]) -> Column:
    """As a tree that is as low as can be."""
    while len(columns) > 1:
        pairs = [columns[place : place + 2] for place in range(0, len(columns), 2)]
        columns = [sign(*pair) if len(pair) == 2 else pair[0] for pair in pairs]
    return columns[0]


def _affordable(uses: Mapping[str, Iterable[tuple[s.Expression, ...]]]) -> list[str]:
    """The types whose conditions are no more than Spark is to be asked for, those with the fewest first."""
    sizes = {type_: sum(_comparisons(e) for filters in some for e in filters) for type_, some in uses.items()}
    found, left = [], MOST
    for type_ in sorted(sizes, key=lambda name: sizes[name]):
        left -= sizes[type_]
        if left >= 0:
            found.append(type_)
    return found


def _comparisons(expression: s.Expression) -> int:
    return sum(isinstance(node, (s.Comparison, s.In)) for node in s.walk(expression))


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
    return _joined(operator.and_, known) if known else None


def _any(conditions: Iterable[Column | None]) -> Column | None:
    """None if one of them cannot be said."""
    conditions = list(conditions)
    known = [c for c in conditions if c is not None]
    return any_of(known) if known and len(known) == len(conditions) else None


def _pushed(
    expression: s.Expression, columns: EventColumns, schema: pa.Schema, named: Mapping[str, Column]
) -> Column | None:
    """A condition as Spark understands it: true wherever the engine finds it true. None: it cannot be said."""

    def pushed(node: s.Expression) -> Column | None:
        match node:
            case s.And(operands):
                return _all(map(pushed, operands))
            case s.Or(operands):
                return _any(map(pushed, operands))
            case s.Comparison(sign, s.Attribute() as attribute, s.Literal() as literal):
                return compared(sign, attribute, literal.value)
            case s.In(s.Attribute() as attribute, items):
                values = [item.value if isinstance(item, s.Literal) else None for item in items]
                return among(attribute, values)
        return None

    def compared(sign: s.ComparisonOperator, attribute: s.Attribute, value: s.Constant) -> Column | None:
        name = name_of(attribute)
        if not _compares_alike(schema.field(name).type, sign, value):
            return None
        column: Column = _COMPARE[sign](named[name], F.lit(value))
        return column

    def among(attribute: s.Attribute, values: Sequence[s.Constant]) -> Column | None:
        name = name_of(attribute)
        alike = all(_compares_alike(schema.field(name).type, "=", value) for value in values)
        return named[name].isin(list(values)) if alike else None

    def name_of(attribute: s.Attribute) -> str:
        return columns.time if attribute.name == "ts" and "ts" not in named else attribute.name

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
