"""The syntax tree: immutable, hashable values that compare by meaning, not by where they were written."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, fields, replace
from enum import Enum
from typing import Any, TypeAlias
from typing import Literal as OneOf

from cepheid.language.functions import Function
from cepheid.language.problems import Span
from cepheid.language.values import Interval, Timestamp


@dataclass(frozen=True, slots=True)
class Node:
    span: Span | None = field(default=None, kw_only=True, compare=False, repr=False)


# --- expressions ----------------------------------------------------------------------------------------

Constant: TypeAlias = bool | int | float | str | Timestamp | Interval | None
ArithmeticOperator: TypeAlias = OneOf["+", "-", "*", "/", "%"]
ComparisonOperator: TypeAlias = OneOf["=", "<>", "<", "<=", ">", ">="]
MIRRORED: dict[ComparisonOperator, ComparisonOperator] = {
    "=": "=", "<>": "<>", "<": ">", ">": "<", "<=": ">=", ">=": "<=",
}  # fmt: skip
"""The operator that says the same with its sides exchanged."""


@dataclass(frozen=True, slots=True, eq=False)
class Literal(Node):
    value: Constant

    # 1, 1.0 and TRUE are equal to Python and differ to a pattern.
    def __eq__(self, other: object) -> bool:
        return isinstance(other, Literal) and (type(self.value), self.value) == (type(other.value), other.value)

    def __hash__(self) -> int:
        return hash((type(self.value), self.value))


@dataclass(frozen=True, slots=True)
class EventRef(Node):
    """A variable that stands for its whole event: ``COUNT(b)``, ``RETURN a``."""

    variable: str


@dataclass(frozen=True, slots=True)
class Attribute(Node):
    """``v.name``; of a KL variable: of each of its events."""

    variable: str
    name: str


@dataclass(frozen=True, slots=True)
class Neighbour(Node):
    """``v[i].name`` (offset 0) or ``v[i-1].name`` (offset -1)."""

    variable: str
    offset: int
    name: str


@dataclass(frozen=True, slots=True)
class Aggregate(Node):
    """A function of all events of a KL variable. FIRST and LAST have an Attribute as their argument, COUNT(b) none."""

    function: str
    variable: str
    argument: Expression | None


@dataclass(frozen=True, slots=True)
class Negative(Node):
    operand: Expression


@dataclass(frozen=True, slots=True)
class Arithmetic(Node):
    operator: ArithmeticOperator
    left: Expression
    right: Expression


@dataclass(frozen=True, slots=True)
class Comparison(Node):
    operator: ComparisonOperator
    left: Expression
    right: Expression


@dataclass(frozen=True, slots=True)
class Not(Node):
    operand: Expression


@dataclass(frozen=True, slots=True)
class And(Node):
    operands: tuple[Expression, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "operands", _flatten(And, self.operands))


@dataclass(frozen=True, slots=True)
class Or(Node):
    operands: tuple[Expression, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "operands", _flatten(Or, self.operands))


@dataclass(frozen=True, slots=True)
class In(Node):
    operand: Expression
    items: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class Between(Node):
    operand: Expression
    low: Expression
    high: Expression


@dataclass(frozen=True, slots=True)
class Like(Node):
    operand: Expression
    pattern: Expression


@dataclass(frozen=True, slots=True)
class IsNull(Node):
    operand: Expression


@dataclass(frozen=True, slots=True)
class Case(Node):
    """``CASE WHEN c THEN v … ELSE o END``; the form ``CASE x WHEN y`` is read as ``CASE WHEN x = y``."""

    cases: tuple[tuple[Expression, Expression], ...]
    otherwise: Expression | None


@dataclass(frozen=True, slots=True)
class Call(Node):
    """A scalar function; the names of those that come with the language are in upper case.

    ``bound``: what the name of a registered function stands for in a session, whatever is registered later.
    """

    function: str
    arguments: tuple[Expression, ...]
    bound: Function | None = field(default=None, kw_only=True, compare=False, repr=False)


_Value: TypeAlias = Literal | EventRef | Attribute | Neighbour | Aggregate | Negative | Arithmetic | Case | Call
_Truth: TypeAlias = Comparison | Not | And | Or | In | Between | Like | IsNull
Expression: TypeAlias = _Value | _Truth


def _flatten(kind: type[And] | type[Or], operands: Iterable[Expression]) -> tuple[Expression, ...]:
    flat: list[Expression] = []
    for operand in operands:
        flat.extend(operand.operands if isinstance(operand, kind) else (operand,))
    return tuple(flat)


def conjunction(operands: Iterable[Expression]) -> Expression:
    """All of them; TRUE for none."""
    operands = tuple(operands)
    return And(operands) if len(operands) > 1 else operands[0] if operands else Literal(True)


def disjunction(operands: Iterable[Expression]) -> Expression:
    """Any of them; FALSE for none."""
    operands = tuple(operands)
    return Or(operands) if len(operands) > 1 else operands[0] if operands else Literal(False)


def negative(operand: Expression) -> Expression:
    """``-operand``; the negative of a number is a number, so that -5 is read as it is written."""
    if isinstance(operand, Literal):
        match operand.value:
            case bool():
                pass
            case int() | float():
                return replace(operand, value=-operand.value)
            case Interval(nanoseconds):
                return replace(operand, value=Interval(-nanoseconds))
    return Negative(operand)


def aggregate(function: str, argument: Expression) -> Aggregate | None:
    """``function(argument)``; which variable it looks at, its argument tells. None if it mentions none."""
    if isinstance(argument, EventRef) and function == "COUNT":
        return Aggregate(function, argument.variable, None)
    for node in walk(argument):
        if isinstance(node, (EventRef, Attribute, Neighbour, Aggregate)):
            return Aggregate(function, node.variable, argument)
    return None


def _parts(node: Node) -> tuple[str, ...]:
    """The fields of a node in which other nodes can be."""
    found = _PARTS.get(type(node))
    if found is None:
        found = _PARTS[type(node)] = tuple(item.name for item in fields(node) if item.name != "span")
    return found


_PARTS: dict[type, tuple[str, ...]] = {}


def map_children(expression: Expression, change: Callable[[Expression], Expression]) -> Expression:
    """The same node with each direct sub-expression changed."""
    changed: dict[str, object] = {}
    for name in _parts(expression):
        old = getattr(expression, name)
        if isinstance(old, Node):
            new: object = change(old)  # type: ignore[arg-type]
            if new is not old:
                changed[name] = new
        elif isinstance(old, tuple):
            changed[name] = tuple(tuple(map(change, o)) if isinstance(o, tuple) else change(o) for o in old)
    return replace(expression, **changed) if changed else expression  # type: ignore[arg-type]


def children(expression: Expression) -> tuple[Expression, ...]:
    """The direct sub-expressions, in the order in which they are written."""
    found: list[Any] = []
    for name in _parts(expression):
        part = getattr(expression, name)
        if isinstance(part, Node):
            found.append(part)
        elif isinstance(part, tuple):
            for one in part:
                found.extend(one if isinstance(one, tuple) else (one,))
    return tuple(found)


def walk(expression: Expression) -> Iterator[Expression]:
    """The expression and all that is in it, outermost first."""
    waiting = [expression]
    while waiting:
        node = waiting.pop()
        yield node
        waiting.extend(reversed(children(node)))


MAX_DEPTH = 100
"""How deeply brackets and operators may nest. Far beyond what a person writes, well within Python's stack."""


def is_too_deep(expression: Expression) -> bool:
    """Whether an expression nests deeper than MAX_DEPTH; it is not followed any further down."""
    level = [expression]
    for _ in range(MAX_DEPTH):
        level = [child for node in level for child in children(node)]
    return bool(level)


def conjuncts(expression: Expression | None) -> tuple[Expression, ...]:
    """The top-level AND-conjuncts: each is a condition of its own."""
    if expression is None:
        return ()
    return expression.operands if isinstance(expression, And) else (expression,)


def variables(expression: Expression) -> frozenset[str]:
    """The names of the variables that an expression mentions."""
    return frozenset(
        node.variable for node in walk(expression) if isinstance(node, (EventRef, Attribute, Neighbour, Aggregate))
    )


# --- structure ------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Event(Node):
    """``Type variable``."""

    type: str
    variable: str


@dataclass(frozen=True, slots=True)
class Kleene(Node):
    """``KL(Type variable, minimum, maximum)``."""

    event: Event
    minimum: int = 1
    maximum: int | None = None


@dataclass(frozen=True, slots=True)
class Negated(Node):
    """``NOT(Type variable)``."""

    event: Event


@dataclass(frozen=True, slots=True)
class Sequence(Node):
    """``SEQ(…)``."""

    parts: tuple[Structure, ...]


@dataclass(frozen=True, slots=True)
class Conjunction(Node):
    """``AND(…)`` of a pattern's structure."""

    parts: tuple[Structure, ...]


@dataclass(frozen=True, slots=True)
class Disjunction(Node):
    """``OR(…)`` of a pattern's structure."""

    parts: tuple[Structure, ...]


@dataclass(frozen=True, slots=True)
class AnyOf(Node):
    """``ANY(count, …)``."""

    count: int
    parts: tuple[Structure, ...]


Group: TypeAlias = Sequence | Conjunction | Disjunction | AnyOf
Leaf: TypeAlias = Event | Kleene | Negated
Structure: TypeAlias = Leaf | Group


def leaves(structure: Structure) -> Iterator[Leaf]:
    """The events, KL and NOT parts, in pattern order."""
    if isinstance(structure, (Event, Kleene, Negated)):
        yield structure
    else:
        for part in structure.parts:
            yield from leaves(part)


def event_of(leaf: Leaf) -> Event:
    return leaf if isinstance(leaf, Event) else leaf.event


# --- clauses --------------------------------------------------------------------------------------------


class Strategy(str, Enum):
    """Which of the matches are selected."""

    SKIP_TILL_ANY = "skip_till_any"
    SKIP_TILL_NEXT = "skip_till_next"
    STRICT = "strict"


@dataclass(frozen=True, slots=True)
class Selection(Node):
    """``USING strategy [CONSUME]``."""

    strategy: Strategy = Strategy.SKIP_TILL_ANY
    consume: bool = False


@dataclass(frozen=True, slots=True)
class Column(Node):
    """An attribute of PARTITION BY."""

    name: str


class WindowKind(str, Enum):
    TIME = "time"  # nanoseconds, on a timestamp column
    NUMBER = "number"  # on an integer column
    EVENTS = "events"  # consecutive events


@dataclass(frozen=True, slots=True)
class Window(Node):
    """A length: of WITHIN, and of SLIDE."""

    kind: WindowKind
    size: int

    def __str__(self) -> str:
        match self.kind:
            case WindowKind.TIME:
                return str(Interval(self.size))
            case WindowKind.NUMBER:
                return str(self.size)
            case WindowKind.EVENTS:
                return f"{self.size} events"


@dataclass(frozen=True, slots=True)
class ReturnItem(Node):
    """``expression AS name``."""

    expression: Expression
    name: str
