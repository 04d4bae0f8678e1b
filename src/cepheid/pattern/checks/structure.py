"""Checks of what the PATTERN, USING and WITHIN clauses ask for."""

from __future__ import annotations

from collections.abc import Iterator

from cepheid.language import syntax as s
from cepheid.language.problems import Problem
from cepheid.pattern.expand import MAX_BRANCHES, branch_count, expand
from cepheid.pattern.order import is_sequence
from cepheid.pattern.subject import Subject


def duplicate_variables(subject: Subject) -> Iterator[Problem]:
    seen: set[str] = set()
    for leaf in s.leaves(subject.pattern.structure):
        event = s.event_of(leaf)
        if event.variable in seen:
            yield subject.problem(
                f"variable '{event.variable}' is declared twice", event, expected="a name of its own for each event"
            )
        seen.add(event.variable)


def negation_in_place(subject: Subject) -> Iterator[Problem]:
    """NOT stands in a SEQ or AND, beside something positive."""

    def visit(structure: s.Structure, parent: s.Structure | None) -> Iterator[Problem]:
        if isinstance(structure, s.Negated):
            if not isinstance(parent, (s.Sequence, s.Conjunction)):
                where = "a pattern of its own" if parent is None else "a part of OR or ANY"
                yield subject.problem(
                    f"NOT cannot be {where}",
                    structure,
                    expected="NOT inside a SEQ or AND, beside an event",
                    hint="the absence of an event is seen only between, before or after events that do occur",
                )
            elif all(isinstance(part, s.Negated) for part in parent.parts):
                group = "SEQ" if isinstance(parent, s.Sequence) else "AND"
                yield subject.problem(
                    f"this NOT has no positive event beside it in its {group}",
                    structure,
                    expected=f"at least one event without NOT in the same {group}",
                    hint="the absence of an event is seen only between, before or after events that do occur",
                )
        elif isinstance(structure, (s.Sequence, s.Conjunction, s.Disjunction, s.AnyOf)):
            for part in structure.parts:
                yield from visit(part, structure)

    if subject.complete:
        yield from visit(subject.pattern.structure, None)


def bounds(subject: Subject) -> Iterator[Problem]:
    """Of KL and of ANY."""

    def visit(structure: s.Structure) -> Iterator[Problem]:
        match structure:
            case s.Kleene(_, minimum, maximum):
                if minimum < 1:
                    yield subject.problem(
                        f"a set of at least {minimum} events",
                        structure,
                        expected="a minimum of 1 or more",
                        hint="for a part that may be missing, use OR",
                    )
                elif maximum is not None and maximum < minimum:
                    yield subject.problem(f"the maximum {maximum} is below the minimum {minimum}", structure)
            case s.AnyOf(count, parts):
                if not 1 <= count <= len(parts):
                    yield subject.problem(
                        f"ANY asks for {count} of {len(parts)} events", structure, expected=f"1 to {len(parts)}"
                    )
            case s.Sequence(parts) | s.Conjunction(parts) | s.Disjunction(parts):
                for part in parts:
                    yield from visit(part)

    yield from visit(subject.pattern.structure)


def few_branches(subject: Subject) -> Iterator[Problem]:
    if branch_count(subject.pattern.structure) > MAX_BRANCHES:
        yield subject.problem(
            "OR and ANY make too many alternatives of this pattern",
            subject.pattern.structure,
            expected=f"at most {MAX_BRANCHES:,}",
            hint="events that differ only in a condition can share one variable with an OR in WHERE",
        )


def strategy_fits(subject: Subject) -> Iterator[Problem]:
    selection = subject.pattern.selection
    if selection.strategy is s.Strategy.SKIP_TILL_ANY or not subject.complete or not subject.branches:
        return
    if not all(is_sequence(branch) for branch in expand(subject.pattern.structure)):
        yield subject.problem(
            f"{selection.strategy.value} needs events in a fixed order, and AND leaves the order open",
            selection,
            expected="SEQ, or OR of SEQs; AND with skip_till_any",
        )


def window(subject: Subject) -> Iterator[Problem]:
    size, slide = subject.pattern.window, subject.pattern.slide
    if size is None:
        return
    if size.kind is s.WindowKind.EVENTS and size.size < 1:
        yield subject.problem("a window of no events", size, expected="WITHIN 1 events or more")
    if slide is None:
        return
    if s.WindowKind.EVENTS in (size.kind, slide.kind):
        yield subject.problem(
            "SLIDE cuts time, not a number of events", slide, expected="WITHIN and SLIDE in units of time"
        )
    elif size.kind is not slide.kind:
        yield subject.problem(
            f"WITHIN {size} and SLIDE {slide} are of different kinds",
            slide,
            expected="both with a unit of time, or both plain numbers",
        )
    elif slide.size < 1:
        yield subject.problem("windows must move on", slide, expected="a SLIDE above zero")
    elif size.size < 1:
        yield subject.problem("a window from k·SLIDE up to but not including k·SLIDE + 0 is empty", size)


def output_columns(subject: Subject) -> Iterator[Problem]:
    """Each column of the result has a name of its own."""
    pattern = subject.pattern
    taken = {"pattern", "start", "end"} | ({"window_start"} if pattern.slide else set())
    if pattern.output is None:
        for leaf in s.leaves(pattern.structure):
            if not isinstance(leaf, s.Negated) and s.event_of(leaf).variable in taken:
                yield subject.problem(
                    f"variable '{s.event_of(leaf).variable}' has the name of a column that every result has",
                    leaf,
                    expected=f"a name other than {', '.join(sorted(taken))}",
                )
        return
    for item in pattern.output:
        if item.name in taken:
            yield subject.problem(
                f"the result has a column '{item.name}' already", item, expected="AS and another name"
            )
        taken.add(item.name)


def partition_columns(subject: Subject) -> Iterator[Problem]:
    seen: set[str] = set()
    for column in subject.pattern.partition:
        if column.name in seen:
            yield subject.problem(f"'{column.name}' stands twice in PARTITION BY", column)
        seen.add(column.name)
