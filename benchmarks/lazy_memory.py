"""How many partial matches are kept at once, and how many events wait?

Peaks against the length of the stream, for SEQ(a, b, c) with a rare c: the eager automaton, lazy chains in every order,
and the tree automaton (figure 9 of the paper that ``_automata.py`` names; a partial match is the paper's instance).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from benchmarks._automata import BUFFERED, PARTIAL, automata, check_same_matches, draw, legend_below
from benchmarks._stocks import WINDOWS, Quotes, correlated
from cepheid.cli.bench import Result, Steps

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SHARE = 0.05
BATCH = 10
"""Few events at a time: what a batch brings is kept at least until the next one."""

BULK = "buffered events include some that are no longer needed: they are dropped a thousand or more at a time"


def run(quick: bool, progress: Steps) -> Result:
    plans, notes = automata("abc")
    quotes = Quotes()
    count = 4_000 if quick else 20_000
    every = count // 8
    rows: list[dict[str, Any]] = []
    matches: dict[str, dict[str, int]] = {name: {} for name in quotes.names}
    streams = {name: quotes.events(name, count, SHARE) for name in quotes.names}
    for name, plan in progress([(n, p) for n in streams for p in plans], lambda case: f"{case[0]} quotes, {case[1]}"):
        reports = plan.reports(correlated("abc", WINDOWS[name]), streams[name], BATCH, every)
        for report in reports:
            row = {"quotes": name, "automaton": plan.name, "events": report["events"]}
            rows.append(row | {what: report[what] for what in (PARTIAL, BUFFERED, "matches")})
            matches[name][plan.name] = report["matches"]
    for name in quotes.names:
        check_same_matches(matches[name])
    return Result(rows, [*notes, *quotes.notes, BULK])


def plot(result: Result, figure: Figure) -> None:
    streams = list(dict.fromkeys(row["quotes"] for row in result.rows))
    figure.set_size_inches(9, 7)
    panels = figure.subplots(2, len(streams), sharex="col", squeeze=False)
    for column, name in enumerate(streams):
        for axes, what in zip(panels[:, column], (PARTIAL, BUFFERED), strict=True):
            draw(axes, result, "events", what, quotes=name)
            axes.set_ylabel(what)
        panels[0, column].set(yscale="symlog", title=f"{name} quotes, $f_c$ = {SHARE:g}")
        legend_below(panels[0, column], gap=0.05)
        panels[1, column].legend(loc="lower right", fontsize="small")
        panels[1, column].set_ylim(0, 1.15 * panels[1, column].get_ylim()[1])
        panels[1, column].locator_params(axis="x", nbins=5)
        panels[1, column].xaxis.set_major_formatter("{x:,.0f}")
        panels[1, column].set_xlabel("events so far")
