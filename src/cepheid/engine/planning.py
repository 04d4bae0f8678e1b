"""The plans of an engine's patterns: made apart, or together so that they share work."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from cepheid.pattern.normal import Branch, NormalForm
from cepheid.plan.planner import make_plan
from cepheid.plan.sharing.plan import APART, MODES, SharedPlan, Sharing, share_plans
from cepheid.plan.tree import Plan
from cepheid.stats.estimates import Estimates, nothing_known

Share: TypeAlias = str | Sharing | None
"""How patterns share work; None: as seems best."""
AS_WRITTEN = "maximal"
"""The mode whose plans do not depend on the stream."""
SECONDS_A_BRANCH, SECONDS = 0.01, 5.0
"""So long a plan for several patterns is searched for, if not said."""

AGAIN = 0.2
"""A search in the middle of a stream takes this part of the time of the first one."""
AS_THEY_ARE = Sharing(steps=0, descend=False)


def checked_share(share: Share) -> None:
    if not (share is None or isinstance(share, Sharing) or share in MODES):
        raise ValueError(f"share is one of {', '.join(map(repr, MODES))}, or a cepheid.Sharing; got {share!r}")


@dataclass(slots=True)
class Planning:
    """Makes plans, and keeps in mind what they share."""

    planner: str
    order: Sequence[str] | None
    estimates: Mapping[Branch, Estimates]
    share: Share
    plans: dict[Branch, Plan | None] = field(default_factory=dict)
    _shared: SharedPlan | None = None

    @property
    def shares(self) -> bool:
        """Whether equal parts of plans are to be evaluated once."""
        return self.share not in APART

    @property
    def each_alone(self) -> bool:
        """Whether each pattern has the plan of a planner that was named, whatever others have."""
        return self.share is None and (self.order is not None or self.planner != "auto")

    def start(self, normals: Iterable[NormalForm]) -> None:
        """Make the first plans."""
        branches = [branch for normal in normals for branch in normal.branches]
        names = {name for branch in branches for name in branch.names}
        unknown = [name for name in self.order or () if name not in names]
        if unknown:
            raise ValueError(
                f"order names {', '.join(unknown)}, which no pattern has: expected {', '.join(sorted(names))}, in some "
                "order"
            )
        if len(branches) > 1 and self.share != "none" and not self.each_alone:
            self._shared = share_plans(branches, self.estimates, self._mode(len(branches)))
            self.plans.update(self._shared.plans)
        for branch in branches:
            if branch not in self.plans:
                self.plans[branch] = self._alone(branch)

    def resume(self, plans: Mapping[Branch, Plan | None]) -> None:
        """Go on with plans that were made elsewhere."""
        self.plans, self._shared = dict(plans), None

    def search_again(self, estimates: Mapping[Branch, Estimates]) -> tuple[dict[Branch, Plan], float]:
        """Other plans for what is known now, searched for from the present ones on; what part of the cost they save."""
        self.estimates = {**self.estimates, **estimates}
        known = {branch: plan for branch, plan in self.plans.items() if plan is not None and not branch.stepwise}
        mode = self._mode(len(known))
        if mode == "prefix":
            mode = Sharing(plans="chains")
        if isinstance(mode, Sharing):  # the stream waits
            mode = replace(mode, seconds=mode.seconds * AGAIN)
        found = share_plans(list(known), self.estimates, mode, start=known)
        if found.history:  # of a search: it began with the present plans
            present = found.history[0][1]
        else:
            present = share_plans(list(known), self.estimates, AS_THEY_ARE, start=known).cost
        changed = {branch: plan for branch, plan in found.plans.items() if plan != self.plans[branch]}
        return changed, 1 - found.cost / max(present, 1e-300)

    def together(self) -> SharedPlan:
        """The plans as one, with what they share and what that saves."""
        if self._shared is None:
            known = {branch: plan for branch, plan in self.plans.items() if plan is not None}
            self._shared = share_plans(list(known), self.estimates, AS_THEY_ARE, start=known)
        return self._shared

    def add(self, normal: NormalForm) -> dict[Branch, Plan | None]:
        """Plans for one more pattern that share what they can with those that are there, which stay."""
        unknown = [branch for branch in normal.branches if branch not in self.plans]
        new = {branch: self.estimates.get(branch) or nothing_known(branch) for branch in unknown}
        found: dict[Branch, Plan | None] = {}
        if self.shares and new:
            self._shared = self.together().changed(new)
            found.update(self._shared.plans)
        for branch in new:
            self.plans[branch] = found[branch] if branch in found else self._alone(branch)
        return {branch: self.plans[branch] for branch in normal.branches}

    def remove(self, branches: Sequence[Branch]) -> None:
        if self._shared is not None:
            self._shared = self._shared.changed({}, branches)
        for branch in branches:
            del self.plans[branch]

    def _mode(self, branches: int) -> str | Sharing:
        return Sharing(seconds=min(SECONDS, SECONDS_A_BRANCH * branches)) if self.share is None else self.share

    def _alone(self, branch: Branch) -> Plan | None:
        single = replace(branch, variables=tuple(v for v in branch.variables if not v.is_kleene))
        if not single.variables:
            return None
        estimates = self.estimates.get(branch) or nothing_known(branch)
        order = None if self.order is None else [v for v in self.order if v in single.names]
        return make_plan(single, estimates, self.planner, order)
