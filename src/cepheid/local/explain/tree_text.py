"""A plan as text: numbers on the left, so that they can be compared; the tree on the right, as wide as it needs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from cepheid.local.explain.plan_nodes import BranchPlan, PatternPlan, PlanNode, Step, number

WIDTH = 10


@dataclass(frozen=True, slots=True)
class _Line:
    drawing: str
    step: Step


def pattern_text(pattern: PatternPlan, events: int | None) -> str:
    """One pattern with all of its branches."""
    return "\n".join(_pattern(pattern, events))


def _pattern(pattern: PatternPlan, events: int | None) -> Iterator[str]:
    found = "" if events is None else f": {count_of(pattern.matches or 0, 'match')} in {count_of(events, 'event')}"
    yield f"{pattern.name}{found}"
    yield f"  {', '.join(pattern.clauses)}"
    for place, branch in enumerate(pattern.branches, start=1):
        title = f"branch {place} of {len(pattern.branches)}: " if len(pattern.branches) > 1 else ""
        yield ""
        yield f"  {title}{branch_title(branch)}"
        if branch.root is not None:
            headings = ("per window",) if events is None else ("expected", "found")
            yield "".join(f"{heading:>{WIDTH}}  " for heading in headings).rstrip()
            for line in _lines(branch.root, "", ""):
                yield _row(line, with_found=events is not None)


def branch_title(branch: BranchPlan) -> str:
    if branch.never is not None:
        return f"can never match: {branch.never}"
    cost = "" if branch.cost is None else f", cost {number(branch.cost)}"
    return f"{branch.plan}{cost}"


def _lines(node: PlanNode, first: str, rest: str) -> Iterator[_Line]:
    """``first``: what is drawn before the head; ``rest``: what is drawn before all below it."""
    yield _Line(first, node.head)
    stem = "│ " if node.inputs else "  "
    for step in node.steps:
        yield _Line(f"{rest}{stem} ", step)
    for place, part in enumerate(node.inputs):
        last = place + 1 == len(node.inputs)
        yield from _lines(part, rest + ("└─ " if last else "├─ "), rest + ("   " if last else "│  "))


def _row(line: _Line, *, with_found: bool) -> str:
    step = line.step
    columns = [number(step.expected)] + ([number(step.found)] if with_found else [])
    surprise = f"   ← {step.surprise}" if step.surprise else ""
    return "".join(f"{column:>{WIDTH}}  " for column in columns) + f"{line.drawing}{step.text}{surprise}"


def count_of(count: int, word: str) -> str:
    """``1 match``, ``2,000 matches``."""
    ending = "es" if word.endswith("ch") else "s"
    return f"{count:,} {word}{'' if count == 1 else ending}"
