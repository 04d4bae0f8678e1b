"""When two parts of patterns ask for the same partial matches.

A sub-pattern is what a branch asks of some of its variables: types, filters, order, conditions and PARTITION BY (the
multi-pattern paper's projection π of a pattern). Names of variables do not matter, nor does the order in which
conditions are written, nor the tree that joins the variables. The window is left out: those who share a sub-pattern
evaluate it with the largest of their windows and look again.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import permutations, product
from typing import TypeAlias

from cepheid.language import syntax as s
from cepheid.language.text import expression_text
from cepheid.pattern.normal import Branch, Condition
from cepheid.pattern.order import transitive_closure
from cepheid.plan.tree import Join, Leaf, Plan, Search, variables

MAX_LABELLINGS = 720
"""So many ways to number variables that look alike are compared; where there are more, names of variables count."""
MAX_BRANCHES = 10_000
"""So many branches are remembered."""

Names: TypeAlias = "frozenset[str]"
_Encoded: TypeAlias = "tuple[str, str, str, int, int]"
"""A condition with numbers for variables: left side, operator, right side and their numbers; or a text alone."""


@dataclass(frozen=True, slots=True)
class SubPattern:
    """What is asked of some variables, in a form that is equal where the same is asked.

    ``slots``: the branch's names for the variables, in the order of the form. Two equal sub-patterns have the same
    partial matches, the n-th variable of one being the n-th of the other.
    """

    text: str
    slots: tuple[str, ...] = field(compare=False)

    def __str__(self) -> str:
        return self.text


def sub_pattern(branch: Branch, names: Names | Plan, not_null: Names = frozenset()) -> SubPattern | None:
    """What a branch asks of some of its single variables, or of those of a plan; None if nobody can share it.

    ``not_null``: attributes of which it is known that they are never NULL. The events of a variable are only those that
    have all values which are compared with another's; where all have them, that makes no difference.

    >>> import cepheid
    >>> def part(text, *names):
    ...     return sub_pattern(cepheid.normalise(cepheid.parse(text)).branches[0], frozenset(names))
    >>> one = part("PATTERN SEQ(A a, B b, C c) WHERE a.x < b.x AND b.y = c.y WITHIN 10", "a", "b")
    >>> two = part("PATTERN SEQ(A p, B q, D r) WHERE q.y = r.y AND q.x > p.x WITHIN 20", "p", "q")
    >>> one == two, one.slots, two.slots
    (True, ('a', 'b'), ('p', 'q'))
    """
    if isinstance(names, (Leaf, Join, Search)):
        names = frozenset(variables(names))
    return sub_patterns(branch, not_null).of(names)


def sub_patterns(branch: Branch, not_null: Names = frozenset()) -> SubPatterns:
    """The sub-patterns of a branch, remembered for as long as there are not too many branches."""
    known = _KNOWN.get((id(branch), not_null))
    if known is None or known.branch is not branch:
        if len(_KNOWN) >= MAX_BRANCHES:
            _KNOWN.clear()
        known = _KNOWN[id(branch), not_null] = SubPatterns(branch, not_null)
    return known


class SubPatterns:
    """All sub-patterns of a branch; each is made when it is asked for, once."""

    def __init__(self, branch: Branch, not_null: Names = frozenset()) -> None:
        self.branch = branch
        self._types = {v.name: v.type for v in branch.variables if not v.is_kleene}
        # Selected one after the other, events depend on what was selected before. Windows that count events are judged
        # by places in the stream of a pattern's own: they are left apart.
        self._is_shared = not branch.stepwise and branch.never is None and branch.window.kind is not s.WindowKind.EVENTS
        self._order = transitive_closure(branch.order)
        self._conditions = [_Condition(c) for c in branch.conditions if len(c.variables) > 1]
        self._asked = {name: _asked(name, type_, branch, not_null) for name, type_ in self._types.items()}
        self._found: dict[Names, SubPattern | None] = {}

    def of(self, names: Names) -> SubPattern | None:
        if names not in self._found:
            shared = self._is_shared and bool(names) and names <= self._types.keys()
            self._found[names] = self._make(names) if shared else None
        return self._found[names]

    def _make(self, names: Names) -> SubPattern:
        order = [(x, y) for x, y in self._order if x in names and y in names]
        conditions = [c for c in self._conditions if c.variables <= names]
        derived = self._not_checked(conditions, names)
        form = _Form(order, conditions, derived)
        groups = form.alike({name: self._asked[name] for name in names})
        partition = tuple(sorted(self.branch.partition))
        if math.prod(math.factorial(len(group)) for group in groups) > MAX_LABELLINGS:
            slots: tuple[str, ...] = tuple(sorted(names))
            encoded = form.encoded(slots)
            return SubPattern(repr((slots, tuple(self._asked[n] for n in slots), encoded, partition)), slots)
        labellings = (tuple(n for part in parts for n in part) for parts in product(*map(permutations, groups)))
        encoded, slots = min((form.encoded(names), names) for names in labellings)
        return SubPattern(repr((tuple(self._asked[n] for n in slots), encoded, partition)), slots)

    def _not_checked(self, conditions: Sequence[_Condition], names: Names) -> set[_Condition]:
        """The conditions that need not hold here: they follow from others, of which some look at other variables.

        Which of the equalities were written and which follow does not matter if all of them are about these variables.
        """
        derived = [c for c in conditions if c.condition.derived]
        if not derived:
            return set()
        written = [
            c.expression
            for c in self.branch.conditions
            if not c.derived and c.variables <= names and isinstance(c.expression, s.Comparison)
        ]
        parts: list[set[s.Expression]] = []
        for comparison in written:
            if comparison.operator == "=":
                touched = [p for p in parts if comparison.left in p or comparison.right in p]
                parts = [p for p in parts if p not in touched]
                parts.append(set().union({comparison.left, comparison.right}, *touched))
        return {c for c in derived if not any(c.is_within(part) for part in parts)}


_KNOWN: dict[tuple[int, Names], SubPatterns] = {}


class _Condition:
    """A condition, and how it reads with numbers for variables."""

    def __init__(self, condition: Condition) -> None:
        self.condition = condition
        self.variables = condition.variables
        self._texts: dict[tuple[int, ...], str] = {}
        self._names = tuple(sorted(condition.variables))
        self._sides: tuple[str, str, s.ComparisonOperator, str, str] | None = None
        match condition.expression:
            case s.Comparison(operator, left, right) if len(s.variables(left)) == len(s.variables(right)) == 1:
                ((one,), (two,)) = s.variables(left), s.variables(right)
                if one != two:
                    self._sides = one, _over_row(left), operator, two, _over_row(right)

    def is_within(self, terms: set[s.Expression]) -> bool:
        expression = self.condition.expression
        return isinstance(expression, s.Comparison) and expression.left in terms and expression.right in terms

    def encoded(self, numbers: Mapping[str, int]) -> _Encoded:
        if self._sides is not None:
            one, left, operator, two, right = self._sides
            if (numbers[two], right) < (numbers[one], left):
                return right, s.MIRRORED[operator], left, numbers[two], numbers[one]
            return left, operator, right, numbers[one], numbers[two]
        chosen = tuple(numbers[name] for name in self._names)
        if chosen not in self._texts:
            labels = {name: str(number) for name, number in zip(self._names, chosen, strict=True)}
            self._texts[chosen] = _canonical(self.condition.expression, labels)
        return self._texts[chosen], "", "", 0, 0


class _Form:
    """Order and conditions of a sub-pattern, before its variables are numbered."""

    def __init__(
        self, order: Sequence[tuple[str, str]], conditions: Sequence[_Condition], derived: set[_Condition]
    ) -> None:
        self._order = order
        self._conditions = [(c, c in derived) for c in conditions]

    def encoded(self, names: Sequence[str]) -> tuple[list[tuple[int, int]], list[tuple[bool, _Encoded]]]:
        """All of it with the variables numbered as they are named here."""
        numbers = {name: number for number, name in enumerate(names)}
        order = sorted((numbers[x], numbers[y]) for x, y in self._order)
        return order, sorted({(derived, c.encoded(numbers)) for c, derived in self._conditions})

    def alike(self, asked: Mapping[str, object]) -> list[list[str]]:
        """The variables in groups that look alike, in an order that does not depend on names.

        First by what is asked of each alone; as long as that tells some apart that were not, by what each has to do
        with which others (colour refinement).
        """
        colours, count = _ranked(asked)
        while count < len(colours):
            signatures = {name: (colours[name], *self._neighbourhood(name, colours)) for name in colours}
            refined, more = _ranked(signatures)
            if more == count:
                break
            colours, count = refined, more
        groups: list[list[str]] = [[] for _ in range(count)]
        for name, colour in colours.items():
            groups[colour].append(name)
        return groups

    def _neighbourhood(self, name: str, colours: Mapping[str, int]) -> tuple[object, ...]:
        own = {**colours, name: -1}
        return (
            sorted(colours[x] for x, y in self._order if y == name),
            sorted(colours[y] for x, y in self._order if x == name),
            sorted((derived, c.encoded(own)) for c, derived in self._conditions if name in c.variables),
        )


def _ranked(signatures: Mapping[str, object]) -> tuple[dict[str, int], int]:
    """A number for each name, the same for equal signatures, in the order of these; and how many numbers there are."""
    ranks = {text: rank for rank, text in enumerate(sorted({repr(found) for found in signatures.values()}))}
    return {name: ranks[repr(found)] for name, found in signatures.items()}, len(ranks)


def _asked(name: str, type_: str, branch: Branch, not_null: Names) -> tuple[str, tuple[str, ...], tuple[str, ...]]:
    """What is asked of a variable's events one by one: type, filters, and what may not be NULL."""
    here = [c for c in branch.conditions if c.variables <= {name} and not _looks_at_sets(c)]
    filters = {_over_row(c.expression) for c in here}
    compared = (null_with(side) for side in _compared(name, branch.conditions))
    needed = {_over_row(e) for e in compared if not (isinstance(e, s.Attribute) and e.name in not_null)}
    return type_, tuple(sorted(filters)), tuple(sorted(needed))


def _compared(name: str, conditions: Iterable[Condition]) -> Iterator[s.Expression]:
    """Values of a variable that are compared with another variable's."""
    for condition in conditions:
        match condition.expression:
            case s.Comparison(_, left, right) if len(condition.variables) == 2 and not _looks_at_sets(condition):
                yield from (side for side in (left, right) if s.variables(side) == {name})


def null_with(expression: s.Expression) -> s.Expression:
    """A simpler expression that is NULL exactly where this one is: a.x for a.x + 0.5.

    The sum of whole numbers may leave 64 bits, and then is NULL where they are not.
    """
    match expression:
        case s.Arithmetic("+" | "-", term, s.Literal(float(number))) if math.isfinite(number):
            return null_with(term)
        case s.Arithmetic("+" | "-", s.Literal(float(number)), term) if math.isfinite(number):
            return null_with(term)
    return expression


def _looks_at_sets(condition: Condition) -> bool:
    return any(isinstance(node, (s.Aggregate, s.Neighbour)) for node in s.walk(condition.expression))


def _over_row(expression: s.Expression) -> str:
    """An expression over one variable, whatever that is called."""
    return _canonical(expression, dict.fromkeys(s.variables(expression), "_"))


def _canonical(expression: s.Expression, labels: Mapping[str, str]) -> str:
    """An expression in words, with labels for variables, and one way to write what can be written in several."""

    def change(node: s.Expression) -> s.Expression:
        match node:
            case s.Attribute() | s.EventRef() | s.Neighbour() | s.Aggregate():
                node = replace(node, variable=labels[node.variable])
        node = s.map_children(node, change)
        match node:
            case s.And(operands) | s.Or(operands):
                return replace(node, operands=tuple(sorted(operands, key=expression_text)))
            case s.Comparison(operator, left, right):
                turned = s.Comparison(s.MIRRORED[operator], right, left)
                return min(node, turned, key=_written)
        return node

    return expression_text(change(expression))


def _written(comparison: s.Comparison) -> tuple[str, str, str]:
    return expression_text(comparison.left), expression_text(comparison.right), comparison.operator
