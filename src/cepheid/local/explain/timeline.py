"""``cepheid explain --timeline``: rates, the plan in force and the throughput as the stream goes on."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from cepheid.adapt.adapting import Migration
from cepheid.adapt.every import CheckEvery
from cepheid.adapt.policies import Policy
from cepheid.engine.planning import Share
from cepheid.engine.session import Session
from cepheid.language.pattern import Pattern
from cepheid.local.explain.explain import NOTHING
from cepheid.local.match import BATCH, prepare

if TYPE_CHECKING:
    from matplotlib.axes import Axes

STRETCHES = 150
"""The stream is cut into so many pieces."""
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")


@dataclass(frozen=True, slots=True)
class Stretch:
    """A piece of the stream: from when to when, events a second, and after it the rates and plans of each branch.

    Rates are events in a window, by variable.
    """

    start: Any
    end: Any
    throughput: float
    rates: tuple[dict[str, float], ...]
    plans: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Timeline:
    """How a run went. ``branches``: their names; ``adaptation``: as in a session's report, if plans could change."""

    branches: tuple[str, ...]
    stretches: tuple[Stretch, ...]
    adaptation: dict[str, Any] | None

    def __str__(self) -> str:
        if self.adaptation is None:
            return "the plan was to stay as it is"
        found = self.adaptation
        looks = f"{found['checks']:,} looks at the statistics, {found['changed']:,} changes of plan"
        lines = [f"{looks}, {100 * found['overhead']:.1f} per cent of the time"]
        for change in found["changes"]:
            seen = change["observed_gain"]
            saved = "" if seen is None else f", found {100 * seen:.0f}"
            lines.append(
                f"{change['time']}  {change['pattern']}: {change['old']} → {change['new']}\n"
                f"    {change['reason']}; expected to save {100 * change['estimated_gain']:.0f} per cent{saved}"
            )
        return "\n".join(lines)

    def save(self, path: str | Path) -> None:
        """Draw it to a file; what it is called says as what: PNG, SVG, PDF."""
        if importlib.util.find_spec("matplotlib") is None:
            raise ModuleNotFoundError(
                "drawing needs matplotlib. Install it with: pip install '.[plot]', in a clone of Cepheid"
            )
        from matplotlib.figure import Figure

        count = len(self.branches)
        figure = Figure(figsize=(11, 4 + 2.6 * count), layout="constrained")
        panels = figure.subplots(2 * count + 1, 1, sharex=True, height_ratios=[*([3, 1] * count), 2], squeeze=False)
        for place, name in enumerate(self.branches):
            self._draw_rates(panels[2 * place, 0], place, name)
            self._draw_plans(panels[2 * place + 1, 0], place)
        self._draw_throughput(panels[-1, 0])
        figure.savefig(path, dpi=130)

    def _draw_rates(self, axes: Axes, place: int, name: str) -> None:
        ends = [stretch.end for stretch in self.stretches]
        for number, variable in enumerate(self.stretches[0].rates[place] if self.stretches else ()):
            values = [stretch.rates[place].get(variable, 0.0) for stretch in self.stretches]
            axes.plot(ends, values, label=variable, color=COLOURS[number % len(COLOURS)], lw=1.5)
        axes.set(ylabel="events in a window", title=name, ylim=(0, None))
        axes.legend(loc="upper left", bbox_to_anchor=(1, 1), frameon=False)
        axes.grid(alpha=0.3)

    def _draw_plans(self, axes: Axes, place: int) -> None:
        """A bar for each time that a plan was in force; the same plan always has the same colour."""
        names = list(dict.fromkeys(stretch.plans[place] for stretch in self.stretches))
        for plan, some in groupby(self.stretches, key=lambda stretch: stretch.plans[place]):
            held = list(some)
            colour = COLOURS[names.index(plan) % len(COLOURS)]
            axes.axvspan(held[0].start, held[-1].end, color=colour, alpha=0.35, lw=0)
        for number, plan in enumerate(names[:6]):
            axes.plot([], [], color=COLOURS[number % len(COLOURS)], alpha=0.5, lw=6, label=plan)
        axes.set(yticks=[], ylabel="plan")
        axes.legend(loc="upper left", bbox_to_anchor=(1, 1.1), frameon=False, fontsize="x-small")

    def _draw_throughput(self, axes: Axes) -> None:
        ends = [stretch.end for stretch in self.stretches]
        axes.plot(ends, [stretch.throughput for stretch in self.stretches], color="black", lw=1, drawstyle="steps-pre")
        axes.set(ylabel="events a second", ylim=(0, None), xlabel="time of the events")
        axes.grid(alpha=0.3)
        axes.yaxis.set_major_formatter("{x:,.0f}")


def timeline(
    patterns: str | Pattern | Iterable[str | Pattern],
    events: Any,
    *,
    time: str = "ts",
    type: str | None = "type",
    tie_breaker: str | None = None,
    planner: str = "auto",
    order: Sequence[str] | None = None,
    adapt: Policy | bool | str | None = True,
    check_every: CheckEvery = None,
    migrate: Migration = "rebuild",
    share: Share = None,
) -> Timeline:
    """Run patterns and see how rates, plans and throughput change. Options as for :func:`cepheid.match`.

    >>> from cepheid.workloads import stock_quotes
    >>> quotes = stock_quotes(30_000, rates=[(1, {"A": 1, "B": 1, "C": 0.02}), (1, {"A": 0.02, "B": 1, "C": 1})])
    >>> pattern = "PATTERN SEQ(A a, B b, C c) WHERE a.change < b.change AND b.change < c.change WITHIN 3 minutes"
    >>> found = timeline(pattern, quotes, planner="greedy", check_every="10 minutes")
    >>> found.stretches[20].plans, found.stretches[-1].plans
    (('((c ⋈ b) ⋈ a)',), ('((a ⋈ b) ⋈ c)',))
    """
    engine, table = prepare(
        patterns, events, time=time, type=type, tie_breaker=tie_breaker, planner=planner, order=order, adapt=adapt,
        check_every=check_every, migrate=migrate, share=share,
    )  # fmt: skip
    session = replace(engine, patterns=[replace(p, output=NOTHING, source=None) for p in engine.patterns]).open()
    size = max(1, -(-table.num_rows // STRETCHES))
    stretches = [_stretch(session, table.slice(start, size), time) for start in range(0, table.num_rows, size)]
    session.close()
    places: dict[str, int] = {}
    names = []
    for branch in session.plans:
        name = session.pattern_names[branch]
        places[name] = places.get(name, 0) + 1
        names.append(name if places[name] == 1 else f"{name}, alternative {places[name]}")
    return Timeline(tuple(names), tuple(stretches), session.report().get("adaptation"))


def _stretch(session: Session, piece: pa.Table, time: str) -> Stretch:
    started = perf_counter()
    size = session.push_size(BATCH)
    for start in range(0, piece.num_rows, size):
        batch = piece.slice(start, size)
        session.push(batch, watermark=batch[time][-1])
    seconds = perf_counter() - started
    known = session.estimates()
    return Stretch(
        piece[time][0].as_py(),
        piece[time][-1].as_py(),
        piece.num_rows / max(seconds, 1e-9),
        tuple(dict(known[branch].counts) if branch in known else {} for branch in session.plans),
        tuple(str(plan) if plan is not None else "" for plan in session.plans.values()),
    )
