"""What a description says about the engine."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import AfterValidator, BeforeValidator, Discriminator, Field, Tag, ValidationInfo, field_validator

from cepheid.adapt.adapting import Migration
from cepheid.adapt.every import Every
from cepheid.adapt.policies import WORDS, Invariant, Policy, Threshold, Unconditional, policy_of
from cepheid.engine.engine import NEGATIONS
from cepheid.job.part import LENGTH, Count, Length, Part, Texts, length, one_of
from cepheid.plan.planner import PLANNERS
from cepheid.plan.sharing.plan import MODES, Sharing
from cepheid.shed.strategies import STRATEGIES, Strategy, strategy_called


class SharingOptions(Part):
    """A search for a plan that patterns share, as ``cepheid.Sharing`` describes it."""

    search: Literal["annealing", "tabu"] = "annealing"
    neighbourhood: Literal["edge", "vertex"] = "edge"
    k: Annotated[int, Field(ge=2)] = 4
    seconds: Annotated[float, Field(ge=0)] = 5.0
    seed: int = 0
    steps: Annotated[int, Field(ge=0)] | None = None
    plans: Literal["trees", "chains"] = "trees"
    descend: bool = True

    def sharing(self) -> Sharing:
        return Sharing(**self.model_dump())


def _share_word(value: object) -> object:
    if value not in MODES:
        raise ValueError(f"one of {', '.join(MODES)}, or a mapping with search, seconds, …")
    return value


def _often(value: object) -> object:
    try:
        Every.of(value)  # type: ignore[arg-type]
    except ValueError:
        raise ValueError("a number of events, or text such as 500 events or 10 minutes") from None
    return value


Share = Annotated[
    Annotated[str, BeforeValidator(_share_word), Tag("word")] | Annotated[SharingOptions, Tag("a search")],
    Discriminator(lambda value: "a search" if isinstance(value, (Mapping, SharingOptions)) else "word"),
]


def _safe(part: float) -> float:
    if not 0 < part < 1:
        raise ValueError("a part of the latency bound, between 0 and 1")
    return part


class ShedOptions(Part):
    """What to drop under overload, as the strategies such as ``cepheid.HSpice`` describe it."""

    strategy: Annotated[str, one_of(*STRATEGIES)]
    latency_bound: Length
    safety: Annotated[float, AfterValidator(_safe)] = 0.8
    weights: Mapping[str, Annotated[float, Field(ge=0)]] = {}
    observations: Count = 20_000

    def made(self) -> Strategy:
        return strategy_called(self.strategy)(**self.model_dump(exclude={"strategy"}))


def _far(value: object) -> object:
    if value in (None, "average", "meta") or (
        isinstance(value, (int, float)) and not isinstance(value, bool) and value >= 0
    ):
        return value
    raise ValueError("a number, 0 or more, or average, meta")


POLICIES: Mapping[str, type[Unconditional | Threshold | Invariant]] = {
    "unconditional": Unconditional, "threshold": Threshold, "invariant": Invariant,
}  # fmt: skip


class AdaptOptions(Part):
    """When to plan again, as the policies such as ``cepheid.Threshold`` describe it."""

    policy: Annotated[str, one_of(*POLICIES)]
    change: Annotated[float, Field(gt=0)] | None = None
    k: Count | None = None
    distance: Annotated[float | str | None, BeforeValidator(_far)] = None
    cautious: bool = True

    @field_validator("change", "k", "distance")
    @classmethod
    def _is_of_this_policy(cls, value: object, info: ValidationInfo) -> object:
        policy = info.data.get("policy")
        owner = "threshold" if info.field_name == "change" else "invariant"
        if value is not None and policy is not None and policy != owner:
            raise ValueError(f"nothing: {info.field_name} belongs to policy: {owner}")
        return value

    def made(self) -> Policy:
        said = self.model_dump(exclude={"policy"}, exclude_unset=True)
        # That there is no k means something: all comparisons are watched.
        nothing = {"k"} if self.policy == "invariant" else set()
        return POLICIES[self.policy](**{n: value for n, value in said.items() if value is not None or n in nothing})


def _adapt_word(value: object) -> object:
    try:
        policy_of(value)  # type: ignore[arg-type]
    except ValueError:
        raise ValueError(f"true, false, one of {', '.join(WORDS)}, or a mapping with policy, …") from None
    return value


Adapt = Annotated[
    Annotated[bool | str, BeforeValidator(_adapt_word), Tag("word")] | Annotated[AdaptOptions, Tag("a policy")],
    Discriminator(lambda value: "a policy" if isinstance(value, (Mapping, AdaptOptions)) else "word"),
]


def _late(value: object) -> object:
    if value is None or (isinstance(value, int) and not isinstance(value, bool) and value >= 0):
        return value
    if not isinstance(value, str):
        raise ValueError(f"{LENGTH}, or where times are numbers a whole number; 0 or more")
    return length(value)


class EngineOptions(Part):
    """As for ``cepheid.spark.match``. ``allowed_lateness``: a number where times are numbers."""

    adapt: Adapt = False
    check_every: Annotated[int | str | None, BeforeValidator(_often)] = None
    migrate: Migration = "rebuild"
    planner: Annotated[str, one_of("auto", *PLANNERS)] = "auto"
    order: Texts | None = None
    negation: Annotated[str, one_of(*NEGATIONS)] = "auto"
    share: Share | None = None
    shed: ShedOptions | None = None
    max_partial_matches: Count = 100_000_000
    shards: Count | None = None
    allowed_lateness: Annotated[int | str | None, BeforeValidator(_late)] = None
    late_events: str | None = None

    @property
    def adapting(self) -> Policy | bool | str:
        """As ``cepheid.match`` takes it."""
        return self.adapt.made() if isinstance(self.adapt, AdaptOptions) else self.adapt

    @property
    def sharing(self) -> str | Sharing | None:
        """As ``cepheid.match`` takes it."""
        return self.share.sharing() if isinstance(self.share, SharingOptions) else self.share

    @property
    def shedding(self) -> Strategy | None:
        return None if self.shed is None else self.shed.made()
