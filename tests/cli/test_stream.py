"""``cepheid stream``, as a user runs it."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.dataset
import pyarrow.parquet
import pytest
from typer.testing import CliRunner, Result

from cepheid.cli.main import app

EVENTS = pa.table({"ts": range(500), "type": ["A", "B"] * 250, "x": [n % 7 for n in range(500)]})


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    patterns = tmp_path / "rules.cep"
    patterns.write_text("NAME up PATTERN SEQ(A a, B b) WHERE a.x < b.x WITHIN 1 RETURN a.x AS x", encoding="utf-8")
    events = tmp_path / "events.parquet"
    pa.parquet.write_table(EVENTS, events)
    return patterns, events


def run(*arguments: object) -> Result:
    return CliRunner().invoke(app, ["stream", *(str(a) for a in arguments)])


def test_a_file(files: tuple[Path, Path], tmp_path: Path) -> None:
    patterns, events = files
    result = run("-p", patterns, events)
    assert result.exit_code == 0, result.output
    assert "matches in 500 events" in result.stdout
    assert "latency: p50" in result.stdout
    assert '{"pattern": "up", "start": 0, "end": 1, "x": 0}' in result.stdout
    assert result.stdout.count('"pattern"') == 20


def test_outputs(files: tuple[Path, Path], tmp_path: Path) -> None:
    patterns, events = files
    folder, lines = tmp_path / "found", tmp_path / "found.jsonl"
    metrics, plot = tmp_path / "metrics.csv", tmp_path / "run.png"
    result = run("-p", patterns, events, "-o", folder, "--rate", 2000, "--metrics", metrics, "--plot", plot)
    assert result.exit_code == 0, result.output
    assert f"matches are in {folder}" in result.stdout
    assert metrics.read_text(encoding="utf-8").startswith('"second","events_in"')
    assert plot.read_bytes().startswith(b"\x89PNG")
    assert run("-p", patterns, events, "-o", lines).exit_code == 0
    found = [json.loads(line) for line in lines.read_text(encoding="utf-8").splitlines()]
    assert sorted(map(str, found)) == sorted(map(str, pa.dataset.dataset(folder).to_table().to_pylist()))


def test_matches_alone_on_standard_output(files: tuple[Path, Path]) -> None:
    patterns, events = files
    result = run("-p", patterns, events, "-o", "-", "--for", "60")
    assert result.exit_code == 0, result.output
    assert all(json.loads(line) for line in result.stdout.splitlines())
    assert "matches in 500 events" in result.stderr


def test_outputs_are_looked_at_before_the_first_event(files: tuple[Path, Path], tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    patterns, events = files
    nowhere = tmp_path / "nowhere"
    cases: list[tuple[list[object], str]] = [
        (["--metrics", tmp_path / "m.txt"], "--metrics: expected a name that ends in .csv or .parquet; found 'm.txt'"),
        (["--metrics", nowhere / "m.csv"], "there is no folder"),
        (["--plot", tmp_path / "m.xyz"], "--plot: expected a name that ends in "),
        (["--plot", nowhere / "m.png"], "there is no folder"),
        (["-o", nowhere / "m.jsonl"], "there is no folder"),
    ]
    for arguments, said in cases:
        result = run("-p", patterns, events, *arguments)
        assert result.exit_code == 2, result.output
        assert said in result.stderr, result.stderr
        assert "matches" not in result.stdout


def test_a_plot_that_fails_hides_neither_the_summary_nor_the_error(
    files: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("matplotlib")

    def fail(*_: object) -> None:
        raise RuntimeError("no ink")

    monkeypatch.setattr("cepheid.local.stream.result.StreamResult.plot", fail)
    patterns, events = files
    result = run("-p", patterns, events, "--plot", tmp_path / "run.png")
    assert result.exit_code == 2
    assert "matches in 500 events" in result.stdout
    assert "error: no ink" in result.stderr
    result = run("-p", patterns, "tcp://127.0.0.1:1", "--plot", tmp_path / "run.png")
    assert "no ink" in result.stderr
    assert "error: the source failed after 0 events" in result.stderr


def test_mistakes_are_plain(files: tuple[Path, Path], tmp_path: Path) -> None:
    patterns, events = files
    cases: list[tuple[list[object], str]] = [
        ([tmp_path / "none.parquet"], "there is no such file"),
        (["upd://x"], "expected one of tcp://"),
        (["tcp://127.0.0.1:1"], "the source failed after 0 events and 0 matches: ConnectionRefusedError"),
        ([events, "--shed", "hspicy", "--rate", 5], "did you mean 'hspice'"),
        (["-", "--rate", 5], "--rate and --speed are for files"),
        (["-", "--schema", "ts"], "expected names and types"),
        ([events, "--schema", "ts long"], "--schema is for events that come as JSON"),
        ([events, "--earliest"], "--earliest is for Kafka"),
        ([events, "--lateness", "soon"], "--lateness is a length of time such as '10 seconds' or, .*; got 'soon'"),
        ([events, "--lateness", "5 seconds"], "--lateness: the times in 'ts' are numbers"),
        ([events, "--for", "bogus"], "--for is a positive number of seconds, .*; got 'bogus'"),
        ([events, "--rate", 5, "--shed", "cost", "--latency-bound", "x"], "--latency-bound is a positive .*; got 'x'"),
        ([events, "--shed", "cost"], "--rate 10000 .* or --speed 1"),
        ([events, "--latency-bound", "1 second"], "--latency-bound is for a stream that drops work: .*--shed cost"),
        ([events, "--safety", 0.5], "--safety is for a stream that drops work"),
        ([events, "--weight", "up=2"], "--weight is for a stream that drops work"),
        ([events, "--rate", 5, "--shed", "cost", "--weight", "up"], "such as fraud=10; got 'up'"),
        ([events, "--rate", 5, "--shed", "cost", "--weight", "down=2"], "no pattern of that name; there are up"),
        ([events, "--rate", 5, "--shed", "cost", "--queue-size", 5], "--queue-size is for a stream that waits"),
        ([events, "--queue-size", 0], "--queue-size is 1 event or more, got 0"),
        ([events, "--on-bad-line", "skip"], "--on-bad-line is for lines of JSON"),
        (["-", "--on-bad-line", "drop"], "--on-bad-line is fail or skip; got 'drop'"),
    ]
    for arguments, said in cases:
        result = run("-p", patterns, *arguments)
        assert result.exit_code in (1, 2), result.output
        assert re.search(said, result.stderr), result.stderr
        assert "Traceback" not in result.stderr


def test_late_events_are_told_of(files: tuple[Path, Path], tmp_path: Path) -> None:
    patterns, _ = files
    events = tmp_path / "turned.parquet"
    pa.parquet.write_table(EVENTS.take(list(reversed(range(500)))), events)
    result = run("-p", patterns, events, "--rate", 1000)
    assert result.exit_code == 0, result.output
    assert "events came too late and were left out: say a longer --lateness" in result.stdout
    assert "too late" not in run("-p", patterns, events, "--rate", 1000, "--lateness", 500).stdout


def test_shedding_with_weights(files: tuple[Path, Path], tmp_path: Path) -> None:
    patterns, events = files
    metrics = tmp_path / "metrics.csv"
    shed = ["--rate", 5000, "--shed", "hspice", "--weight", "up=10", "--latency-bound", "30", "--metrics", metrics]
    result = run("-p", patterns, events, *shed)
    assert result.exit_code == 0, result.output
    assert "the bound is 30,000 ms" in result.stdout
    assert "dropped: nothing; recall about 100.0 %, false positives about 0" in result.stdout
    assert "estimated_false_positives" in metrics.read_text(encoding="utf-8")


def test_a_queue_of_its_own_size(files: tuple[Path, Path]) -> None:
    patterns, events = files
    result = run("-p", patterns, events, "--queue-size", 10)
    assert result.exit_code == 0, result.output
    assert "in 500 events" in result.stdout


def test_lines_that_are_no_events_are_told_of(files: tuple[Path, Path]) -> None:
    patterns, _ = files
    lines = "\n".join(json.dumps(row) for row in EVENTS.to_pylist())
    command = [sys.executable, "-c", "from cepheid.cli.main import main; main()", "stream", "-p", str(patterns), "-"]
    given = f"{lines}\nnonsense\n[1]"
    done = subprocess.run([*command, "--on-bad-line", "skip"], input=given, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stderr.startswith("warning: standard input, line 501: expected a JSON object, found 'nonsense'")
    assert len(done.stderr.splitlines()) == 1
    assert "matches in 500 events" in done.stdout
    assert "2 lines were no events, and were left out" in done.stdout
    assert subprocess.run(command, input=given, capture_output=True, text=True, check=False).returncode == 2
