"""Whether plans follow the data, as it is said on the command line."""

from __future__ import annotations

from typing import Annotated, Any

import typer

Adapt = Annotated[
    str | None,
    typer.Option(
        help="When to plan again, so that plans follow the data: static, true, unconditional, 'threshold 0.3', "
        "'invariant 0.1' (or average, meta).",
        show_default=False,
    ),
]
CheckEvery = Annotated[
    str | None,
    typer.Option(
        help="With --adapt: how often to look, such as 5000 (events) or '10 minutes'; as often as costs little, if not "
        "said.",
        show_default=False,
    ),
]
Migrate = Annotated[
    str | None,
    typer.Option(help="With --adapt: how a new plan takes over: rebuild (if not said), parallel.", show_default=False),
]


def following(adapt: str | None, check_every: str | None, migrate: str | None) -> dict[str, Any]:
    """As ``cepheid.match`` takes it.

    >>> following("threshold 0.5", "5000", None)
    {'adapt': Threshold(change=0.5, cautious=True), 'check_every': 5000}
    """
    from cepheid.adapt.adapting import checked_migration
    from cepheid.adapt.every import Every
    from cepheid.adapt.policies import policy_called

    for option, given in (("--check-every", check_every), ("--migrate", migrate)):
        if adapt is None and given is not None:
            raise ValueError(
                f"{option} is for plans that follow the data: say when to plan again, such as --adapt true"
            )
    found: dict[str, Any] = {}
    if adapt is not None:
        try:
            found["adapt"] = policy_called(adapt)
        except ValueError as error:
            raise ValueError(f"--adapt: {error}") from None
    if check_every is not None:
        found["check_every"] = int(check_every) if check_every.isdecimal() else check_every
        try:
            Every.of(found["check_every"])
        except ValueError as error:
            raise ValueError(f"--check-every: {error}") from None
    if migrate is not None:
        try:
            checked_migration(migrate)
        except ValueError as error:
            raise ValueError(f"--migrate: {error}") from None
        found["migrate"] = migrate
    return found
