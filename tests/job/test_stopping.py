"""Ctrl-C, as a terminal sends it: to all processes of a job at once."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pyarrow.parquet
import pytest

from tests.job.test_run import made_events

pytest.importorskip("pyspark.sql", reason="needs PySpark: pip install '.[spark]'")

ROOT = Path(__file__).parents[2]
PATIENCE = 120.0
SLOW = """
import time
from pathlib import Path

import cepheid


def slow(x):
    Path(BEGUN).touch()
    time.sleep(600)
    return x


cepheid.register_function("slow", slow, returns="integer")
"""
JOB = """
source: {format: parquet, path: events.parquet}
patterns: rules.cep
sink: {format: parquet, path: out}
import: slow_functions
spark: {master: "local[1]", settings: {spark.driver.memory: 768m}}
"""


def test_a_batch(tmp_path: Path) -> None:
    pyarrow.parquet.write_table(made_events(), tmp_path / "events.parquet")
    begun = tmp_path / "begun"
    (tmp_path / "slow_functions.py").write_text(SLOW.replace("BEGUN", repr(str(begun))), encoding="utf-8")
    (tmp_path / "rules.cep").write_text(
        "PATTERN SEQ(A a, B b) WHERE slow(a.x) < b.x WITHIN 9 seconds", encoding="utf-8"
    )
    (tmp_path / "job.yaml").write_text(JOB, encoding="utf-8")
    process = subprocess.Popen(
        [sys.executable, "-c", "from cepheid.cli.main import main; main()", "run", tmp_path / "job.yaml"],
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=ROOT,
        start_new_session=True,
    )  # fmt: skip
    try:
        started = time.monotonic()
        while not begun.exists() and process.poll() is None:
            assert time.monotonic() - started < PATIENCE
            time.sleep(0.1)
        os.killpg(process.pid, signal.SIGINT)
        out, err = process.communicate(timeout=PATIENCE)
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
    assert process.returncode == 130, err
    assert out == ""
    said = [line for line in err.splitlines() if not line.startswith("WARNING: Using incubator modules")]
    assert said[0] == "starting Spark"
    assert said[-2:] == ["stopping", "stopped before the end: not all matches were written"], err
    assert all(line.startswith(("reading events", "matching", "cepheid: compiling")) for line in said[1:-2]), err
    assert not list((tmp_path / "out").rglob("*.parquet"))
