"""Following the data: look at the statistics now and then, and change plans when a policy says so."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from cepheid.adapt.every import EVENT, FIRST_LOOKS, enough
from cepheid.adapt.followed import Followed
from cepheid.adapt.judged import expected
from cepheid.adapt.looking import PAST, Looking
from cepheid.adapt.policies import dump_memory, load_memory
from cepheid.adapt.record import Decision, untimed
from cepheid.adapt.together import Together
from cepheid.adapt.watched import Watched
from cepheid.pattern.normal import Branch
from cepheid.plan.planner import again
from cepheid.stats.estimates import Estimates

FOLLOWING = 0.0125
"""No more than about this part of the time is spent on looks, where their number is not given …"""
SEARCHING = 0.05
"""… and this part where patterns share work: then a plan for all of them is searched for. What is in doubt waits."""
SUDDEN, BURST = 3.0, 8
"""A plan that makes so many times the work of an event that it made until the last look may be the wrong one by now. It
is looked at whatever looks have taken, and so many times as soon as else. The next such look needs as much again."""
ASKING = 0.02
"""How much work was done is asked after so many seconds of pushes: to ask takes about a tenth of a millisecond."""


class Follower(Looking):
    """Follows one session."""

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
        done, taken = session.work_of(session.plans) - work, session.events - events
        if self._rate is not None and done + EVENT * taken > SUDDEN * self._rate * taken:
            done, taken = BURST * done, BURST * taken
        elif self.checks and self.seconds.overhead > (SEARCHING if session.plans_together else FOLLOWING):
            return False
        variables = sum(again(self._adapting.planner, branch) for branch in session.plans)
        looks = FIRST_LOOKS if all(branch in self._known for branch in session.plans) else self.checks
        return enough(done, taken, variables, looks)

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
        looks = [(branch, untimed(look.estimates)) for branch in branches for look in self._past.get(branch, ())]
        found = {
            "policy": repr(self._adapting.policy),
            "planner": self._adapting.planner,
            "mark": self._mark,
            "rate": self._rate,
            "together": self._together.dump(branches, self.decisions),
            "memories": [dump_memory(self._memories.get(branch, {})) for branch in branches],
            "watched": [w and w.dump(branches, self.decisions) for w in map(self._watched.get, branches)],
            "report": self.report(),
        }
        return found, looks

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
                self._watched[branch] = Watched.load(kept, branch, branches, self.decisions, policy, self._memories)
