"""A plan that is watched: the one in force, and what was last said to be better."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from cepheid.adapt.judged import Judged, plan_of
from cepheid.adapt.policies import Memory, Policy, Watch
from cepheid.adapt.record import Decision
from cepheid.pattern.normal import Branch
from cepheid.plan.tree import Plan, as_lists


@dataclass(slots=True)
class Watched:
    """A plan in force. The watch is on the last answer of the planner: the same plan, unless it was no better then."""

    plan: Plan
    answer: Plan
    watch: Watch
    mark: tuple[int, int]  # events and work at the last check
    judged: Judged | None = None

    def dump(self, branches: Sequence[Branch], decisions: Sequence[Decision]) -> list[Any]:
        """As JSON can write it."""
        judged = None if self.judged is None else self.judged.dump(branches, decisions)
        return [as_lists(self.plan), as_lists(self.answer), self.watch.dump(), self.mark, judged]

    @classmethod
    def load(
        cls,
        found: Any,
        branch: Branch,
        branches: Sequence[Branch],
        decisions: Sequence[Decision],
        policy: Policy,
        memories: Mapping[Branch, Memory],
    ) -> Watched:
        plan, answer, watch, (since, done), judged = found
        resumed = policy.resume(watch, branch, memories[branch])
        judged = judged and Judged.load(judged, branches, decisions, policy, memories)
        return cls(plan_of(plan), plan_of(answer), resumed, (since, done), judged)
