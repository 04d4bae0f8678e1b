"""What came of a run of a stream."""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from cepheid.local.writable import refuse_unwritable

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def check_plot(path: Path) -> None:
    """Before a run: fails if it could not be drawn to this file."""
    _refuse_without_matplotlib()
    from matplotlib.backend_bases import FigureCanvasBase

    kinds = FigureCanvasBase.get_supported_filetypes()
    if path.suffix.lower().removeprefix(".") not in kinds:
        raise ValueError(f"expected a name that ends in {', '.join(f'.{kind}' for kind in kinds)}; found {path.name!r}")
    refuse_unwritable(path)


def _refuse_without_matplotlib() -> None:
    if importlib.util.find_spec("matplotlib") is None:
        raise ModuleNotFoundError(
            "plots need matplotlib, which is not installed. Install it with: pip install '.[plot]', in a clone of "
            "Cepheid"
        )


@dataclass(frozen=True)
class StreamResult:
    """What came of a run. Latencies are in seconds; ``metrics`` has a row for each second of the run."""

    events: int
    """Events that came."""
    found: int
    """How many matches there were."""
    matches: pa.Table | None
    """The matches, if no sink took them."""
    late: int
    """Events that came behind the watermark, and were left out for it."""
    rejected: int
    """Lines that were no events, and were left out for it."""
    dropped_from_queue: int
    """Events that were left out before the engine saw them, as the last resort of shedding."""
    latency: Mapping[str, float | None]
    """``p50``, ``p99`` and ``max``."""
    seconds: float
    stopped: bool
    """Whether somebody stopped it before the source came to its end."""
    latency_bound: float | None
    metrics: pa.Table = field(repr=False)
    report: Mapping[str, Any] = field(repr=False)
    """What the session did: see :meth:`cepheid.Session.report`."""

    def plot(self, target: Figure | Path | str | None = None) -> Figure:
        """Rates, latency and what was dropped, over time: on a figure, into a file, or on a new figure.

        Needs matplotlib: ``pip install '.[plot]'``.
        """
        _refuse_without_matplotlib()
        from matplotlib.figure import Figure

        figure = target if isinstance(target, Figure) else Figure(figsize=(9, 7), layout="constrained")
        columns = {name: self.metrics[name].to_numpy() for name in self.metrics.column_names}
        seconds = columns["second"]
        rates, latency, drops = figure.subplots(3, 1, sharex=True)
        rates.plot(seconds, columns["events_in"], label="events in")
        rates.plot(seconds, columns["events_out"], label="events out", ls="--")
        rates.plot(seconds, columns["matches"], label="matches", lw=1)
        rates.set(ylabel="per second", ylim=(0, None))
        for name, style in (("p50", "-"), ("p99", "--"), ("max", ":")):
            latency.plot(seconds, columns[f"latency_{name}"], style, label=name)
        if self.latency_bound is not None:
            latency.axhline(self.latency_bound, color="black", lw=1, label="bound")
        latency.set(ylabel="latency (s)", ylim=(0, None))
        drops.plot(seconds, 100 * columns["ratio"], label="work to drop")
        came = columns["events_in"].clip(1)
        drops.plot(seconds, 100 * columns["dropped_from_queue"] / came, label="events left out of the queue", ls=":")
        if self.metrics["estimated_recall"].null_count < self.metrics.num_rows:
            drops.plot(seconds, 100 * columns["estimated_recall"], label="estimated recall", ls="--")
        drops.set(ylabel="%", ylim=(0, 102), xlabel="second")
        for axes in (rates, latency, drops):
            axes.legend(loc="upper left", fontsize="small")
            axes.grid(alpha=0.3)
        if isinstance(target, (str, Path)):
            figure.savefig(target, dpi=150)
        return figure
