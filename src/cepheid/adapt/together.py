"""Plans that share work are judged together: which of them did what is no question then."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from cepheid.adapt.judged import BY_NOW, Judged
from cepheid.adapt.policies import Memory, Policy, Watch
from cepheid.adapt.record import Decision
from cepheid.adapt.worth import lasts, saves_enough, with_recent
from cepheid.pattern.normal import Branch
from cepheid.plan.cardinality import Cardinality
from cepheid.plan.sharing.apart import Priced, gain, worth_taking
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

    def forget_others(self, looks: Mapping[Branch, Cardinality]) -> None:
        """Begin anew where it is no longer the same branches that share work."""
        others = self.last is not None and self.last.costs.keys() != looks.keys()
        if others or (self.judged is not None and not self.judged.weights.keys() <= looks.keys()):
            self.last = self.judged = None

    def judge(self, now: Since, looks: Mapping[Branch, Cardinality]) -> None:
        rate = self.rate(now)
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
        rate, last = self.rate(now), self.last
        if rate is None or last is None:
            return
        done = {branch: now.works[branch] - last.works[branch] for branch in now.costs if branch in last.costs}
        weights = {branch: work / max(now.costs[branch], 1e-300) for branch, work in done.items()}
        before = sum(weight * last.costs[branch] for branch, weight in weights.items())
        plans = {branch: plan for branch in weights if (plan := old[branch]) is not None}
        self.judged = Judged(decisions, asked, plans, rate, (before, float(sum(done.values()))), weights)

    def rate(self, now: Since) -> float | None:
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


def compared_together(
    looks: Sequence[Mapping[Branch, Cardinality]],
    plans: Mapping[Branch, Plan],
    new: Mapping[Branch, Plan],
    rate: float | None,
    *,
    leaves: bool,
) -> tuple[bool, float]:
    """Whether other plans are worth a change by some looks, the last of which is now, and what part they save.

    ``rate``: the work of an event since the last look. ``leaves``: a branch that changes shares nothing any more.
    """
    old = [Priced(look, plans).work for look in looks]
    scale = 1.0 if rate is None else rate / max(sum(old[-2:]) / len(old[-2:]), 1e-300)
    before = [scale * work for work in old]
    after = [work * (1 - gain(look, plans, new, leaves=leaves)) for work, look in zip(before, looks, strict=True)]
    return lasts(before, after), 1 - with_recent(after) / max(with_recent(before), 1e-300)


def past_looks(known: Mapping[Branch, Sequence[Cardinality]]) -> list[dict[Branch, Cardinality]]:
    """The last looks at all of some branches, the latest one last."""
    count = min(map(len, known.values()))
    return [{branch: looks[len(looks) - k] for branch, looks in known.items()} for k in range(count, 0, -1)]


def better_by_now(
    looks: Mapping[Branch, Cardinality], plans: Mapping[Branch, Plan], answers: Mapping[Branch, Plan], *, leaves: bool
) -> dict[Branch, str]:
    """Plans that branches would have alone, which made no less work together before, and why to take them now."""
    if all(plan == plans[branch] for branch, plan in answers.items()):
        return {}
    found, saved = worth_taking(looks, plans, answers, leaves=leaves)
    return {branch: BY_NOW.format(plan) for branch, plan in found.items()} if saves_enough(saved) else {}


def with_another(branch: Branch, asked: Mapping[Branch, str], names: Mapping[Branch, str]) -> str:
    """Why a branch got another plan that did not ask for one: those who did, with the reason of the first."""
    other, reason = next(iter(asked.items()))
    who = names[other] if names[other] != names[branch] else "another branch"
    more = f" and {len(asked) - 1} more" if len(asked) > 1 else ""
    return f"planned anew together with {who}{more}, because {reason}"
