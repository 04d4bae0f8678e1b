"""Charts over time as SVG, for a page that loads nothing. Colours are the page's: they fit light and dark."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape

WIDTH, HEIGHT = 760, 170
LEFT, RIGHT, TOP, BOTTOM = 64, 12, 12, 26


@dataclass(frozen=True, slots=True)
class Span:
    """A value that holds from a time to another, and what to say of it when the mouse points at it."""

    start: float
    end: float
    value: float
    hint: str = ""


def bars(spans: Sequence[Span], colour: str, when: Callable[[float], str], *, unit: str = "") -> str:
    """One bar for each span."""
    return _chart(spans, when, unit, lambda plot: "".join(_bar(plot, span, colour) for span in spans if span.value))


def steps(spans: Sequence[Span], colour: str, when: Callable[[float], str], *, unit: str = "") -> str:
    """An area under the values."""

    def area(plot: _Plot) -> str:
        points = [(plot.x(x), plot.y(span.value)) for span in spans for x in (span.start, span.end)]
        line = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
        floor = f"{points[-1][0]:.1f},{plot.y(0):.1f} {points[0][0]:.1f},{plot.y(0):.1f}"
        hints = "".join(_target(plot, span) for span in spans)
        return (
            f'<polygon points="{line} {floor}" fill="var({colour})" opacity=".25"/>'
            f'<polyline points="{line}" fill="none" stroke="var({colour})" stroke-width="1.5"/>{hints}'
        )

    return _chart(spans, when, unit, area)


def nice_ticks(most: float, count: int = 4) -> list[float]:
    """Round numbers from 0 on, the last of which is no smaller than ``most``.

    >>> nice_ticks(930)
    [0.0, 250.0, 500.0, 750.0, 1000.0]
    """
    if most <= 0:
        return [0.0, 1.0]
    raw = most / count
    scale = 10.0 ** math.floor(math.log10(raw))
    step = next(factor * scale for factor in (1, 2, 2.5, 5, 10) if factor * scale >= raw * (1 - 1e-9))
    return [place * step for place in range(math.ceil(most / step - 1e-9) + 1)]


def time_ticks(first: float, last: float) -> list[float]:
    """Four to nine round moments between two, in microseconds; whatever other unit there is, they are round too.

    >>> time_ticks(0, 7_200_000_000) == [minutes * 60e6 for minutes in (0, 20, 40, 60, 80, 100, 120)]
    True
    """
    wanted = max(last - first, 1) / 8
    steps = (1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1200, 1800, 3600, 7200, 10_800, 21_600, 43_200, 86_400)
    seconds = wanted / 1e6
    if 1 <= seconds <= 86_400:
        step = next(step for step in steps if step >= seconds) * 1e6
    else:
        scale = 10.0 ** math.floor(math.log10(wanted))
        step = next(factor * scale for factor in (1, 2, 5, 10) if factor * scale >= wanted)
    begin = math.ceil(first / step)
    return [place * step for place in range(begin, math.floor(last / step) + 1)] or [first]


def short(value: float) -> str:
    """A number for an axis.

    >>> [short(value) for value in (0, 0.25, 950, 12_500, 3_000_000, 2.5e9)]
    ['0', '0.25', '950', '12.5k', '3M', '2.5G']
    """
    for size, letter in ((1e9, "G"), (1e6, "M"), (1e4, "k")):
        if value >= size:
            return f"{value / (1e3 if letter == 'k' else size):.4g}{letter}"
    return f"{value:.4g}"


def clock(first: float, last: float) -> Callable[[float], str]:
    """Microseconds since 1970 as a time of day or, over several days, a date; always in UTC."""
    days = (last - first) / 86_400e6
    pattern = "%Y-%m-%d" if days > 5 else "%d %b %H:%M" if days > 0.9 else "%H:%M" if days > 0.01 else "%H:%M:%S"
    return lambda ticks: (dt.datetime(1970, 1, 1) + dt.timedelta(microseconds=ticks)).strftime(pattern)


@dataclass(frozen=True, slots=True)
class _Plot:
    first: float
    last: float
    top: float

    def x(self, when: float) -> float:
        return LEFT + (when - self.first) / max(self.last - self.first, 1e-9) * (WIDTH - LEFT - RIGHT)

    def y(self, value: float) -> float:
        return HEIGHT - BOTTOM - value / self.top * (HEIGHT - TOP - BOTTOM)


def _chart(spans: Sequence[Span], when: Callable[[float], str], unit: str, draw: Callable[[_Plot], str]) -> str:
    if not spans:
        return '<p class="note">Nothing to draw.</p>'
    ticks = nice_ticks(max(span.value for span in spans))
    plot = _Plot(spans[0].start, max(span.end for span in spans), ticks[-1])
    parts = []
    for tick in ticks:
        y = plot.y(tick)
        parts.append(f'<line x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y:.1f}" y2="{y:.1f}" class="grid"/>')
        label = short(tick) + (f" {unit}" if unit and tick == ticks[-1] else "")
        parts.append(f'<text x="{LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{escape(label)}</text>')
    for moment in time_ticks(plot.first, plot.last):
        x, label = plot.x(moment), when(moment)
        anchor = "start" if x < LEFT + 20 else "end" if x > WIDTH - RIGHT - 30 else "middle"
        parts.append(f'<text x="{x:.1f}" y="{HEIGHT - 6}" text-anchor="{anchor}">{escape(label)}</text>')
    return f'<svg class="chart" viewBox="0 0 {WIDTH} {HEIGHT}" role="img">{"".join(parts)}{draw(plot)}</svg>'


def _bar(plot: _Plot, span: Span, colour: str) -> str:
    left, right, top = plot.x(span.start), plot.x(span.end), plot.y(span.value)
    width = max(right - left - (1 if right - left > 4 else 0), 1)
    return (
        f'<rect x="{left:.1f}" y="{top:.1f}" width="{width:.1f}" height="{plot.y(0) - top:.1f}" '
        f'fill="var({colour})"><title>{escape(span.hint)}</title></rect>'
    )


def _target(plot: _Plot, span: Span) -> str:
    """Something to point at, over the whole height."""
    left, right = plot.x(span.start), plot.x(span.end)
    return (
        f'<rect x="{left:.1f}" y="{TOP}" width="{max(right - left, 1):.1f}" height="{HEIGHT - TOP - BOTTOM}" '
        f'fill="transparent"><title>{escape(span.hint)}</title></rect>'
    )
