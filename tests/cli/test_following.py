"""Plans that follow the data, on the command line."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest
from typer.testing import CliRunner, Result

from cepheid.adapt.policies import DEFAULT, Threshold
from cepheid.cli.main import app
from cepheid.local.match import match


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    patterns, events = tmp_path / "rules.cep", tmp_path / "events.parquet"
    patterns.write_text("PATTERN SEQ(A a, B b, C c) WHERE a.x < b.x AND b.x < c.x WITHIN 100", encoding="utf-8")
    rng = np.random.default_rng(0)
    table = pa.table({"ts": range(2000), "type": rng.choice(list("ABC"), 2000), "x": rng.random(2000)})
    pa.parquet.write_table(table, events)
    return patterns, events


def run(command: str, files: tuple[Path, Path], *arguments: object) -> Result:
    return CliRunner().invoke(app, [command, "-p", *map(str, files), *map(str, arguments)])


def test_match(files: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[dict[str, Any]] = []

    def watched(*arguments: Any, **options: Any) -> pa.Table:
        given.append(options)
        return match(*arguments, **options)

    monkeypatch.setattr("cepheid.cli.matching.match", watched)
    results = [run("match", files), run("match", files, "--adapt", "threshold:0.1", "--check-every", 300)]
    results.append(run("match", files, "--adapt", "true", "--migrate", "parallel"))
    assert [result.exit_code for result in results] == [0, 0, 0]
    assert len({result.stdout.rsplit(" events, ")[0] for result in results}) == 1, "the same matches"
    names = ("adapt", "check_every", "migrate")
    told = [{name: options[name] for name in names if name in options} for options in given]
    assert told == [{}, {"adapt": Threshold(0.1), "check_every": 300}, {"adapt": DEFAULT, "migrate": "parallel"}]


def test_stream(files: tuple[Path, Path]) -> None:
    result = run("stream", files, "--adapt", "unconditional", "--check-every", "500 events")
    assert result.exit_code == 0, result.output
    assert re.search("[1-4] looks at the statistics, [0-9] changes of plan", result.stdout)
    assert "looks at the statistics" not in run("stream", files, "--adapt", "static").stdout
    assert "looks at the statistics" not in run("stream", files).stdout


def test_timeline(files: tuple[Path, Path], tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    drawing = ["--timeline", tmp_path / "timeline.svg"]
    result = run("explain", files, *drawing, "--adapt", "unconditional", "--check-every", 400)
    assert result.exit_code == 0, result.output
    assert re.search("[1-5] looks at the statistics", result.stdout)
    assert "the plan was to stay as it is" in run("explain", files, *drawing, "--adapt", "static").stdout
    result = run("explain", files, "--adapt", "true")
    assert result.exit_code == 2
    assert "--check-every and --migrate are for --timeline" in result.stderr


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--adapt", "treshold"], "--adapt: one of static, true, unconditional, threshold, invariant, .*'threshold'"),
        (["--adapt", "threshold 0"], "--adapt: a threshold is a relative change above 0"),
        (
            ["--adapt", "true", "--check-every", "often"],
            "--check-every: check_every is 1 event or more, .*; got 'often'",
        ),
        (["--adapt", "true", "--check-every", "0"], "--check-every: .*; got 0"),
        (["--adapt", "true", "--migrate", "swap"], "--migrate: migrate is 'rebuild' or 'parallel'; got 'swap'"),
        (["--check-every", "5"], "--check-every is for plans that follow the data: .*--adapt true"),
        (["--migrate", "parallel"], "--migrate is for plans that follow the data"),
    ],
)
def test_mistakes(files: tuple[Path, Path], options: list[str], said: str) -> None:
    for command in ("match", "stream"):
        result = run(command, files, *options)
        assert result.exit_code == 2, result.output
        assert re.search(said, result.stderr), result.stderr
        assert "Traceback" not in result.stderr
