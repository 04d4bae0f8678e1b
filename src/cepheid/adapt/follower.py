"""Following the data: look at the statistics now and then, and change plans when a policy says so."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal, Protocol

from cepheid.adapt.policies import Invariant, Memory, Policy, Watch
from cepheid.pattern.normal import Branch
from cepheid.plan.cardinality import Cardinality
from cepheid.plan.cost import tree_cost
from cepheid.plan.planner import make_plan
from cepheid.plan.tree import Plan
from cepheid.stats.estimates import Estimates

Migration = Literal["rebuild", "parallel"]
CHECK_EVERY = 10_000


class Followed(Protocol):
    """What is asked of a session."""

    @property
    def plans(self) -> Mapping[Branch, Plan | None]: ...
    @property
    def events(self) -> int: ...
    @property
    def work(self) -> int: ...
    def estimates(self) -> Mapping[Branch, Estimates]: ...
    def change_plans(self, plans: Mapping[Branch, Plan], migrate: str) -> list[Branch]: ...


@dataclass(frozen=True, slots=True)
class Adapting:
    """How to follow the data. ``check_every``: after how many events to look."""

    policy: Policy
    planner: str
    check_every: int = CHECK_EVERY
    migrate: Migration = "rebuild"

    def __post_init__(self) -> None:
        if self.check_every < 1:
            raise ValueError(f"check_every is 1 event or more, got {self.check_every}")

    def follow(self) -> Follower:
        return Follower(self)


@dataclass(slots=True)
class Decision:
    """A plan that was made anew: when and why, what it replaced, and what that was expected to bring and brought.

    Gains are parts of the work that was saved; the observed one is known at the check after it.
    """

    events: int
    reason: str
    old: str
    new: str
    estimated_gain: float
    observed_gain: float | None = None


@dataclass(slots=True)
class _Watched:
    plan: Plan
    watch: Watch
    memory: Memory = field(default_factory=dict)


class Follower:
    """Follows one session."""

    def __init__(self, adapting: Adapting) -> None:
        self._adapting = adapting
        self._watched: dict[Branch, _Watched] = {}
        self._next = adapting.check_every
        self._mark = (0, 0)  # events and work at the last check
        self._rate: float | None = None  # work for each event between the last two checks
        self._judged: tuple[Watch, Decision, float] | None = None
        self.decisions: list[Decision] = []
        self.checks = 0
        self.seconds = 0.0

    def after_push(self, session: Followed) -> None:
        """Look, if it is time to."""
        if session.events < self._next:
            return
        started = time.perf_counter()
        self._next = session.events + self._adapting.check_every
        self.checks += 1
        self._measure(session)
        estimates = session.estimates()
        for branch, plan in session.plans.items():
            if plan is not None and branch in estimates and not branch.stepwise:
                self._check(session, branch, plan, estimates[branch])
        self.seconds += time.perf_counter() - started

    def _measure(self, session: Followed) -> None:
        """The work of the events since the last check; and so what the last change brought."""
        events, work = session.events - self._mark[0], session.work - self._mark[1]
        self._mark = session.events, session.work
        self._rate = work / max(events, 1)
        if self._judged is not None:
            watch, decision, before = self._judged
            decision.observed_gain = 1 - self._rate / before if before > 0 else 0.0
            watch.learn(decision.observed_gain)
            self._judged = None

    def _check(self, session: Followed, branch: Branch, plan: Plan, estimates: Estimates) -> None:
        single = replace(branch, variables=tuple(v for v in branch.variables if not v.is_kleene))
        if len(single.variables) < 2:
            return
        watched = self._watched.get(branch)
        if watched is None or watched.plan != plan:  # the first check: the plan may have been made without knowledge
            reason: str | None = "the plan was made before the stream was known"
            memory: Memory = {}
        else:
            reason, memory = watched.watch.reason(estimates), watched.memory
        if reason is None:
            return
        new = make_plan(single, estimates, self._adapting.planner)
        if new != plan and session.change_plans({branch: new}, self._adapting.migrate):
            cardinality = Cardinality(single, estimates)
            old_cost, new_cost = tree_cost(plan, cardinality), tree_cost(new, cardinality)
            decision = Decision(session.events, reason, str(plan), str(new), 1 - new_cost / max(old_cost, 1e-300))
            self.decisions.append(decision)
            if watched is not None and self._rate is not None:
                self._judged = watched.watch, decision, self._rate
            plan = new
        watch = self._adapting.policy.watch(single, plan, self._adapting.planner, estimates, memory)
        self._watched[branch] = _Watched(plan, watch, memory)

    def report(self) -> dict[str, Any]:
        return {
            "policy": repr(self._adapting.policy),
            "checks": self.checks,
            "seconds": self.seconds,
            "changes": [{name: getattr(decision, name) for name in Decision.__slots__} for decision in self.decisions],
        }


def policy_of(adapt: Policy | bool | str | None) -> Policy | None:
    """What a user may write: nothing or ``"static"``, ``True`` for the default, or a policy.

    >>> policy_of("static") is None, policy_of(True)
    (True, Invariant(k=1, distance='meta'))
    """
    if adapt is None or adapt is False or adapt == "static":
        return None
    if adapt is True:
        return Invariant(distance="meta")
    if isinstance(adapt, str) or not hasattr(adapt, "watch"):
        raise ValueError(
            f"adapt is 'static', True, or a policy such as cepheid.Invariant() or cepheid.Threshold(0.3); got {adapt!r}"
        )
    return adapt
