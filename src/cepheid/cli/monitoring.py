"""``cepheid monitor``: a live view while it runs, a plot when it is done."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.text import Text

from cepheid.cli.files import FileError, check_drawing
from cepheid.language.problems import closest
from cepheid.monitor import AverageMonitor, LeastSquaresMonitor, Observations, Readings, ThresholdCrossed, read_readings
from cepheid.monitor.events import Time

PARTS = 400
"""The stream comes in so many parts; after each one the view changes and the plot has a point."""
TICKS = "▁▂▃▄▅▆▇█"
WIDTH = 60


@dataclass(frozen=True)
class Watched:
    """A file of observations, and which of its columns are what."""

    table: pa.Table
    node: str
    response: str
    features: Sequence[str] | None
    time: str
    intercept: bool

    def observations(self) -> tuple[Observations, list[Any], list[str]]:
        """With the names of the nodes and of the coefficients."""
        names = self.table.column_names
        for wanted in (self.node, self.response, *(self.features or ())):
            if wanted not in names:
                hint = closest(wanted, names)
                raise FileError(
                    f"there is no column {wanted!r}; there are: {', '.join(names)}."
                    + (f" Hint: {hint}" if hint else "")
                )
        features = self.features or [name for name in names if name not in (self.node, self.response, self.time)]
        if not features and not self.intercept:
            raise FileError(f"there is no column to predict {self.response!r} from; or a constant: --intercept")
        nodes = pc.unique(self.table[self.node]).sort().to_pylist()
        table = self.table
        if self.intercept:
            table = table.append_column("constant", pa.array(np.ones(len(table))))
            features = [*features, "constant"]
        time = self.time if self.time in names else None
        found = Observations.table(
            table, node=self.node, response=self.response, features=features, time=time, names=nodes
        )
        return found, nodes, list(features)


@dataclass
class History:
    """What the plot shows: a value in each part, a limit, and when something changed."""

    label: str
    limit: float
    limit_label: str
    at: list[int] = field(default_factory=list)
    value: list[float] = field(default_factory=list)
    messages: list[int] = field(default_factory=list)
    changes: list[int] = field(default_factory=list)

    def line(self) -> str:
        """The value over time as a line of text; full height is the limit, or the largest value above it."""
        if not self.value:
            return ""
        step = max(1, math.ceil(len(self.value) / WIDTH))
        highest = [
            max(self.value[i : i + step], key=lambda v: -1 if math.isnan(v) else v)
            for i in range(0, len(self.value), step)
        ]
        top = max([self.limit, 1e-300, *(v for v in highest if not math.isnan(v))])
        return "".join(" " if math.isnan(v) else TICKS[min(7, int(8 * max(v, 0) / top))] for v in highest)


def run_model(
    watched: Watched,
    plot: Path | None,
    out: Console,
    err: Console,
    epsilon: float,
    window: int | None,
    ridge: float,
    ar1: float | None,
    zone: Any,
    resolution: Any,
) -> None:
    check_drawing("--plot", plot)
    observations, nodes, names = watched.observations()
    size = observations.x.shape[1]
    monitor = LeastSquaresMonitor(
        len(nodes), size, epsilon, window=window, ridge=ridge, ar1=ar1, zone=zone, resolution=resolution
    )
    history = History("‖β − β₀‖", epsilon, f"ε = {epsilon:g}")
    said: list[str] = []
    with Live(console=err, refresh_per_second=8, transient=True) as live:
        for start, stop in _parts(observations.step):
            part = slice(start, stop)
            for event in monitor.run(
                Observations(
                    observations.node[part], observations.x[part], observations.y[part],
                    None if observations.time is None else observations.time[part],
                )
            ):  # fmt: skip
                if event.type == "ModelWaiting":
                    said.append(f"{_when(event.time)}: no model: {event.reason}")  # type: ignore[union-attr]
                elif event.type in ("ModelStart", "ModelDrift"):
                    history.changes.append(stop)
                    said.append(f"{_when(event.time)}: {'first' if event.type == 'ModelStart' else 'new'} model")
            present = monitor.present()
            close = monitor.model is not None and present is not None
            history.at.append(stop)
            history.value.append(float(np.linalg.norm(present - monitor.model)) if close else math.nan)  # type: ignore[operator]
            history.messages.append(monitor.messages)
            live.update(_view(stop, len(observations.node), history, said, monitor.messages, _model(monitor, names)))
    for line in said:
        if "no model" in line:
            err.print(line, markup=False)
            break
    if monitor.model is None:
        out.print("at the end there is no model in force")
    else:
        out.print(_model(monitor, names), markup=False)
    errors = [value for value in history.value if not math.isnan(value)]
    out.print(f"{history.label} over time, up to {history.limit_label}: |{history.line()}|", markup=False)
    if errors:
        out.print(f"largest at the {len(errors)} moments that were looked at: {max(errors):.3g}")
    counts = ", ".join(f"{count:,} {kind}s" for kind, count in sorted(monitor.sent.items()))
    out.print(
        f"{len(observations.node):,} observations of {len(nodes)} nodes, {len(history.changes):,} models, "
        f"{monitor.messages:,} messages ({counts})"
    )
    out.print(f"{monitor.messages_per_observation:.4f} messages per observation since the first model")
    _draw(plot, history, "model", out)


def run_average(file: Path, threshold: float, plot: Path | None, out: Console, err: Console) -> None:
    check_drawing("--plot", plot)
    try:
        table = read_readings(file).sort_by("ts")
    except FileNotFoundError:
        raise FileError(f"{file}: there is no such file") from None
    readings = Readings.table(table)
    nodes = int(readings.node.max()) + 1 if len(readings.node) else 1
    monitor = AverageMonitor(nodes, threshold)
    history = History("average", threshold, f"threshold {threshold:g}")
    said: list[str] = []
    assert readings.time is not None
    steps = np.append(0, np.cumsum(readings.time[1:] != readings.time[:-1]))
    with Live(console=err, refresh_per_second=8, transient=True) as live:
        for start, stop in _parts(steps):
            part = slice(start, stop)
            for event in monitor.run(Readings(readings.node[part], readings.value[part], readings.time[part])):
                if isinstance(event, ThresholdCrossed):
                    side = "below" if event.below else "no longer below"
                    said.append(f"{_when(event.time)}: the average is {event.average:.4g}, {side} {threshold:g}")
                    history.changes.append(stop)
            history.at.append(stop)
            history.value.append(monitor.average)
            history.messages.append(monitor.messages)
            live.update(_view(stop, len(readings.node), history, said, monitor.messages, ""))
    for line in said:
        out.print(line, markup=False)
    if monitor.below is None:
        out.print("not every sensor has had a reading")
    out.print(f"{history.label} over time ({history.limit_label}): |{history.line()}|", markup=False)
    counts = ", ".join(f"{count:,} {kind}s" for kind, count in sorted(monitor.sent.items()))
    out.print(f"{monitor.readings:,} readings of {nodes} sensors, {monitor.messages:,} messages ({counts})")
    _draw(plot, history, "crossing", out)


def _parts(step: Any) -> list[tuple[int, int]]:
    """Where parts start and stop: about equally large, and never within a moment."""
    ends = np.append(np.flatnonzero(np.diff(step)) + 1, len(step))
    chosen: list[int] = (
        ends[np.unique(np.linspace(0, len(ends) - 1, PARTS).astype(np.int64))].tolist() if len(step) else []
    )
    return list(zip([0, *chosen[:-1]], chosen, strict=True))


def _view(done: int, total: int, history: History, said: list[str], messages: int, model: str) -> RenderableType:
    lines = [
        f"{done:,} of {total:,}   messages {messages:,}   {messages / max(done, 1):.4f} for each",
        f"{history.label} ({history.limit_label})  |{history.line()}|",
        *([model] if model else []),
        *said[-5:],
    ]
    return Group(ProgressBar(total=total, completed=done, width=WIDTH), *(Text(line) for line in lines))


def _model(monitor: LeastSquaresMonitor, names: list[str]) -> str:
    if monitor.model is None:
        return "no model yet"
    return "model in force: " + ", ".join(
        f"{name} {value:.4g}" for name, value in zip(names, monitor.model, strict=True)
    )


def _when(time: Time) -> str:
    return str(time)


def _draw(path: Path | None, history: History, change: str, out: Console) -> None:
    """The value with its limit, when it changed, and below it the messages so far."""
    if path is None:
        return
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 5.5), layout="constrained")
    upper, lower = figure.subplots(2, 1, sharex=True, height_ratios=[3, 1])
    upper.plot(history.at, history.value, color="#0072B2", lw=1, label=history.label)
    upper.axhline(history.limit, color="0.3", ls="--", lw=1, label=history.limit_label)
    for number, at in enumerate(history.changes):
        upper.axvline(at, color="#D55E00", lw=0.8, alpha=0.5, label=change if number == 0 else None)
    highest = max([history.limit, *(value for value in history.value if not math.isnan(value))])
    upper.set_ylim(0, 1.15 * highest)
    upper.legend(frameon=False, loc="upper left", ncols=3)
    lower.plot(history.at, history.messages, color="#009E73", lw=1)
    lower.set(xlabel="observations so far", ylabel="messages")
    for axes in (upper, lower):
        axes.grid(alpha=0.3)
        axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, dpi=150)
    out.print(f"drawn to {path}", markup=False)
