"""Does it matter where in the sequence the rare type stands?

The rare c at the end, in the middle and at the start of the sequence, with the same conditions, for the eager
automaton, lazy chains in every order, and the tree automaton (figure 8 of the paper that ``_automata.py`` names).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from benchmarks._automata import EVALUATIONS, automata, compare, draw, legend_below
from benchmarks._stocks import MADE_UP, SHARES, WINDOWS, correlated, made_up
from cepheid.cli.bench import Result, Steps

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SEQUENCES = ("abc", "acb", "cba")


def run(quick: bool, progress: Steps) -> Result:
    count = 4_000 if quick else 20_000
    rows: list[dict[str, Any]] = []
    notes: list[str] = []
    cases = [(sequence, share) for sequence in SEQUENCES for share in SHARES]
    for sequence, share in progress(cases, lambda case: f"SEQ({', '.join(case[0])}), f_c = {case[1]}"):
        plans, notes = automata(sequence)
        events = made_up(count, share)
        for automaton, report in compare(plans, correlated(sequence, WINDOWS[MADE_UP]), events).items():
            row = {"sequence": sequence, "share of c": share, "automaton": automaton, "events": events.num_rows}
            rows.append(row | {what: report[what] for what in (EVALUATIONS, "candidates", "matches")})
    return Result(rows, notes)


def plot(result: Result, figure: Figure) -> None:
    panels = figure.subplots(1, len(SEQUENCES), sharey=True)
    for axes, sequence in zip(panels, SEQUENCES, strict=True):
        draw(axes, result, "share of c", EVALUATIONS, sequence=sequence)
        legend_below(axes, columns=1)
        axes.set(xscale="log", yscale="log", title=f"SEQ({', '.join(sequence)})", xlabel="c for each a ($f_c$)")
    panels[0].set_ylabel("condition evaluations")
