"""The structure of a pattern in Python: ``seq(ev("Stock", "a"), kl(ev("Stock", "b")))``."""

from __future__ import annotations

from typing import TypeAlias

from cepheid.language import syntax as s
from cepheid.language.pattern import Pattern
from cepheid.language.terms import EventVariable
from cepheid.language.words import is_name

Part: TypeAlias = EventVariable | Pattern


def ev(type: str, variable: str) -> EventVariable:
    """One event of a type, bound to a variable.

    >>> a = ev("Stock", "a")
    >>> a.price > 10
    a.price > 10
    """
    for word, value in (("type", type), ("variable", variable)):
        if not isinstance(value, str) or not is_name(value):
            raise ValueError(f"an event's {word} is a name of printable characters, got {value!r}")
    return EventVariable(s.Event(type, variable))


def seq(*parts: Part, critical: bool = False) -> Pattern:
    """All parts, each before the next: ``SEQ(…)``. ``critical``: under overload it loses nothing (``NEVER SHED``).

    >>> print(seq(ev("Login", "l"), ev("Transfer", "t")).within("10 minutes"))
    PATTERN SEQ(Login l, Transfer t)
    WITHIN 10 minutes
    """
    return Pattern(s.Sequence(_structures("seq", parts)), critical=critical)


def and_(*parts: Part, critical: bool = False) -> Pattern:
    """All parts, in any order: ``AND(…)``.

    >>> print(and_(ev("Login", "l"), ev("Alarm", "a")).within("1 hour"))
    PATTERN AND(Login l, Alarm a)
    WITHIN 1 hour
    """
    return Pattern(s.Conjunction(_structures("and_", parts)), critical=critical)


def or_(*parts: Part, critical: bool = False) -> Pattern:
    """Any one of the parts: ``OR(…)``.

    >>> print(or_(ev("Logout", "o"), ev("Expiry", "e")).within("1 hour"))
    PATTERN OR(Logout o, Expiry e)
    WITHIN 1 hour
    """
    return Pattern(s.Disjunction(_structures("or_", parts)), critical=critical)


def any_of(count: int, *events: EventVariable, critical: bool = False) -> Pattern:
    """``count`` of the events, in any order: ``ANY(count, …)``.

    >>> print(any_of(2, ev("Fire", "f"), ev("Smoke", "s"), ev("Heat", "h")).within("1 minute"))
    PATTERN ANY(2, Fire f, Smoke s, Heat h)
    WITHIN 1 minute
    """
    return Pattern(s.AnyOf(count, tuple(_event("any_of", e) for e in events)), critical=critical)


def not_(event: EventVariable) -> Pattern:
    """No such event: ``NOT(…)``, as a part of :func:`seq` or :func:`and_`.

    >>> print(seq(ev("Order", "o"), not_(ev("Cancel", "c")), ev("Ship", "s")).within("7 days"))
    PATTERN SEQ(Order o, NOT(Cancel c), Ship s)
    WITHIN 7 days
    """
    return Pattern(s.Negated(_event("not_", event)))


def kl(event: EventVariable, minimum: int = 1, maximum: int | None = None, *, critical: bool = False) -> Pattern:
    """A set of at least ``minimum`` events, and at most ``maximum``: ``KL(…)``.

    >>> print(seq(kl(ev("Failure", "f"), 3), ev("Login", "l")).within("5 minutes"))
    PATTERN SEQ(KL(Failure f, 3), Login l)
    WITHIN 5 minutes
    """
    return Pattern(s.Kleene(_event("kl", event), minimum, maximum), critical=critical)


def _event(function: str, part: object) -> s.Event:
    if isinstance(part, EventVariable):
        return part._event
    raise TypeError(f"{function}() takes single events, as in {function}(ev('Stock', 'a')); got {part!r}")


def _structures(function: str, parts: tuple[Part, ...]) -> tuple[s.Structure, ...]:
    if not parts:
        raise ValueError(f"{function}() needs at least one part")
    structures: list[s.Structure] = []
    for part in parts:
        if isinstance(part, Pattern):
            if part != Pattern(part.structure):
                raise ValueError(
                    f"conditions, windows, names and critical=True belong to the whole pattern, not to a part of "
                    f"{function}()"
                )
            structures.append(part.structure)
        else:
            structures.append(_event(function, part))
    return tuple(structures)
