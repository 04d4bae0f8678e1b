"""From the program of a branch, what it has counted and what was expected to the parts of a plan as a value."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from cepheid.engine.negation import REJECTED
from cepheid.engine.program import BranchProgram, JoinProgram, KleeneProgram, LeafProgram, NegationProgram
from cepheid.engine.stage import SETS
from cepheid.engine.tally import CANDIDATES, IN_ORDER, Tally
from cepheid.local.explain.plan_nodes import PlanNode, Step
from cepheid.pattern.normal import Branch, Condition, ConditionKind, Negation, Variable, judged_with
from cepheid.pattern.order import transitive_closure, transitive_reduction
from cepheid.plan.cardinality import Cardinality
from cepheid.plan.tree import Join, Leaf, Plan, Search, variables
from cepheid.stats.estimates import Estimates


@dataclass(frozen=True, slots=True)
class Scale:
    """From numbers in a window to numbers in a stream. ``share``: that of the window; None leaves them as they are."""

    share: float | None = None

    def of(self, per_window: float, size: int) -> float:
        """The tuples of ``size`` events that lie within some window.

        Of points that are spread evenly over a length of 1, k have a range of at most w with a probability of
        k·w^(k-1) - (k-1)·w^k, and all of them lie in one given window with w^k.
        """
        if self.share is None:
            return per_window
        if self.share >= 1:
            return float(per_window / self.share**size)
        return per_window * (size / self.share - (size - 1))


def tree_of(program: BranchProgram, tallies: Sequence[Tally], estimates: Estimates | None, scale: Scale) -> PlanNode:
    """The parts of a branch's plan, from the one that matches come out of down to the events."""
    return _Builder(program, tallies, estimates, scale).root()


class _Builder:
    def __init__(
        self, program: BranchProgram, tallies: Sequence[Tally], estimates: Estimates | None, scale: Scale
    ) -> None:
        self._program = program
        self._branch = program.branch
        self._tallies = {(tally.kind, tally.name): tally for tally in tallies}
        self._estimates = estimates
        # What a negation takes away is counted where it is checked.
        self._cardinality = self._cardinality_with(())
        self._scale = scale
        self._conditions = {str(c): c for c in program.branch.conditions}
        self._order = transitive_closure(program.branch.order)

    def _cardinality_with(self, negations: tuple[Negation, ...]) -> Cardinality | None:
        if self._estimates is None:
            return None
        return Cardinality(replace(self._branch, negations=negations), self._estimates)

    def root(self) -> PlanNode:
        program = self._program
        if self._branch.stepwise:
            top: PlanNode | None = self._stepwise()
        else:
            top = None if program.plan is None else self._node(program.plan)
            bound = () if program.plan is None else variables(program.plan)
            for stage in program.kleene:
                top = self._stage(stage, top, bound)
                bound = (*bound, stage.variable.name)
        assert top is not None
        for negation in program.negations:
            top = self._negation(negation, top)
        return top

    # --- the parts

    def _node(self, plan: Plan) -> PlanNode:
        match plan:
            case Leaf(variable):
                return self._leaf(self._program.leaves[variable])
            case Search(names):
                return self._search(plan, names)
            case Join(left, right):
                return self._join(plan, variables(left), variables(right))

    def _leaf(self, leaf: LeafProgram) -> PlanNode:
        tally = self._tallies.get(("events", leaf.variable))
        if tally is None:
            steps = [Step(text) for text in (f"{leaf.type} events", *leaf.labels)]
        else:
            steps = [Step(text, None, count) for text, count in tally.steps.items()]
            if leaf.needed and steps[-1].found == steps[-2].found:  # nothing is missing: that goes without saying
                steps.pop()
        expected = None
        if self._estimates is not None and leaf.variable in self._estimates.counts:
            expected = self._scale.of(self._estimates.count_of(leaf.variable), 1)
        head = Step(f"{leaf.type} {leaf.variable}", expected, steps[-1].found)
        return PlanNode("events", head, tuple(steps) if len(steps) > 1 else ())

    def _join(self, plan: Join, left: tuple[str, ...], right: tuple[str, ...]) -> PlanNode:
        node = self._program.joins[plan]
        tally = self._tallies.get(("join", str(plan)))
        steps = self._pairing(node.from_left, (*left, *right), self._between(left, right), tally)
        head = Step(_sides(plan), steps[-1].expected, steps[-1].found)
        early = [Step(f"{_forbidden(n.negation)}: first chance") for n in node.negations]
        inputs = (self._node(plan.left), self._node(plan.right))
        return _counted("join", head, (*steps, *early), inputs, tally)

    def _search(self, plan: Search, names: tuple[str, ...]) -> PlanNode:
        tally = self._tallies.get(("search", str(plan)))
        by = f" of PARTITION BY {', '.join(self._branch.partition)}" if self._branch.partition else ""
        found = {} if tally is None else tally.steps
        steps = [
            Step(f"candidates{by}, the variable with the fewest first", None, found.get(CANDIDATES)),
            Step("in order, in the window", None, found.get(IN_ORDER)),
        ]
        for condition in self._branch.conditions:
            # What events are looked up by holds for all that are found, and is not counted.
            is_key = condition.kind is ConditionKind.EQUALITY and not self._branch.partition
            if len(condition.variables) > 1 and not condition.derived:
                steps.append(Step(str(condition), None, None if is_key else found.get(str(condition))))
        inputs = tuple(self._leaf(self._program.leaves[name]) for name in names)
        return _counted("search", Step(f"search {', '.join(names)}", self._expected(names)), steps, inputs, tally)

    def _stage(self, stage: KleeneProgram, below: PlanNode | None, bound: tuple[str, ...]) -> PlanNode:
        name = stage.variable.name
        tally = self._tallies.get(("sets", f"KL({name})"))
        texts = [text for text in stage.external_labels if text in self._conditions]
        sets = f"sets of {_sizes(stage.variable)}"
        checked = [
            str(c) for c in self._branch.conditions
            if c.kind is ConditionKind.NEIGHBOUR and c.variables == {name} and str(c) not in texts
        ]  # fmt: skip
        if checked:
            sets += f" with {' and '.join(checked)}"
        steps = self._pairing(stage.from_tuples, None, self._between(bound, (name,)), tally)
        found = {} if tally is None else tally.steps
        steps += [Step(sets, None, found.get(SETS)), *(Step(text, None, found.get(text)) for text in texts)]
        head = Step(f"KL({name})", self._expected((*bound, name)), steps[-1].found)
        leaf = self._leaf(self._program.leaves[name])
        return _counted("sets", head, steps, (leaf,) if below is None else (below, leaf), tally)

    def _stepwise(self) -> PlanNode:
        """Each variable takes the first event that fits; ``judged_with`` says where each condition is asked."""
        names = [v.name for v in self._branch.variables]
        tally = self._tallies.get(("steps", " → ".join(names)))
        levels: list[list[str]] = [[] for _ in range(len(names) + 1)]
        for condition in self._branch.conditions:
            mentioned, closed = judged_with(condition.expression)
            level = max((names.index(v) for v in mentioned), default=0)
            if str(condition) not in self._program.leaves[names[level]].labels:
                levels[max([level, *(names.index(v) + 1 for v in closed)])].append(str(condition))
        closing = levels.pop()  # asked when the last set is closed
        levels[-1] += closing
        steps = []
        for variable, conditions in zip(self._branch.variables, levels, strict=True):
            what = f"{_sizes(variable)} for {variable.name}" if variable.is_kleene else variable.name
            text = f"runs that bound {what}" + (f" with {' and '.join(conditions)}" if conditions else "")
            found = None if tally is None else tally.steps[f"runs that bound {variable.name}"]
            steps.append(Step(text, None, found))
        inputs = tuple(self._leaf(self._program.leaves[name]) for name in names)
        return _counted("steps", Step(" → ".join(names), None, steps[-1].found), steps, inputs, tally)

    def _negation(self, program: NegationProgram, below: PlanNode) -> PlanNode:
        negation = program.negation
        tally = self._tallies.get(("negation", f"NOT({negation.name})"))
        found = {} if tally is None else tally.steps
        places = [
            _sides(plan)
            for plan, node in self._program.joins.items()
            if any(n.negation == negation for n in node.negations) and not self._branch.stepwise
        ]
        where = f"checked at {' and at '.join(places)}, and for each match" if places else "checked for each match"
        probe = program.probe
        steps = [
            Step(where),
            Step(f"candidates {self._by(probe)}", None, found.get(CANDIDATES)),
            Step("where none may be", None, found.get(IN_ORDER)),
            *(Step(text, None, found.get(text)) for text in (*probe.labels, *probe.external_labels)),
            Step("rejected by it", self._expected_to_reject(negation), found.get(REJECTED)),
        ]
        return _counted("negation", Step(_forbidden(negation)), steps, (below, self._leaf(program.leaf)), tally)

    # --- what they ask for

    def _pairing(
        self, probe: JoinProgram, bound: tuple[str, ...] | None, order: str, tally: Tally | None
    ) -> list[Step]:
        """The funnel of a join. What is expected after its last condition is expected of the variables together."""
        labels = (*probe.labels, *probe.external_labels)
        expected = None if bound is None else self._expected(bound)
        shares = [self._share(label) for label in labels]
        found = {} if tally is None else tally.steps
        expectations = [expected]
        for share in reversed(shares):
            last = expectations[0]
            expectations.insert(0, None if last is None or not share else last / share)
        return [
            Step(f"candidates {self._by(probe)}", None, found.get(CANDIDATES)),
            Step(f"in the window{order}", expectations[0], found.get(IN_ORDER)),
            *(Step(text, e, found.get(text)) for text, e in zip(labels, expectations[1:], strict=True)),
        ]

    def _by(self, probe: JoinProgram) -> str:
        if probe.key_slot < 0:
            return "by time"
        return f"by PARTITION BY {', '.join(self._branch.partition)}" if self._branch.partition else f"by {probe.key}"

    def _between(self, left: Iterable[str], right: Iterable[str]) -> str:
        """The order that two sides must come in, in words."""
        left, right = tuple(left), tuple(right)
        chosen = {*left, *right}
        pairs = transitive_reduction(frozenset((x, y) for x, y in self._order if x in chosen and y in chosen))
        words = [f"{x} before {y}" for x, y in sorted(pairs, key=self._place) if (x in left) != (y in left)]
        return f", {', '.join(words)}" if words else ""

    def _place(self, pair: tuple[str, str]) -> tuple[int, int]:
        return self._branch.names.index(pair[0]), self._branch.names.index(pair[1])

    def _expected(self, names: Sequence[str]) -> float | None:
        if self._cardinality is None:
            return None
        return self._scale.of(self._cardinality.of(frozenset(names)), len(names))

    def _expected_to_reject(self, negation: Negation) -> float | None:
        """Only an event between two others has a chance that can be told; and how often it comes must be known."""
        if self._estimates is None or negation.name not in self._estimates.counts or self._branch.stepwise:
            return None
        names = frozenset(v.name for v in self._branch.variables)
        without, with_it = self._cardinality, self._cardinality_with((negation,))
        if without is None or with_it is None or not (negation.after and negation.before):
            return None
        return self._scale.of(without.of(names) - with_it.of(names), len(names))

    def _share(self, label: str) -> float | None:
        condition: Condition | None = self._conditions.get(label)
        return None if self._estimates is None or condition is None else self._estimates.selectivity_of(condition)


def clauses_of(branch: Branch, strategy: str, *, consume: bool) -> Iterator[str]:
    """What is asked of a pattern as a whole, as it is written."""
    yield f"USING {strategy}{' CONSUME' if consume else ''}"
    if branch.partition:
        yield f"PARTITION BY {', '.join(branch.partition)}"
    yield f"WITHIN {branch.window}" + (f" SLIDE {branch.slide}" if branch.slide else "")


def _counted(
    kind: str, head: Step, steps: Sequence[Step], inputs: tuple[PlanNode, ...], tally: Tally | None
) -> PlanNode:
    evaluations, peak = (0, 0) if tally is None else (tally.evaluations, tally.peak)
    return PlanNode(kind, head, tuple(steps), inputs, evaluations, peak)


def _sides(join: Join) -> str:
    """``a, b with c``."""
    return f"{', '.join(variables(join.left))} with {', '.join(variables(join.right))}"


def _forbidden(negation: Negation) -> str:
    """``no Confirm c after l, before t``."""
    places = [
        f"{word} {' and '.join(names)}"
        for word, names in (("after", negation.after), ("before", negation.before))
        if names
    ]
    return f"no {negation.type} {negation.name}{' ' if places else ''}{', '.join(places)}"


def _sizes(variable: Variable) -> str:
    """``3 to 5 events``."""
    least, most = variable.minimum or 1, variable.maximum
    if most is None:
        return f"{least} or more events"
    return f"{least} event{'s' if least > 1 else ''}" if least == most else f"{least} to {most} events"
