"""Comparisons are written one way round."""

from __future__ import annotations

from cepheid.language import syntax as s
from cepheid.pattern.normal import Branch


def orient_comparisons(branch: Branch) -> Branch:
    """``b.x > a.x`` → ``a.x < b.x`` where a comes first in the pattern; ``5 < a.x`` → ``a.x > 5``."""
    place = {name: i for i, name in enumerate(branch.names)}

    def side(expression: s.Expression) -> int:
        return min((place[v] for v in s.variables(expression)), default=len(place))

    def orient(expression: s.Expression) -> s.Expression:
        node = s.map_children(expression, orient)
        if isinstance(node, s.Comparison) and side(node.right) < side(node.left):
            return s.Comparison(s.MIRRORED[node.operator], node.right, node.left)
        return node

    return branch.map_expressions(orient)
