"""A plan's counts as a list that narrows: from the events at the bottom of the plan to the matches at its top."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from cepheid.local.explain.plan_nodes import PatternPlan, PlanNode, Step


@dataclass(frozen=True, slots=True)
class Line:
    """``kind``: that of the plan's part, or ``result``. ``head``: whether the part itself, or a step on the way."""

    text: str
    kind: str
    head: bool
    expected: float | None
    found: int | None
    surprise: str | None


def funnel_of(pattern: PatternPlan) -> Iterator[Line]:
    """All lines of a pattern; those of its branches one after the other."""
    for place, branch in enumerate(pattern.branches, start=1):
        if len(pattern.branches) > 1:
            never = f": can never match, {branch.never}" if branch.never else ""
            yield Line(f"branch {place}{never}", "branch", True, None, None, None)
        if branch.root is not None:
            yield from _lines(branch.root)
    yield Line(f"matches of {pattern.name}", "result", True, None, pattern.matches, None)


def _lines(node: PlanNode) -> Iterator[Line]:
    for part in node.inputs:
        yield from _lines(part)
    yield _line(node.head, node.kind, head=True)
    for step in node.steps:
        yield _line(step, node.kind, head=False)


def _line(step: Step, kind: str, *, head: bool) -> Line:
    return Line(step.text, kind, head, step.expected, step.found, step.surprise)
