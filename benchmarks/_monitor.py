"""Runs the monitor with both zones and all ways to resolve violations, and PER(T) with the best T in hindsight.

After M. Gabel, D. Keren, A. Schuster: Monitoring least squares models of distributed streams (KDD 2015). Normalised
messages are those per node and round; sending every observation would be 1. Each message counts, each way: reports,
polls, answers, and models to every node. PER(T) counts 1/T, as in the paper: what a node sends, not what it is sent.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet

from cepheid.cli.bench import Result, Value
from cepheid.monitor import LeastSquaresMonitor
from cepheid.monitor.baselines import best_period, exact_models, trace
from cepheid.monitor.kernels import Floats

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MESSAGES, ERROR = "messages per node and round", "largest error"


@dataclass(frozen=True)
class Way:
    name: str
    zone: str
    resolution: str
    style: str


WAYS = (
    Way("paper's zone, all polled", "paper", "poll", "o-"),
    Way("residual zone, all polled", "residual", "poll", "s-"),
    Way("residual zone, balanced", "residual", "balance", "v-"),
    Way("residual zone, pooled", "residual", "pool", "D-"),
)
PERIODIC = {"PER, as exact as the paper's zone": "x--", "PER, within ε": "+--"}


def compare(
    x: Floats, y: Floats, skipped: int, *, ways: Sequence[Way] = WAYS, beta: Floats | None = None, **options: Any
) -> list[dict[str, Value]]:
    """A row for each way, and with ``beta``, the model of every round, for PER."""
    rounds, nodes, size = x.shape
    rows: list[dict[str, Value]] = []
    for way in ways:
        monitor = LeastSquaresMonitor(nodes, size, zone=way.zone, resolution=way.resolution, **options)  # type: ignore[arg-type]
        if beta is None:
            sent = [event.messages for event in monitor.run((x, y)) if int(event.time) < skipped]  # type: ignore[arg-type]
            messages = (monitor.messages - (sent[-1] if sent else 0)) / (nodes * (rounds - skipped))
            rows.append({"way": way.name, MESSAGES: messages, ERROR: None})
        else:
            found = trace(monitor, x, y, beta)
            rows.append({"way": way.name, MESSAGES: found.normalised(skipped), ERROR: found.largest_error(skipped)})
    if beta is not None:
        reached = float(rows[0][ERROR] or 0)
        for name, largest in zip(PERIODIC, (reached, options["epsilon"]), strict=True):
            period = best_period(beta[skipped:], largest)
            rows.append({"way": name, MESSAGES: 1 / period, ERROR: largest})
    return rows


def models(x: Floats, y: Floats, **options: Any) -> Floats:
    """The model of every round."""
    nodes, size = x.shape[1:]
    return exact_models(LeastSquaresMonitor(nodes, size, **options).settings, x, y)


def draw(axes: Axes, result: Result, against: str, **wanted: Value) -> None:
    """A line for each way. A logarithmic scale has no place for no messages at all: such points are left out."""
    styles = {way.name: way.style for way in WAYS} | PERIODIC
    for name, style in styles.items():
        rows = result.where(way=name, **wanted)
        if rows:
            values = [float(row[MESSAGES] or 0) or np.nan for row in rows]
            axes.plot([float(row[against] or 0) for row in rows], values, style, label=name, ms=4)
    axes.set(yscale="log", xlabel=against)


def legend_beside(figure: Figure, axes: Axes) -> None:
    handles, labels = axes.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside right center", fontsize=8)


def data_file(name: str) -> tuple[pa.Table | None, str]:
    """A file of real data; or nothing, and the reason."""
    default = Path(__file__).parents[2] / "shared" / "data"
    path = Path(os.environ.get("CEPHEID_DATA", default)) / name
    if not path.is_file():
        return None, f"on made-up data: there is no {name} in the folder that CEPHEID_DATA names"
    return pa.parquet.read_table(path), ""
