"""From the parser's tree to the nodes of the syntax tree."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from lark import Token, Transformer, Tree
from lark.tree import Meta
from lark.visitors import v_args

from cepheid.language import syntax as s
from cepheid.language.functions import AGGREGATES, canonical_name
from cepheid.language.problems import Problem, Source, Span, closest, one_of
from cepheid.language.values import UNITS, Interval, Timestamp
from cepheid.language.words import unescape


def build(tree: Tree[Any] | Token, source: Source, problems: list[Problem]) -> Any:
    """The node of a tree. Problems are added to the list; what stands in for a broken part keeps its variables."""
    return _Builder(source, problems).transform(tree) if isinstance(tree, Tree) else tree


def _span(meta: Meta) -> Span:
    return Span(meta.start_pos, meta.end_pos) if not meta.empty else Span(0, 0)


def _nodes(children: list[Any]) -> tuple[Any, ...]:
    """What is left when the keywords are taken out."""
    return tuple(c for c in children if c is not None and not isinstance(c, Token))


class _Name(str):
    """A name without its backquotes, and where it stands."""

    span: Span


@v_args(meta=True)
class _Builder(Transformer[Token, Any]):
    def __init__(self, source: Source, problems: list[Problem]) -> None:
        super().__init__(visit_tokens=False)
        self._source = source
        self._problems = problems

    def _problem(self, message: str, span: Span, *, expected: str | None = None, hint: str | None = None) -> None:
        self._problems.append(Problem(message, self._source, span, expected, hint))

    # --- clauses

    def name_clause(self, meta: Meta, children: list[Any]) -> _Name:
        return children[1]  # type: ignore[no-any-return]

    def pattern_clause(self, meta: Meta, children: list[Any]) -> s.Structure:
        return children[1]  # type: ignore[no-any-return]

    def where_clause(self, meta: Meta, children: list[Any]) -> s.Expression:
        return children[1]  # type: ignore[no-any-return]

    def partition_clause(self, meta: Meta, children: list[Any]) -> tuple[s.Column, ...]:
        return tuple(s.Column(str(name), span=name.span) for name in _nodes_or_names(children))

    def using_clause(self, meta: Meta, children: list[Any]) -> s.Selection:
        _, strategy, consume = children
        names = [m.value for m in s.Strategy]
        known = {name: s.Strategy(name) for name in names}.get(strategy.lower())
        if known is None:
            hint = closest(strategy, names)
            if strategy.upper() == "CONSUME":
                hint = "CONSUME follows a strategy: USING skip_till_any CONSUME"
            self._problem(f"unknown strategy '{strategy}'", strategy.span, expected=one_of(names), hint=hint)
        if consume is not None and consume.upper() != "CONSUME":
            self._problem(f"unexpected '{consume}'", consume.span, expected="CONSUME or the next clause")
        return s.Selection(known or s.Strategy.SKIP_TILL_ANY, consume is not None, span=_span(meta))

    def within_clause(self, meta: Meta, children: list[Any]) -> tuple[s.Window, s.Window | None]:
        _, window, _, slide = children
        return window, slide

    def return_clause(self, meta: Meta, children: list[Any]) -> tuple[s.ReturnItem, ...]:
        return children[1]  # type: ignore[no-any-return]

    def never_clause(self, meta: Meta, children: list[Any]) -> bool:
        return True

    def return_items(self, meta: Meta, children: list[Any]) -> tuple[s.ReturnItem, ...]:
        return tuple(children)

    def return_item(self, meta: Meta, children: list[Any]) -> s.ReturnItem:
        expression, _, alias = children
        match expression:
            case _ if alias is not None:
                name = str(alias)
            case s.Attribute(_, name) | s.EventRef(name):
                pass
            case _:
                name = "?"
                self._problem("this column has no name", _span(meta), expected="AS and a name after the expression")
        return s.ReturnItem(expression, name, span=_span(meta))

    def length(self, meta: Meta, children: list[Any]) -> s.Window:
        (value,) = children
        span = _span(meta)
        if isinstance(value, s.Literal):
            assert isinstance(value.value, Interval)
            return s.Window(s.WindowKind.TIME, value.value.nanoseconds, span=span)
        if isinstance(value, s.Window):
            return value
        if not value.isdigit():
            self._problem(f"{value} is not a whole number", span, expected="a whole number, or a number with a unit")
            return s.Window(s.WindowKind.NUMBER, 1, span=span)
        return s.Window(s.WindowKind.NUMBER, int(value), span=span)

    # --- structure

    def event(self, meta: Meta, children: list[Any]) -> s.Event:
        type_, variable = children
        return s.Event(str(type_), str(variable), span=_span(meta))

    def sequence(self, meta: Meta, children: list[Any]) -> s.Sequence:
        return s.Sequence(_nodes(children), span=_span(meta))

    def conjunction(self, meta: Meta, children: list[Any]) -> s.Conjunction:
        return s.Conjunction(_nodes(children), span=_span(meta))

    def disjunction(self, meta: Meta, children: list[Any]) -> s.Disjunction:
        return s.Disjunction(_nodes(children), span=_span(meta))

    def any_of(self, meta: Meta, children: list[Any]) -> s.AnyOf:
        parts = _nodes(children)
        for part in parts:
            if not isinstance(part, s.Event):
                self._problem("ANY chooses among single events", part.span, expected="Type variable")
        return s.AnyOf(self._integer(children[1], _span(meta)), parts, span=_span(meta))

    def negated(self, meta: Meta, children: list[Any]) -> s.Structure:
        (inner,) = _nodes(children)
        if isinstance(inner, s.Event):
            return s.Negated(inner, span=_span(meta))
        self._problem(
            "NOT takes one event",
            inner.span,
            expected="NOT(Type variable)",
            hint="to forbid several kinds of events, write a NOT for each",
        )
        return inner  # type: ignore[no-any-return]

    def kleene(self, meta: Meta, children: list[Any]) -> s.Structure:
        _, inner, minimum, maximum = children
        return self._kleene(meta, inner, minimum or "1", maximum)

    def one_or_more(self, meta: Meta, children: list[Any]) -> s.Structure:
        type_, variable = children
        return self._kleene(meta, s.Event(str(type_), str(variable), span=_span(meta)), "1", None)

    def exactly(self, meta: Meta, children: list[Any]) -> s.Structure:
        type_, count, variable = children
        return self._kleene(meta, s.Event(str(type_), str(variable), span=_span(meta)), count, count)

    def repeated(self, meta: Meta, children: list[Any]) -> s.Structure:
        type_, minimum, maximum, variable = children
        return self._kleene(meta, s.Event(str(type_), str(variable), span=_span(meta)), minimum, maximum)

    def _kleene(self, meta: Meta, inner: s.Structure, minimum: str, maximum: str | None) -> s.Structure:
        if not isinstance(inner, s.Event):
            self._problem("KL takes one event", inner.span or _span(meta), expected="KL(Type variable)")
            return inner
        span = _span(meta)
        low = self._integer(minimum, span)
        return s.Kleene(inner, low, None if maximum is None else self._integer(maximum, span), span=span)

    # --- expressions

    def or_(self, meta: Meta, children: list[Any]) -> s.Expression:
        return s.Or(_nodes(children), span=_span(meta))

    def and_(self, meta: Meta, children: list[Any]) -> s.Expression:
        return s.And(_nodes(children), span=_span(meta))

    def not_(self, meta: Meta, children: list[Any]) -> s.Expression:
        return s.Not(children[1], span=_span(meta))

    def comparison(self, meta: Meta, children: list[Any]) -> s.Expression:
        left, operator, right = children
        operator = {"==": "=", "!=": "<>"}.get(operator, str(operator))
        return s.Comparison(operator, left, right, span=_span(meta))  # type: ignore[arg-type]

    def _maybe_not(self, negated: object, predicate: s.Expression) -> s.Expression:
        return predicate if negated is None else s.Not(predicate, span=predicate.span)

    def in_(self, meta: Meta, children: list[Any]) -> s.Expression:
        operand, negated, _, *items = children
        return self._maybe_not(negated, s.In(operand, tuple(items), span=_span(meta)))

    def between(self, meta: Meta, children: list[Any]) -> s.Expression:
        operand, negated, _, low, _, high = children
        return self._maybe_not(negated, s.Between(operand, low, high, span=_span(meta)))

    def like(self, meta: Meta, children: list[Any]) -> s.Expression:
        operand, negated, _, pattern = children
        return self._maybe_not(negated, s.Like(operand, pattern, span=_span(meta)))

    def is_null(self, meta: Meta, children: list[Any]) -> s.Expression:
        operand, _, negated, _ = children
        return self._maybe_not(negated, s.IsNull(operand, span=_span(meta)))

    def arithmetic(self, meta: Meta, children: list[Any]) -> s.Expression:
        left, operator, right = children
        return s.Arithmetic(str(operator), left, right, span=_span(meta))  # type: ignore[arg-type]

    def minus(self, meta: Meta, children: list[Any]) -> s.Expression:
        return replace(s.negative(children[1]), span=_span(meta))

    def plus(self, meta: Meta, children: list[Any]) -> s.Expression:
        return children[1]  # type: ignore[no-any-return]

    def case(self, meta: Meta, children: list[Any]) -> s.Expression:
        _, subject, *whens, _, otherwise, _ = children
        cases = tuple(
            (condition if subject is None else s.Comparison("=", subject, condition, span=condition.span), value)
            for condition, value in whens
        )
        return s.Case(cases, otherwise, span=_span(meta))

    def when(self, meta: Meta, children: list[Any]) -> tuple[s.Expression, s.Expression]:
        _, condition, _, value = children
        return condition, value

    def call(self, meta: Meta, children: list[Any]) -> s.Expression:
        word, *arguments = children
        arguments = [a for a in arguments if a is not None]
        function = canonical_name(str(word))
        if function not in AGGREGATES:
            return s.Call(function, tuple(arguments), span=_span(meta))
        if function in ("FIRST", "LAST"):
            self._problem(
                f"{function} gives an event, not a value",
                _span(meta),
                expected=f"{function}(variable).attribute",
            )
            return s.Literal(None, span=_span(meta))
        if len(arguments) != 1:
            self._problem(f"{function} takes one argument, found {len(arguments)}", _span(meta))
            return s.Literal(None, span=_span(meta))
        aggregate = s.aggregate(function, arguments[0])
        if aggregate is None:
            self._problem(f"{function} needs an attribute of a KL variable", _span(meta), expected=f"{function}(b.x)")
            return s.Literal(None, span=_span(meta))
        return replace(aggregate, span=_span(meta))

    def edge(self, meta: Meta, children: list[Any]) -> s.Expression:
        word, inner, name = children
        function = canonical_name(str(word))
        if function not in ("FIRST", "LAST") or not isinstance(inner, s.EventRef):
            self._problem(
                "only an event has attributes", _span(meta), expected="v.x, FIRST(v).x, LAST(v).x, v[i].x or v[i-1].x"
            )
            return s.Literal(None, span=_span(meta))
        attribute = s.Attribute(inner.variable, str(name), span=_span(meta))
        return s.Aggregate(function, inner.variable, attribute, span=_span(meta))

    def event_ref(self, meta: Meta, children: list[Any]) -> s.Expression:
        return s.EventRef(str(children[0]), span=_span(meta))

    def attribute(self, meta: Meta, children: list[Any]) -> s.Expression:
        variable, name = children
        return s.Attribute(str(variable), str(name), span=_span(meta))

    def neighbour(self, meta: Meta, children: list[Any]) -> s.Expression:
        variable, index, _, step, name = children
        if index != "i" or (step is not None and step != "1"):
            written = index if step is None else f"{index}-{step}"
            self._problem(f"unknown index [{written}]", index.span, expected="[i] or [i-1]")
        return s.Neighbour(str(variable), 0 if step is None else -1, str(name), span=_span(meta))

    def integer(self, meta: Meta, children: list[Any]) -> s.Expression:
        return s.Literal(self._integer(children[0], _span(meta)), span=_span(meta))

    def _integer(self, digits: str, span: Span) -> int:
        if len(digits.lstrip("0")) > 19:  # longer than any 64-bit integer
            self._problem(f"{digits[:12]}… does not fit a 64-bit integer", span)
            return 0
        return int(digits)

    def decimal(self, meta: Meta, children: list[Any]) -> s.Expression:
        value = float(children[0])
        if value == float("inf"):
            self._problem(f"{children[0]} is too large for a double", _span(meta))
            value = 0.0
        return s.Literal(value, span=_span(meta))

    def true(self, meta: Meta, children: list[Any]) -> s.Expression:
        return s.Literal(True, span=_span(meta))

    def false(self, meta: Meta, children: list[Any]) -> s.Expression:
        return s.Literal(False, span=_span(meta))

    def null(self, meta: Meta, children: list[Any]) -> s.Expression:
        return s.Literal(None, span=_span(meta))

    def string(self, meta: Meta, children: list[Any]) -> s.Expression:
        return s.Literal(_unquoted(children[0]), span=_span(meta))

    def escaped_string(self, meta: Meta, children: list[Any]) -> s.Expression:
        try:
            return s.Literal(unescape(children[0][2:-1]), span=_span(meta))
        except ValueError as error:
            self._problem(
                f"unknown escape {error}",
                _span(meta),
                expected=r"\n, \r, \t, \\, \', \uXXXX or \UXXXXXXXX in a string that starts with E'",
            )
            return s.Literal("", span=_span(meta))

    def typed_string(self, meta: Meta, children: list[Any]) -> s.Expression:
        word, text = children
        if word.upper() != "TIMESTAMP":
            hint = closest(word.upper(), ["TIMESTAMP"])
            if word.upper() == "INTERVAL":
                hint = "an interval is a number with a unit: 5 minutes"
            self._problem(f"unexpected string after '{word}'", _span(meta), expected="TIMESTAMP '…'", hint=hint)
            return s.Literal(None, span=_span(meta))
        try:
            return s.Literal(Timestamp.parse(_unquoted(text)), span=_span(meta))
        except ValueError as error:
            self._problem(
                f"{_unquoted(text)!r} is not a timestamp: {error}" if "is not" not in str(error) else str(error),
                _span(meta),
                expected="TIMESTAMP '2024-05-17 09:30:00', with a fraction and an offset such as +02:00 if you like",
            )
            return s.Literal(None, span=_span(meta))

    def interval(self, meta: Meta, children: list[Any]) -> s.Literal | s.Window:
        """``5 minutes``; also ``500 events``, which only a window may be."""
        total = 0
        span = _span(meta)
        for number, unit in zip(children[::2], children[1::2], strict=True):
            unit_span = Span(unit.start_pos, unit.end_pos)
            if unit.lower() in ("event", "events"):
                if len(children) == 2 and number.isdigit():
                    return s.Window(s.WindowKind.EVENTS, self._integer(number, span), span=span)
                self._problem("events are counted in whole numbers", span, expected="WITHIN 500 events")
            elif unit.lower() not in UNITS:
                self._problem(f"unknown unit '{unit}'", unit_span, expected=_UNIT_NAMES, hint=_unit_hint(str(unit)))
            else:
                try:
                    total += Interval.of(number, unit).nanoseconds
                except ValueError as error:
                    self._problem(str(error), span)
        if total > 2**63 - 1:
            self._problem("this interval is longer than 292 years", span)
            total = 0
        return s.Literal(Interval(total), span=span)

    def interval_value(self, meta: Meta, children: list[Any]) -> s.Expression:
        (value,) = children
        if isinstance(value, s.Window):
            self._problem("a number of events is a window, not a value", _span(meta), expected="a unit of time")
            return s.Literal(None, span=_span(meta))
        return value  # type: ignore[no-any-return]

    def number(self, meta: Meta, children: list[Any]) -> str:
        digits = str(children[0])
        if float(digits) >= 2**63:
            self._problem(f"{digits[:12]} does not fit 64 bits", _span(meta))
            return "1"
        return digits

    def name(self, meta: Meta, children: list[Any]) -> _Name:
        (token,) = children
        name = _Name(_unquoted(token) if token.type == "QUOTED" else token)
        name.span = _span(meta)
        return name


_UNIT_NAMES = "weeks, days, hours, minutes, seconds, ms, us or ns"


def _unit_hint(unit: str) -> str | None:
    match unit.lower():
        case "m":
            return "write min for minutes"
        case "month" | "months" | "year" | "years" | "quarter" | "quarters":
            return f"a {unit.lower().rstrip('s')} has no fixed length; write it in days"
        case word:
            return closest(word, [u for u in UNITS if len(u) > 2])


def _unquoted(token: str) -> str:
    return token[1:-1].replace(token[0] * 2, token[0])


def _nodes_or_names(children: list[Any]) -> list[_Name]:
    return [c for c in children if isinstance(c, _Name)]
