"""BETWEEN, and IN with one item, say what comparisons say."""

from __future__ import annotations

from cepheid.language import syntax as s
from cepheid.pattern.normal import Branch


def desugar(branch: Branch) -> Branch:
    """``x BETWEEN l AND h`` → ``x >= l AND x <= h``; ``x IN (y)`` → ``x = y``."""
    return branch.map_expressions(_desugar)


def _desugar(expression: s.Expression) -> s.Expression:
    match s.map_children(expression, _desugar):
        case s.Between(operand, low, high):
            return s.And((s.Comparison(">=", operand, low), s.Comparison("<=", operand, high)))
        case s.In(operand, (item,)):
            return s.Comparison("=", operand, item)
        case other:
            return other
