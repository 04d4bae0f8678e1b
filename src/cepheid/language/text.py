"""The syntax tree as text. What is printed here reads back as the same tree."""

from __future__ import annotations

from typing import TYPE_CHECKING

from typing_extensions import assert_never

from cepheid.language import syntax as s
from cepheid.language.values import Interval, Timestamp
from cepheid.language.words import quote_name, quote_string

if TYPE_CHECKING:
    from cepheid.language.pattern import Pattern

# How tightly an operator binds.
_OR, _AND, _NOT, _PREDICATE, _SUM, _PRODUCT, _UNARY, _ATOM = range(8)


def pattern_text(pattern: Pattern) -> str:
    """A pattern as it could have been written, a clause a line."""
    lines = []
    if pattern.name is not None:
        lines.append(f"NAME {quote_name(pattern.name)}")
    lines.append(f"PATTERN {structure_text(pattern.structure)}")
    if pattern.selection != s.Selection():
        consume = " CONSUME" if pattern.selection.consume else ""
        lines.append(f"USING {pattern.selection.strategy.value}{consume}")
    if pattern.condition is not None:
        lines.append(f"WHERE {expression_text(pattern.condition)}")
    if pattern.partition:
        lines.append(f"PARTITION BY {', '.join(quote_name(c.name) for c in pattern.partition)}")
    if pattern.window is not None:
        lines.append(f"WITHIN {pattern.window}" + (f" SLIDE {pattern.slide}" if pattern.slide else ""))
    if pattern.output is not None:
        items = (f"{expression_text(i.expression)} AS {quote_name(i.name)}" for i in pattern.output)
        lines.append(f"RETURN {', '.join(items)}")
    if pattern.critical:
        lines.append("NEVER SHED")
    return "\n".join(lines)


def structure_text(structure: s.Structure) -> str:
    match structure:
        case s.Event(type_, variable):
            return f"{quote_name(type_)} {quote_name(variable)}"
        case s.Kleene(event, minimum, maximum):
            bounds = [] if (minimum, maximum) == (1, None) else [minimum] if maximum is None else [minimum, maximum]
            return f"KL({', '.join([structure_text(event), *map(str, bounds)])})"
        case s.Negated(event):
            return f"NOT({structure_text(event)})"
        case s.Sequence(parts):
            return f"SEQ({', '.join(map(structure_text, parts))})"
        case s.Conjunction(parts):
            return f"AND({', '.join(map(structure_text, parts))})"
        case s.Disjunction(parts):
            return f"OR({', '.join(map(structure_text, parts))})"
        case s.AnyOf(count, parts):
            return f"ANY({', '.join([str(count), *map(structure_text, parts)])})"
        case _:
            assert_never(structure)


def expression_text(expression: s.Expression) -> str:
    return _expression(expression)[0]


def _at(expression: s.Expression, least: int) -> str:
    """In brackets if it binds less tightly than its place demands."""
    text, binding = _expression(expression)
    return text if binding >= least else f"({text})"


def _expression(e: s.Expression) -> tuple[str, int]:
    match e:
        case s.Literal(value):
            return _literal(value)
        case s.EventRef(variable):
            return quote_name(variable), _ATOM
        case s.Attribute(variable, name):
            return f"{quote_name(variable)}.{quote_name(name)}", _ATOM
        case s.Neighbour(variable, offset, name):
            return f"{quote_name(variable)}[{'i-1' if offset else 'i'}].{quote_name(name)}", _ATOM
        case s.Aggregate(function, variable, argument):
            if argument is None:
                return f"{function}({quote_name(variable)})", _ATOM
            if function in ("FIRST", "LAST") and isinstance(argument, s.Attribute):
                return f"{function}({quote_name(variable)}).{quote_name(argument.name)}", _ATOM
            return f"{function}({expression_text(argument)})", _ATOM
        case s.Negative(operand):
            text = _at(operand, _UNARY)
            return (f"-({text})" if text.startswith("-") else f"-{text}"), _UNARY
        case s.Arithmetic(operator, left, right):
            binding = _SUM if operator in "+-" else _PRODUCT
            return f"{_at(left, binding)} {operator} {_at(right, binding + 1)}", binding
        case s.Comparison(operator, left, right):
            return f"{_at(left, _SUM)} {operator} {_at(right, _SUM)}", _PREDICATE
        case s.Not(s.In() | s.Between() | s.Like() | s.IsNull() as predicate):
            return _predicate(predicate, "NOT "), _PREDICATE
        case s.In() | s.Between() | s.Like() | s.IsNull():
            return _predicate(e, ""), _PREDICATE
        case s.Not(operand):
            return f"NOT {_at(operand, _NOT)}", _NOT
        case s.And(operands):
            return " AND ".join(_at(o, _NOT) for o in operands), _AND
        case s.Or(operands):
            return " OR ".join(_at(o, _AND) for o in operands), _OR
        case s.Case(cases, otherwise):
            whens = "".join(f" WHEN {expression_text(c)} THEN {expression_text(v)}" for c, v in cases)
            rest = "" if otherwise is None else f" ELSE {expression_text(otherwise)}"
            return f"CASE{whens}{rest} END", _ATOM
        case s.Call(function, arguments):
            return f"{function}({', '.join(map(expression_text, arguments))})", _ATOM
        case _:
            assert_never(e)


def _predicate(e: s.In | s.Between | s.Like | s.IsNull, negated: str) -> str:
    operand = _at(e.operand, _SUM)
    match e:
        case s.In(_, items):
            return f"{operand} {negated}IN ({', '.join(map(expression_text, items))})"
        case s.Between(_, low, high):
            return f"{operand} {negated}BETWEEN {_at(low, _SUM)} AND {_at(high, _SUM)}"
        case s.Like(_, pattern):
            return f"{operand} {negated}LIKE {_at(pattern, _SUM)}"
        case s.IsNull():
            return f"{operand} IS {negated}NULL"
        case _:
            assert_never(e)


def _literal(value: s.Constant) -> tuple[str, int]:
    match value:
        case None:
            return "NULL", _ATOM
        case bool():
            return ("TRUE" if value else "FALSE"), _ATOM
        case int() | float() | Interval():
            text = repr(value) if not isinstance(value, Interval) else str(value)
            return text, _UNARY if text.startswith("-") else _ATOM
        case str():
            return quote_string(value), _ATOM
        case Timestamp():
            return f"TIMESTAMP '{value}'", _ATOM
        case _:
            assert_never(value)
