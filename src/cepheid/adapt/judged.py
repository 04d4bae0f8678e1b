"""What a change of plans brought: the work that was done after it, beside what the old plans would have done."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from cepheid.adapt.policies import Memory, Policy, Watch
from cepheid.adapt.record import Decision
from cepheid.adapt.worth import lasts, with_recent
from cepheid.pattern.normal import Branch
from cepheid.plan.cardinality import Cardinality
from cepheid.plan.cost import tree_cost
from cepheid.plan.tree import Plan, as_lists, from_lists
from cepheid.stats.estimates import Estimates

BY_NOW = "{}, which was no better before, makes less work by now"
"""Why to take an answer that was not worth a change when it was given."""


def expected(branch: Branch, estimates: Estimates) -> Cardinality:
    """What plans are made and judged by; sets are not planned."""
    return Cardinality(replace(branch, variables=tuple(v for v in branch.variables if not v.is_kleene)), estimates)


def cost(plan: Plan, now: Cardinality) -> float:
    """The work that a plan is expected to make of one event of the stream."""
    events = sum(now.estimates.count_of(name) for name in now.branch.names)
    return tree_cost(plan, now) / max(events, 1e-300)


def costs(plan: Plan, other: Plan, now: Cardinality, scale: float) -> tuple[float, float]:
    """Those of two plans. ``scale``: how much work the one in force did for what was expected of it."""
    return scale * cost(plan, now), scale * cost(other, now)


def compared(plan: Plan, answer: Plan, looks: Sequence[Cardinality], scale: float) -> tuple[float, float, bool]:
    """The work that two plans are expected to make of one event, and whether to change from one to the other.

    How much that is compared with taking in the event is known from the plan in force: ``scale`` is the work that it
    did for what was expected of it. Work comes in bursts, and a look sees one window only. The last look is now.
    """
    old, new = zip(*(costs(plan, answer, then, scale) for then in looks), strict=True)
    return with_recent(old), with_recent(new), lasts(old, new)


@dataclass(slots=True)
class Judged:
    """A change that is yet to be judged: who asked for it, the old plans, and their work of an event.

    Plans that share work are judged together. ``weights``: what each of the old ones did for what was expected of it.
    ``costs``: what was expected of all at the look before the change, and at the change.
    """

    decisions: list[Decision]
    asked: list[tuple[Branch, Watch]]
    old: dict[Branch, Plan]
    work: float
    costs: tuple[float, float]
    weights: dict[Branch, float]

    def judge(self, work: float, looks: Mapping[Branch, Cardinality]) -> None:
        """Compare the work of an event with what it would be under the old plans, by what is expected of them now.

        The stream may be busier or quieter by now, as it would be without the change. So what the old plans did is
        scaled by what is expected of them: from the change to now, and from the look before to the change.
        """
        now = sum(weight * cost(self.old[branch], looks[branch]) for branch, weight in self.weights.items())
        since = (self.costs[1] + now) / 2
        before = self.work * since / max(sum(self.costs) / 2, 1e-300)
        gain = 1 - work / before if before > 0 else 0.0
        for decision in self.decisions:
            decision.observed_gain = gain
        for _, watch in self.asked:
            watch.learn(gain)

    def dump(self, branches: Sequence[Branch], decisions: Sequence[Decision]) -> dict[str, Any]:
        """As JSON can write it."""
        return {
            "decisions": [decisions.index(decision) for decision in self.decisions if decision in decisions],
            "asked": [[branches.index(branch), watch.dump()] for branch, watch in self.asked],
            "old": [[branches.index(branch), as_lists(plan)] for branch, plan in self.old.items()],
            "work": self.work,
            "costs": self.costs,
            "weights": [[branches.index(branch), weight] for branch, weight in self.weights.items()],
        }

    @classmethod
    def load(
        cls,
        found: Mapping[str, Any],
        branches: Sequence[Branch],
        decisions: Sequence[Decision],
        policy: Policy,
        memories: Mapping[Branch, Memory],
    ) -> Judged:
        asked = [
            (branches[place], policy.resume(watch, branches[place], memories[branches[place]]))
            for place, watch in found["asked"]
        ]
        old = {branches[place]: plan_of(plan) for place, plan in found["old"]}
        before, change = found["costs"]
        weights = {branches[place]: weight for place, weight in found["weights"]}
        changed = [decisions[place] for place in found["decisions"]]
        return cls(changed, asked, old, found["work"], (before, change), weights)


def plan_of(found: Any) -> Plan:
    """A plan that there is, of nested lists."""
    plan = from_lists(found)
    assert plan is not None
    return plan
