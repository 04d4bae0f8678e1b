"""The reference matcher: what a pattern means, by brute force.

It follows docs/semantics.md sentence by sentence and shares nothing with the engine but the parsed pattern. It is slow
on purpose: it tries every way to bind the variables. Times have microsecond precision. Events are dictionaries that all
have the same keys in the same order.

There are two ways in. ``find`` reads the structure tree of a pattern; ``find_normal`` reads the branches that the
normaliser makes of it. Both must give the same matches.
"""

from __future__ import annotations

import datetime as dt
import itertools
import math
import re
import statistics
from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields
from typing import Any, NamedTuple

import numpy as np

from cepheid.language import syntax as s
from cepheid.language.functions import find_function
from cepheid.language.pattern import Pattern
from cepheid.language.values import Interval, Timestamp
from cepheid.pattern.normal import Branch, NormalForm

EventRow = dict[str, Any]
Binding = dict[str, list[int]]  # for each variable, the row numbers of its events


class Match(NamedTuple):
    """Which rows each variable is bound to, and the window it was found in (with SLIDE)."""

    binding: frozenset[tuple[str, frozenset[int]]]
    window_start: Any = None

    def rows(self, variable: str) -> frozenset[int] | None:
        return dict(self.binding).get(variable)


@dataclass(frozen=True)
class Stream:
    """The events, and what the caller said about them."""

    events: list[EventRow]
    time: str = "ts"
    type: str | None = "type"
    tie_breaker: str | None = None

    def order(self, row: int) -> tuple[Any, ...]:
        """Event x is before event y when order(x) < order(y); with equal orders, neither is before the other."""
        event = self.events[row]
        return (event[self.time],) if self.tie_breaker is None else (event[self.time], event[self.tie_breaker])

    def attribute(self, row: int, name: str) -> Any:
        event = self.events[row]
        value = event[self.time] if name == "ts" and "ts" not in event else event[name]
        return None if isinstance(value, float) and math.isnan(value) else value

    def has_type(self, row: int, type_: str) -> bool:
        return self.type is None or self.events[row][self.type] == type_


@dataclass(frozen=True)
class Part:
    """A positive variable: a single event, or a set of ``minimum`` to ``maximum``."""

    name: str
    type: str
    kleene: bool
    minimum: int
    maximum: int | None


@dataclass(frozen=True)
class Shape:
    """One alternative of a pattern: no OR is left in it."""

    parts: list[Part]
    negated: list[tuple[str, str]]  # name, type
    in_order: Callable[[Binding, Stream], bool]
    conditions: list[s.Expression]
    negated_conditions: dict[str, list[s.Expression]]


# --- the two ways in ------------------------------------------------------------------------------------


def find(pattern: Pattern, events: list[EventRow], **columns: Any) -> list[Match]:
    """All matches of a pattern, read from its structure tree."""
    shapes = [_shape_of_tree(tree, pattern) for tree in _alternatives(pattern.structure)]
    names = [leaf.variable for leaf in _events_of(pattern.structure)]
    partition = tuple(c.name for c in pattern.partition)
    assert pattern.window is not None
    return _find(shapes, names, partition, pattern.window, pattern.slide, pattern.selection, Stream(events, **columns))


def find_normal(normal: NormalForm, events: list[EventRow], **columns: Any) -> list[Match]:
    """All matches of a pattern, read from its normal form."""
    shapes = [_shape_of_branch(branch) for branch in normal.branches if branch.never is None]
    names = list(dict.fromkeys(v.name for branch in normal.branches for v in branch.variables))
    any_branch = normal.branches[0]
    return _find(
        shapes,
        names,
        any_branch.partition,
        any_branch.window,
        any_branch.slide,
        normal.selection,
        Stream(events, **columns),
    )


def _alternatives(structure: s.Structure) -> list[s.Structure]:
    """Choose one part of each OR, and k parts of each ANY, in all ways."""
    match structure:
        case s.Disjunction(parts):
            return [tree for part in parts for tree in _alternatives(part)]
        case s.AnyOf(count, parts):
            return [s.Conjunction(chosen) for chosen in itertools.combinations(parts, count)]
        case s.Sequence(parts) | s.Conjunction(parts):
            choices = itertools.product(*(_alternatives(part) for part in parts))
            return [type(structure)(choice) for choice in choices]
        case _:
            return [structure]


def _events_of(structure: s.Structure) -> Iterator[s.Event]:
    match structure:
        case s.Event():
            yield structure
        case s.Kleene(event) | s.Negated(event):
            yield event
        case s.Sequence(parts) | s.Conjunction(parts) | s.Disjunction(parts) | s.AnyOf(_, parts):
            for part in parts:
                yield from _events_of(part)


def _shape_of_tree(tree: s.Structure, pattern: Pattern) -> Shape:
    parts: list[Part] = []
    negated: list[tuple[str, str]] = []

    def collect(node: s.Structure) -> None:
        match node:
            case s.Event(type_, name):
                parts.append(Part(name, type_, False, 1, 1))
            case s.Kleene(event, minimum, maximum):
                parts.append(Part(event.variable, event.type, True, minimum, maximum))
            case s.Negated(event):
                negated.append((event.variable, event.type))
            case s.Sequence(inner) | s.Conjunction(inner):
                for part in inner:
                    collect(part)

    def in_order(binding: Binding, stream: Stream) -> bool:
        def rows(node: s.Structure) -> list[int]:
            return [row for event in _events_of(node) for row in binding.get(event.variable, [])]

        def check(node: s.Structure) -> bool:
            if isinstance(node, s.Sequence):
                for earlier, later in itertools.combinations(node.parts, 2):
                    for x, y in itertools.product(rows(earlier), rows(later)):
                        if not stream.order(x) < stream.order(y):
                            return False
            if isinstance(node, (s.Sequence, s.Conjunction)):
                return all(check(part) for part in node.parts)
            return True

        return check(tree)

    collect(tree)
    names = {part.name for part in parts}
    forbidden = {name for name, _ in negated}
    where = pattern.condition
    conjuncts = [] if where is None else list(where.operands) if isinstance(where, s.And) else [where]
    applying = [c for c in conjuncts if _mentioned(c) <= names | forbidden]
    return Shape(
        parts,
        negated,
        in_order,
        [c for c in applying if not _mentioned(c) & forbidden],
        {name: [c for c in applying if name in _mentioned(c)] for name in forbidden},
    )


def _shape_of_branch(branch: Branch) -> Shape:
    pairs = [
        *branch.order,
        *((x, n.name) for n in branch.negations for x in n.after),
        *((n.name, y) for n in branch.negations for y in n.before),
    ]

    def in_order(binding: Binding, stream: Stream) -> bool:
        return all(
            stream.order(i) < stream.order(j)
            for x, y in pairs
            for i, j in itertools.product(binding.get(x, []), binding.get(y, []))
        )

    return Shape(
        [Part(v.name, v.type, v.is_kleene, v.minimum or 1, v.maximum) for v in branch.variables],
        [(n.name, n.type) for n in branch.negations],
        in_order,
        [c.expression for c in branch.conditions],
        {n.name: [c.expression for c in n.conditions] for n in branch.negations},
    )


# --- partitions and windows -----------------------------------------------------------------------------


def _find(
    shapes: list[Shape],
    names: list[str],
    partition: tuple[str, ...],
    window: s.Window,
    slide: s.Window | None,
    selection: s.Selection,
    stream: Stream,
) -> list[Match]:
    groups: dict[Any, list[int]] = {}
    for row in range(len(stream.events)):
        groups.setdefault(tuple(stream.attribute(row, name) for name in partition), []).append(row)
    found: dict[Match, None] = {}
    for rows in groups.values():
        for start, inside, fits in _windows(rows, window, slide, stream):
            bindings = [b for shape in shapes for b in _select(shape, inside, fits, selection.strategy, stream)]
            if selection.consume:
                bindings = _consume(bindings, names, stream)
            for binding in bindings:
                found[Match(frozenset((v, frozenset(rows)) for v, rows in binding.items()), start)] = None
    return list(found)


def _windows(
    rows: list[int], window: s.Window, slide: s.Window | None, stream: Stream
) -> Iterator[tuple[Any, list[int], Callable[[list[int]], bool]]]:
    """Stretches of the stream that are matched on their own: start, rows, and whether some rows fit into one window."""
    times = {row: stream.events[row][stream.time] for row in rows}
    if slide is not None:
        if not rows:
            return
        origin = dt.datetime(1970, 1, 1, tzinfo=_zone(times)) if window.kind is s.WindowKind.TIME else 0
        size, step = _length(window), _length(slide)
        first = (min(times.values()) - origin - size) // step
        last = (max(times.values()) - origin) // step
        for k in range(first, last + 1):
            start = origin + k * step
            yield start, [row for row in rows if start <= times[row] < start + size], lambda rows: True
    elif window.kind is s.WindowKind.EVENTS:
        ordered = sorted(rows, key=stream.order)
        if any(stream.order(x) == stream.order(y) for x, y in itertools.pairwise(ordered)):
            raise ValueError("a window of events needs distinct times or a tie-breaker")
        place = {row: i for i, row in enumerate(ordered)}
        yield None, rows, lambda some: max(place[r] for r in some) - min(place[r] for r in some) < window.size
    else:
        size = _length(window)
        yield None, rows, lambda some: max(times[r] for r in some) - min(times[r] for r in some) <= size


def _length(window: s.Window) -> Any:
    return _interval(window.size) if window.kind is s.WindowKind.TIME else window.size


def _zone(times: dict[int, Any]) -> dt.tzinfo | None:
    return next(iter(times.values())).tzinfo


# --- which matches are selected -------------------------------------------------------------------------


def _select(
    shape: Shape, rows: list[int], fits: Callable[[list[int]], bool], strategy: s.Strategy, stream: Stream
) -> Iterator[Binding]:
    search = _Search(shape, rows, fits, strategy is s.Strategy.STRICT, stream)
    candidates = search.every() if strategy is s.Strategy.SKIP_TILL_ANY else search.runs({}, 0, None)
    seen = set()
    for binding in candidates:
        key = frozenset((v, frozenset(bound)) for v, bound in binding.items())
        if key not in seen and search.complete(binding) and not search.forbidden(binding):
            yield binding
        seen.add(key)


class _Search:
    def __init__(
        self, shape: Shape, rows: list[int], fits: Callable[[list[int]], bool], strict: bool, stream: Stream
    ) -> None:
        self.shape = shape
        self.rows = rows
        self.fits = fits
        self.strict = strict
        self.stream = stream
        self.kleene = {part.name for part in shape.parts if part.kleene}

    def possible(self, binding: Binding) -> bool:
        """Order, window and use of each event once: what stays broken, whatever else is bound."""
        used = [row for rows in binding.values() for row in rows]
        return (
            len(used) == len(set(used))
            and self.fits(used)
            and self.shape.in_order(binding, self.stream)
            and not (self.strict and self.something_between(used))
        )

    def something_between(self, used: list[int]) -> bool:
        first, last = min(map(self.stream.order, used)), max(map(self.stream.order, used))
        return any(first < self.stream.order(row) < last for row in self.rows if row not in used)

    def holds(self, condition: s.Expression, binding: Binding) -> bool:
        return _holds(condition, binding, self.kleene, self.stream)

    def complete(self, binding: Binding) -> bool:
        """Rules 1 to 4."""
        return (
            all(
                part.minimum <= len(binding[part.name]) <= (part.maximum or math.inf)
                and all(self.stream.has_type(row, part.type) for row in binding[part.name])
                for part in self.shape.parts
            )
            and self.possible(binding)
            and all(self.holds(condition, binding) for condition in self.shape.conditions)
        )

    def forbidden(self, binding: Binding) -> bool:
        """Rule 5: some negated event can be added."""
        for name, type_ in self.shape.negated:
            for row in self.rows:
                if self.stream.has_type(row, type_):
                    more = {**binding, name: [row]}
                    used = [r for rows in more.values() for r in rows]
                    if (
                        len(used) == len(set(used))
                        and self.fits(used)
                        and self.shape.in_order(more, self.stream)
                        and all(self.holds(c, more) for c in self.shape.negated_conditions[name])
                    ):
                        return True
        return False

    # skip_till_any

    def every(self) -> Iterator[Binding]:
        def extend(binding: Binding, rest: list[Part]) -> Iterator[Binding]:
            if not rest:
                yield binding
                return
            part, *others = rest
            candidates = [row for row in self.rows if self.stream.has_type(row, part.type)]
            sizes = range(part.minimum, min(part.maximum or len(candidates), len(candidates)) + 1)
            for size in sizes if part.kleene else [1]:
                for chosen in itertools.combinations(candidates, size):
                    more = {**binding, part.name: list(chosen)}
                    if self.possible(more):
                        yield from extend(more, others)

        return extend({}, self.shape.parts)

    # skip_till_next and strict

    def runs(self, binding: Binding, place: int, after: tuple[Any, ...] | None) -> Iterator[Binding]:
        """Bind the variables from ``place`` on, each to the first later event that fits."""
        if place == len(self.shape.parts):
            yield binding
            return
        part = self.shape.parts[place]
        for group in self.later(after):
            taken = [row for row in group if self.takes(binding, place, row)]
            if not taken:
                continue
            if part.kleene:
                for chosen in _choose(taken, part.maximum):
                    yield from self.grow({**binding, part.name: chosen}, place, self.stream.order(group[0]))
            else:
                for row in taken:
                    yield from self.runs({**binding, part.name: [row]}, place + 1, self.stream.order(row))
            if place > 0:  # only a first variable may start anywhere
                return

    def grow(self, binding: Binding, place: int, after: tuple[Any, ...]) -> Iterator[Binding]:
        """A KL variable takes every event that fits until the next variable is bound."""
        part = self.shape.parts[place]
        last = place + 1 == len(self.shape.parts)
        for group in self.later(after):
            enough = len(binding[part.name]) >= part.minimum
            if not last and enough and any(self.takes(binding, place + 1, row) for row in group):
                yield from self.runs(binding, place + 1, after)
                return
            room = None if part.maximum is None else part.maximum - len(binding[part.name])
            taken = [row for row in group if room != 0 and self.takes(binding, place, row)]
            after = self.stream.order(group[0])
            if taken:
                for chosen in _choose(taken, room):
                    yield from self.grow({**binding, part.name: binding[part.name] + chosen}, place, after)
                return
        if last:
            yield binding

    def takes(self, binding: Binding, place: int, row: int) -> bool:
        """Whether an event fits a variable, with what has been bound before it.

        A condition on the set of a KL variable as a whole is asked when the set is closed: when the next variable is
        bound.
        """
        part = self.shape.parts[place]
        if not self.stream.has_type(row, part.type):
            return False
        more = {**binding, part.name: [*binding.get(part.name, []), row]}
        conditions = [
            c
            for c in self.shape.conditions
            if _mentioned(c) <= set(more) and not (part.kleene and part.name in _aggregated(c))
        ]
        return self.possible(more) and all(self.holds(c, more) for c in conditions)

    def later(self, after: tuple[Any, ...] | None) -> Iterator[list[int]]:
        """The events after a point, those with one time together."""
        rest = sorted((r for r in self.rows if after is None or self.stream.order(r) > after), key=self.stream.order)
        for _, group in itertools.groupby(rest, key=self.stream.order):
            yield list(group)


def _choose(rows: list[int], room: int | None) -> list[list[int]]:
    """All of them; where there is room for fewer, every way to choose that many."""
    if room is None or len(rows) <= room:
        return [rows]
    return [list(chosen) for chosen in itertools.combinations(rows, room)]


def _consume(bindings: list[Binding], names: list[str], stream: Stream) -> list[Binding]:
    """Of competing matches: the one that ends first, then starts first, then has the smallest events."""

    def rank(binding: Binding) -> tuple[Any, ...]:
        used = [row for rows in binding.values() for row in rows]
        orders = [
            (0, sorted(stream.order(row) for row in binding[name])) if name in binding else (1, []) for name in names
        ]
        contents = [sorted(_content(stream.events[row]) for row in binding.get(name, [])) for name in names]
        return max(map(stream.order, used)), min(map(stream.order, used)), orders, contents

    used: set[int] = set()
    reported = []
    for binding in sorted(bindings, key=rank):
        rows = {row for bound in binding.values() for row in bound}
        if not rows & used:
            used |= rows
            reported.append(binding)
    return reported


def _content(event: EventRow) -> tuple[Any, ...]:
    def key(value: Any) -> tuple[Any, ...]:
        if value is None or (isinstance(value, float) and math.isnan(value)):
            return (1,)  # NULL last
        return (0, tuple(map(key, value))) if isinstance(value, list) else (0, value)

    return tuple(key(value) for value in event.values())


# --- conditions -----------------------------------------------------------------------------------------


def _mentioned(node: Any) -> set[str]:
    """The variables that an expression mentions."""
    if isinstance(node, tuple):
        return set().union(*map(_mentioned, node))
    if not isinstance(node, s.Node):
        return set()
    own = {node.variable} if isinstance(node, (s.EventRef, s.Attribute, s.Neighbour, s.Aggregate)) else set()
    return own.union(*(_mentioned(getattr(node, f.name)) for f in fields(node)))


def _collect(node: Any, kind: type, into_aggregates: bool = False) -> set[str]:
    """The variables of the nodes of one kind; those inside an aggregate only if asked for."""
    if isinstance(node, tuple):
        return set().union(*(_collect(n, kind, into_aggregates) for n in node))
    if not isinstance(node, s.Node):
        return set()
    own = {node.variable} if isinstance(node, kind) else set()  # type: ignore[attr-defined]
    if isinstance(node, s.Aggregate) and not into_aggregates:
        return own
    return own.union(*(_collect(getattr(node, f.name), kind, into_aggregates) for f in fields(node)))


def _aggregated(condition: s.Expression) -> set[str]:
    return _collect(condition, s.Aggregate)


def _holds(condition: s.Expression, binding: Binding, kleene: set[str], stream: Stream) -> bool:
    """TRUE for every event of each KL variable that is mentioned as such, and for every pair of neighbours."""
    each = sorted(_collect(condition, s.Attribute) & kleene)
    pairs = sorted(_collect(condition, s.Neighbour))
    singles = {name: rows[0] for name, rows in binding.items() if name not in kleene}
    for rows in itertools.product(*(binding[name] for name in each)):
        for neighbours in itertools.product(*(_neighbours(binding[name], stream) for name in pairs)):
            current = {**singles, **dict(zip(each, rows, strict=True))}
            scope = _Scope(current, dict(zip(pairs, neighbours, strict=True)), binding, stream)
            if scope.value(condition) is not True:
                return False
    return True


def _neighbours(rows: list[int], stream: Stream) -> list[tuple[int, int]]:
    """Pairs of events, one before the other and none of the set between them."""
    before = {(x, y) for x in rows for y in rows if stream.order(x) < stream.order(y)}
    return [(x, y) for x, y in before if not any((x, z) in before and (z, y) in before for z in rows)]


@dataclass(frozen=True)
class _Scope:
    """What the variables stand for while an expression is evaluated. NULL is None."""

    events: dict[str, int]
    neighbours: dict[str, tuple[int, int]]
    sets: Binding
    stream: Stream

    def value(self, e: s.Expression) -> Any:
        match e:
            case s.Literal(Timestamp(nanoseconds)):
                return dt.datetime(1970, 1, 1) + _interval(nanoseconds)
            case s.Literal(Interval(nanoseconds)):
                return _interval(nanoseconds)
            case s.Literal(constant):
                return constant
            case s.Attribute(variable, name):
                return self.stream.attribute(self.events[variable], name) if variable in self.events else None
            case s.Neighbour(variable, offset, name):
                earlier, later = self.neighbours[variable]
                return self.stream.attribute(later if offset == 0 else earlier, name)
            case s.Aggregate(function, variable, argument):
                return self.aggregate(function, self.sets.get(variable, []), variable, argument)
            case s.Negative(operand):
                return _checked(lambda x: -x, self.value(operand))
            case s.Arithmetic(operator, left, right):
                return _checked(_ARITHMETIC[operator], self.value(left), self.value(right))
            case s.Comparison(operator, left, right):
                return _compare(operator, self.value(left), self.value(right))
            case s.Not(operand):
                return _not(self.value(operand))
            case s.And(operands):
                return _and([self.value(o) for o in operands])
            case s.Or(operands):
                return _or([self.value(o) for o in operands])
            case s.In(operand, items):
                return _or([_compare("=", self.value(operand), self.value(item)) for item in items])
            case s.Between(operand, low, high):
                x = self.value(operand)
                return _and([_compare(">=", x, self.value(low)), _compare("<=", x, self.value(high))])
            case s.Like(operand, pattern):
                return _like(self.value(operand), self.value(pattern))
            case s.IsNull(operand):
                return self.value(operand) is None
            case s.Case(cases, otherwise):
                for condition, result in cases:
                    if self.value(condition) is True:
                        return self.value(result)
                return None if otherwise is None else self.value(otherwise)
            case s.Call(function, arguments):
                return _call(function, [self.value(a) for a in arguments])
        raise AssertionError(f"{e} has no value")

    def aggregate(self, function: str, rows: list[int], variable: str, argument: s.Expression | None) -> Any:
        if argument is None:
            return len(rows)
        order = self.stream.order
        if function == "FIRST":
            rows = [row for row in rows if not any(order(other) < order(row) for other in rows)]
        elif function == "LAST":
            rows = [row for row in rows if not any(order(other) > order(row) for other in rows)]
        scopes = [_Scope({variable: row}, {}, {}, self.stream) for row in rows]
        values = [v for v in (scope.value(argument) for scope in scopes) if v is not None]
        if function == "COUNT":
            return len(values)
        if not values or (function == "STDDEV" and len(values) < 2):
            return None
        match function:
            case "SUM":
                if isinstance(values[0], float):
                    return math.fsum(values)
                total = values[0]
                for value in values[1:]:
                    total = total + value
                return _in_64_bits(total)
            case "AVG":
                return math.fsum(values) / len(values)
            case "STDDEV":
                return statistics.stdev(map(float, values))
            case "MIN" | "FIRST":
                return min(values)
            case "MAX" | "LAST":
                return max(values)
        raise AssertionError(function)


def _interval(nanoseconds: int) -> dt.timedelta:
    assert nanoseconds % 1000 == 0, "the reference matcher counts microseconds"
    return dt.timedelta(microseconds=nanoseconds // 1000)


def _in_64_bits(value: Any) -> Any:
    """An integer beyond 64 bits is NULL, and so is what is not a number."""
    if isinstance(value, float):
        return None if math.isnan(value) else value
    if isinstance(value, int) and not isinstance(value, bool):
        return value if -(2**63) <= value < 2**63 else None
    return value


def _checked(function: Callable[..., Any], *values: Any) -> Any:
    if any(value is None for value in values):
        return None
    try:
        return _in_64_bits(function(*values))
    except (ZeroDivisionError, OverflowError, ValueError):
        return None


def _divide(x: Any, y: Any) -> float:
    return x / y if isinstance(x, dt.timedelta) else float(x) / float(y)


def _remainder(x: Any, y: Any) -> Any:
    """With the sign of the dividend, as in SQL."""
    if isinstance(x, int) and isinstance(y, int):
        return abs(x) % abs(y) if x >= 0 else -(abs(x) % abs(y))
    return math.fmod(x, y)


_ARITHMETIC: dict[str, Callable[[Any, Any], Any]] = {
    "+": lambda x, y: x + y,
    "-": lambda x, y: x - y,
    "*": lambda x, y: x * y,
    "/": _divide,
    "%": _remainder,
}


def _compare(operator: str, x: Any, y: Any) -> bool | None:
    if x is None or y is None:
        return None
    if isinstance(x, dt.datetime) and isinstance(y, dt.datetime):
        x, y = x.replace(tzinfo=None), y.replace(tzinfo=None)
    results = {"=": x == y, "<>": x != y, "<": x < y, "<=": x <= y, ">": x > y, ">=": x >= y}
    return results[operator]


def _not(x: bool | None) -> bool | None:
    return None if x is None else not x


def _and(values: list[bool | None]) -> bool | None:
    return False if False in values else None if None in values else True


def _or(values: list[bool | None]) -> bool | None:
    return True if True in values else None if None in values else False


def _like(text: str | None, pattern: str | None) -> bool | None:
    if text is None or pattern is None:
        return None
    regex = ""
    characters = iter(pattern)
    for c in characters:
        if c == "\\":
            regex += re.escape(next(characters, "\\"))
        else:
            regex += {"%": ".*", "_": "."}.get(c, re.escape(c))
    return re.fullmatch(regex, text, re.DOTALL) is not None


def _call(name: str, arguments: list[Any]) -> Any:
    match name:
        case "COALESCE":
            return next((a for a in arguments if a is not None), None)
        case "LEAST" | "GREATEST":
            values = [a for a in arguments if a is not None]
            return (min if name == "LEAST" else max)(values) if values else None
        case "NULLIF":
            return None if _compare("=", *arguments) else arguments[0]
    function = _FUNCTIONS.get(name) or _registered(name)
    return _checked(function, *arguments)


def _registered(name: str) -> Callable[..., Any]:
    function = find_function(name)
    assert function is not None
    assert function.body is not None
    body = function.body

    def call(*arguments: Any) -> Any:
        (result,) = body(*(np.array([a]) for a in arguments))
        return result.item() if hasattr(result, "item") else result

    return call


def _round(x: Any) -> Any:
    return x if isinstance(x, int) else float(math.copysign(math.floor(abs(x) + 0.5), x))


def _whole(function: Callable[[float], int]) -> Callable[[Any], Any]:
    return lambda x: x if isinstance(x, int) else x if math.isinf(x) else float(function(x))


def _exp(x: float) -> float:
    try:
        return math.exp(x)
    except OverflowError:
        return math.inf


def _substr(text: str, start: int, length: int | None = None) -> str | None:
    if start < 1 or (length is not None and length < 0):
        return None
    return text[start - 1 :] if length is None else text[start - 1 : start - 1 + length]


def _corr(x: list[Any], y: list[Any]) -> float | None:
    if len(x) != len(y) or len(x) < 2 or any(v is None or math.isnan(v) for v in [*x, *y]):
        return None
    try:
        return statistics.correlation(x, y)
    except statistics.StatisticsError:  # one of them is constant
        return None


_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "ABS": abs,
    "SIGN": lambda x: (x > 0) - (x < 0),
    "FLOOR": _whole(math.floor),
    "CEIL": _whole(math.ceil),
    "ROUND": lambda x: x if isinstance(x, float) and math.isinf(x) else _round(x),
    "SQRT": math.sqrt,
    "EXP": _exp,
    "LN": math.log,
    "POWER": lambda x, y: np.power(float(x), float(y)).item(),
    "LOWER": str.lower,
    "UPPER": str.upper,
    "TRIM": lambda text: text.strip(" "),
    "LENGTH": len,
    "SUBSTR": _substr,
    "CONCAT": lambda *texts: "".join(texts),
    "CORR": _corr,
}


# --- output ---------------------------------------------------------------------------------------------


def rows(pattern: Pattern, events: list[EventRow], **columns: Any) -> list[dict[str, Any]]:
    """The result of a pattern as it is handed to a user: one row a match."""
    stream = Stream(events, **columns)
    return [_row(pattern, match, stream) for match in find(pattern, events, **columns)]


def _row(pattern: Pattern, match: Match, stream: Stream) -> dict[str, Any]:
    binding = {name: sorted(bound, key=stream.order) for name, bound in match.binding}
    times = [stream.events[row][stream.time] for bound in binding.values() for row in bound]
    row: dict[str, Any] = {"pattern": pattern.name or "pattern_1", "start": min(times), "end": max(times)}
    if pattern.slide is not None:
        row["window_start"] = match.window_start
    kleene = {leaf.event.variable for leaf in s.leaves(pattern.structure) if isinstance(leaf, s.Kleene)}
    if pattern.output is None:
        for leaf in s.leaves(pattern.structure):
            if not isinstance(leaf, s.Negated):
                name = s.event_of(leaf).variable
                row[name] = _events(name, binding, kleene, stream)
        return row
    for item in pattern.output:
        row[item.name] = _column(item.expression, binding, kleene, stream)
    return row


def _events(name: str, binding: Binding, kleene: set[str], stream: Stream) -> Any:
    if name not in binding:
        return None
    found = [stream.events[row] for row in binding[name]]
    return found if name in kleene else found[0]


def _column(expression: s.Expression, binding: Binding, kleene: set[str], stream: Stream) -> Any:
    """A value; a list of values, one an event, where a KL variable is mentioned outside an aggregate."""
    if isinstance(expression, s.EventRef):
        return _events(expression.variable, binding, kleene, stream)
    singles = {name: bound[0] for name, bound in binding.items() if name not in kleene}
    each = _collect(expression, s.Attribute) & kleene
    if not each:
        return _Scope(singles, {}, binding, stream).value(expression)
    (name,) = each
    if name not in binding:
        return None
    return [_Scope({**singles, name: row}, {}, binding, stream).value(expression) for row in binding[name]]
