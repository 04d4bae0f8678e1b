"""Which automaton copes with a stream whose rarest type changes?

SEQ(a, b, c) over quotes of which first c, then a, then b is rare: condition evaluations as the stream goes on, for the
eager automaton, lazy chains in every order, and the tree automaton (figure 10 of the paper that ``_automata.py``
names).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from benchmarks._automata import EVALUATIONS, automata, check_same_matches, draw, legend_below
from benchmarks._stocks import HISTORY, MADE_UP, WINDOWS, correlated
from cepheid.cli.bench import Result, Steps

if TYPE_CHECKING:
    from matplotlib.figure import Figure

RARE = 0.01
PIECES = ("c", "a", "b")
"""Which type is rare in each piece of the stream."""


def run(quick: bool, progress: Steps) -> Result:
    from cepheid.workloads import stock_quotes

    piece = 10_000 if quick else 100_000
    every = piece // 10
    rates = [(piece, {t: RARE if t == rare.upper() else 1.0 for t in "ABC"}) for rare in PIECES]
    events = stock_quotes(piece * len(PIECES), rates=rates, per_second=2.0, history=HISTORY)
    plans, notes = automata("abc")
    rows: list[dict[str, Any]] = []
    matches: dict[str, int] = {}
    for plan in progress(plans):
        before = 0
        reports = plan.reports(correlated("abc", WINDOWS[MADE_UP]), events, 100, every)
        for number, report in enumerate(reports):
            rare = PIECES[number * every // piece]
            row = {"automaton": plan.name, "events": (number + 1) * every, "rare": rare}
            rows.append(row | {f"{EVALUATIONS} since": report[EVALUATIONS] - before})
            before, matches[plan.name] = report[EVALUATIONS], report["matches"]
    check_same_matches(matches)
    totals = {plan.name: sum(r[f"{EVALUATIONS} since"] for r in rows if r["automaton"] == plan.name) for plan in plans}
    whole = ", ".join(f"{name} {total:,}" for name, total in totals.items())
    return Result(rows, [*notes, f"{EVALUATIONS} in the whole stream: {whole}", f"matches: {max(matches.values()):,}"])


def plot(result: Result, figure: Figure) -> None:
    axes = figure.subplots()
    draw(axes, result, "events", f"{EVALUATIONS} since")
    legend_below(axes)
    first = result.where(automaton=result.rows[0]["automaton"])
    places = [float(row["events"] or 0) for row in first]
    every = places[0]
    piece = every * len(places) / len(PIECES)
    for number, rare in enumerate(PIECES):
        axes.axvspan(number * piece, (number + 1) * piece, color="0.5", alpha=0.12 if number % 2 else 0.0, lw=0)
        axes.text((number + 0.5) * piece, 1.01, f"{rare} is rare", transform=axes.get_xaxis_transform(), ha="center")
    axes.set(yscale="log", xlabel="events so far", ylabel=f"{EVALUATIONS} for {every:,.0f} events")
    axes.set_xlim(0, len(PIECES) * piece)
    axes.xaxis.set_major_formatter("{x:,.0f}")
