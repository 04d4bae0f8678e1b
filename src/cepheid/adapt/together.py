"""Plans that share work are judged together: which of them did what is no question then."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from cepheid.adapt.judged import Judged
from cepheid.adapt.policies import Memory, Policy, Watch
from cepheid.adapt.record import Decision
from cepheid.pattern.normal import Branch
from cepheid.plan.cardinality import Cardinality
from cepheid.plan.tree import Plan


@dataclass(slots=True)
class Since:
    """A look: the events so far and the work of all plans; for each plan its work, and what was expected of it."""

    events: int
    work: int
    works: Mapping[Branch, int]
    costs: Mapping[Branch, float]


@dataclass(slots=True)
class Together:
    """The last look at plans that share work, and the last change of them, if it is yet to be judged."""

    last: Since | None = None
    judged: Judged | None = None

    def judge(self, now: Since, looks: Mapping[Branch, Cardinality]) -> None:
        rate = self._rate(now)
        if self.judged is not None and rate is not None:
            self.judged.judge(rate, looks)
            self.judged = None

    def changed(
        self,
        decisions: list[Decision],
        asked: list[tuple[Branch, Watch]],
        old: Mapping[Branch, Plan | None],
        now: Since,
    ) -> None:
        """To be judged at the next look. Until the first look the windows filled up, and that says little.

        What is expected of the old plans is added up by what part each of them had in the work since the last look.
        """
        rate, last = self._rate(now), self.last
        if rate is None or last is None:
            return
        done = {branch: now.works[branch] - last.works[branch] for branch in now.costs if branch in last.costs}
        weights = {branch: work / max(now.costs[branch], 1e-300) for branch, work in done.items()}
        before = sum(weight * last.costs[branch] for branch, weight in weights.items())
        plans = {branch: plan for branch in weights if (plan := old[branch]) is not None}
        self.judged = Judged(decisions, asked, plans, rate, (before, float(sum(done.values()))), weights)

    def _rate(self, now: Since) -> float | None:
        """The work of an event since the last look."""
        if self.last is None:
            return None
        return (now.work - self.last.work) / max(now.events - self.last.events, 1)

    def dump(self, branches: Sequence[Branch], decisions: Sequence[Decision]) -> Any:
        """As JSON can write it."""
        last = None
        if self.last is not None:
            each = [[n, self.last.works[b], self.last.costs[b]] for n, b in enumerate(branches) if b in self.last.costs]
            last = [self.last.events, self.last.work, each]
        return [last, None if self.judged is None else self.judged.dump(branches, decisions)]

    @classmethod
    def load(
        cls,
        found: Any,
        branches: Sequence[Branch],
        decisions: Sequence[Decision],
        policy: Policy,
        memories: Mapping[Branch, Memory],
    ) -> Together:
        last, judged = found
        if last is not None:
            events, work, each = last
            works, costs = {branches[n]: w for n, w, _ in each}, {branches[n]: cost for n, _, cost in each}
            last = Since(events, work, works, costs)
        return cls(last, judged and Judged.load(judged, branches, decisions, policy, memories))


def with_another(branch: Branch, asked: Mapping[Branch, str], names: Mapping[Branch, str]) -> str:
    """Why a branch got another plan that did not ask for one: those who did, with the reason of the first."""
    other, reason = next(iter(asked.items()))
    who = names[other] if names[other] != names[branch] else "another branch"
    more = f" and {len(asked) - 1} more" if len(asked) > 1 else ""
    return f"planned anew together with {who}{more}, because {reason}"
