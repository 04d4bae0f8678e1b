"""Random patterns over the whole language, and random streams to match them on."""

from __future__ import annotations

import datetime as dt
import itertools
from collections.abc import Sequence
from typing import Any

from hypothesis import strategies as st

from cepheid.language import syntax as s
from cepheid.language.pattern import Pattern
from cepheid.language.values import Interval, Timestamp
from cepheid.pattern.expand import expand
from cepheid.pattern.order import is_sequence

TYPES = ("A", "B", "C")
START = dt.datetime(2024, 1, 1)
Draw = Any


# --- streams --------------------------------------------------------------------------------------------


def event(draw: Draw, time: int, type_: str, seq: int, timestamps: bool) -> dict[str, Any]:
    """An event whose attributes often agree with those of others, and sometimes are missing."""
    return {
        "ts": START + dt.timedelta(seconds=time) if timestamps else time,
        "type": type_,
        "x": draw(st.sampled_from([*[1] * 5, 0, 2, 3, -2, None])),
        "y": draw(st.sampled_from([0.5, 0.5, 2.0, 2.0, 0.0, -1.5, float("nan"), None])),
        "k": draw(st.sampled_from([*["p"] * 8, "q", "p_", None])),
        "f": draw(st.sampled_from([True, True, False, None])),
        "h": draw(st.sampled_from([[1.0, 2.0, 3.0], [3.0, 1.0, 2.0], [1.0, 1.0, 1.0], [2.0, 4.0], None])),
        "seq": seq,
    }


@st.composite
def streams(
    draw: Draw,
    *,
    script: Sequence[str] = (),
    types: Sequence[str] = TYPES,
    timestamps: bool = False,
    distinct: bool = False,
    most: int = 6,
) -> list[dict[str, Any]]:
    """Events of the types of a script, one after the other, among a few others; with ties, nulls and repeated rows."""
    noise = draw(st.lists(st.sampled_from([*types, *TYPES]), max_size=max(0, most - len(script))))
    wanted = [*script, *noise]
    steps = [draw(st.sampled_from([1, 1, 1, 2] if distinct else [1, 1, 1, 2, 0])) for _ in script]
    times = list(itertools.accumulate(steps))
    times += draw(st.lists(st.integers(0, 8), min_size=len(noise), max_size=len(noise)))
    if distinct and len(set(times)) < len(times):
        times = [9 * time + place for place, time in enumerate(times)]
    events = [
        event(draw, time, type_, seq, timestamps) for seq, (time, type_) in enumerate(zip(times, wanted, strict=True))
    ]
    if events and not distinct and draw(st.integers(0, 4)) == 0:
        events.append({**draw(st.sampled_from(events)), "seq": len(events)})
    order = draw(st.permutations(range(len(events)))) if draw(st.booleans()) else range(len(events))
    return [events[i] for i in order]


# --- structure ------------------------------------------------------------------------------------------

PLAIN_NAMES = tuple("abcdefghijklmnop")
odd_names = st.one_of(
    st.sampled_from(["a", "é", "end", "name", "SEQ", "i", "two words", "back`quote", "card-payment", "ts", "_", "9"]),
    st.text(min_size=1, max_size=6).filter(str.isprintable),
)


@st.composite
def structures(
    draw: Draw, *, sequences: bool = False, kleene: bool = True, names: Sequence[str] = PLAIN_NAMES
) -> s.Structure:
    """Up to four leaves; with ``sequences``, only such as have their events in a fixed order."""
    left = list(names)
    budget = draw(st.sampled_from([3, 4, 2, 1]))

    def leaf(negation: bool) -> s.Structure:
        nonlocal budget
        budget -= 1
        event = s.Event(draw(st.sampled_from(TYPES)), left.pop(0))
        kind = draw(st.sampled_from(["event", "event", "kleene", "not" if negation else "event"]))
        if kind == "kleene" and kleene:
            minimum = draw(st.integers(1, 2))
            return s.Kleene(event, minimum, draw(st.one_of(st.none(), st.integers(minimum, 3))))
        return s.Negated(event) if kind == "not" else event

    def group(depth: int) -> s.Structure:
        kinds = ["SEQ", "SEQ", "SEQ", "OR"] if sequences else ["SEQ", "SEQ", "AND", "OR", "ANY"]
        kind = draw(st.sampled_from(kinds))
        if kind == "ANY":
            parts = tuple(s.Event(draw(st.sampled_from(TYPES)), left.pop(0)) for _ in range(draw(st.integers(1, 2))))
            return s.AnyOf(draw(st.integers(1, len(parts))), parts)
        inner: list[s.Structure] = []
        for _ in range(draw(st.sampled_from([3, 2, 1]))):
            if budget <= 0 and inner:
                break
            if depth < 2 and budget > 1 and draw(st.booleans()):
                inner.append(group(depth + 1))
            else:
                inner.append(leaf(negation=kind != "OR"))
        if all(isinstance(part, s.Negated) for part in inner):
            inner.append(s.Event(draw(st.sampled_from(TYPES)), left.pop(0)))
        if kind == "SEQ":
            return s.Sequence(tuple(inner))
        return s.Conjunction(tuple(inner)) if kind == "AND" else s.Disjunction(tuple(inner))

    shape = draw(st.sampled_from(["flat", "flat", "nested", "leaf"]))
    if shape == "leaf":
        return leaf(negation=False)
    if shape == "nested":
        return group(0)
    parts = [leaf(negation=place == 1) for place in range(draw(st.sampled_from([3, 2, 4])))]
    return s.Sequence(tuple(parts)) if sequences or draw(st.booleans()) else s.Conjunction(tuple(parts))


# --- conditions -----------------------------------------------------------------------------------------

numbers = st.sampled_from([0, 1, 2, -1, 0.5, -1.5, 3, 2.0])
strings = st.sampled_from(["p", "q", "p_", "", "it's"])
_ATTRIBUTES = {"number": ("x", "y"), "string": ("k",), "boolean": ("f",), "list": ("h",)}


class Expressions:
    """Draws well-typed expressions over some variables of a pattern."""

    def __init__(self, draw: Draw, singles: Sequence[str], kleene: Sequence[str], literals: Draw = None) -> None:
        self.draw = draw
        self.singles = list(singles)
        self.kleene = list(kleene)
        self.strings = literals if literals is not None else strings
        self.neighbour: str | None = None

    def choose(self, options: Sequence[Any]) -> Any:
        return self.draw(st.sampled_from(options))

    def attribute(self, type_: str) -> s.Expression:
        name = self.choose(_ATTRIBUTES[type_])
        if self.neighbour is not None and self.draw(st.booleans()):
            return s.Neighbour(self.neighbour, self.choose([0, -1]), name)
        return s.Attribute(self.choose(self.singles + self.kleene), name)

    def number(self, depth: int = 2) -> s.Expression:
        kinds = ["attribute", "attribute", "literal"]
        if depth:
            kinds += ["arithmetic", "negative", "call", "case"] + (["aggregate"] * 3 if self.kleene else [])
        match self.choose(kinds):
            case "attribute":
                return self.attribute("number")
            case "literal":
                return s.Literal(self.draw(numbers))
            case "arithmetic":
                operator = self.choose(["+", "-", "*", "/", "%"])
                return s.Arithmetic(operator, self.number(depth - 1), self.number(depth - 1))
            case "negative":
                return s.negative(self.number(depth - 1))
            case "aggregate":
                return self.aggregate()
            case "case":
                otherwise = self.number(0) if self.draw(st.booleans()) else None
                return s.Case(((self.boolean(depth - 1), self.number(0)),), otherwise)
            case _:
                return self.call(depth - 1)

    def call(self, depth: int) -> s.Expression:
        match self.choose(
            ["ABS", "SIGN", "FLOOR", "CEIL", "ROUND", "SQRT", "LN", "LEAST", "COALESCE", "LENGTH", "CORR"]
        ):
            case "LEAST" | "COALESCE" as name:
                return s.Call(name, (self.number(depth), self.number(depth)))
            case "LENGTH":
                return s.Call("LENGTH", (self.string(),))
            case "CORR":
                return s.Call("CORR", (self.attribute("list"), self.attribute("list")))
            case name:
                return s.Call(name, (self.number(depth),))

    def aggregate(self) -> s.Expression:
        variable = self.choose(self.kleene)
        function = self.choose(["COUNT", "COUNT", "SUM", "MIN", "MAX", "AVG", "FIRST", "LAST", "STDDEV"])
        if function == "COUNT" and self.draw(st.booleans()):
            return s.Aggregate(function, variable, None)
        attribute = s.Attribute(variable, self.choose(["x", "y"]))
        if function in ("FIRST", "LAST") or self.draw(st.booleans()):
            return s.Aggregate(function, variable, attribute)
        return s.Aggregate(function, variable, s.Arithmetic("+", attribute, s.Literal(1)))

    def string(self) -> s.Expression:
        match self.choose(["attribute", "literal", "call"]):
            case "attribute":
                return self.attribute("string")
            case "literal":
                return s.Literal(self.draw(self.strings))
            case _:
                return s.Call(self.choose(["UPPER", "LOWER", "TRIM"]), (self.attribute("string"),))

    def boolean(self, depth: int = 2) -> s.Expression:
        kinds = ["number", "number", "string", "attribute", "null", "in", "between", "like"]
        if depth:
            kinds += ["and", "or", "not"]
        match self.choose(kinds):
            case "number":
                return s.Comparison(self.operator(), self.number(depth), self.number(depth))
            case "string":
                return s.Comparison(self.operator(), self.string(), self.string())
            case "attribute":
                return self.attribute("boolean")
            case "null":
                return s.IsNull(self.choose([self.number, self.string])())
            case "in":
                items = tuple(s.Literal(self.draw(st.one_of(st.none(), numbers))) for _ in range(self.choose([1, 2])))
                return s.In(self.number(1), items)
            case "between":
                return s.Between(self.number(1), self.number(0), self.number(0))
            case "like":
                return s.Like(self.string(), s.Literal(self.choose(["p%", "_", "p\\_", "%"])))
            case "and":
                return s.And((self.boolean(depth - 1), self.boolean(depth - 1)))
            case "or":
                return s.Or((self.boolean(depth - 1), self.boolean(depth - 1)))
            case _:
                return s.Not(self.boolean(depth - 1))

    def operator(self) -> s.ComparisonOperator:
        return self.choose(["<=", ">=", "=", "<>", "<", ">"])

    def simple(self) -> s.Expression:
        """What most conditions look like."""
        left, right = self.choose(self.singles + self.kleene), self.choose(self.singles + self.kleene)
        name = self.choose(["x", "y", "k"])
        if left == right or self.draw(st.integers(0, 2)) == 0:
            literal = self.draw(self.strings) if name == "k" else self.draw(numbers)
            return s.Comparison(self.operator(), s.Attribute(left, name), s.Literal(literal))
        return s.Comparison(self.operator(), s.Attribute(left, name), s.Attribute(right, name))

    def unlikely(self) -> s.Expression:
        """A condition that most events do not satisfy."""
        if self.kleene and self.draw(st.integers(0, 2)) == 0:
            return s.Comparison(">", s.Aggregate("COUNT", self.choose(self.kleene), None), s.Literal(2))
        attribute = s.Attribute(self.choose(self.singles + self.kleene), "x")
        return s.Comparison(self.choose(["<", ">"]), attribute, s.Literal(self.choose([-1, 0, 2, 3])))

    def neighbours(self, variable: str) -> s.Expression:
        """A condition in which both b[i] and b[i-1] stand, alone or in a larger expression."""
        self.neighbour = variable
        name = self.choose(["x", "y"])
        pair = s.Comparison(self.operator(), s.Neighbour(variable, 0, name), s.Neighbour(variable, -1, name))
        if self.draw(st.integers(0, 2)) == 0:
            return s.Not(s.Or((pair, self.boolean(1))))
        return pair


@st.composite
def conditions(draw: Draw, structure: s.Structure, literals: Draw = None) -> s.Expression | None:
    """Conjuncts each of which fits a branch and mentions at most one negated variable."""
    conjuncts: list[s.Expression] = []
    if draw(st.booleans()):  # a chain of equal keys, as many patterns have
        leaves = [s.event_of(leaf).variable for leaf in s.leaves(draw(st.sampled_from(expand(structure))))]
        key = draw(st.sampled_from(["k", "k", "x"]))
        star = draw(st.booleans())  # all equal to the last one, or each to the next
        pairs = [(name, leaves[-1]) for name in leaves[:-1]] if star else itertools.pairwise(leaves)
        conjuncts += [s.Comparison("=", s.Attribute(a, key), s.Attribute(b, key)) for a, b in pairs]
        if draw(st.booleans()):
            conjuncts.append(s.Comparison("=", s.Attribute(leaves[0], key), s.Literal(1 if key == "x" else "p")))
        negated = {leaf.event.variable for leaf in s.leaves(structure) if isinstance(leaf, s.Negated)}
        conjuncts = [c for c in conjuncts if len(s.variables(c) & negated) < 2]
    for _ in range(draw(st.sampled_from([0, 0, 1, 1, 1, 2]))):
        branch = list(s.leaves(draw(st.sampled_from(expand(structure)))))
        singles = [leaf.variable for leaf in branch if isinstance(leaf, s.Event)]
        kleene = [leaf.event.variable for leaf in branch if isinstance(leaf, s.Kleene)]
        absent = [leaf.event.variable for leaf in branch if isinstance(leaf, s.Negated)]
        if absent and draw(st.booleans()):
            singles.append(draw(st.sampled_from(absent)))
        maker = Expressions(draw, singles, kleene, literals)
        if kleene and draw(st.integers(0, 3)) == 0:
            conjuncts.append(maker.neighbours(draw(st.sampled_from(kleene))))
        else:
            kind = draw(st.sampled_from(["simple", "simple", "not or", "any"]))
            if kind == "simple":
                conjuncts.append(maker.simple())
            elif kind == "not or":  # what other rewrites turn into several conditions
                conjuncts.append(s.Not(s.Or((maker.unlikely(), maker.unlikely()))))
            else:
                conjuncts.append(maker.boolean())
    return s.conjunction(conjuncts) if conjuncts else None


@st.composite
def returns(draw: Draw, structure: s.Structure, literals: Draw = None) -> tuple[s.ReturnItem, ...] | None:
    if draw(st.booleans()):
        return None
    leaves = list(s.leaves(structure))
    singles = [leaf.variable for leaf in leaves if isinstance(leaf, s.Event)]
    kleene = [leaf.event.variable for leaf in leaves if isinstance(leaf, s.Kleene)]
    items = []
    for place in range(draw(st.integers(1, 3))):
        if draw(st.integers(0, 4)) == 0:
            expression: s.Expression = s.EventRef(draw(st.sampled_from(singles + kleene)))
        else:
            some = [draw(st.sampled_from(kleene))] if kleene and (not singles or draw(st.booleans())) else []
            expression = Expressions(draw, singles, some, literals).number()
        items.append(s.ReturnItem(expression, f"r{place}"))
    return tuple(items)


# --- patterns -------------------------------------------------------------------------------------------


@st.composite
def patterns(draw: Draw, *, kleene: bool = True, selection: bool = True, events_window: bool | None = None) -> Pattern:
    """Patterns that pass all checks and that the streams above can satisfy.

    Without ``kleene``, no sets; without ``selection``, all matches; ``events_window``: whether windows count events.
    """
    structure = draw(structures(sequences=selection and draw(st.booleans()), kleene=kleene))
    strategies = [s.Strategy.SKIP_TILL_ANY]
    if selection and all(map(is_sequence, expand(structure))):
        strategies = list(s.Strategy)
    chosen = s.Selection(draw(st.sampled_from(strategies)), selection and draw(st.integers(0, 3)) == 0)
    slide = None
    if events_window if events_window is not None else draw(st.integers(0, 5)) == 0:
        window = s.Window(s.WindowKind.EVENTS, draw(st.sampled_from([1, 2, 3, 4, 6, 6])))
    else:
        kind, unit = (s.WindowKind.TIME, 1_000_000_000) if draw(st.booleans()) else (s.WindowKind.NUMBER, 1)
        window = s.Window(kind, draw(st.sampled_from([0, 1, 2, 3, 4, 5, 6, 8, 8, 8])) * unit)
        if window.size and draw(st.integers(0, 4)) == 0:
            slide = s.Window(kind, draw(st.integers(1, 5)) * unit)
    return Pattern(
        structure,
        condition=draw(conditions(structure)),
        partition=draw(st.sampled_from([(), (), (), (s.Column("k"),), (s.Column("x"), s.Column("k"))])),
        window=window,
        slide=slide,
        selection=chosen,
        output=draw(returns(structure)),
    )


@st.composite
def patterns_with_streams(
    draw: Draw, wanted: st.SearchStrategy[Pattern] | None = None
) -> tuple[Pattern, list[dict[str, Any]], dict[str, Any]]:
    """A pattern, a stream on which it has a chance, and the options to run it with."""
    pattern = draw(patterns() if wanted is None else wanted)
    assert pattern.window is not None
    timestamps = pattern.window.kind is s.WindowKind.TIME
    tie_breaker = draw(st.sampled_from([None, None, "seq"]))
    distinct = pattern.window.kind is s.WindowKind.EVENTS and tie_breaker is None
    leaves = list(s.leaves(draw(st.sampled_from(expand(pattern.structure)))))
    script = [
        s.event_of(leaf).type
        for leaf in leaves
        if not isinstance(leaf, s.Negated)
        for _ in range(draw(st.integers(leaf.minimum, 2)) if isinstance(leaf, s.Kleene) else 1)
    ]
    types = [s.event_of(leaf).type for leaf in leaves]
    events = draw(streams(script=script, types=types, timestamps=timestamps, distinct=distinct, most=7))
    return pattern, events, {"tie_breaker": tie_breaker}


@st.composite
def written_patterns(draw: Draw) -> Pattern:
    """Patterns with names, strings and numbers as odd as can be, for reading and writing."""
    odd = draw(st.lists(odd_names, min_size=1, max_size=4, unique=True))
    names = [*odd, *(name for name in PLAIN_NAMES if name not in odd)]
    structure = draw(structures(names=names))
    literals = st.one_of(strings, st.text(max_size=8))
    base = draw(patterns())
    reserved = {"pattern", "start", "end", "window_start"}
    output = draw(returns(structure, literals))
    if output is None and reserved & {s.event_of(leaf).variable for leaf in s.leaves(structure)}:
        output = (s.ReturnItem(s.Literal(1), "one"),)
    fits = all(map(is_sequence, expand(structure)))
    extra = s.Comparison("=", draw(constants()), draw(constants()))
    return Pattern(
        structure,
        name=draw(st.one_of(st.none(), odd_names)),
        condition=draw(st.one_of(conditions(structure, literals), st.just(s.IsNull(extra)))),
        partition=tuple(s.Column(n) for n in draw(st.lists(odd_names, max_size=2, unique=True))),
        window=base.window,
        slide=base.slide,
        selection=base.selection if fits else s.Selection(s.Strategy.SKIP_TILL_ANY, base.selection.consume),
        output=output,
        critical=draw(st.booleans()),
    )


def constants() -> st.SearchStrategy[s.Expression]:
    """NULL-able constants of one family, so that any two can be compared."""
    nanoseconds = st.integers(-(2**62), 2**62)
    return (
        st.one_of(
            st.none(),
            st.integers(-(2**63), 2**63 - 1),
            st.floats(allow_nan=False, allow_infinity=False),
        ).map(s.Literal)
        | nanoseconds.map(lambda n: s.Arithmetic("/", s.Literal(Interval(n)), s.Literal(Interval(1))))
        | nanoseconds.map(
            lambda n: s.Arithmetic(
                "/", s.Arithmetic("-", s.Literal(Timestamp(n)), s.Literal(Timestamp(0))), s.Literal(Interval(7))
            )
        )
    )
