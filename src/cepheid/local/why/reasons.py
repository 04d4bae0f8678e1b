"""Why a pattern without OR has no match: the part of its plan that nothing comes out of, and what is wrong there."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from cepheid.language import syntax as s
from cepheid.language.pattern import Pattern
from cepheid.language.problems import closest
from cepheid.language.text import expression_text
from cepheid.local.explain.plan_nodes import PlanNode, Step
from cepheid.local.explain.tree_text import count_of
from cepheid.local.why import variants as v
from cepheid.local.why.relaxations import Relaxation, ending, helpful
from cepheid.local.why.trial import Outcome, Trial
from cepheid.local.why.values import how_near, most_common
from cepheid.pattern.normal import Branch, Negation, Variable
from cepheid.pattern.normalise import normalise

SHOWN_TYPES = 5


@dataclass(frozen=True, slots=True)
class Reasons:
    """What is wrong, in sentences; and changes that are known to help, with how many matches there would be."""

    sentences: tuple[str, ...]
    remedies: tuple[str, ...] = ()


def reasons(branch: Branch, pattern: Pattern, outcome: Outcome, trial: Trial) -> Reasons:
    """``outcome``: what the pattern has done, which was not to match."""
    if not trial.table.num_rows:
        return Reasons(("There are no events.",))
    dry = tuple(_dry_variables(branch, pattern, outcome.root, trial))
    if dry:
        return Reasons(dry)
    if branch.stepwise:
        freer = _other_strategy(pattern, trial)
        if freer is not None:
            return freer
    if pattern.slide is not None and trial.matches(v.without_slide(pattern)):
        count = trial.matches(v.without_slide(pattern))
        return Reasons(
            (f"No window that starts every {pattern.slide} holds a match as a whole.",),
            (_remedy("without SLIDE", count),),
        )
    freest = v.without_slide(v.using(pattern, s.Strategy.SKIP_TILL_ANY))
    if branch.stepwise:
        [freely] = normalise(freest).branches  # of which more is known: events are not selected one by one
        if freely.never is not None:
            return Reasons((f"It can never match: {freely.never}.",))
        outcome = trial.funnel(freest)
    for node in positive_parts(outcome.root):
        if node.head.found == 0:
            return _apart(node, branch, freest, pattern, trial)
    return _rejected(branch, outcome, pattern, trial)


def positive_parts(root: PlanNode) -> Iterator[PlanNode]:
    """The parts of a plan in the order of evaluation, those of negations left out."""
    for place, part in enumerate(root.inputs):
        if root.kind != "negation" or place == 0:
            yield from positive_parts(part)
    if root.kind != "negation":
        yield root


# --- events


def _dry_variables(branch: Branch, pattern: Pattern, root: PlanNode, trial: Trial) -> Iterator[str]:
    """Each variable that no event is there for."""
    leaves = {node.head.text: node for node in root if node.kind == "events"}
    for variable in branch.variables:
        node = leaves[f"{variable.type} {variable.name}"]
        if node.head.found:
            continue
        steps = node.steps or (replace(node.head, text=f"{variable.type} events"),)
        place = next(i for i, step in enumerate(steps) if not step.found)
        if place == 0:
            yield _no_type(variable, trial)
        else:
            yield _no_event(variable, steps[place - 1], place - 1, branch, pattern, trial)


def _no_type(variable: Variable, trial: Trial) -> str:
    assert trial.columns.type is not None
    types = most_common(trial.table[trial.columns.type])
    shown = ", ".join(f"{name} ({count:,})" for name, count in types[:SHOWN_TYPES])
    more = f" and {count_of(len(types) - SHOWN_TYPES, 'other')}" if len(types) > SHOWN_TYPES else ""
    hint = closest(variable.type, [str(name) for name, _ in types])
    meant = f" {hint[0].upper()}{hint[1:]}" if hint else ""
    return f"{variable.name}: there is no event of type {variable.type}.{meant} There are {shown}{more}."


def _no_event(variable: Variable, before: Step, place: int, branch: Branch, pattern: Pattern, trial: Trial) -> str:
    """A filter that nothing passes, or values that are missing. ``place``: that of the filter."""
    name = variable.name
    filters = [c for c in branch.conditions if c.variables <= {name} and c.kind == "filter"]
    came = before.found or 0
    whole = f"of {count_of(came, f'{variable.type} event')}"
    if place:
        whole += f" with {' and '.join(str(c) for c in filters[:place])}"
    alone = v.using(v.without_partition(v.only(pattern, {name})), s.Strategy.SKIP_TILL_ANY)
    alone = replace(alone, structure=s.Event(variable.type, name), slide=None)
    if place >= len(filters):
        return f"{name}: {whole} none has every value that is compared{_missing(name, branch, alone, trial)}."
    condition = filters[place]
    reached = v.with_conditions(alone, [c.expression for c in filters[:place]])
    near = how_near(condition.expression, reached, trial)
    derived = " (which follows from other conditions)" if condition.derived else ""
    sentence = f"{name}: {whole} none satisfies {condition}{derived}" + ending(near)
    only_this = trial.matches(v.with_conditions(alone, [condition.expression])) if place else 0
    return sentence + (f" By itself it is satisfied by {count_of(only_this, 'event')}." if only_this else "")


def _missing(name: str, branch: Branch, alone: Pattern, trial: Trial) -> str:
    sides = [
        side
        for c in branch.conditions
        if isinstance(c.expression, s.Comparison) and len(c.variables) == 2
        for side in (c.expression.left, c.expression.right)
        if s.variables(side) == {name}
    ]
    texts = []
    for side in dict.fromkeys(sides):
        column = trial.found(alone, side)["0"]
        if column.null_count == len(column):
            texts.append(f"{expression_text(side)} is always NULL")
    return f": {', '.join(texts)}" if texts else ""


# --- combinations


def _apart(node: PlanNode, branch: Branch, freest: Pattern, pattern: Pattern, trial: Trial) -> Reasons:
    """Events that are there, and do not come together."""
    names = _variables_of(node, branch)
    new = names[-1]
    part = v.only(freest, names)
    if node.kind == "sets" and len(names) > 1 and not _reaches_sets(node):
        # Not even one event goes with the others: what is asked of a set as a whole does not matter yet.
        part = v.with_one_event(part, new)
    found = list(helpful(part, new, trial))
    if not found:
        return Reasons((f"No {_and(names)} go together, and no single change would help.",))
    remedies = tuple(_tried(found, pattern, trial))
    rest = () if remedies else ("That alone is not all: a pattern that does not ask for it has no match either.",)
    return Reasons((*(r.reason for r in found), *rest), remedies)


def _variables_of(node: PlanNode, branch: Branch) -> list[str]:
    below = {leaf.head.text for leaf in node if leaf.kind == "events"}
    chosen = [x for x in branch.variables if f"{x.type} {x.name}" in below]
    # The plan binds single events in the order of the pattern, and sets after them.
    return [x.name for x in sorted(chosen, key=lambda x: x.is_kleene)]


def _reaches_sets(node: PlanNode) -> bool:
    """Whether some event could be part of a set."""
    before = [step for step in node.steps if step.found is not None]
    place = next(i for i, step in enumerate(before) if step.text.startswith("sets of "))
    return bool(before[place - 1].found)


def _tried(found: list[Relaxation], pattern: Pattern, trial: Trial) -> Iterator[str]:
    """What each change does for the pattern as a whole."""
    for relaxation in found:
        changed = relaxation.change(pattern)
        count = 0 if changed == pattern else trial.matches(changed)
        if count:
            wider = changed.window != pattern.window
            yield _remedy(f"WITHIN {changed.window}" if wider else relaxation.label, count, trial.where(changed))


def _remedy(label: str, count: int, where: str = "") -> str:
    return f"{label}: {count_of(count, 'match')}{where}"


# --- strategies and negations


def _other_strategy(pattern: Pattern, trial: Trial) -> Reasons | None:
    """Matches that are there and not selected."""
    strategy = pattern.selection.strategy
    freer = [s.Strategy.SKIP_TILL_NEXT] if strategy is s.Strategy.STRICT else []
    for other in (*freer, s.Strategy.SKIP_TILL_ANY):
        changed = v.using(pattern, other)
        count = trial.matches(changed)
        if count:
            why = (
                "strict lets no other event lie between those of a match"
                if strategy is s.Strategy.STRICT
                else "skip_till_next takes the first events that fit, and from these no match can be completed"
            )
            return Reasons(
                (f"There are matches, but {strategy.value} does not select them: {why}.",),
                (_remedy(f"USING {other.value}", count, trial.where(changed)),),
            )
    return None


def _rejected(branch: Branch, outcome: Outcome, pattern: Pattern, trial: Trial) -> Reasons:
    """Complete matches, all of them with an event that must not be."""
    *_, last = positive_parts(outcome.root)
    complete = last.head.found or 0
    sentences, remedies = [], []
    names = [x.name for x in branch.variables]
    everything = [n.name for n in branch.negations]
    for negation in branch.negations:
        kept = [*names, *(n for n in everything if n != negation.name)]
        count = trial.matches(v.only(pattern, kept))
        if count:
            lies = (
                f"such an event lies {_place(negation)}" if _place(negation) else "there is such an event in the window"
            )
            sentences.append(
                f"NOT({negation.type} {negation.name}) rejects all of {count_of(complete, 'match')}: {lies} each time."
            )
            remedies.append(_remedy(f"without NOT({negation.type} {negation.name})", count))
    if not sentences:
        count = trial.matches(v.only(pattern, names))
        texts = " and ".join(f"NOT({n.type} {n.name})" for n in branch.negations)
        sentences = [f"{texts} together reject all of {count_of(complete, 'match')}."]
        remedies = [_remedy(f"without {texts}", count)]
    return Reasons(tuple(sentences), tuple(remedies))


def _place(negation: Negation) -> str:
    places = (("after", negation.after), ("before", negation.before))
    return " and ".join(f"{word} {_and(list(names))}" for word, names in places if names)


def _and(names: list[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
