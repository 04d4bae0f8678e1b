"""How do the messages grow with the nodes, the noise, the dimension and the window?

The paper's fixed and drift sets (figure 4.6), ε = 0.5. Each panel changes one thing and keeps the others: 10 nodes, 10
dimensions, σ = 10, window 1300. With the dimension the window stays, or is 130 times the dimension.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from benchmarks._monitor import MESSAGES, WAYS, compare, draw, legend_beside, models
from cepheid.cli.bench import Result, Steps, Value
from cepheid.monitor.streams import drift_set, fixed_set

if TYPE_CHECKING:
    from matplotlib.figure import Figure

EPSILON = 0.5


@dataclass(frozen=True)
class Case:
    changes: str
    value: int
    set: str
    nodes: int = 10
    dimension: int = 10
    sigma: float = 10.0
    window: int = 1300

    def __str__(self) -> str:
        return f"{self.changes} {self.value}, {self.set}"


def _cases(quick: bool) -> list[Case]:
    sets = ("fixed", "drift")
    nodes = (2, 10) if quick else (2, 5, 10, 20, 50, 100, 200, 500)
    noise = (5, 10) if quick else (1, 2, 5, 10, 20, 30)
    sizes = (5, 10) if quick else (2, 5, 10, 20, 30)
    windows = (650, 1300) if quick else (325, 650, 975, 1300, 1950, 2600)
    return [
        *(Case("nodes", k, name, nodes=k) for name in sets for k in nodes),
        *(Case("noise σ", s, name, sigma=float(s)) for name in sets for s in noise),
        *(Case("dimension, window 1300", m, "drift", dimension=m) for m in sizes),
        *(Case("dimension, window 130·m", m, "drift", dimension=m, window=130 * m) for m in sizes),
        *(Case("window", w, "fixed", window=w) for w in windows),
    ]


def run(quick: bool, progress: Steps) -> Result:
    ways = [way for way in WAYS if way.resolution != "balance"]
    rows: list[dict[str, Value]] = []
    for case in progress(_cases(quick)):
        options = {"nodes": case.nodes, "dimension": case.dimension, "sigma": case.sigma}
        epoch = 3 * case.window
        if case.set == "fixed":
            (x, y), skipped = fixed_set(case.window + epoch, **options), case.window  # type: ignore[arg-type]
        else:
            (x, y), skipped = drift_set(2, epoch, **options), epoch  # type: ignore[arg-type]
        beta = models(x, y, epsilon=EPSILON, window=case.window)
        found = compare(x, y, skipped, ways=ways, beta=beta, epsilon=EPSILON, window=case.window)
        rows += [{"changes": case.changes, "value": case.value, "set": case.set, **row} for row in found]
    return Result(rows)


def plot(result: Result, figure: Figure) -> None:
    figure.set_size_inches(11, 9)
    panels = figure.subplots(3, 2)
    shown = [
        ("nodes", "fixed"), ("nodes", "drift"), ("noise σ", "fixed"), ("noise σ", "drift"), ("dimension", "drift"),
        ("window", "fixed"),
    ]  # fmt: skip
    for axes, (changes, name) in zip(panels.flat, shown, strict=True):
        if changes == "dimension":
            draw(axes, result, "value", changes="dimension, window 1300", set=name)
            for line, way in zip(list(axes.lines), [w for w in WAYS if w.resolution != "balance"], strict=False):
                rows = result.where(changes="dimension, window 130·m", set=name, way=way.name)
                values = [float(row[MESSAGES] or 0) or float("nan") for row in rows]
                axes.plot(
                    [row["value"] for row in rows], values, ":", marker=way.style[0], ms=4, color=line.get_color()
                )
            axes.set_title("dimension, drift set (dotted: window 130·m)", fontsize=9)
        else:
            draw(axes, result, "value", changes=changes, set=name)
            axes.set_title(f"{changes}, {name} set", fontsize=9)
        axes.set_xlabel("")
        if changes == "nodes":
            axes.set_xscale("log")
    for axes in panels[:, 0]:
        axes.set_ylabel(MESSAGES, fontsize=8)
    legend_beside(figure, panels[0, 0])
