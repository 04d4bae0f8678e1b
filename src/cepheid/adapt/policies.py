"""When to plan again: the decision functions of the paper on invariants.

A policy watches one branch from the moment its plan is made. Asked with what is known now, it says why a better plan is
to be expected, or nothing.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any, Literal, Protocol, TypeAlias, TypeGuard

from cepheid.language.problems import closest
from cepheid.pattern.normal import Branch, Condition
from cepheid.plan.cardinality import Cardinality
from cepheid.plan.deciding import (
    Deciding,
    Quantity,
    deciding,
    dump_deciding,
    dump_quantity,
    load_deciding,
    load_quantity,
    tightest,
)
from cepheid.plan.tree import Plan
from cepheid.stats.estimates import Estimates

Memory: TypeAlias = "dict[frozenset[Quantity], float]"
"""What has been learned about comparisons: by which distance they must be violated."""


class Watch(Protocol):
    """Watches one plan of one branch."""

    def reason(self, now: Cardinality) -> str | None:
        """Why to plan again, by what is expected now; None if there is no reason to."""
        ...

    def learn(self, gain: float) -> None:
        """The plan that this watch asked for made so much less work than the one before it: 0.2 is a fifth less."""
        ...

    def dump(self) -> Any:
        """What it rests on, as JSON can write it."""
        ...


class Policy(Protocol):
    """A way to decide when to plan again."""

    @property
    def cautious(self) -> bool:
        """Whether a new plan must be better by what is known of the last looks, too, and by enough to be worth it. If
        not, it must be better now, as the papers have it."""
        ...

    def watch(self, plan: Plan, planner: str, then: Cardinality, memory: Memory) -> Watch:
        """Watch a plan that was made by what was expected then. ``memory`` is kept from plan to plan."""
        ...

    def resume(self, found: Any, branch: Branch, memory: Memory) -> Watch:
        """The watch of this policy on a plan of a branch that wrote what was found."""
        ...


def _is_real(value: object) -> TypeGuard[float]:
    return isinstance(value, Real) and not isinstance(value, bool)


@dataclass(frozen=True)
class Unconditional:
    """Plan again at every check.

    >>> Unconditional()
    Unconditional(cautious=True)
    """

    cautious: bool = True

    def watch(self, plan: Plan, planner: str, then: Cardinality, memory: Memory) -> Watch:
        return _Always()

    def resume(self, found: Any, branch: Branch, memory: Memory) -> Watch:
        return _Always()


class _Always:
    def reason(self, now: Cardinality) -> str | None:
        return "every check plans again"

    def learn(self, gain: float) -> None:
        return

    def dump(self) -> Any:
        return None


@dataclass(frozen=True)
class Threshold:
    """Plan again when any rate or selectivity has changed by more than a part of what it was.

    >>> Threshold(0.3)
    Threshold(change=0.3, cautious=True)
    """

    change: float = 0.3
    cautious: bool = True

    def __post_init__(self) -> None:
        if not (_is_real(self.change) and 0 < self.change < math.inf):
            raise ValueError(f"a threshold is a relative change above 0, such as 0.3; got {self.change!r}")

    def watch(self, plan: Plan, planner: str, then: Cardinality, memory: Memory) -> Watch:
        return _Changes(self.change, then.branch, _values(then.estimates))

    def resume(self, found: Any, branch: Branch, memory: Memory) -> Watch:
        conditions = branch.all_conditions
        values = {what if isinstance(what, str) else conditions[what]: value for what, value in found}
        return _Changes(self.change, branch, values)


class _Changes:
    def __init__(self, change: float, branch: Branch, before: Mapping[str | Condition, float]) -> None:
        self._change = change
        self._branch = branch
        self._before = before

    def reason(self, now: Cardinality) -> str | None:
        values = _values(now.estimates)
        for what, before in self._before.items():
            if what in values and abs(values[what] - before) > self._change * max(before, 1e-300):
                name = f"the rate of {what}" if isinstance(what, str) else f"the selectivity of {what}"
                return f"{name} was {before:.3g} and is {values[what]:.3g}"
        return None

    def learn(self, gain: float) -> None:
        return

    def dump(self) -> Any:
        conditions = self._branch.all_conditions
        return [
            [what if isinstance(what, str) else conditions.index(what), before] for what, before in self._before.items()
        ]


def _values(estimates: Estimates) -> dict[str | Condition, float]:
    found: dict[str | Condition, float] = dict(estimates.counts.items())
    return found | dict(estimates.selectivity.items())


@dataclass(frozen=True)
class Invariant:
    """Plan again when a comparison that decided for the plan would come out otherwise today.

    ``k``: how many comparisons are watched for each part of the plan, those that were closest; None: all of them, those
    with all plans that an exact search left aside, too. ``distance``: by which
    part of it the other choice must be better: a number, ``"average"`` (the mean distance of the comparisons when the
    plan was made) or ``"meta"`` (learned for each comparison from what earlier changes brought).

    >>> Invariant(k=2, distance=0.1)
    Invariant(k=2, distance=0.1, cautious=True)
    """

    k: int | None = 1
    distance: float | Literal["average", "meta"] = 0.0
    cautious: bool = True

    def __post_init__(self) -> None:
        is_number = isinstance(self.k, Integral) and not isinstance(self.k, bool)
        if self.k is not None and not (is_number and self.k >= 1):
            raise ValueError(
                f"k says how many comparisons are watched for each part: 1 or more, or None for all; got {self.k!r}"
            )
        if self.distance not in ("average", "meta") and not (_is_real(self.distance) and self.distance >= 0):
            raise ValueError(f"distance is 0 or more, 'average' or 'meta'; got {self.distance!r}")

    def watch(self, plan: Plan, planner: str, then: Cardinality, memory: Memory) -> Watch:
        blocks = deciding(plan, then.branch, then, planner, every=self.k is None)
        chosen = tightest(blocks, then, self.k)
        if self.distance == "meta":
            return _Learning(chosen, memory)
        if self.distance == "average":
            distances = [abs(c.distance(then)) for block in blocks for c in block]
            return _Invariants(chosen, sum(distances) / len(distances) if distances else 0.0)
        return _Invariants(chosen, float(self.distance))

    def resume(self, found: Any, branch: Branch, memory: Memory) -> Watch:
        chosen = tuple(map(load_deciding, found["invariants"]))
        if self.distance == "meta":
            return _Learning(chosen, memory, None if found["asked"] is None else load_deciding(found["asked"]))
        return _Invariants(chosen, found["distance"])


class _Invariants:
    """In the order of the blocks: an invariant takes those before it for granted."""

    def __init__(self, invariants: tuple[Deciding, ...], distance: float) -> None:
        self._invariants = invariants
        self._distance = distance

    def reason(self, now: Cardinality) -> str | None:
        for invariant in self._invariants:
            if invariant.is_violated(now, self.allowed(invariant)):
                return f"it no longer holds that {invariant}"
        return None

    def allowed(self, invariant: Deciding) -> float:
        return self._distance

    def learn(self, gain: float) -> None:
        return

    def dump(self) -> Any:
        return {"invariants": list(map(dump_deciding, self._invariants)), "distance": self._distance}


STEP = 0.1
"""The first distance after none."""
LITTLE, MUCH = 0.05, 0.2
"""Gains that were not worth a change, and that were."""


class _Learning(_Invariants):
    """The meta-adaptive distance: what brought little must be violated by twice as much the next time."""

    def __init__(self, invariants: tuple[Deciding, ...], memory: Memory, asked: Deciding | None = None) -> None:
        super().__init__(invariants, 0.0)
        self._memory = memory
        self._asked = asked

    def reason(self, now: Cardinality) -> str | None:
        for invariant in self._invariants:
            if invariant.is_violated(now, self.allowed(invariant)):
                self._asked = invariant
                return f"it no longer holds that {invariant}"
        return None

    def allowed(self, invariant: Deciding) -> float:
        return self._memory.get(_key(invariant), 0.0)

    def learn(self, gain: float) -> None:
        if self._asked is None:
            return
        distance = self.allowed(self._asked)
        if gain < LITTLE:
            self._memory[_key(self._asked)] = min(max(2 * distance, STEP), 16.0)
        elif gain > MUCH:
            self._memory[_key(self._asked)] = distance / 2 if distance > STEP else 0.0

    def dump(self) -> Any:
        return super().dump() | {"asked": None if self._asked is None else dump_deciding(self._asked)}


def _key(invariant: Deciding) -> frozenset[Quantity]:
    """Whichever of the two was chosen."""
    return frozenset({invariant.chosen, invariant.other})


DEFAULT = Invariant(k=10, distance="meta")
"""Of up to ten comparisons for each part, hardly a pattern has more. To look at them costs next to nothing."""
WORDS = ("static", "true", "unconditional", "threshold", "invariant")
"""How policies are called on the command line and in jobs."""


def policy_called(words: str) -> Policy | None:
    """The policy that a word stands for; ``threshold`` and ``invariant`` may have a number behind them.

    That of a threshold is the change, that of an invariant its distance.

    >>> policy_called("static"), policy_called("true") == DEFAULT, policy_called("threshold 0.5")
    (None, True, Threshold(change=0.5, cautious=True))
    >>> policy_called("invariant:meta")
    Invariant(k=1, distance='meta', cautious=True)
    """
    word, *more = words.lower().replace(":", " ").split() or [""]
    match word, more:
        case "static", []:
            return None
        case "true", []:
            return DEFAULT
        case "unconditional", []:
            return Unconditional()
        case "threshold", []:
            return Threshold()
        case "threshold", [part]:
            return Threshold(_number(words, part))
        case "invariant", [("average" | "meta") as distance]:
            return Invariant(distance=distance)
        case "invariant", []:
            return Invariant()
        case "invariant", [part]:
            return Invariant(distance=_number(words, part))
    hint = closest(word, WORDS)
    raise ValueError(
        f"one of {', '.join(WORDS)}, such as 'threshold 0.3' or 'invariant meta'; got {words!r}."
        + (f" Hint: {hint}" if hint and word not in WORDS else "")
    )


def _number(words: str, part: str) -> float:
    try:
        return float(part)
    except ValueError:
        raise ValueError(
            f"behind threshold and invariant comes a number, such as 0.3, or invariant average, invariant meta; "
            f"got {words!r}"
        ) from None


def policy_of(adapt: Policy | bool | str | None) -> Policy | None:
    """What a user may write: nothing or ``"static"``, ``True`` for the default, a policy, or the word for one.

    >>> policy_of("static") is None, policy_of(True), policy_of("threshold 0.5")
    (True, Invariant(k=10, distance='meta', cautious=True), Threshold(change=0.5, cautious=True))
    """
    if adapt is None or adapt is False:
        return None
    if adapt is True:
        return DEFAULT
    if isinstance(adapt, str):
        try:
            return policy_called(adapt)
        except ValueError as error:
            expected = "adapt is 'static', True, or a policy such as cepheid.Invariant()"
            raise ValueError(f"{expected}; of words, {error}") from None
    if isinstance(adapt, type) or not (hasattr(adapt, "watch") and hasattr(adapt, "cautious")):
        raise ValueError(
            f"adapt is 'static', True, or a policy such as cepheid.Invariant() or cepheid.Threshold(0.3); got {adapt!r}"
        )
    return adapt


def dump_memory(memory: Memory) -> list[list[Any]]:
    """As JSON can write it."""
    return [[list(map(dump_quantity, key)), distance] for key, distance in memory.items()]


def load_memory(found: list[list[Any]]) -> Memory:
    """
    >>> one, other = ((frozenset({"a"}), frozenset({"b"})),), ((frozenset({"c"}), frozenset()),)
    >>> memory = {frozenset({one, other}): 0.1}
    >>> load_memory(dump_memory(memory)) == memory
    True
    """
    return {frozenset(map(load_quantity, key)): distance for key, distance in found}
