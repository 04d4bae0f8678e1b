"""``cepheid.why``: in words, at which variable or condition a stream of events dries up."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from cepheid.engine.ingest import EventColumns
from cepheid.language.pattern import Pattern
from cepheid.language.text import structure_text
from cepheid.local.explain.plan_nodes import PlanNode, Step
from cepheid.local.explain.tree_text import count_of
from cepheid.local.match import prepare
from cepheid.local.why.reasons import positive_parts, reasons
from cepheid.local.why.trial import Trial
from cepheid.local.why.variants import branch_patterns
from cepheid.pattern.normal import Branch
from cepheid.pattern.normalise import normalise


@dataclass(frozen=True, slots=True)
class BranchDiagnosis:
    """What became of one alternative of a pattern. ``events``: how many were looked at.

    ``reasons``: what is wrong where it has no match, or where it loses most. ``remedies``: changes that were tried, and
    what they give. ``funnel``: what came how far.
    """

    structure: str
    matches: int
    events: int
    reasons: tuple[str, ...]
    remedies: tuple[str, ...] = ()
    funnel: tuple[Step, ...] = ()


@dataclass(frozen=True, slots=True)
class PatternDiagnosis:
    """What became of a pattern, branch by branch."""

    name: str
    branches: tuple[BranchDiagnosis, ...]


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """Why patterns match or do not, as a value; ``str()`` says it in words."""

    patterns: tuple[PatternDiagnosis, ...]

    def __str__(self) -> str:
        return "\n\n".join("\n".join(_pattern(pattern)) for pattern in self.patterns)


def why(
    patterns: str | Pattern | Iterable[str | Pattern],
    events: Any,
    *,
    time: str = "ts",
    type: str | None = "type",
    tie_breaker: str | None = None,
) -> Diagnosis:
    """Why patterns have no match in a table of events: where it dries up, what is there instead, and what would help.

    Each pattern is run on all events. Where nothing matches, variants of it are tried on the first 200,000: without a
    condition, with a wider window, with another strategy. Arguments as for :func:`cepheid.match`.

    >>> import cepheid
    >>> events = [{"ts": 1, "type": "A"}, {"ts": 4, "type": "C"}, {"ts": 9, "type": "B"}]
    >>> print(cepheid.why("PATTERN SEQ(A a, B b) WITHIN 5", events))
    pattern_1: no match in 3 events.
      The nearest a and b need a window of 8, and it is 5.
      What would help:
        WITHIN 8: 1 match
      What came how far:
                  1  A a
                  1  B b
                     a with b
                  0    candidates by time
                  0    in the window, a before b
    """
    engine, table = prepare(patterns, events, time=time, type=type, tie_breaker=tie_breaker, planner="pattern_order")
    trial = Trial(table, EventColumns(time, type, tie_breaker))
    found = []
    for pattern in engine.patterns:
        normal = normalise(pattern)
        branches = tuple(_branch(branch, alone, trial) for branch, alone in branch_patterns(pattern, normal))
        found.append(PatternDiagnosis(normal.name, branches))
    return Diagnosis(tuple(found))


def _branch(branch: Branch, pattern: Pattern, trial: Trial) -> BranchDiagnosis:
    structure = structure_text(pattern.structure)
    if branch.never is not None:
        return BranchDiagnosis(structure, 0, trial.table.num_rows, (f"It can never match: {branch.never}.",))
    outcome = trial.funnel(pattern)
    funnel = tuple(_funnel(outcome.root))
    if outcome.matches:
        return BranchDiagnosis(structure, outcome.matches, outcome.events, _narrowest(outcome.root), (), funnel)
    wrong = reasons(branch, pattern, outcome, trial)
    return BranchDiagnosis(structure, 0, outcome.events, wrong.sentences, wrong.remedies, funnel)


def _funnel(root: PlanNode) -> Iterator[Step]:
    """The lines of all parts in the order of evaluation; those that nothing came to are left out."""
    parts = [*positive_parts(root), *reversed([node for node in root if node.kind == "negation"])]
    dry = False
    for node in sorted(parts, key=lambda part: part.kind != "events"):
        if node.kind == "events":
            first, *rest = node.steps or (Step("", None, node.head.found),)
            yield Step(f"{node.head.text}: {first.text}" if first.text else node.head.text, None, first.found)
        elif dry:
            return
        else:
            yield Step(node.head.text)
            rest = [step for step in node.steps if step.found is not None]
        yield from (Step(f"  {step.text}", None, step.found) for step in rest)
        dry = dry or node.head.found == 0


def _narrowest(root: PlanNode) -> tuple[str, ...]:
    """The step that lets the smallest share through."""
    shares = []
    for node in positive_parts(root):
        steps = [step for step in node.steps if step.found is not None and not step.text.startswith("candidates")]
        for before, after in pairwise(steps):
            if before.found and after.found is not None and after.found < before.found:
                shares.append((after.found / before.found, after, before.found, node.head.text))
    if not shares:
        return ()
    share, step, came, name = min(shares, key=lambda item: item[0])
    return (f"The narrowest step is {step.text} ({name}): {step.found:,} of {came:,} pass it ({100 * share:.2g} %).",)


def _pattern(pattern: PatternDiagnosis) -> Iterator[str]:
    several = len(pattern.branches) > 1
    for place, branch in enumerate(pattern.branches, start=1):
        name = (
            f"{pattern.name}, branch {place} of {len(pattern.branches)}, {branch.structure}"
            if several
            else pattern.name
        )
        if place > 1:
            yield ""
        matches = count_of(branch.matches, "match") if branch.matches else "no match"
        yield f"{name}: {matches} in {count_of(branch.events, 'event')}."
        yield from (f"  {reason}" for reason in branch.reasons)
        if branch.remedies:
            yield "  What would help:"
            yield from (f"    {remedy}" for remedy in branch.remedies)
        if branch.funnel:
            yield "  What came how far:"
            yield from (f"    {'' if s.found is None else f'{s.found:,}':>11}  {s.text}" for s in branch.funnel)
