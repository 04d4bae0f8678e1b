"""Following the data: look at the statistics now and then, and change plans when a policy says so."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Literal, get_args

from cepheid.adapt.every import EVENT, FIRST_LOOKS, CheckEvery, Every, enough
from cepheid.adapt.followed import Followed
from cepheid.adapt.judged import Judged, expected, plan_of
from cepheid.adapt.judged import cost as _cost
from cepheid.adapt.policies import Memory, Policy, Watch, dump_memory, load_memory
from cepheid.adapt.record import Decision, Seconds, Timed
from cepheid.adapt.together import Since, Together, with_another
from cepheid.adapt.worth import WORTH, is_worth, lasts, with_recent
from cepheid.pattern.normal import Branch
from cepheid.plan.cardinality import Cardinality
from cepheid.plan.planner import plan_with
from cepheid.plan.tree import Plan, as_lists
from cepheid.stats.estimates import Estimates

Migration = Literal["rebuild", "parallel"]

DECISIONS = 1_000
"""So many of the last changes are listed; streams may have no end."""
FOLLOWING = 0.0125
"""No more than about this part of the time is spent on looks, where their number is not given …"""
SEARCHING = 0.05
"""… and this part where patterns share work: then a plan for all of them is searched for. What is in doubt waits."""
SUDDEN, BURST = 3.0, 8
"""A plan that makes so many times the work of an event that it made until the last look may be the wrong one by now. It
is looked at whatever looks have taken, and so many times as soon as else. The next such look needs as much again."""
PAST = 4
"""A change must pay off not only now: what is silent now may be back in the next window, and a plan that begins with it
is then the worst of all. So the plans are compared by so many of the last looks as well."""
SURE = 300
"""Of many plans the one that is best by few samples is as a rule not as good as it seems. So it is compared with the
plan in force by so many partial matches and events, before it takes its place."""
ASKING = 0.02
"""How much work was done is asked after so many seconds of pushes: to ask takes about a tenth of a millisecond."""
UNKNOWN = "the plan was made before the stream was known"


def checked_migration(migrate: object) -> None:
    if migrate not in get_args(Migration):
        raise ValueError(f"migrate is {' or '.join(map(repr, get_args(Migration)))}; got {migrate!r}")


@dataclass(frozen=True, slots=True)
class Adapting:
    """How to follow the data. ``check_every``: how often to look; None: as often as costs little.

    ``known``: what was known when the first plans were made.
    """

    policy: Policy
    planner: str
    check_every: CheckEvery = None
    migrate: Migration = "rebuild"
    known: Mapping[Branch, Estimates] = field(default_factory=dict)

    def __post_init__(self) -> None:
        Every.of(self.check_every)
        checked_migration(self.migrate)

    def follow(self) -> Follower:
        return Follower(self)


def _costs(plan: Plan, other: Plan, now: Cardinality, scale: float) -> tuple[float, float]:
    return scale * _cost(plan, now), scale * _cost(other, now)


@dataclass(slots=True)
class _Watched:
    """A plan in force. The watch is on the last answer of the planner: the same plan, unless it was no better then."""

    plan: Plan
    answer: Plan
    watch: Watch
    mark: tuple[int, int]  # events and work at the last check
    judged: Judged | None = None


class Follower:
    """Follows one session."""

    def __init__(self, adapting: Adapting) -> None:
        self._adapting = adapting
        self._every = Every.of(adapting.check_every)
        self.seconds = Seconds()
        self._known: Mapping[Branch, Estimates] = self._timed(adapting.known)
        self._watched: dict[Branch, _Watched] = {}
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

    @property
    def looks_by_time(self) -> bool:
        return self._every.nanoseconds is not None

    def push_size(self, most: int) -> int:
        return self._every.push_size(most)

    def after_push(self, session: Followed, started: float) -> None:
        """Look, if it is time to. ``started``: when the push began."""
        if self._is_time(session):
            self._look(session)
        self.seconds.all += time.perf_counter() - started

    def look(self, session: Followed) -> None:
        """Now, whether it is time to or not."""
        started = time.perf_counter()
        self._look(session)
        self.seconds.all += time.perf_counter() - started

    def _is_time(self, session: Followed) -> bool:
        events, then, work = self._mark
        if self._every.events is not None:
            return session.events - events >= self._every.events
        if self._every.nanoseconds is not None:
            if then is None:
                self._mark = events, session.now, work
                return False
            return session.now - then >= session.ticks_of(self._every.nanoseconds)
        if self.seconds.all - self._asked < ASKING:
            return False
        self._asked = self.seconds.all
        done, taken = sum(session.work.values()) - work, session.events - events
        if self._rate is not None and done + EVENT * taken > SUDDEN * self._rate * taken:
            done, taken = BURST * done, BURST * taken
        elif self.checks and self.seconds.overhead > (SEARCHING if session.plans_together else FOLLOWING):
            return False
        variables = sum(len(branch.names) for branch in session.plans)
        looks = FIRST_LOOKS if all(branch in self._known for branch in session.plans) else self.checks
        return enough(done, taken, variables, looks)

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
        if session.plans_together:
            self._look_together(session, estimates)
            return
        work = session.work
        for branch, plan in session.plans.items():
            if plan is not None and branch in estimates and not branch.stepwise:
                now = expected(branch, estimates[branch])
                if len(now.branch.variables) > 1:
                    if branch not in changing:
                        self._check(session, branch, plan, now, work[branch])
                    self._past.setdefault(branch, deque(maxlen=PAST)).append(now)
        self._set_mark(session)

    def _set_mark(self, session: Followed) -> None:
        (events, _, before), work = self._mark, sum(session.work.values())
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

    def _look_together(self, session: Followed, estimates: Mapping[Branch, Estimates]) -> None:
        """Plans that share work are not the best ones of each pattern, but they were chosen with those in mind.

        So what is watched is the plan that each would have alone. When it is in doubt for one of them, a plan for all
        is searched for again, from the one in force on.
        """
        looks = {
            branch: expected(branch, estimates[branch])
            for branch, plan in session.plans.items()
            if branch in estimates and _has_choice(branch, plan)
        }
        asked: dict[Branch, str] = {}
        who: list[tuple[Branch, Watch]] = []
        with self.seconds.spent("deciding"):
            costs = {b: _cost(plan, now) for b, now in looks.items() if (plan := session.plans[b]) is not None}
            since = Since(session.events, session.work_together, session.work, costs)
            self._together.judge(since, looks)
            for branch, now in looks.items():
                watched = self._watched.get(branch)
                reason = UNKNOWN if watched is None else watched.watch.reason(now)
                if reason is not None:
                    asked[branch] = reason
                    who += [(branch, self._watched.pop(branch).watch)] if watched is not None else []
        if asked:
            with self.seconds.spent("planning"):
                plans, gain = session.search_again(estimates)
            self.replanned += 1
            self.confirmed += not plans
            before, started = session.plans, time.perf_counter()
            pays_off = WORTH * (1 - gain) < 1 if self._adapting.policy.cautious else gain > 0
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
                self._together.changed(decisions, [(b, watch) for b, watch in who if b in done], before, since)
                costs = costs | {b: _cost(plans[b], looks[b]) for b in done if b in looks}
        with self.seconds.spent("planning"):
            for branch, now in looks.items():
                if branch not in self._watched:
                    self._watch_alone(session, branch, now)
        since = Since(session.events, session.work_together, session.work, costs)
        self._together.last = None if session.changing else since
        self._set_mark(session)

    def _watch_alone(self, session: Followed, branch: Branch, now: Cardinality) -> None:
        plan = session.plans[branch]
        assert plan is not None
        alone = plan_with(now.branch, now, self._adapting.planner)
        memory = self._memories.setdefault(branch, {})
        watch = self._adapting.policy.watch(alone, self._adapting.planner, now, memory)
        self._watched[branch] = _Watched(plan, alone, watch, (session.events, 0))

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
                if reason is None and answer != plan and is_worth(*_costs(plan, answer, now, scale)):
                    reason = f"{answer}, which was no better before, makes less work by now"
        if reason is None:
            return
        with self.seconds.spent("planning"):
            answer = plan_with(now.branch, now, self._adapting.planner)
            self.replanned += 1
            self.confirmed += answer == plan
            old, new = _costs(plan, answer, now, scale)
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
                costs = _cost(plan, past[-1]) if past else cost, cost
                judged = Judged([decision], [(branch, watched.watch)], {branch: plan}, rate, costs, {branch: 1.0})
            plan, work = answer, session.work[branch]
        with self.seconds.spent("deciding"):
            memory = self._memories.setdefault(branch, {})
            watch = self._adapting.policy.watch(answer, self._adapting.planner, now, memory)
        # A plan that begins beside the one before does less at first.
        mark = (0, 0) if branch in session.changing else (session.events, work)
        self._watched[branch] = _Watched(plan, answer, watch, mark, judged)

    def _cost_since(self, branch: Branch, plan: Plan, now: Cardinality) -> float:
        """What was expected of a plan since the last look."""
        past = self._past.get(branch)
        return (_cost(plan, past[-1] if past else now) + _cost(plan, now)) / 2

    def _compared(
        self, branch: Branch, plan: Plan, answer: Plan, now: Cardinality, scale: float
    ) -> tuple[float, float, bool]:
        """The work that two plans are expected to make of one event, and whether to change from one to the other.

        How much that is compared with taking in the event is known from the plan in force: ``scale`` is the work that
        it did for what was expected of it. Work comes in bursts, and a look sees one window only.
        """
        looks = [*self._past.get(branch, ()), now]
        old, new = zip(*(_costs(plan, answer, then, scale) for then in looks), strict=True)
        return with_recent(old), with_recent(new), lasts(old, new)

    def _watch_first(self, branch: Branch, plan: Plan) -> None:
        """Where the stream was known when the first plan was made, it is watched as the later ones are."""
        if branch in self._known and branch not in self._watched:
            with self.seconds.spent("deciding"):
                then, memory = expected(branch, self._known[branch]), self._memories.setdefault(branch, {})
                watch = self._adapting.policy.watch(plan, self._adapting.planner, then, memory)
            self._watched[branch] = _Watched(plan, plan, watch, (0, 0))

    def report(self) -> dict[str, Any]:
        return {
            "policy": repr(self._adapting.policy),
            "checks": self.checks,
            "seconds": asdict(self.seconds),
            "overhead": self.seconds.overhead,
            "replanned": self.replanned,
            "confirmed": self.confirmed,
            "changed": self.changed,
            "changes": [asdict(decision) for decision in self.decisions],
        }

    # --- snapshots

    def dump(self, branches: Sequence[Branch]) -> tuple[dict[str, Any], list[tuple[Branch, Estimates]]]:
        """What a restored session goes on with, and the last looks: it decides what this one would have decided."""
        self._forget_all_but(dict.fromkeys(branches))
        looks = [(branch, _untimed(look.estimates)) for branch in branches for look in self._past.get(branch, ())]
        found = {
            "policy": repr(self._adapting.policy),
            "planner": self._adapting.planner,
            "mark": self._mark,
            "rate": self._rate,
            "together": self._together.dump(branches, self.decisions),
            "memories": [dump_memory(self._memories.get(branch, {})) for branch in branches],
            "watched": [self._dump_watched(branch, branches) for branch in branches],
            "report": self.report(),
        }
        return found, looks

    def _dump_watched(self, branch: Branch, branches: Sequence[Branch]) -> Any:
        watched = self._watched.get(branch)
        if watched is None:
            return None
        judged = None if watched.judged is None else watched.judged.dump(branches, self.decisions)
        return [as_lists(watched.plan), as_lists(watched.answer), watched.watch.dump(), watched.mark, judged]

    def load(
        self, branches: Sequence[Branch], found: Mapping[str, Any], looks: Iterable[tuple[Branch, Estimates]]
    ) -> None:
        events, then, work = found["mark"]
        self._mark, self._rate, self._branches = (events, then, work), found["rate"], frozenset(branches)
        self._memories = dict(zip(branches, map(load_memory, found["memories"]), strict=True))
        report = found["report"]
        for counter in ("checks", "replanned", "confirmed", "changed"):
            setattr(self, counter, report[counter])
        for name, spent in report["seconds"].items():
            setattr(self.seconds, name, spent)
        self.decisions.extend(Decision(**decision) for decision in report["changes"])
        self._past.clear()
        for branch, look in looks:
            [timed] = self._timed({branch: look}).values()
            self._past.setdefault(branch, deque(maxlen=PAST)).append(expected(branch, timed))
        policy = self._adapting.policy
        if (found["policy"], found["planner"]) != (repr(policy), self._adapting.planner):
            self._known = {}  # the plans may be later ones, and another policy asks for other reasons
            return
        self._together = Together.load(found["together"], branches, self.decisions, policy, self._memories)
        for branch, kept in zip(branches, found["watched"], strict=True):
            if kept is not None:
                plan, answer, watch, (since, done), judged = kept
                self._watched[branch] = _Watched(
                    plan_of(plan), plan_of(answer), policy.resume(watch, branch, self._memories[branch]), (since, done),
                    judged and Judged.load(judged, branches, self.decisions, policy, self._memories),
                )  # fmt: skip


def _untimed(estimates: Estimates) -> Estimates:
    return replace(estimates, joint=estimates.joint.joint) if isinstance(estimates.joint, Timed) else estimates


def _has_choice(branch: Branch, plan: Plan | None) -> bool:
    """Whether there could be another plan."""
    return plan is not None and not branch.stepwise and sum(not v.is_kleene for v in branch.variables) > 1
