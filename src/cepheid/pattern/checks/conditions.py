"""Checks of how WHERE and RETURN use the variables."""

from __future__ import annotations

from collections.abc import Iterator

from cepheid.language import syntax as s
from cepheid.language.problems import Problem, closest, one_of
from cepheid.pattern.subject import Kind, Subject


def known_variables(subject: Subject) -> Iterator[Problem]:
    known = set(subject.kinds) | (subject.draft.possible or set())
    for expression in _expressions(subject):
        for node in s.walk(expression):
            match node:
                case s.EventRef(name) | s.Attribute(name) | s.Neighbour(name) | s.Aggregate(_, name, None):
                    if name not in known:
                        yield subject.problem(
                            f"unknown variable '{name}'",
                            node,
                            expected=one_of(list(subject.kinds)),
                            hint=closest(name, subject.kinds) or _bare_attribute(node, subject),
                        )


def _bare_attribute(node: s.Expression, subject: Subject) -> str | None:
    if isinstance(node, s.EventRef) and subject.kinds:
        return f"an attribute is written with its variable: {next(iter(subject.kinds))}.{node.variable}"
    return None


def whole_events(subject: Subject) -> Iterator[Problem]:
    """A bare variable is a column of RETURN, or the argument of COUNT; elsewhere it lacks an attribute."""
    columns = {id(item.expression) for item in subject.pattern.output or ()}
    for expression in _expressions(subject):
        for node in s.walk(expression):
            if isinstance(node, s.EventRef) and node.variable in subject.kinds and id(node) not in columns:
                yield subject.problem(
                    f"'{node.variable}' is an event, not a value",
                    node,
                    expected=f"one of its attributes, such as {node.variable}.x",
                )


def aggregates(subject: Subject) -> Iterator[Problem]:
    for expression in _expressions(subject):
        for node in s.walk(expression):
            if isinstance(node, s.Aggregate) and subject.complete:
                yield from _aggregate(subject, node)


def _aggregate(subject: Subject, node: s.Aggregate) -> Iterator[Problem]:
    kind = subject.kinds.get(node.variable)
    if kind is not None and kind is not Kind.KLEENE:
        yield subject.problem(
            f"{node.function} looks at a set of events, and '{node.variable}' is {kind.value}",
            node,
            expected="a KL variable",
            hint=None if kind is Kind.NEGATED else f"declare it as KL(… {node.variable}), or use its attribute itself",
        )
    if node.argument is None:
        return
    inside = list(s.walk(node.argument))
    if any(isinstance(inner, (s.Aggregate, s.Neighbour)) for inner in inside):
        yield subject.problem(f"{node.function} cannot hold another aggregate or an index", node)
    others = s.variables(node.argument) - {node.variable}
    if others:
        yield subject.problem(
            f"{node.function} looks at the events of one variable, found {', '.join(sorted(others | {node.variable}))}",
            node,
            expected=f"attributes of '{node.variable}' only",
        )


def neighbours(subject: Subject) -> Iterator[Problem]:
    """``b[i]`` and ``b[i-1]`` come together, on one KL variable a condition."""
    for condition in s.conjuncts(subject.pattern.condition):
        nodes = [node for node in s.walk(condition) if isinstance(node, s.Neighbour)]
        for node in {node.variable: node for node in reversed(nodes)}.values():
            kind = subject.kinds.get(node.variable)
            if kind is not None and kind is not Kind.KLEENE and subject.complete:
                yield subject.problem(
                    f"'{node.variable}' is {kind.value} and has no neighbours", node, expected="a KL variable"
                )
        names = {node.variable for node in nodes}
        if len(names) > 1:
            yield subject.problem(
                "a condition compares the neighbours of one variable", condition, expected="one variable with [i]"
            )
        elif nodes and {node.offset for node in nodes} != {0, -1}:
            (name,) = names
            yield subject.problem(
                f"{name}[i] and {name}[i-1] come together: they are two neighbours",
                nodes[0],
                expected="both in one condition",
                hint=f"for a condition on every event, write {name}.{nodes[0].name}",
            )


def negated_variables(subject: Subject) -> Iterator[Problem]:
    for condition in s.conjuncts(subject.pattern.condition):
        names = sorted(v for v in s.variables(condition) if subject.kinds.get(v) is Kind.NEGATED)
        if len(names) > 1:
            yield subject.problem(
                f"this condition mentions two negated variables, {' and '.join(names)}",
                condition,
                expected="one negated variable in a condition",
                hint="each negated variable is judged on its own: does an event exist that fits it?",
            )


def fits_a_branch(subject: Subject) -> Iterator[Problem]:
    if not subject.complete or not subject.branches:
        return
    for condition in s.conjuncts(subject.pattern.condition):
        names = s.variables(condition)
        if names <= set(subject.kinds) and not any(names <= branch for branch in subject.branches):
            yield subject.problem(
                f"no alternative of the pattern has all of {', '.join(sorted(names))}",
                condition,
                expected="variables that can be bound in one match",
                hint="OR and ANY bind the variables of one alternative only",
            )


def returned(subject: Subject) -> Iterator[Problem]:
    for item in subject.pattern.output or ():
        lists = set()
        for node in _outside_aggregates(item.expression):
            if isinstance(node, s.Neighbour):
                yield subject.problem("an index compares neighbours in WHERE; RETURN has no [i]", node)
            elif isinstance(node, (s.Attribute, s.EventRef)):
                kind = subject.kinds.get(node.variable)
                if kind is Kind.NEGATED:
                    yield subject.problem(f"'{node.variable}' is negated: a match has no such event to return", node)
                elif kind is Kind.KLEENE:
                    lists.add(node.variable)
        if len(lists) > 1:
            yield subject.problem(
                f"a column lists the events of one KL variable, found {', '.join(sorted(lists))}",
                item,
                expected="one of them, or aggregates",
            )


def _outside_aggregates(expression: s.Expression) -> Iterator[s.Expression]:
    yield expression
    if not isinstance(expression, s.Aggregate):
        for child in s.children(expression):
            yield from _outside_aggregates(child)


def _expressions(subject: Subject) -> Iterator[s.Expression]:
    yield from s.conjuncts(subject.pattern.condition)
    yield from (item.expression for item in subject.pattern.output or ())
