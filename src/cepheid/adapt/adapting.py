"""How a session is to follow the data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, get_args

from cepheid.adapt.every import CheckEvery, Every
from cepheid.adapt.policies import Policy
from cepheid.pattern.normal import Branch
from cepheid.stats.estimates import Estimates

Migration = Literal["rebuild", "parallel"]


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
