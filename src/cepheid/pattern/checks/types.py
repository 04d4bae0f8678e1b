"""Checks of what may be compared, added and called with what; attributes are known once there is a schema."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from typing_extensions import assert_never

from cepheid.language import syntax as s
from cepheid.language.functions import NUMBERS, ORDERED, DataType, find_function, function_names
from cepheid.language.hints import function_hint
from cepheid.language.problems import Problem, closest
from cepheid.language.text import expression_text
from cepheid.language.values import Interval, Timestamp
from cepheid.pattern.schema import Columns
from cepheid.pattern.subject import Subject

_OPEN = frozenset({DataType.UNKNOWN, DataType.NULL})
_BOOLEAN = frozenset({DataType.BOOLEAN})
_STRING = frozenset({DataType.STRING})


def types_fit(subject: Subject) -> Iterator[Problem]:
    typing = Typing(subject.columns, subject)
    for condition in s.conjuncts(subject.pattern.condition):
        found = typing.of(condition)
        if found not in _BOOLEAN | _OPEN | {DataType.EVENT}:
            typing.problem(
                f"a condition is true or false, and this is {found.value}", condition, expected="a comparison"
            )
    for item in subject.pattern.output or ():
        typing.of(item.expression)
    yield from typing.problems


def window_fits(subject: Subject) -> Iterator[Problem]:
    columns, window = subject.columns, subject.pattern.window
    if columns is None or window is None:
        return
    time = columns.time_type
    if window.kind is s.WindowKind.TIME and time is DataType.INTEGER:
        yield subject.problem(
            f"the time column '{columns.time}' holds integers, and {window} is a length of time",
            window,
            expected="a plain number, such as WITHIN 1000",
        )
    elif window.kind is s.WindowKind.NUMBER and time is DataType.TIMESTAMP:
        yield subject.problem(
            f"the time column '{columns.time}' holds timestamps, and {window} has no unit",
            window,
            expected=f"a unit, such as WITHIN {window} seconds",
        )


def partition_exists(subject: Subject) -> Iterator[Problem]:
    if subject.columns is None:
        return
    for column in subject.pattern.partition:
        if column.name not in subject.columns.types:
            yield subject.problem(
                f"unknown attribute '{column.name}'",
                column,
                expected=f"a column of the events: {', '.join(subject.columns.types)}",
                hint=closest(column.name, subject.columns.types),
            )
        elif subject.columns.types[column.name] not in ORDERED | _OPEN:
            found = subject.columns.types[column.name].value
            yield subject.problem(f"'{column.name}' is {found}: events cannot be partitioned by it", column)


def type_of(expression: s.Expression, columns: Columns) -> DataType:
    """The type of an expression that has passed the checks."""
    return Typing(columns).of(expression)


class Typing:
    """The type of each expression, and what is wrong on the way to it."""

    def __init__(self, columns: Columns | None, subject: Subject | None = None) -> None:
        self._columns = columns
        self._subject = subject
        self.problems: list[Problem] = []

    def problem(self, message: str, at: s.Node, *, expected: str | None = None, hint: str | None = None) -> None:
        if self._subject is not None:
            self.problems.append(self._subject.problem(message, at, expected=expected, hint=hint))

    def of(self, e: s.Expression) -> DataType:
        match e:
            case s.Literal(value):
                return self._literal(e, value)
            case s.EventRef():
                return DataType.EVENT
            case s.Attribute(_, name) | s.Neighbour(_, _, name):
                return self._attribute(e, name)
            case s.Aggregate():
                return self._aggregate(e)
            case s.Negative(operand):
                return self._require(operand, NUMBERS | {DataType.INTERVAL}, "'-'")
            case s.Arithmetic():
                return self._arithmetic(e)
            case s.Comparison(_, left, right):
                self._comparable(e, [left, right])
            case s.Not(operand):
                self._require(operand, _BOOLEAN, "NOT")
            case s.And(operands) | s.Or(operands):
                for operand in operands:
                    self._require(operand, _BOOLEAN, "AND" if isinstance(e, s.And) else "OR")
            case s.In(operand, items):
                self._comparable(e, [operand, *items])
            case s.Between(operand, low, high):
                self._comparable(e, [operand, low, high])
            case s.Like(operand, pattern):
                self._require(operand, _STRING, "LIKE")
                self._require(pattern, _STRING, "LIKE")
            case s.IsNull(operand):
                self._value(operand)
            case s.Case(cases, otherwise):
                for condition, _ in cases:
                    self._require(condition, _BOOLEAN, "WHEN")
                values = [v for _, v in cases] + ([otherwise] if otherwise is not None else [])
                return self._comparable(e, values)
            case s.Call():
                return self._call(e)
            case _:
                assert_never(e)
        return DataType.BOOLEAN

    def _literal(self, e: s.Expression, value: s.Constant) -> DataType:
        match value:
            case None:
                return DataType.NULL
            case bool():
                return DataType.BOOLEAN
            case int():
                if not -(2**63) <= value < 2**63:
                    self.problem(f"{value} does not fit a 64-bit integer", e)
                return DataType.INTEGER
            case float():
                return DataType.FLOAT
            case str():
                return DataType.STRING
            case Timestamp():
                return DataType.TIMESTAMP
            case Interval():
                return DataType.INTERVAL
            case _:
                assert_never(value)

    def _attribute(self, e: s.Attribute | s.Neighbour, name: str) -> DataType:
        columns = self._columns
        if columns is None:
            return DataType.UNKNOWN
        found = columns.type_of(name)
        if found is None:
            self.problem(
                f"unknown attribute '{name}'",
                e,
                expected=f"a column of the events: {', '.join(columns.types)}",
                hint=closest(name, columns.types),
            )
            return DataType.UNKNOWN
        return found

    def _aggregate(self, e: s.Aggregate) -> DataType:
        if e.argument is None:
            return DataType.INTEGER
        match e.function:
            case "COUNT":
                self._value(e.argument)
                return DataType.INTEGER
            case "SUM":
                return self._require(e.argument, NUMBERS | {DataType.INTERVAL}, "SUM")
            case "AVG" | "STDDEV":
                self._require(e.argument, NUMBERS, e.function)
                return DataType.FLOAT
            case _:
                return self._require(e.argument, ORDERED, e.function)

    def _arithmetic(self, e: s.Arithmetic) -> DataType:
        left, right = self._value(e.left), self._value(e.right)
        result = _arithmetic_result(e.operator, left, right)
        if result is None:
            hint = None
            if DataType.STRING in (left, right) and e.operator == "+":
                hint = "strings are joined with CONCAT"
            elif DataType.INTERVAL in (left, right) and NUMBERS & {left, right}:
                hint = "an interval can be multiplied by a whole number; a plain number needs a unit to be added"
            self.problem(
                f"'{e.operator}' has no meaning between {left.value} and {right.value}",
                e,
                expected="numbers, or timestamps and intervals",
                hint=hint,
            )
            return DataType.UNKNOWN
        return result

    def _call(self, e: s.Call) -> DataType:
        function = e.bound or find_function(e.function)
        if function is None:
            self.problem(
                f"unknown function '{e.function}'",
                e,
                expected="a function of the language or a registered one",
                hint=function_hint(e.function, function_names()),
            )
            for argument in e.arguments:
                self._value(argument)
            return DataType.UNKNOWN
        given = len(e.arguments)
        if given < function.minimum or (function.maximum is not None and given > function.maximum):
            low, high = function.minimum, function.maximum
            wanted = f"{low} or more" if high is None else str(low) if low == high else f"{low} to {high}"
            self.problem(f"{e.function} takes {wanted} argument{'' if wanted == '1' else 's'}, found {given}", e)
            return DataType.UNKNOWN if function.result is None else function.result
        if function.result is None and given > 1:
            return self._comparable(e, e.arguments)
        found = [
            self._require(argument, function.parameter(place), e.function) for place, argument in enumerate(e.arguments)
        ]
        return found[0] if function.result is None else function.result

    def _value(self, e: s.Expression) -> DataType:
        """The type of something that must be a value; a bare event has been reported elsewhere."""
        found = self.of(e)
        return DataType.UNKNOWN if found is DataType.EVENT else found

    def _require(self, e: s.Expression, allowed: frozenset[DataType], what: str) -> DataType:
        found = self._value(e)
        if found not in allowed | _OPEN:
            wanted = DataType.NUMBER.value if allowed >= NUMBERS else min(t.value for t in allowed)
            self.problem(f"{what} takes {wanted}, and {expression_text(e)} is {found.value}", e)
            return DataType.UNKNOWN
        return found

    def _comparable(self, e: s.Expression, operands: Iterable[s.Expression]) -> DataType:
        """The common type of values that are compared with each other or stand for each other."""
        common = DataType.NULL
        first: s.Expression | None = None
        for operand in operands:
            found = self._value(operand)
            if found in _OPEN:
                common = found if common is DataType.NULL else common
                continue
            if found not in ORDERED:
                self.problem(f"{expression_text(operand)} is {found.value} and cannot be compared", operand)
                continue
            if first is not None and _family(found) != _family(common):
                self.problem(
                    f"{common.value} and {found.value} cannot be compared",
                    e,
                    expected=f"{expression_text(first)} and {expression_text(operand)} of one type",
                    hint=_comparison_hint({common, found}),
                )
                return DataType.UNKNOWN
            common = found if first is None else _wider(common, found)
            first = first or operand
        return common


def _family(found: DataType) -> DataType:
    return DataType.NUMBER if found in NUMBERS else found


def _wider(left: DataType, right: DataType) -> DataType:
    """The type of a number that may come from either."""
    if left is right:
        return left
    return DataType.FLOAT if DataType.FLOAT in (left, right) else DataType.NUMBER


def _comparison_hint(types: set[DataType]) -> str | None:
    if types == {DataType.STRING, DataType.TIMESTAMP}:
        return "write TIMESTAMP before the string"
    if DataType.INTERVAL in types and types & NUMBERS:
        return "an interval has a unit: 5 minutes; on an integer time column, all is plain numbers"
    return None


def _arithmetic_result(operator: str, left: DataType, right: DataType) -> DataType | None:
    """The type of ``left operator right``, or None where it has no meaning."""
    time, length = DataType.TIMESTAMP, DataType.INTERVAL
    if left in NUMBERS | _OPEN and right in NUMBERS | _OPEN:
        if operator == "/" and {left, right} <= NUMBERS:
            return DataType.FLOAT
        return DataType.UNKNOWN if {left, right} & _OPEN else _wider(left, right)
    if {left, right} & _OPEN and {left, right} <= {time, length} | _OPEN:
        return DataType.UNKNOWN
    match operator, left, right:
        case ("+", DataType.TIMESTAMP, DataType.INTERVAL) | ("+", DataType.INTERVAL, DataType.TIMESTAMP):
            return time
        case "-", DataType.TIMESTAMP, DataType.INTERVAL:
            return time
        case ("-", DataType.TIMESTAMP, DataType.TIMESTAMP) | ("+" | "-", DataType.INTERVAL, DataType.INTERVAL):
            return length
        case ("*", DataType.INTERVAL, DataType.INTEGER | DataType.NUMBER) | (
            "*",
            DataType.INTEGER | DataType.NUMBER,
            DataType.INTERVAL,
        ):
            return length
        case "/", DataType.INTERVAL, DataType.INTERVAL:
            return DataType.FLOAT
    return None
