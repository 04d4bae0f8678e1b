"""What the parts of a plan have counted."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

CANDIDATES = "candidates"
PARTIAL = ("join", "sets", "steps", "waiting")
"""The parts of a plan that keep partial matches."""
IN_ORDER = "in order, in the window, not used twice"


class Tally:
    """The funnel of one part of a plan: how many came to each step, in the order of the steps.

    ``kept``: how many tuples it keeps for later; ``peak``: the most it ever kept. ``evaluations``: how many times a
    condition was evaluated.
    """

    def __init__(self, kind: str, name: str, steps: Iterable[str]) -> None:
        self.kind = kind
        self.name = name
        self.steps = dict.fromkeys(steps, 0)
        self.evaluations = 0
        self.kept = 0
        self.peak = 0

    @property
    def work(self) -> int:
        """How many candidates were looked at, and conditions evaluated."""
        return self.steps.get(CANDIDATES, 0) + self.evaluations

    def keep(self, count: int) -> None:
        self.kept = count
        self.peak = max(self.peak, count)

    def seen_as(self, name: str, steps: Iterable[str]) -> Tally:
        """What it has counted now, in other words."""
        seen = Tally(self.kind, name, ())
        seen.steps = dict(zip(steps, self.steps.values(), strict=True))
        seen.evaluations, seen.kept, seen.peak = self.evaluations, self.kept, self.peak
        return seen

    def dump(self) -> dict[str, Any]:
        return {"steps": self.steps, "evaluations": self.evaluations, "kept": self.kept, "peak": self.peak}

    def load(self, found: Mapping[str, Any]) -> None:
        self.steps.update(found["steps"])
        self.evaluations, self.kept, self.peak = found["evaluations"], found["kept"], found["peak"]

    def report(self) -> dict[str, Any]:
        return {"kind": self.kind, "node": self.name, **self.dump(), "steps": list(self.steps.items())}
