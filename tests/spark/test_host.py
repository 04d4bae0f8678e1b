"""The processes that keep live shards."""

from __future__ import annotations

import subprocess
import sys
import uuid

import pytest

pytest.importorskip("pyspark.sql", reason="needs PySpark: pip install '.[spark]'")

from cepheid.spark import host


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere there are none")
def test_one_starts_without_a_word(capfd: pytest.CaptureFixture[str]) -> None:
    """Its standard error is the terminal of who runs a stream."""
    parent = subprocess.Popen([sys.executable, "-c", "import sys; sys.stdin.read()"], stdin=subprocess.PIPE)
    try:
        host._start(f"\0cepheid/{uuid.uuid4()}", parent.pid)
    finally:
        parent.communicate()
    assert host._started.pop().wait(60) == 0
    assert capfd.readouterr().err == ""
