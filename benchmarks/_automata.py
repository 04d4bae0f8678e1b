"""Runs a sequence eagerly, as a lazy chain in every order, and as a tree automaton, and counts what each of them does.

After I. Kolchinsky, I. Sharfman, A. Schuster: Lazy evaluation methods for detecting complex events (DEBS 2015).
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa

import cepheid
from cepheid.cli.bench import Result

if TYPE_CHECKING:
    from matplotlib.axes import Axes

EVALUATIONS, PARTIAL, BUFFERED = "condition evaluations", "peak partial matches", "peak buffered events"


@dataclass(frozen=True)
class Automaton:
    name: str
    planner: str = "auto"
    order: tuple[str, ...] | None = None

    def __str__(self) -> str:
        return self.name

    def engine(self, pattern: str) -> cepheid.Engine:
        return cepheid.Engine([cepheid.parse(pattern)], planner=self.planner, order=self.order)

    def reports(self, pattern: str, events: pa.Table, batch: int, every: int) -> Iterator[dict[str, Any]]:
        """What was done so far, after each so many events, and at the end. ``batch`` events come at a time."""
        session = self.engine(pattern).open()
        matches = 0
        for start in range(0, events.num_rows, batch):
            some = events.slice(start, batch)
            matches += session.push(some, watermark=some["ts"][-1]).num_rows
            if (start + batch) % every == 0 and start + batch < events.num_rows:
                yield {**session.report(), "matches": matches}
        matches += session.close().num_rows
        yield {**session.report(), "matches": matches}

    def report(self, pattern: str, events: pa.Table, batch: int = 100) -> dict[str, Any]:
        """What was done for all events."""
        *_, last = self.reports(pattern, events, batch, every=batch)
        return last


def automata(sequence: str) -> tuple[list[Automaton], list[str]]:
    """All automata for a sequence of variables, such as ``"abc"``; and what is missing, with the reason.

    The eager automaton is the chain in the order of the sequence.
    """
    chains = ["".join(order) for order in itertools.permutations(sequence)]
    found = [Automaton(f"eager ({sequence})", "pattern_order")]
    found += [Automaton(f"chain {chain}", order=tuple(chain)) for chain in sorted(chains) if chain != sequence]
    tree = Automaton("tree", "dynamic")
    try:
        tree.engine("PATTERN A a WITHIN 1")
    except ValueError as error:
        return found, [f"without the tree automaton: {error}"]
    return [*found, tree], []


def compare(plans: list[Automaton], pattern: str, events: pa.Table, batch: int = 100) -> dict[str, dict[str, Any]]:
    """What each automaton did, by its name."""
    reports = {plan.name: plan.report(pattern, events, batch) for plan in plans}
    check_same_matches({name: report["matches"] for name, report in reports.items()})
    return reports


def check_same_matches(matches: dict[str, int]) -> None:
    """A plan never changes the result."""
    assert len(set(matches.values())) == 1, f"the automata found different numbers of matches: {matches}"


STYLES = {
    "eager": ("black", "P"),
    "tree": ("#D55E00", "*"),
    "abc": ("0.5", "x"),
    "acb": ("#56B4E9", "v"),
    "bac": ("#E69F00", "^"),
    "bca": ("#CC79A7", "D"),
    "cab": ("#009E73", "s"),
    "cba": ("#0072B2", "o"),
}
"""An automaton has the same colour and marker in every plot."""


def draw(axes: Axes, result: Result, x: str, y: str, **wanted: Any) -> None:
    """A line for each automaton. Those that do exactly the same share one: a join of two variables has no direction."""
    lines: dict[tuple[tuple[Any, ...], bool], list[str]] = {}
    for name in dict.fromkeys(str(row["automaton"]) for row in result.where(**wanted)):
        points = tuple((row[x], row[y]) for row in result.where(automaton=name, **wanted))
        lines.setdefault((points, name == "tree"), []).append(name)
    for (points, _), names in lines.items():
        names.sort(reverse=True)  # eager before chains, and chains that start with c first
        first = names[0].removeprefix("chain ")
        colour, marker = STYLES[first.split()[0]]
        style = {"lw": 2.5, "ls": "--", "ms": 11, "zorder": 3} if first == "tree" else {"lw": 2, "ms": 7}
        label = ", ".join(names) if len(names) < 4 else "eager and all chains"
        axes.plot(*zip(*points, strict=True), color=colour, marker=marker, label=label, **style)


def legend_below(axes: Axes, columns: int = 2, gap: float = 0.13) -> None:
    axes.legend(loc="upper center", bbox_to_anchor=(0.5, -gap), fontsize="small", ncols=columns)
