"""How many condition evaluations does it save to start with the rare type?

SEQ(a, b, c) over stock quotes whose price histories correlate, against the share of c, for the eager automaton, lazy
chains in every order, and the tree automaton (figure 7 of the paper that ``_automata.py`` names).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from benchmarks._automata import EVALUATIONS, automata, compare, draw, legend_below
from benchmarks._stocks import SHARES, WINDOWS, Quotes, correlated
from cepheid.cli.bench import Result, Steps

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def run(quick: bool, progress: Steps) -> Result:
    plans, notes = automata("abc")
    quotes = Quotes()
    count = 5_000 if quick else 20_000
    rows: list[dict[str, Any]] = []
    cases = [(name, share) for name in quotes.names for share in SHARES]
    for name, share in progress(cases, lambda case: f"{case[0]} quotes, f_c = {case[1]}"):
        events = quotes.events(name, count, share)
        for automaton, report in compare(plans, correlated("abc", WINDOWS[name]), events).items():
            row = {"quotes": name, "share of c": share, "automaton": automaton, "events": events.num_rows}
            rows.append(row | {what: report[what] for what in (EVALUATIONS, "candidates", "matches")})
    result = Result(rows)
    return Result(rows, [*notes, *quotes.notes, *(_saved(result, name) for name in quotes.names)])


def plot(result: Result, figure: Figure) -> None:
    streams = list(dict.fromkeys(row["quotes"] for row in result.rows))
    panels = figure.subplots(1, len(streams), sharey=True, squeeze=False)[0]
    for axes, name in zip(panels, streams, strict=True):
        draw(axes, result, "share of c", EVALUATIONS, quotes=name)
        legend_below(axes)
        axes.set(xscale="log", yscale="log", title=f"{name} quotes", xlabel="quotes of c for each quote of a ($f_c$)")
    panels[0].set_ylabel("condition evaluations")


def _saved(result: Result, name: str) -> str:
    """What the paper claims, in numbers, where c is rarest."""
    rarest = [row for row in result.where(quotes=name) if row["share of c"] == min(SHARES)]
    counts = {str(row["automaton"]): float(row[EVALUATIONS] or 0) for row in rarest}
    eager = counts["eager (abc)"]
    best = min((a for a in counts if a.startswith("chain c")), key=lambda automaton: counts[automaton])
    saved = [f"{automaton} {eager / counts[automaton]:,.0f}" for automaton in (best, "tree") if automaton in counts]
    return f"{name} quotes, f_c = {min(SHARES)}: times fewer condition evaluations than eager: {', '.join(saved)}"
