"""What could be asked less of a pattern, where some of its variables do not come together."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from cepheid.language import syntax as s
from cepheid.language.pattern import Pattern
from cepheid.language.text import expression_text
from cepheid.local.why import variants as v
from cepheid.local.why.trial import Trial
from cepheid.local.why.values import examples, how_near, in_common


@dataclass(frozen=True, slots=True)
class Relaxation:
    """A change to a pattern. ``label``: what it is; ``reason``: what is wrong, since the change helps."""

    label: str
    change: Callable[[Pattern], Pattern]
    reason: str


def helpful(part: Pattern, new: str, trial: Trial) -> Iterator[Relaxation]:
    """What helps a part of a pattern that has no match: ``new`` is the variable that it has none with."""
    helped = False
    for relaxation in (*_conditions(part, new, trial), *_smaller_sets(part, new, trial), *_wider(part, trial)):
        yield relaxation
        helped = True
    if not helped:  # what asks for another pattern altogether
        yield from _without_partition(part, new, trial)
        yield from _in_any_order(part, trial)


def _conditions(part: Pattern, new: str, trial: Trial) -> Iterator[Relaxation]:
    for condition in v.conditions_of(part):
        if new in s.variables(condition):
            yield from _without(condition, part, trial)


def _without(condition: s.Expression, part: Pattern, trial: Trial) -> Iterator[Relaxation]:
    free = v.without_condition(part, condition)
    count = trial.matches(free)
    if not count:
        return
    text = expression_text(condition)
    reason = _none(count, part, trial.where(free), "satisfies", "satisfy") + f" {text}"
    more = _no_common_value(condition, part, trial) or how_near(condition, free, trial)
    yield Relaxation(
        f"without {text}",
        lambda pattern: v.without_condition(pattern, condition),
        reason + ending(more),
    )


def _no_common_value(condition: s.Expression, part: Pattern, trial: Trial) -> str | None:
    match condition:
        case s.Comparison("=", s.Attribute(one, _) as left, s.Attribute(other, _) as right) if one != other:
            return _apart(left, right, part, trial)
    return None


def _apart(left: s.Attribute, right: s.Attribute, part: Pattern, trial: Trial) -> str | None:
    """That two attributes have no value in common, with some of their values."""
    values = []
    for side in (left, right):
        alone = v.without_partition(v.only(part, {side.variable}))
        if side.variable in v.sets_of(part):
            return None
        values.append(trial.found(alone, side)["0"])
    if in_common(*values):
        return None
    shown = (
        f"{expression_text(side)} is {examples(found)}, …" for side, found in zip((left, right), values, strict=True)
    )
    return f"they have no value in common ({'; '.join(shown)})"


def _without_partition(part: Pattern, new: str, trial: Trial) -> Iterator[Relaxation]:
    free = v.without_partition(part)
    count = trial.matches(free) if part.partition else 0
    if not count:
        return
    columns = ", ".join(column.name for column in part.partition)
    others = [name for name in _names(part) if name != new]
    apart = None
    if others and len(part.partition) == 1:
        apart = _apart(s.Attribute(others[-1], columns), s.Attribute(new, columns), part, trial)
    reason = _none(count, part, trial.where(free), "has", "have") + f" the same {columns} in all events"
    yield Relaxation(f"without PARTITION BY {columns}", v.without_partition, reason + ending(apart))


def _smaller_sets(part: Pattern, new: str, trial: Trial) -> Iterator[Relaxation]:
    kleene = v.sets_of(part).get(new)
    if kleene is None or kleene.minimum < 2:
        return
    sizes = range(kleene.minimum - 1, 0, -1)
    smaller = ((size, v.with_minimum(part, new, size, exactly=True)) for size in sizes)
    largest, found = next(((size, found) for size, found in smaller if trial.matches(found)), (0, part))
    if largest:
        yield Relaxation(
            f"with {largest} or more events for {new}",
            lambda pattern: v.with_minimum(pattern, new, largest),
            f"The largest set for {new}{trial.where(found)} has {largest} event{'s' if largest > 1 else ''}, "
            f"and the pattern asks for {kleene.minimum} or more.",
        )


def _wider(part: Pattern, trial: Trial) -> Iterator[Relaxation]:
    if len(_names(part)) == 1 and not v.sets_of(part):
        return
    window = trial.nearest(part)
    if window is None:
        return

    def change(pattern: Pattern) -> Pattern:
        """The pattern as a whole may need a still wider one."""
        found = trial.nearest(pattern)
        return pattern if found is None else v.within(pattern, found.size)

    wide = v.within(part, window.size)
    where = trial.where(wide) if trial.matches(wide) else ""
    reason = f"The nearest {_listed(part)}{where} need a window of {window}, and it is {part.window}."
    yield Relaxation("with a wider window", change, reason)


def _in_any_order(part: Pattern, trial: Trial) -> Iterator[Relaxation]:
    free = v.in_any_order(part)
    count = 0 if free == part else trial.matches(free)
    if count:
        yield Relaxation(
            "with AND instead of SEQ",
            lambda pattern: pattern if v.has_negation(pattern) or _stepwise(pattern) else v.in_any_order(pattern),
            _none(count, part, trial.where(free), "comes", "come") + " in the order of the pattern.",
        )


def _stepwise(pattern: Pattern) -> bool:
    return pattern.selection.strategy is not s.Strategy.SKIP_TILL_ANY


def _names(part: Pattern) -> list[str]:
    return [s.event_of(leaf).variable for leaf in s.leaves(part.structure)]


def _listed(part: Pattern) -> str:
    names = _names(part)
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def _none(count: int, part: Pattern, where: str, does: str, do: str) -> str:
    """How a sentence begins that says what none of them does."""
    what = "sets for" if len(_names(part)) == 1 else "combinations of"
    if count == 1:
        return f"The only {what.replace('s ', ' ', 1)} {_listed(part)} that is right otherwise{where} does not {do}"
    return f"Of {count:,} {what} {_listed(part)} that are right otherwise{where} none {does}"


def ending(more: str | None) -> str:
    """How a sentence ends, with something more to say or without."""
    return "." if more is None else f": {more}" if more.endswith("?") else f": {more}."
