"""A pattern as its author wrote it, in text or in Python."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from cepheid.language import syntax as s
from cepheid.language.problems import Source
from cepheid.language.reader import read_expression, read_length, read_return
from cepheid.language.terms import Term, Value, to_expression
from cepheid.language.text import pattern_text
from cepheid.language.values import Interval
from cepheid.language.words import is_name


@dataclass(frozen=True, slots=True)
class Pattern(s.Node):
    """A pattern: an immutable value. Each method gives a new one with that clause set.

    Build it with :func:`cepheid.seq` and its like, or read it with :func:`cepheid.parse`; ``str(pattern)`` is its text.

    >>> from cepheid import ev, fn, kl, seq
    >>> a, b = ev("Stock", "a"), ev("Stock", "b")
    >>> pattern = seq(a, kl(b)).where(a.price < b.price, fn.count(b) > 2).partition_by("ticker").within("4 hours")
    >>> print(pattern.named("rising").returning(ticker=a.ticker, n=fn.count(b)))
    NAME rising
    PATTERN SEQ(Stock a, KL(Stock b))
    WHERE a.price < b.price AND COUNT(b) > 2
    PARTITION BY ticker
    WITHIN 4 hours
    RETURN a.ticker AS ticker, COUNT(b) AS n
    """

    structure: s.Structure
    name: str | None = None
    condition: s.Expression | None = None
    partition: tuple[s.Column, ...] = ()
    window: s.Window | None = None
    slide: s.Window | None = None
    selection: s.Selection = field(default_factory=s.Selection)
    output: tuple[s.ReturnItem, ...] | None = None
    critical: bool = False
    source: Source | None = field(default=None, compare=False, repr=False)

    def __post_init__(self) -> None:
        if not isinstance(self.critical, bool):  # "no" would be as good as True
            raise TypeError(f"critical is True or False, got {self.critical!r}")

    def __str__(self) -> str:
        return pattern_text(self)

    def _with(self, **changes: object) -> Pattern:
        return replace(self, source=None, **changes)  # type: ignore[arg-type]

    def named(self, name: str) -> Pattern:
        """The name under which matches are reported."""
        return self._with(name=_checked_name(name))

    def where(self, *conditions: str | Term) -> Pattern:
        """Conditions, as text or as terms. All of them must hold, together with those given before."""
        given = [read_expression(c) if isinstance(c, str) else _built(c) for c in conditions]
        return self._with(condition=s.conjunction([*s.conjuncts(self.condition), *given]))

    def using(self, strategy: str, *, consume: bool = False) -> Pattern:
        """Which matches are selected: ``skip_till_any``, ``skip_till_next`` or ``strict``."""
        names = [m.value for m in s.Strategy]
        if strategy not in names:
            raise ValueError(f"strategy is one of {', '.join(names)}; got {strategy!r}")
        return self._with(selection=s.Selection(s.Strategy(strategy), consume))

    def partition_by(self, *attributes: str) -> Pattern:
        """All events of a match share these attributes."""
        return self._with(partition=tuple(s.Column(_checked_name(a)) for a in attributes))

    def within(self, window: str | int | object, slide: str | int | object | None = None) -> Pattern:
        """The window, as text (``"4 hours"``, ``"500 events"``), a timedelta, or a whole number on integer time."""
        return self._with(window=_length(window), slide=None if slide is None else _length(slide))

    def returning(self, text: str | None = None, /, **columns: Value) -> Pattern:
        """The columns of the output, as text or as ``name=term``."""
        if text is None and not columns:
            raise ValueError("returning() needs at least one column: returning('a.x') or returning(x=a.x)")
        items = read_return(text) if text is not None else ()
        named = tuple(s.ReturnItem(_built(v), _checked_name(k)) for k, v in columns.items())
        return self._with(output=(*items, *named))

    def never_shed(self, critical: bool = True) -> Pattern:
        """Under overload it loses nothing, whatever others lose: ``NEVER SHED``.

        >>> from cepheid import ev, seq
        >>> print(seq(ev("Login", "l"), ev("Alarm", "a")).within("1 hour").never_shed())
        PATTERN SEQ(Login l, Alarm a)
        WITHIN 1 hour
        NEVER SHED
        """
        return self._with(critical=critical)


def _built(value: object) -> s.Expression:
    expression = to_expression(value)
    if s.is_too_deep(expression):
        raise ValueError(f"an expression nests at most {s.MAX_DEPTH} levels deep")
    return expression


def _length(value: object) -> s.Window:
    if isinstance(value, str):
        return read_length(value)
    constant = to_expression(value)
    match constant:
        case s.Literal(bool()):
            pass
        case s.Literal(int(number)) if number >= 0:
            return s.Window(s.WindowKind.NUMBER, number)
        case s.Literal(Interval(nanoseconds)) if nanoseconds >= 0:
            return s.Window(s.WindowKind.TIME, nanoseconds)
    raise TypeError(f"a window is text such as '4 hours', a timedelta or a whole number, 0 or more; got {value!r}")


def _checked_name(name: str) -> str:
    if not isinstance(name, str) or not is_name(name):
        raise ValueError(f"expected a name of printable characters, got {name!r}")
    return name


def with_names(patterns: Iterable[Pattern]) -> tuple[Pattern, ...]:
    """The same patterns, the unnamed ones called pattern_1, pattern_2, … by their place."""
    return tuple(
        pattern if pattern.name is not None else replace(pattern, name=f"pattern_{place}")
        for place, pattern in enumerate(patterns, start=1)
    )
