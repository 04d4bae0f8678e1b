"""Running a job from its description to what came of it."""

from __future__ import annotations

import tempfile
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path

from cepheid.job.batch import run_batch
from cepheid.job.description import Job
from cepheid.job.outcome import Outcome
from cepheid.job.quiet import no_repeated_errors
from cepheid.job.reading import read_patterns
from cepheid.job.session import open_session
from cepheid.job.spark_errors import said
from cepheid.job.watch import Nobody, Watcher
from cepheid.language.problems import CepheidError


class RunError(CepheidError):
    """Spark could not run a job. The message has no secrets in it."""


def run_job(job: Job, watcher: Watcher | None = None, *, show: int = 20, explained: bool = False) -> Outcome:
    """Run a job to its end. ``show``: how many of the first matches to bring back. ``explained``: bring back the plan
    too, with what a sample of the events made of it. The session is left open: the next job starts sooner.
    docs/job.md has an example.
    """
    from cepheid.job.stream import run_stream
    from cepheid.spark.pyspark_names import Py4JError, PySparkException
    from cepheid.spark.session import JavaError

    watcher = watcher or Nobody()
    patterns = read_patterns(job)
    run = run_stream if job.mode == "stream" else run_batch
    watcher.phase("starting Spark")
    try:
        spark = open_session(job)
        with no_repeated_errors(), tempfile.TemporaryDirectory(prefix="cepheid-") as scratch:
            outcome = run(spark, job, patterns, Path(scratch), watcher, show=show, explained=explained)
    except (PySparkException, Py4JError, JavaError) as error:
        raise RunError(said(error, job)) from None
    versions = {"spark": spark.version, "cepheid": _cepheid()}
    return replace(outcome, versions=versions)


def _cepheid() -> str:
    return version("cepheid")
