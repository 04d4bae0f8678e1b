"""A plan as a value that can be shown: what each of its parts does, what was expected of it, and what it did."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

FAR_OFF = 10
"""From so many times too high or too low on, an estimate is pointed out."""


@dataclass(frozen=True, slots=True)
class Step:
    """A line of the funnel: how many were expected to come this far, and how many did."""

    text: str
    expected: float | None = None
    found: int | None = None

    @property
    def surprise(self) -> str | None:
        """In words, how far an estimate is off, if it is far off."""
        if self.expected is None or self.found is None or max(self.expected, self.found) < FAR_OFF:
            return None
        ratio = max(self.found, 0.5) / max(self.expected, 1e-9)
        if ratio >= FAR_OFF:
            return f"{_times(ratio)} as many as expected"
        return f"expected {_times(1 / ratio)} as many" if ratio <= 1 / FAR_OFF else None


def _times(ratio: float) -> str:
    return f"{ratio:,.0f} times" if ratio < 1_000_000 else "over a million times"


@dataclass(frozen=True, slots=True)
class PlanNode:
    """A part of a plan. ``head``: what it is and what comes out of it; ``steps``: what is asked on the way there.

    ``inputs``: the parts that it takes tuples from. ``kind``: ``events``, ``join``, ``search``, ``steps``, ``sets`` or
    ``negation``. ``peak``: the most partial matches that it kept after a batch.
    """

    kind: str
    head: Step
    steps: tuple[Step, ...] = ()
    inputs: tuple[PlanNode, ...] = ()
    evaluations: int = 0
    peak: int = 0

    def __iter__(self) -> Iterator[PlanNode]:
        """This part and all below it."""
        yield self
        for part in self.inputs:
            yield from part


@dataclass(frozen=True, slots=True)
class BranchPlan:
    """The plan of one alternative of a pattern; ``root`` is None where ``never`` says why it cannot match.

    ``cost``: the partial matches that were expected in a window.
    """

    plan: str
    root: PlanNode | None
    cost: float | None = None
    never: str | None = None


@dataclass(frozen=True, slots=True)
class PatternPlan:
    """The plans of a pattern's branches. ``clauses``: what holds for all of them. ``matches``: None without a run."""

    name: str
    clauses: tuple[str, ...]
    branches: tuple[BranchPlan, ...]
    matches: int | None = None


def number(value: float | None) -> str:
    """Short enough for a column: whole numbers as they are, others with two digits that matter."""
    if value is None:
        return ""
    if isinstance(value, int):
        return f"{value:,}"
    if value >= 10_000_000:
        return f"{value:.1e}".replace("e+", "e").replace("e0", "e")
    if value >= 10 or value == 0:
        return f"{value:,.0f}"
    return f"{value:.2g}" if value >= 0.0001 else f"{value:.0e}".replace("e-0", "e-")
