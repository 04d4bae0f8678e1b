"""What came of a job as one page: it loads nothing, and shows no secret."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from html import escape
from importlib.resources import files
from pathlib import Path
from string import Template
from typing import Any

import yaml

from cepheid.job import charts
from cepheid.job.cells import by_pattern, column, is_number
from cepheid.job.charts import Span
from cepheid.job.environment import hidden
from cepheid.job.funnel import Line, funnel_of
from cepheid.job.outcome import MicroBatch, Outcome, Timeline
from cepheid.local.explain.explain import Explanation
from cepheid.local.explain.plan_nodes import number
from cepheid.local.writable import refuse_unwritable, refuse_unwritable_folder

EVENTS, MATCHES, OTHER = "--events", "--matches", "--other"
"""Colours of the page."""


def check_report(path: Path) -> None:
    """Before the run, not after it: fails if the page could not be written there. Folders may still have to be made."""
    refuse_unwritable_folder(path.parent)
    if path.parent.is_dir():
        refuse_unwritable(path)


def write_report(outcome: Outcome, path: Path) -> None:
    """Write the page, and the folders on the way to it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(page(outcome), encoding="utf-8")


def page(outcome: Outcome) -> str:
    template = Template(files("cepheid.job").joinpath("report.html").read_text(encoding="utf-8"))
    job = outcome.job
    versions = ", ".join(f"{name.capitalize()} {version}" for name, version in outcome.versions.items())
    return template.substitute(
        title=escape(f"{job.name}: {outcome.matches:,} matches"),
        name=escape(job.name),
        mode=job.mode,
        badge="".join(f' <span class="badge stopped">{escape(word)}</span>' for word in _ends(outcome)),
        about=escape(_about(outcome)),
        figures="".join(
            f"<div><b>{escape(value)}</b><span>{escape(name)}</span></div>" for name, value in _figures(outcome)
        ),
        sections="\n".join(_sections(outcome)),
        footer=escape(versions),
    )


def _ends(outcome: Outcome) -> Iterator[str]:
    """How it ended, if not by itself."""
    if outcome.failed is not None:
        yield "failed"
    if outcome.stopped:
        yield "stopped"


def _about(outcome: Outcome) -> str:
    started = outcome.started.astimezone(dt.timezone.utc).strftime("%d %B %Y, %H:%M:%S UTC").lstrip("0")
    where = "" if outcome.where is None else f" Matches are in {outcome.where}."
    return " ".join([f"Started {started}.{where}", *outcome.notes])


def _figures(outcome: Outcome) -> Iterator[tuple[str, str]]:
    yield "matches", f"{outcome.matches:,}"
    yield "events", f"{outcome.events:,}"
    yield "events in a second", f"{outcome.rate:,.0f}"
    yield "seconds", f"{outcome.seconds:,.1f}"
    if outcome.batches:
        last = outcome.batches[-1]
        yield "micro-batches", f"{last.number - outcome.batches[0].number + 1:,}"
        yield "MB of state at the end", f"{last.state_bytes / 1e6:,.1f}"
    if any(batch.dropping for batch in outcome.batches):
        yield "matches lost to overload, as estimated", f"{outcome.lost:,}"
    if outcome.late:
        yield "late events", f"{outcome.late:,}"


def _sections(outcome: Outcome) -> Iterator[str]:
    if outcome.failed is not None:
        yield _section("Why it failed", f"<pre>{escape(outcome.failed)}</pre>", "All else is what is known until then.")
    if len(outcome.patterns) > 1 or outcome.matches == 0:
        yield _section("Patterns", _counts(outcome))
    yield _section("First matches", _first(outcome), outcome.first_note)
    if outcome.timeline is not None:
        yield _section(
            "Over time", "".join(_by_event_time(outcome.timeline)), "By the time that the events carry, in UTC."
        )
    if outcome.batches:
        yield _section("Over time", "".join(_by_batch(outcome.batches)), "By the clock while the stream ran, in UTC.")
    if outcome.explanation is not None:
        if outcome.explanation.events is not None:
            note = f"{outcome.explanation_note} Bars are on a logarithmic scale; ~ is what was expected."
            yield _section("Funnel", _funnel(outcome.explanation), note)
        yield _section("Plan", f'<div class="plan">{outcome.explanation.to_svg()}</div>', outcome.explanation_note)
    yield _section("Job", _job(outcome))


def _section(title: str, body: str, note: str = "") -> str:
    said = f'<p class="note">{escape(note)}</p>' if note else ""
    return f"<section><h2>{escape(title)}</h2>{said}{body}</section>"


# --- tables


def _table(heads: Sequence[tuple[str, str]], rows: Iterable[Iterable[tuple[str, str]]], kind: str = "") -> str:
    """Cells are texts with the class that they have; they are escaped here."""
    head = "".join(f'<th class="{c}">{escape(text)}</th>' for text, c in heads)
    body = "".join(
        "<tr>" + "".join(f'<td class="{c}">{escape(text)}</td>' for text, c in row) + "</tr>" for row in rows
    )
    return f'<div class="wide"><table class="{kind}"><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'


def _counts(outcome: Outcome) -> str:
    names = [pattern.name or "" for pattern in outcome.patterns]
    known = bool(outcome.matches_of) or not outcome.matches
    rows = [[(name, ""), (f"{outcome.matches_of.get(name, 0):,}" if known else "", "number")] for name in names]
    return _table([("pattern", ""), ("matches", "number")], rows)


def _first(outcome: Outcome) -> str:
    if not outcome.first and (outcome.matches or outcome.failed is not None):
        return '<p class="note">There is none to show.</p>'
    if not outcome.first:
        return '<p class="note">There is no match. cepheid why says where events dry up.</p>'
    parts = []
    for name, (columns, rows) in by_pattern(outcome.first).items():
        parts.append(f"<h3>{escape(name)}</h3>" if len(outcome.patterns) > 1 else "")
        kinds = {c: _class([row.get(c) for row in rows]) for c in columns}
        cells = [[(text, kinds[c]) for text in column([row.get(c) for row in rows])] for c in columns]
        heads = [(c, "number" if kinds[c] == "number" else "") for c in columns]
        parts.append(_table(heads, zip(*cells, strict=True)))
    return "".join(parts)


def _class(values: Sequence[Any]) -> str:
    present = [value for value in values if value is not None]
    if all(map(is_number, present)):
        return "number"
    return "time" if all(isinstance(value, dt.datetime) for value in present) else ""


# --- charts


def _by_event_time(timeline: Timeline) -> Iterator[str]:
    last = timeline.start(len(timeline.events))
    when = charts.clock(timeline.first, last) if timeline.moments else charts.short
    for title, counts, colour in (("Events", timeline.events, EVENTS), ("Matches", timeline.matches, MATCHES)):
        spans = [
            Span(timeline.start(place), timeline.start(place + 1), count, f"{when(timeline.start(place))}: {count:,}")
            for place, count in enumerate(counts)
        ]
        yield f"<h3>{title}{_each(timeline)}</h3>{charts.bars(spans, colour, when)}"


def _each(timeline: Timeline) -> str:
    if not timeline.moments:
        return f" in each {timeline.width:,}"
    seconds = timeline.width / 1e6
    for size, word in ((86_400, "day"), (3600, "hour"), (60, "minute"), (1, "second")):
        if seconds >= size:
            count = f"{seconds / size:g} " if seconds != size else ""
            return f" in {'each' if not count else 'every'} {count}{word}{'s' if count else ''}"
    return f" in every {timeline.width:,} µs"


def _by_batch(batches: Sequence[MicroBatch]) -> Iterator[str]:
    starts = [batch.at.timestamp() * 1e6 for batch in batches]
    ends = [*starts[1:], starts[-1] + batches[-1].seconds * 1e6]
    when = charts.clock(starts[0], ends[-1])

    def spans(values: Sequence[float], unit: str, *, busy: bool = False) -> list[Span]:
        """``busy``: only as long as the micro-batch took."""
        until = [min(e, s + b.seconds * 1e6) for s, e, b in zip(starts, ends, batches, strict=True)] if busy else ends
        return [
            Span(s, max(e, s + 1), v, f"micro-batch {b.number}, {when(s)}: {_measure(v)} {unit}")
            for s, e, v, b in zip(starts, until, values, batches, strict=True)
        ]

    rates = spans([b.rate for b in batches], "events/s", busy=True)
    yield f"<h3>Events in a second</h3>{charts.bars(rates, EVENTS, when)}"
    matches = spans([b.matches for b in batches], "matches", busy=True)
    yield f"<h3>Matches of each micro-batch</h3>{charts.bars(matches, MATCHES, when)}"
    took = spans([b.seconds for b in batches], "s", busy=True)
    yield f"<h3>Seconds that a micro-batch took</h3>{charts.bars(took, OTHER, when)}"
    if any(b.dropping for b in batches):
        dropped = spans([100 * b.dropping for b in batches], "%")
        yield f"<h3>Per cent of the work that was dropped</h3>{charts.steps(dropped, OTHER, when)}"
    if any(b.state_bytes for b in batches):
        size = spans([b.state_bytes / 1e6 for b in batches], "MB")
        yield f"<h3>Megabytes of state</h3>{charts.steps(size, OTHER, when)}"
    if any(b.behind for b in batches):
        behind = spans([float(b.behind or 0) for b in batches], batches[-1].behind_unit)
        yield f"<h3>Not read yet ({escape(batches[-1].behind_unit)})</h3>{charts.steps(behind, EVENTS, when)}"


def _measure(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 or value == int(value) else f"{value:.3g}"


# --- the plan


def _funnel(explanation: Explanation) -> str:
    return "".join(
        (f"<h3>{escape(pattern.name)}</h3>" if len(explanation.patterns) > 1 else "") + _bars(list(funnel_of(pattern)))
        for pattern in explanation.patterns
    )


def _bars(lines: Sequence[Line]) -> str:
    most = math.log1p(max((line.found or 0 for line in lines), default=0)) or 1.0
    rows = []
    for line in lines:
        share = 0.0 if line.found is None else 100 * math.log1p(line.found) / most
        bar = f'<i style="width: {share:.1f}%"></i>' if line.found else ""
        surprise = f' class="number surprise" title="{escape(line.surprise)}"' if line.surprise else ' class="number"'
        expected = "" if line.expected is None else f"~{number(line.expected)}"
        rows.append(
            f'<tr class="{"head" if line.head else "step"} {line.kind}"><td>{escape(line.text)}</td>'
            f'<td class="number">{escape(expected)}</td><td{surprise}>{number(line.found)}</td>'
            f'<td class="bar">{bar}</td></tr>'
        )
    return f'<div class="wide"><table class="funnel"><tbody>{"".join(rows)}</tbody></table></div>'


def _job(outcome: Outcome) -> str:
    said = hidden(outcome.job.model_dump(mode="json", by_alias=True, exclude_unset=True, exclude={"folder"}))
    described = yaml.safe_dump(_plain(said), sort_keys=False, allow_unicode=True)
    patterns = ";\n\n".join(
        (f"NAME {p.name}\n" if not str(p).startswith("NAME") else "") + str(p) for p in outcome.patterns
    )
    return (
        f"<details><summary>Description</summary><pre>{escape(described)}</pre></details>"
        f"<details><summary>Patterns</summary><pre>{escape(patterns)}</pre></details>"
    )


def _plain(value: Any) -> Any:
    """Only what YAML has."""
    match value:
        case Mapping():
            return {str(key): _plain(item) for key, item in value.items()}
        case list() | tuple():
            return [_plain(item) for item in value]
        case None | bool() | int() | float() | str():
            return value
    return str(value)
