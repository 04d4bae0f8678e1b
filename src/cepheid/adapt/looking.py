"""A look at the statistics: what is known now is compared with what plans were made by, and plans change.

When to look is for :class:`Follower` to say.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from cepheid.adapt.adapting import Adapting
from cepheid.adapt.every import EVENT, Every
from cepheid.adapt.followed import Followed
from cepheid.adapt.judged import BY_NOW, Judged, compared, costs, expected
from cepheid.adapt.judged import cost as _cost
from cepheid.adapt.policies import Memory
from cepheid.adapt.record import Decision, Seconds, Timed
from cepheid.adapt.together import Since, Together, better_by_now, compared_together, past_looks, with_another
from cepheid.adapt.watched import Watched
from cepheid.adapt.worth import is_worth, saves_enough
from cepheid.pattern.normal import Branch
from cepheid.plan.cardinality import Cardinality
from cepheid.plan.planner import plan_with, quick
from cepheid.plan.sharing.apart import worth_taking
from cepheid.plan.tree import Plan
from cepheid.stats.estimates import Estimates

DECISIONS = 1_000
"""So many of the last changes are listed; streams may have no end."""
PAST = 4
"""A change must pay off not only now: what is silent now may be back in the next window, and a plan that begins with it
is then the worst of all. So the plans are compared by so many of the last looks as well."""
MANY = 20
"""Of more branches that share work only the last look is kept: each has a sample of its own, also in snapshots."""
FIRST = 1 / 3
"""At the first look there is no other to compare with: plans that share work change there only for so large a gain."""
SURE = 300
"""Of many plans the one that is best by few samples is as a rule not as good as it seems. So it is compared with the
plan in force by so many partial matches and events, before it takes its place."""
UNKNOWN = "the plan was made before the stream was known"


class Looking:
    """Looks at one session."""

    def __init__(self, adapting: Adapting) -> None:
        self._adapting = adapting
        self._every = Every.of(adapting.check_every)
        self.seconds = Seconds()
        self._known: Mapping[Branch, Estimates] = self._timed(adapting.known)
        self._watched: dict[Branch, Watched] = {}
        self._branches: frozenset[Branch] = frozenset()  # at the last check
        self._past: dict[Branch, deque[Cardinality]] = {}
        for branch, then in self._known.items():
            if then.joint(frozenset(v.name for v in branch.variables)) is not None:  # as well known as it will be now
                self._past[branch] = deque([expected(branch, then)], PAST)
        self._memories: dict[Branch, Memory] = {}
        self._asked = 0.0  # when it was last asked how much work was done, in seconds of all pushes
        self._mark: tuple[int, int | None, int] = (0, None, 0)  # events, time and work at the last check
        self._together = Together()
        self._rate: float | None = None  # work of an event, that of taking it in included, until then
        self.decisions: deque[Decision] = deque(maxlen=DECISIONS)
        self.changed = 0
        self.checks = 0
        self.replanned = 0  # how often a planner was asked for another plan …
        self.confirmed = 0  # … and gave the one in force

    def _timed(self, estimates: Mapping[Branch, Estimates]) -> dict[Branch, Estimates]:
        return {b: replace(found, joint=Timed(found.joint, self.seconds)) for b, found in estimates.items()}

    def _look(self, session: Followed) -> None:
        self.checks += 1
        self._forget_all_but(session.plans)
        changing = session.changing
        if changing and session.plans_together:  # until it has ended there is no other, and work done says little
            self._together.last = None
            self._set_mark(session)
            return
        with self.seconds.spent("estimating"):
            estimates = self._timed(session.estimates())
        together = session.together
        if changing & together:
            self._together.last = None
        elif together:
            self._look_together(session, estimates, together)
        work = session.work
        for branch, plan in session.plans.items():
            if plan is not None and branch in estimates and not branch.stepwise and branch not in together:
                now = expected(branch, estimates[branch])
                if len(now.branch.variables) > 1:
                    if branch not in changing:
                        self._check(session, branch, plan, now, work[branch])
                    self._past.setdefault(branch, deque(maxlen=PAST)).append(now)
        self._set_mark(session)

    def _set_mark(self, session: Followed) -> None:
        (events, _, before), work = self._mark, session.work_of(session.plans)
        if session.events > events:
            self._rate = (work - before) / (session.events - events) + EVENT
        self._mark = session.events, session.now, work

    def _forget_all_but(self, branches: Mapping[Branch, object]) -> None:
        """Patterns may have been removed."""
        kept: tuple[dict[Branch, Any], ...] = self._watched, self._past, self._memories
        for known in kept:
            for branch in known.keys() - branches.keys():
                del known[branch]
        if self._branches != branches.keys():  # what others do is no longer the same, either
            self._together = Together()
        self._branches = frozenset(branches)

    def _look_together(
        self, session: Followed, estimates: Mapping[Branch, Estimates], together: frozenset[Branch]
    ) -> None:
        """Plans that share work are not the best ones of each pattern, but they were chosen with those in mind.

        So what is watched is the plan that each would have alone. When it is in doubt for one of them, a plan for all
        is searched for again, from the one in force on.
        """
        plans_now = {b: p for b, p in session.plans.items() if b in together and p is not None and _has_choice(b, p)}
        looks = {branch: expected(branch, estimates[branch]) for branch in plans_now if branch in estimates}
        asked: dict[Branch, str] = {}
        popped: dict[Branch, Watched] = {}
        doubted: set[Branch] = set()
        with self.seconds.spent("deciding"):
            expecting = {b: _cost(plans_now[b], now) for b, now in looks.items()}
            since = Since(session.events, session.work_of(together), session.work, expecting)
            self._together.forget_others(looks)
            self._together.judge(since, looks)
            for branch, now in looks.items():
                if not session.plans_together:
                    self._watch_first(branch, plans_now[branch])
                watched = self._watched.get(branch)
                reason = UNKNOWN if watched is None else watched.watch.reason(now)
                if reason is not None:
                    asked[branch] = reason
                    if watched is not None:
                        popped[branch] = self._watched.pop(branch)
            if not asked and not session.plans_together:
                known = {b: watched.answer for b in looks if (watched := self._watched.get(b)) is not None}
                asked = better_by_now(looks, plans_now, known, leaves=self._leaves)
        if asked:
            with self.seconds.spent("planning"):
                if session.plans_together:
                    plans, gain = session.search_again(estimates)
                else:
                    answers = {b: self._plan(now) for b, now in looks.items()}
                    plans, gain = worth_taking(looks, plans_now, answers, leaves=self._leaves)
            self.replanned += 1
            self.confirmed += not plans
            before, started = session.plans, time.perf_counter()
            pays_off = saves_enough(gain) if self._adapting.policy.cautious else gain > 0
            if pays_off and self._adapting.policy.cautious:
                pays_off, gain = self._lasts(session, looks, plans_now, plans, self._together.rate(since))
                if not pays_off and session.plans_together:  # what asked for it asks again at the next look
                    self._watched.update(popped)
                    doubted = set(asked)
            with self.seconds.spent("changing"):
                done = session.change_plans(plans, self._adapting.migrate) if pays_off else []
            names, when, decisions = session.pattern_names, session.moment(session.now), []
            for branch in done:
                reason = asked.get(branch) or with_another(branch, asked, names)
                was, new, seconds = str(before[branch]), str(plans[branch]), time.perf_counter() - started
                decisions.append(Decision(session.events, when, names[branch], reason, was, new, gain, seconds=seconds))
            if done:
                self.decisions.extend(decisions)
                self.changed += len(done)
                who = [(branch, watched.watch) for branch, watched in popped.items() if branch in done]
                self._together.changed(decisions, who, before, since)
                expecting = expecting | {b: _cost(plans[b], looks[b]) for b in done if b in looks}
        with self.seconds.spent("planning"):
            for branch, now in looks.items():
                if branch not in self._watched and branch not in doubted:
                    self._watch_alone(session, branch, now)
        since = Since(session.events, session.work_of(together), session.work, expecting)
        self._together.last = None if session.changing & together else since
        kept = PAST if len(looks) <= MANY else 1
        for branch, now in looks.items():
            self._past[branch] = deque([*self._past.get(branch, ()), now], kept)

    def _lasts(
        self,
        session: Followed,
        looks: Mapping[Branch, Cardinality],
        plans: Mapping[Branch, Plan],
        new: Mapping[Branch, Plan],
        rate: float | None,
    ) -> tuple[bool, float]:
        """Whether plans that share work are worth a change by the last looks, too, and by a larger sample."""
        past = past_looks({branch: self._past.get(branch, ()) for branch in looks})
        leaves = self._leaves and not session.plans_together  # a plan for all is searched for as if all could share it
        pays_off, gain = compared_together([*past, looks], plans, new, rate, leaves=leaves)
        if self.checks == 1 and gain < FIRST:
            return False, gain
        if pays_off:
            with self.seconds.spent("estimating"):
                estimates = self._timed(session.estimates(SURE))
                sure = {branch: expected(branch, estimates[branch]) for branch in looks}
            pays_off, gain = compared_together([*past, sure], plans, new, rate, leaves=leaves)
        return pays_off, gain

    @property
    def _leaves(self) -> bool:
        """Whether a branch that changes shares nothing any more."""
        return self._adapting.migrate == "parallel"

    def _planner(self, now: Cardinality) -> str:
        return quick(self._adapting.planner, now.branch)

    def _plan(self, now: Cardinality) -> Plan:
        """What a branch would have alone."""
        return plan_with(now.branch, now, self._planner(now))

    def _watch_alone(self, session: Followed, branch: Branch, now: Cardinality) -> None:
        plan = session.plans[branch]
        assert plan is not None
        alone = self._plan(now)
        memory = self._memories.setdefault(branch, {})
        watch = self._adapting.policy.watch(alone, self._planner(now), now, memory)
        self._watched[branch] = Watched(plan, alone, watch, (0, 0))

    def _check(self, session: Followed, branch: Branch, plan: Plan, now: Cardinality, work: int) -> None:
        self._watch_first(branch, plan)
        watched = self._watched.get(branch)
        rate: float | None = None
        scale = 1.0  # work that is done for what is expected
        reason: str | None = UNKNOWN
        with self.seconds.spent("deciding"):
            if watched is not None and watched.plan == plan:
                if watched.mark[0]:  # before the first look the window filled up; what was done then says little
                    rate = (work - watched.mark[1]) / max(session.events - watched.mark[0], 1)
                    scale = rate / max(self._cost_since(branch, plan, now), 1e-300)
                watched.mark = session.events, work
                if watched.judged is not None and rate is not None:
                    watched.judged.judge(rate, {branch: now})
                    watched.judged = None
                reason = watched.watch.reason(now)
                answer = watched.answer
                if reason is None and answer != plan and is_worth(*costs(plan, answer, now, scale)):
                    reason = BY_NOW.format(answer)
        if reason is None:
            return
        with self.seconds.spent("planning"):
            answer = self._plan(now)
            self.replanned += 1
            self.confirmed += answer == plan
            old, new = costs(plan, answer, now, scale)
            pays_off = new < old and not self._adapting.policy.cautious
            if answer != plan and self._adapting.policy.cautious and is_worth(old, new):
                pays_off = self._compared(branch, plan, answer, now, scale)[2]
                if pays_off:  # to be sure takes longer than the rest of the look
                    with self.seconds.spent("estimating"):
                        sure = expected(branch, self._timed(session.estimates(SURE))[branch])
                    old, new, pays_off = self._compared(branch, plan, answer, sure, scale)
        judged = None if watched is None else watched.judged
        if pays_off:
            started, judged = time.perf_counter(), None
            with self.seconds.spent("changing"):
                done = session.change_plans({branch: answer}, self._adapting.migrate)
            if not done:  # another change is still under way
                return
            decision = Decision(
                session.events, session.moment(session.now), session.pattern_names[branch], reason,
                str(plan), str(answer), 1 - new / max(old, 1e-300), seconds=time.perf_counter() - started,
            )  # fmt: skip
            self.decisions.append(decision)
            self.changed += 1
            if rate is not None and watched is not None:
                cost, past = _cost(plan, now), self._past.get(branch)
                before = _cost(plan, past[-1]) if past else cost
                judged = Judged(
                    [decision], [(branch, watched.watch)], {branch: plan}, rate, (before, cost), {branch: 1.0}
                )
            plan, work = answer, session.work[branch]
        with self.seconds.spent("deciding"):
            memory = self._memories.setdefault(branch, {})
            watch = self._adapting.policy.watch(answer, self._planner(now), now, memory)
        # A plan that begins beside the one before does less at first.
        mark = (0, 0) if branch in session.changing else (session.events, work)
        self._watched[branch] = Watched(plan, answer, watch, mark, judged)

    def _compared(
        self, branch: Branch, plan: Plan, answer: Plan, now: Cardinality, scale: float
    ) -> tuple[float, float, bool]:
        """The work of one event under both plans, and whether to change, by the last looks and this one."""
        return compared(plan, answer, [*self._past.get(branch, ()), now], scale)

    def _cost_since(self, branch: Branch, plan: Plan, now: Cardinality) -> float:
        """What was expected of a plan since the last look."""
        past = self._past.get(branch)
        return (_cost(plan, past[-1] if past else now) + _cost(plan, now)) / 2

    def _watch_first(self, branch: Branch, plan: Plan) -> None:
        """Where the stream was known when the first plan was made, it is watched as the later ones are."""
        if branch in self._known and branch not in self._watched:
            with self.seconds.spent("deciding"):
                then, memory = expected(branch, self._known[branch]), self._memories.setdefault(branch, {})
                watch = self._adapting.policy.watch(plan, self._planner(then), then, memory)
            self._watched[branch] = Watched(plan, plan, watch, (0, 0))


def _has_choice(branch: Branch, plan: Plan | None) -> bool:
    """Whether there could be another plan."""
    return plan is not None and not branch.stepwise and sum(not v.is_kleene for v in branch.variables) > 1
