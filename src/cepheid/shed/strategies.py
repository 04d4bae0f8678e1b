"""What to drop under overload: the strategies that a user may name."""

from __future__ import annotations

import datetime as dt
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from numbers import Integral, Real
from typing import TypeAlias

from cepheid.language import syntax as s
from cepheid.language.problems import CepheidError, closest
from cepheid.language.reader import read_length
from cepheid.language.values import Interval

LatencyBound: TypeAlias = "str | dt.timedelta | float"
"""What a user may write: ``"1 second"``, a timedelta, or seconds."""


@dataclass(frozen=True)
class Strategy:
    """What all strategies are told.

    ``latency_bound``: no event is to wait and be worked on for longer; text such as ``"1 second"``, a timedelta, or a
    number of seconds. ``safety``: shedding starts when an event has to wait for this part of it. ``weights``: how much
    a match of each pattern is worth, 1 if not said. ``observations``: pairs that are looked at before there is a model,
    and again before it is made anew.

    >>> from cepheid import HSpice
    >>> HSpice(latency_bound="500 ms", weights={"fraud": 10}).seconds
    0.5
    """

    latency_bound: LatencyBound = "1 second"
    safety: float = 0.8
    weights: Mapping[str, float] = field(default_factory=dict)
    observations: int = 20_000

    def __post_init__(self) -> None:
        if not self.seconds > 0:
            raise ValueError(f"latency_bound is longer than nothing, such as '1 second'; got {self.latency_bound!r}")
        if not _is_number(self.safety) or not 0 < self.safety < 1:
            raise ValueError(
                f"safety is a part of the latency bound, between 0 and 1, such as 0.8; got {self.safety!r}"
            )
        if isinstance(self.observations, bool) or not isinstance(self.observations, Integral) or self.observations < 1:
            raise ValueError(f"observations is a whole number, 1 or more; got {self.observations!r}")
        if not isinstance(self.weights, Mapping):
            raise TypeError(
                f"weights are numbers by the names of patterns, such as {{'fraud': 10}}; got {self.weights!r}"
            )
        for name, weight in self.weights.items():
            if not _is_number(weight) or not 0 <= weight < float("inf"):
                raise ValueError(f"the weight of a pattern is a number, 0 or more; got {weight!r} for {name!r}")

    @property
    def seconds(self) -> float:
        """The latency bound in seconds."""
        given = self.latency_bound
        if isinstance(given, str):
            try:
                window = read_length(given)
            except CepheidError as error:
                raise ValueError(f"latency_bound is a length of time such as '1 second'; got {given!r}") from error
            if window.kind is not s.WindowKind.TIME:
                raise ValueError(f"latency_bound is a length of time such as '1 second'; got {given!r}")
            return window.size / 1e9
        if isinstance(given, dt.timedelta):
            return Interval.from_timedelta(given).nanoseconds / 1e9
        if isinstance(given, bool) or not isinstance(given, (int, float)):
            raise TypeError(f"latency_bound is text such as '1 second', a timedelta or seconds; got {given!r}")
        return float(given)

    def for_patterns(self, names: Collection[str]) -> Strategy:
        """The same for some of the patterns, with the weights that are theirs."""
        return replace(self, weights={name: weight for name, weight in self.weights.items() if name in names})


def _is_number(value: object) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool)


@dataclass(frozen=True)
class HSpice(Strategy):
    """Drops events from partial matches: the pairs of the two from which the fewest matches come, for the work that
    follows from them."""


@dataclass(frozen=True)
class ESpice(Strategy):
    """Drops events from windows: those that, by their type and position, are in the fewest matches."""


@dataclass(frozen=True)
class PSpice(Strategy):
    """Drops partial matches: those that promise the fewest matches for the work that they still make."""


@dataclass(frozen=True)
class WeightedSampling(Strategy):
    """Drops events at random: less often of a type that stands often in the patterns and rarely in the stream."""


@dataclass(frozen=True)
class CostAware(Strategy):
    """Drops pairs, partial matches or events, whichever is expected to lose the least for the work that it saves.

    For each of the ways it reckons, from what was seen, how much work would be left and which matches would be lost,
    with all that follows from each drop; so it drops no more than it is asked to.
    """


STRATEGIES: Mapping[str, type[Strategy]] = {
    "hspice": HSpice,
    "espice": ESpice,
    "pspice": PSpice,
    "sampling": WeightedSampling,
    "cost": CostAware,
}
"""By the words that stand for them on the command line, in jobs and wherever a strategy is taken."""


def strategy_called(word: str) -> type[Strategy]:
    """The strategy that a word stands for.

    >>> strategy_called("hspice")(latency_bound="2 seconds").seconds
    2.0
    """
    if word not in STRATEGIES:
        hint = closest(word, STRATEGIES)
        raise ValueError(f"one of {', '.join(STRATEGIES)}; got {word!r}." + (f" Hint: {hint}" if hint else ""))
    return STRATEGIES[word]


def checked_strategy(shed: object, patterns: Sequence[str]) -> Strategy:
    """A strategy whose weights are of patterns that there are; a word stands for one as it is if nobody says more.

    >>> checked_strategy("hspice", [])
    HSpice(latency_bound='1 second', safety=0.8, weights={}, observations=20000)
    """
    if isinstance(shed, str):
        try:
            shed = strategy_called(shed)()
        except ValueError as error:
            raise ValueError(f"shed is a strategy such as cepheid.HSpice(), or {error}") from None
    if isinstance(shed, type) and issubclass(shed, Strategy):
        raise TypeError(f"shed is a strategy, and {shed.__name__} is a class of them: write cepheid.{shed.__name__}()")
    if not isinstance(shed, Strategy) or type(shed) is Strategy:
        raise TypeError(
            f"shed is a strategy such as cepheid.HSpice(latency_bound='1 second'), or one of the words "
            f"{', '.join(STRATEGIES)}; got {shed!r}"
        )
    unknown = [name for name in shed.weights if name not in patterns]
    if unknown:
        raise ValueError(
            f"there is a weight for {unknown[0]!r}, and no pattern of that name; there are {', '.join(patterns)}"
        )
    return shed
