"""NOT moves inward until it stands before something that has no opposite."""

from __future__ import annotations

from cepheid.language import syntax as s
from cepheid.pattern.normal import Branch

_OPPOSITE: dict[s.ComparisonOperator, s.ComparisonOperator] = {
    "=": "<>", "<>": "=", "<": ">=", ">=": "<", ">": "<=", "<=": ">",
}  # fmt: skip


def push_not_inward(branch: Branch) -> Branch:
    """``NOT (x < y OR z)`` → ``x >= y AND NOT z``.

    With NULL, both sides are NULL. Since NaN counts as NULL, one of ``x < y`` and ``x >= y`` holds for any two values.
    """
    return branch.map_expressions(_push)


def _push(expression: s.Expression) -> s.Expression:
    if isinstance(expression, s.Not):
        match expression.operand:
            case s.Not(inner):
                return _push(inner)
            case s.And(operands):
                return s.Or(tuple(_push(s.Not(o)) for o in operands))
            case s.Or(operands):
                return s.And(tuple(_push(s.Not(o)) for o in operands))
            case s.Comparison(operator, left, right):
                return s.Comparison(_OPPOSITE[operator], _push(left), _push(right))
    return s.map_children(expression, _push)
