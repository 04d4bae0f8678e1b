"""Expressions over many rows at once."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np
from typing_extensions import assert_never

from cepheid.engine import operators as ops
from cepheid.engine.functions import call, like
from cepheid.engine.vector import Mask, Unit, Vector, constant, nulls
from cepheid.language import syntax as s
from cepheid.language.functions import DataType, find_function

Reference: TypeAlias = s.Attribute | s.Neighbour | s.Aggregate | s.EventRef
Lookup: TypeAlias = Callable[[Reference], Vector]


def evaluate(expression: s.Expression, lookup: Lookup, unit: Unit, length: int) -> Vector:
    """The values of an expression for ``length`` rows; ``lookup`` has those of the attributes and aggregates in it."""

    def value(e: s.Expression) -> Vector:
        match e:
            case s.Literal(literal):
                return constant(literal, unit)
            case s.Attribute() | s.Neighbour() | s.Aggregate() | s.EventRef():
                return lookup(e)
            case s.Negative(operand):
                return ops.negative(value(operand))
            case s.Arithmetic(operator, left, right):
                return ops.arithmetic(operator, value(left), value(right))
            case s.Comparison(operator, left, right):
                return ops.compare(operator, value(left), value(right))
            case s.Not(operand):
                return ops.negate(value(operand))
            case s.And(operands):
                return ops.conjunction([value(o) for o in operands])
            case s.Or(operands):
                return ops.disjunction([value(o) for o in operands])
            case s.In(operand, items):
                found = value(operand)
                return ops.disjunction([ops.compare("=", found, value(item)) for item in items])
            case s.Between(operand, low, high):
                found = value(operand)
                return ops.conjunction([ops.compare(">=", found, value(low)), ops.compare("<=", found, value(high))])
            case s.Like(operand, pattern):
                return like(value(operand), value(pattern))
            case s.IsNull(operand):
                found = value(operand)
                return Vector(DataType.BOOLEAN, ~found.mask())
            case s.Case(cases, otherwise):
                return _case(cases, otherwise)
            case s.Call(function, arguments, bound=bound):
                return call(bound or find_function(function), [value(a) for a in arguments])
            case _:
                assert_never(e)

    def _case(cases: tuple[tuple[s.Expression, s.Expression], ...], otherwise: s.Expression | None) -> Vector:
        result = nulls() if otherwise is None else value(otherwise)
        for condition, found in reversed(cases):
            chosen, yes = value(condition).true(), value(found)
            length = max(len(chosen), len(yes), len(result))
            result = ops.choose(np.broadcast_to(chosen, length), yes, result)
        return result

    # Constants have length one, which no rows at all cannot be told from.
    return value(expression).stretched(length) if length else nulls(0)


def holds(expression: s.Expression, lookup: Lookup, unit: Unit, length: int) -> Mask:
    """For each row, whether a condition is TRUE."""
    return evaluate(expression, lookup, unit, length).true()
