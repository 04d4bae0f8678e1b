"""A normal form as a person reads it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from cepheid.language import syntax as s
from cepheid.language.text import expression_text
from cepheid.language.words import quote_name

if TYPE_CHECKING:
    from cepheid.pattern.normal import Branch, Condition, Negation, NormalForm, Variable


def describe(normal: NormalForm) -> str:
    return "\n".join(_pattern(normal))


def _pattern(normal: NormalForm) -> Iterator[str]:
    count = len(normal.branches)
    yield f"{normal.name}: {count} branch{'es' if count > 1 else ''}"
    for place, branch in enumerate(normal.branches, start=1):
        if count > 1:
            yield f"branch {place}"
        yield from (f"  {line}" for line in _branch(branch))
    first = normal.branches[0]
    slide = f", sliding by {first.slide}" if first.slide else ""
    yield f"  within {first.window}{slide}"
    if first.partition:
        yield f"  partitioned by {', '.join(map(quote_name, first.partition))}"
    if normal.selection != s.Selection():
        consume = ", consuming events" if normal.selection.consume else ""
        yield f"  using {normal.selection.strategy.value}{consume}"
    if normal.output is not None:
        items = (f"{expression_text(item.expression)} AS {quote_name(item.name)}" for item in normal.output)
        yield f"  returns {', '.join(items)}"


def _branch(branch: Branch) -> Iterator[str]:
    yield f"events      {', '.join(map(_variable, branch.variables))}"
    if branch.order:
        place = {name: i for i, name in enumerate(branch.names)}
        pairs = sorted(branch.order, key=lambda pair: (place[pair[0]], place[pair[1]]))
        yield f"order       {', '.join(f'{quote_name(x)} < {quote_name(y)}' for x, y in pairs)}"
    yield from _conditions(branch.conditions)
    for negation in branch.negations:
        yield f"not         {_negation(negation)}"
        yield from (f"  {line}" for line in _conditions(negation.conditions))
    if branch.never:
        yield f"never       {branch.never}"


def _variable(variable: Variable) -> str:
    text = f"{quote_name(variable.type)} {quote_name(variable.name)}"
    if not variable.is_kleene:
        return text
    if variable.maximum is None:
        return f"{text} ({variable.minimum} or more)"
    if variable.maximum == variable.minimum:
        return f"{text} (exactly {variable.minimum})"
    return f"{text} ({variable.minimum} to {variable.maximum})"


def _negation(negation: Negation) -> str:
    places = [
        f"{word} {' and '.join(map(quote_name, names))}"
        for word, names in (("after", negation.after), ("before", negation.before))
        if names
    ]
    return f"{quote_name(negation.type)} {quote_name(negation.name)} {', '.join(places) or 'anywhere'}"


def _conditions(conditions: Iterable[Condition]) -> Iterator[str]:
    for condition in conditions:
        yield f"{condition.kind.value:<11} {condition}{'  (derived)' if condition.derived else ''}"
