"""Streaming jobs whose processes are killed at random moments, and which are started again until they are done.

The matches in the sink are those of the events, each exactly once. ``CEPHEID_KILLS=20`` kills each kind of process twenty
times; without it, a few kills show that it works.
"""

from __future__ import annotations

import datetime as dt
import json
import os
import random
import select
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

pytest.importorskip("pyspark.sql", reason="needs PySpark: pip install '.[spark]'")

from tests.spark.job_process import Workload, plain, started
from tests.spark.kafka_broker import NoBrokerError, connector, running_broker
from tests.spark.long import long

KILLS = int(os.environ.get("CEPHEID_KILLS", "1"))
FILES = 5 + 15 * KILLS
"""A micro-batch each: enough for all kills."""
ROWS = 60


def sink_rows(folder: Path) -> list[str]:
    """As a reader of the sink sees it, who goes by its list of files."""
    logs = [path for path in (folder / "_spark_metadata").iterdir() if not path.name.startswith(".")]
    lines = [line for log in logs for line in log.read_text(encoding="utf-8").splitlines()[1:]]
    files = {entry["path"] for entry in map(json.loads, lines)}
    found = [pq.read_table(path.removeprefix("file://"), coerce_int96_timestamp_unit="us") for path in sorted(files)]
    rows = [row for table in found for row in table.to_pylist()]
    return plain([row | {name: row[name].replace(tzinfo=dt.timezone.utc) for name in ("start", "end")} for row in rows])


def run_and_kill(settings: dict[str, Any], folder: Path, targets: list[str], rng: random.Random) -> tuple[int, int]:
    """Run the job until it is done, killing something in each run as long as there are targets: runs, and sessions that
    were made again."""
    runs = restored = 0
    while True:
        runs += 1
        with started(settings, folder) as job:
            after = rng.randrange(5) if targets else None
            seen, killed = 0, False
            for line in job.lines():
                if line == "done":
                    assert job.end() == 0 or killed  # the last kill may have hit a job that had just said so
                    assert not targets, f"done before {targets} were killed"
                    return runs, restored
                if line.startswith("batch"):
                    words = line.split()
                    assert words[3] == "0", "no event is late"
                    restored += int(words[5])
                    seen += 1
                if targets and after is not None and seen >= after and (seen or line == "started"):
                    select.select([], [], [], rng.uniform(0, 1.5))  # a moment that nothing else chooses
                    if job.kill(targets[-1], rng):
                        target = targets.pop()
                        # A worker that is killed is replaced while the job runs, and so more than one can be.
                        after = seen + 1 + rng.randrange(3) if target == "worker" else None
                        killed = target != "worker"


@long
@pytest.mark.parametrize("source", ["files", "kafka"])
def test_matches_are_in_the_sink_exactly_once(tmp_path: Path, source: str) -> None:
    if source == "kafka" and KILLS == 1:
        pytest.skip("with CEPHEID_KILLS=20 only: the other source shows it too, and each run takes long")
    rng = random.Random(int(os.environ.get("CEPHEID_SEED", "1")))
    lateness = dt.timedelta(seconds=6)
    work = Workload(tmp_path, FILES, ROWS, lateness)
    targets = [kind for kind in ("driver", "jvm", "worker") for _ in range(KILLS)]
    rng.shuffle(targets)
    settings: dict[str, Any] = {
        "steps": ["match"], "source": source, "files": str(work.files), "lateness": "6 seconds",
        "sink": str(tmp_path / "out"), "checkpoint": str(tmp_path / "checkpoint"),
    }  # fmt: skip
    if source == "files":
        runs, restored = run_and_kill(settings, tmp_path, targets, rng)
    else:
        try:
            settings |= {
                "all": str(work.all),
                "rows": ROWS,
                "spark": {"spark.jars": connector()},
                "lateness": "60 seconds",
            }
            with running_broker(tmp_path) as address:
                settings["kafka"] = address
                run_and_kill({**settings, "steps": ["produce"]}, tmp_path, [], rng)
                runs, restored = run_and_kill(settings, tmp_path, targets, rng)
        except NoBrokerError as error:
            pytest.skip(str(error))
    assert runs > 1
    assert restored > 0
    assert sink_rows(tmp_path / "out") == work.matches
