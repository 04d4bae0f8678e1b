"""What can be computed without events is computed once."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from cepheid.language import syntax as s
from cepheid.language.values import Interval, Timestamp
from cepheid.pattern.normal import Branch, Condition, has_neighbours, judged_with


def fold_constants(branch: Branch) -> Branch:
    """``a.x > 2 * 3`` → ``a.x > 6``.

    A condition that always holds is dropped; one that never does rules the branch out.
    """
    never = branch.never
    for condition in branch.conditions:
        folded = fold_condition(condition.expression, branch.stepwise)
        if never is None and isinstance(folded, s.Literal) and folded.value is not True:
            reason = " (a comparison with NULL is never true: write IS NULL)" if folded.value is None else ""
            never = f"{condition} can never hold{reason}"

    def change(conditions: tuple[Condition, ...]) -> list[Condition]:
        changed = (Condition(fold_condition(c.expression, branch.stepwise), c.derived) for c in conditions)
        return [c for c in changed if c.expression != s.Literal(True)]

    return replace(branch.map_conditions(change), never=never)


def fold_condition(expression: s.Expression, stepwise: bool) -> s.Expression:
    """The folded condition. One on neighbours says nothing about a set of one event, so it stays one on neighbours."""
    folded = fold(expression)
    if stepwise and not isinstance(folded, s.Literal) and judged_with(folded) != judged_with(expression):
        return expression
    if has_neighbours(expression) and not has_neighbours(folded) and folded != s.Literal(True):
        return expression
    return folded


def fold(expression: s.Expression) -> s.Expression:
    node = s.map_children(expression, fold)
    match node:
        case s.And(operands):
            return _fold_logic(operands, neutral=True)
        case s.Or(operands):
            return _fold_logic(operands, neutral=False)
        case s.Case():
            return _fold_case(node)
        case s.Comparison(_, s.Literal(None), _) | s.Comparison(_, _, s.Literal(None)):
            return s.Literal(None)
        case s.Arithmetic(_, s.Literal(None), _) | s.Arithmetic(_, _, s.Literal(None)):
            return s.Literal(None)
        case s.Negative(s.Literal(None)) | s.Not(s.Literal(None)) | s.In(s.Literal(None)) | s.Like(s.Literal(None)):
            return s.Literal(None)
        case s.IsNull(s.Literal(value)):
            return s.Literal(value is None)
        case s.Not(s.Literal(bool(value))):
            return s.Literal(not value)
        case s.Negative(s.Literal()):
            return _fold_negative(node.operand)
        case s.In(s.Literal() as operand, items) if all(isinstance(item, s.Literal) for item in items):
            return fold(s.disjunction(s.Comparison("=", operand, item) for item in items))
        case s.Comparison(op, s.Literal(left), s.Literal(right)):
            result = compare(op, left, right)
            return node if result is None else s.Literal(result)
        case s.Arithmetic(op, s.Literal(left), s.Literal(right)):
            return _fold_arithmetic(node, op, left, right)
        case s.Call("COALESCE", arguments) if s.Literal(None) in arguments:
            rest = tuple(argument for argument in arguments if argument != s.Literal(None))
            return s.Call("COALESCE", rest) if len(rest) > 1 else next(iter(rest), s.Literal(None))
    return node


def _fold_logic(operands: tuple[s.Expression, ...], *, neutral: bool) -> s.Expression:
    """AND (neutral TRUE) or OR (neutral FALSE) in three-valued logic."""
    if s.Literal(not neutral) in operands:
        return s.Literal(not neutral)
    rest = tuple(dict.fromkeys(o for o in operands if o != s.Literal(neutral)))
    return s.conjunction(rest) if neutral else s.disjunction(rest)


def _fold_case(node: s.Case) -> s.Expression:
    kept: list[tuple[s.Expression, s.Expression]] = []
    otherwise = node.otherwise
    for condition, value in node.cases:
        if condition in (s.Literal(False), s.Literal(None)):
            continue
        if condition == s.Literal(True):
            otherwise = value
            break
        kept.append((condition, value))
    if not kept:
        return s.Literal(None) if otherwise is None else otherwise
    return s.Case(tuple(kept), otherwise)


def _fold_negative(operand: s.Expression) -> s.Expression:
    folded = s.negative(operand)
    in_range = not isinstance(folded, s.Literal) or _in_range(folded.value)
    return folded if in_range else s.Literal(None)


_COMPARE: dict[s.ComparisonOperator, Callable[[Any, Any], bool]] = {
    "=": operator.eq, "<>": operator.ne, "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge,
}  # fmt: skip


def comparable(left: s.Constant, right: s.Constant) -> bool:
    """Whether two constants, neither of them NULL, are of types that have an order between them."""

    def family(value: s.Constant) -> type:
        return float if isinstance(value, (int, float)) and not isinstance(value, bool) else type(value)

    return left is not None and right is not None and family(left) is family(right)


def compare(op: s.ComparisonOperator, left: s.Constant, right: s.Constant) -> bool | None:
    """Python compares integers with floating-point numbers exactly, as the language does."""
    return _COMPARE[op](left, right) if comparable(left, right) else None


def _fold_arithmetic(node: s.Expression, op: str, left: s.Constant, right: s.Constant) -> s.Expression:
    match left, right:
        case bool() | str(), _:
            return node
        case _, bool() | str():
            return node
        case int() | float(), int() | float():
            value = _number(op, left, right)
            if isinstance(value, float) and math.isinf(value):
                return node  # there is no way to write it
            return s.Literal(value if _in_range(value) else None)
        case Timestamp(x), Timestamp(y) if op == "-":
            result: s.Constant = Interval(x - y)
        case Timestamp(x), Interval(y) if op in "+-":
            result = Timestamp(x + y if op == "+" else x - y)
        case Interval(x), Timestamp(y) if op == "+":
            result = Timestamp(x + y)
        case Interval(x), Interval(y) if op in "+-":
            result = Interval(x + y if op == "+" else x - y)
        case (Interval(x), int(y)) | (int(y), Interval(x)) if op == "*":
            result = Interval(x * y)
        case _:
            return node
    return s.Literal(result) if _in_range(result) else node


def _number(op: str, left: int | float, right: int | float) -> int | float | None:
    try:
        match op:
            case "+":
                return left + right
            case "-":
                return left - right
            case "*":
                return left * right
            case "/":
                return float(left) / float(right)
            case _ if isinstance(left, int) and isinstance(right, int):
                return abs(left) % abs(right) * (1 if left >= 0 else -1)  # the sign of the dividend, as in SQL
            case _:
                return math.fmod(left, right)
    except (ZeroDivisionError, OverflowError, ValueError):
        return None


def _in_range(value: s.Constant) -> bool:
    match value:
        case int():
            return -(2**63) <= value < 2**63
        case float():
            return math.isfinite(value)
        case Timestamp(nanoseconds) | Interval(nanoseconds):
            return -(2**63) <= nanoseconds < 2**63
    return True
