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
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

from cepheid.language import syntax as s
from cepheid.language.pattern import Pattern
from cepheid.pattern.normal import Branch, NormalForm
from tests.oracle_expressions import Binding, EventRow, Scope, Stream, aggregated, collect, holds, interval, mentioned


class Match(NamedTuple):
    """Which rows each variable is bound to, and the window it was found in (with SLIDE)."""

    binding: frozenset[tuple[str, frozenset[int]]]
    window_start: Any = None

    def rows(self, variable: str) -> frozenset[int] | None:
        return dict(self.binding).get(variable)


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
    any_branch = normal.branches[0]
    return _find(
        shapes,
        list(normal.variables),
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
    applying = [c for c in conjuncts if mentioned(c) <= names | forbidden]
    return Shape(
        parts,
        negated,
        in_order,
        [c for c in applying if not mentioned(c) & forbidden],
        {name: [c for c in applying if name in mentioned(c)] for name in forbidden},
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
        origin = dt.datetime(1970, 1, 1) if window.kind is s.WindowKind.TIME else 0
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
    return interval(window.size) if window.kind is s.WindowKind.TIME else window.size


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
        return holds(condition, binding, self.kleene, self.stream)

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
            if mentioned(c) <= set(more) and not (part.kleene and part.name in aggregated(c))
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
        contents = [sorted(stream.content(row) for row in binding.get(name, [])) for name in names]
        return max(map(stream.order, used)), min(map(stream.order, used)), orders, contents

    used: set[int] = set()
    reported = []
    for binding in sorted(bindings, key=rank):
        rows = {row for bound in binding.values() for row in bound}
        if not rows & used:
            used |= rows
            reported.append(binding)
    return reported


# --- output ---------------------------------------------------------------------------------------------


def rows(pattern: Pattern, events: list[EventRow], **columns: Any) -> list[dict[str, Any]]:
    """The result of a pattern as it is handed to a user: one row a match."""
    stream = Stream(events, **columns)
    return [_row(pattern, match, stream) for match in find(pattern, events, **columns)]


def _row(pattern: Pattern, match: Match, stream: Stream) -> dict[str, Any]:
    binding = {name: sorted(bound, key=stream.listed) for name, bound in match.binding}
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
    each = collect(expression, s.Attribute) & kleene
    if not each:
        return Scope(singles, {}, binding, stream).value(expression)
    (name,) = each
    if name not in binding:
        return None
    return [Scope({**singles, name: row}, {}, binding, stream).value(expression) for row in binding[name]]
