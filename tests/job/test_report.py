"""The page: all of it in one file, nothing of a user's data as HTML."""

from __future__ import annotations

import datetime as dt
import io
import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import pytest
from rich.console import Console

import cepheid
from cepheid.job import parse_job
from cepheid.job.engine_options import EngineOptions
from cepheid.job.outcome import MicroBatch, Outcome, Timeline
from cepheid.job.progress import line_of, show_summary
from cepheid.job.report import page, write_report

START = dt.datetime(2024, 5, 17, 8, tzinfo=dt.timezone.utc)
EVIL = "<script>alert('x')</script>"
EVENTS = [{"ts": 1, "type": "A", "x": 1}, {"ts": 2, "type": "B", "x": 2}]


@pytest.fixture
def outcome(patterns: Path) -> Outcome:
    job = parse_job(
        f'{{name: "{EVIL}", source: {{format: parquet, path: ., options: {{password: s3cret99}}}}, '
        "patterns: rules.cep, sink: {format: none}}",
        folder=patterns.parent,
    )
    pattern = cepheid.parse("NAME up PATTERN SEQ(A a, B b) WHERE a.x < b.x WITHIN 5")
    first = [
        {"pattern": "up", "start": START, "end": START, "note": EVIL, "n": 3, "share": 0.5, "odd": None},
        {"pattern": "up", "start": START, "end": START, "note": "&", "n": 4, "share": 12.25, "odd": None},
    ]
    timeline = Timeline(1_715_932_800_000_000, 60_000_000, True, (5, 0, 7), (0, 0, 2))
    explanation = cepheid.explain([pattern], EVENTS)
    return Outcome(
        job, [pattern], START, 2.0, 1000, 2, {"up": 2}, first, timeline=timeline, explanation=explanation,
        explanation_note="All of them.", where="/data/out", versions={"spark": "4"},
    )  # fmt: skip


class Tags(HTMLParser):
    """Collects tags, and sees that they are closed."""

    VOID = frozenset({"meta", "br", "line", "rect", "path", "polygon", "polyline"})

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[str] = []
        self.open: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append(tag)
        if tag not in self.VOID or (tag == "rect" and not (self.get_starttag_text() or "").endswith("/>")):
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def tags_of(html: str) -> list[str]:
    parser = Tags()
    parser.feed(html)
    assert parser.open == []
    return parser.seen


def test_what_is_on_it(outcome: Outcome) -> None:
    html = page(outcome)
    for text in (
        "1,000",
        "500",
        "First matches",
        "Over time",
        "Funnel",
        "Plan",
        "All of them.",
        "/data/out",
        "Spark 4",
    ):
        assert text in html
    assert ">12.25<" in html
    assert ">0.50<" in html  # as many decimals as the others
    assert '<th class="">odd</th>' not in html  # nothing is in this column
    assert "svg" in tags_of(html)


def test_it_loads_nothing(outcome: Outcome) -> None:
    html = page(outcome)
    assert set(re.findall(r"https?://[^\"' )]+", html)) <= {"http://www.w3.org/2000/svg"}
    assert not {"script", "link", "img", "iframe"} & set(tags_of(html))
    assert "@import" not in html
    assert "url(" not in html


def test_data_is_not_html(outcome: Outcome) -> None:
    html = page(outcome)
    assert EVIL not in html
    assert html.count("&lt;script&gt;alert(&#x27;x&#x27;)") >= 3  # the title, the heading and the match


def test_secrets_are_hidden(outcome: Outcome) -> None:
    assert "s3cret99" not in page(outcome)
    assert "(hidden)" in page(outcome)


def test_light_and_dark(outcome: Outcome) -> None:
    assert "prefers-color-scheme: dark" in page(outcome)


def test_a_stream(outcome: Outcome) -> None:
    batches = [
        MicroBatch(n, START + dt.timedelta(seconds=n), 0.5, 100 * n, n, {"up": n}, behind=9 - n, behind_unit="files", state_bytes=10**6)
        for n in range(5)
    ]  # fmt: skip
    html = page(replace(outcome, batches=batches, timeline=None, stopped=True, late=4))
    for text in ("Events in a second", "Megabytes of state", "Not read yet (files)", "late events", "stopped"):
        assert text in html
    tags_of(html)


def test_a_stream_that_dropped_work(outcome: Outcome) -> None:
    shed = {"strategy": "cost", "latency_bound": "2 seconds"}
    job = outcome.job.model_copy(update={"engine": EngineOptions.model_validate({"shed": shed})})
    batches = [MicroBatch(n, START, 0.5, 100, 10, dropping=n / 4, lost=n, overhead=0.9) for n in range(3)]
    dropped = replace(outcome, job=job, batches=batches, timeline=None, matches=30, lost=10)
    html = page(dropped)
    assert "Per cent of the work that was dropped" in html
    assert "matches lost to overload" in html
    text = io.StringIO()
    show_summary(dropped, Console(file=text, width=200))
    assert "work was dropped in 2 micro-batches; recall about 75.0 %" in text.getvalue()
    assert "the latency bound of 2 s cannot be kept: a micro-batch takes 0.9 s" in text.getvalue()
    assert "drops 25 %" in line_of(batches[1], 100, 10, 0, START)


@pytest.mark.parametrize("count", [1, 2])
def test_little_to_draw(outcome: Outcome, count: int) -> None:
    batches = [MicroBatch(n, START, 0.0, 0, 0) for n in range(count)]
    timeline = Timeline(0, 1, False, (0,) * count, (0,) * count)
    tags_of(page(replace(outcome, batches=batches, timeline=timeline, explanation=None, first=(), matches=0)))


def test_folders_are_made(outcome: Outcome, tmp_path: Path) -> None:
    write_report(outcome, tmp_path / "a" / "b.html")
    assert (tmp_path / "a" / "b.html").read_text(encoding="utf-8").startswith("<!doctype html>")
