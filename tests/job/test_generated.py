"""Made-up events as files: all of them or none, and for as long as a checkpoint the same."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from unittest import mock

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from cepheid.job import JobError, parse_job
from cepheid.job.sources import prepare

TEXT = """
mode: stream
source: {{workload: card_payments, events: {events}, files: 4, arguments: {{start: {start}}}}}
patterns: rules.cep
engine: {{allowed_lateness: 1 second}}
sink: {{format: parquet, path: out}}
checkpoint: state
"""


@pytest.fixture(autouse=True)
def _patterns(tmp_path: Path) -> None:
    (tmp_path / "rules.cep").write_text("PATTERN SEQ(Login a, Transfer b) WITHIN 1 minute", encoding="utf-8")


def made(folder: Path, events: int = 100, start: str = "2024-05-17") -> None:
    prepare(parse_job(TEXT.format(events=events, start=start), folder=folder), folder / "scratch")


def test_files_that_were_not_all_written_are_written_again(tmp_path: Path) -> None:
    really = pq.write_table

    def write(table: pa.Table, path: Path) -> None:
        if path.name == "events-00002.parquet":
            raise KeyboardInterrupt
        really(table, path)

    with mock.patch.object(pq, "write_table", write), pytest.raises(KeyboardInterrupt):
        made(tmp_path)
    assert not (tmp_path / "state.events").exists()
    made(tmp_path)
    assert pq.read_table(tmp_path / "state.events").num_rows == 100
    assert {path.name for path in tmp_path.iterdir()} == {"rules.cep", "state.events"}


@pytest.mark.parametrize("changed", [{"events": 200}, {"start": "2024-05-18"}])
def test_a_checkpoint_keeps_its_events(tmp_path: Path, changed: dict[str, Any]) -> None:
    made(tmp_path)
    made(tmp_path)
    with pytest.raises(JobError) as error:
        made(tmp_path, **changed)
    (problem,) = error.value.problems
    assert (problem.field, problem.line) == ("source", 3)
    assert f"the events in {tmp_path}/state.events were made of" in problem.message
    assert '"events": 100' in problem.message
