"""``cepheid explain`` and ``cepheid why``: what a pattern does, and why it finds nothing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
from rich.console import Console

from cepheid.cli.files import check_drawing, check_output
from cepheid.language.pattern import Pattern
from cepheid.local.explain.explain import explain
from cepheid.local.explain.timeline import timeline
from cepheid.local.why.why import why


def run_explain(
    patterns: list[Pattern],
    events: pa.Table | None,
    columns: dict[str, Any],
    planner: str,
    share: str | None,
    svg: Path | None,
    out: Console,
) -> None:
    """Print the plans; with ``svg``, draw them into a file too."""
    check_output("--svg", svg, (".svg",))
    explanation = explain(patterns, events, planner=planner, share=share, **columns)
    out.print(str(explanation), markup=False)
    if svg is not None:
        explanation.save(svg)
        out.print(f"drawn to {svg}", markup=False)


def run_timeline(
    patterns: list[Pattern],
    events: pa.Table,
    columns: dict[str, Any],
    planner: str,
    share: str | None,
    follow: dict[str, Any],
    path: Path,
    out: Console,
) -> None:
    """Run the patterns with plans that follow the data; print the changes, draw how it went."""
    check_drawing("--timeline", path)
    found = timeline(patterns, events, planner=planner, share=share, **follow, **columns)
    found.save(path)
    out.print(f"{found}\ndrawn to {path}", markup=False)


def run_why(patterns: list[Pattern], events: pa.Table, columns: dict[str, Any], out: Console) -> None:
    out.print(str(why(patterns, events, **columns)), markup=False)
