"""Running a job from its description to what came of it."""

from __future__ import annotations

import signal
import tempfile
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING

from cepheid.job.batch import run_batch
from cepheid.job.description import Job
from cepheid.job.outcome import Outcome
from cepheid.job.places import one_place
from cepheid.job.problems import FieldProblem, JobError
from cepheid.job.quiet import no_repeated_errors
from cepheid.job.reading import read_patterns
from cepheid.job.session import open_session
from cepheid.job.spark_errors import said
from cepheid.job.watch import Nobody, Watcher
from cepheid.job.yaml_text import path_text
from cepheid.language.problems import CepheidError
from cepheid.local.signals import Stop

if TYPE_CHECKING:
    from cepheid.spark.pyspark_names import SparkSession


class RunError(CepheidError):
    """Spark could not run a job to its end. The message has no secrets in it.

    ``outcome``: what is known of the run until then, None if it had not begun.
    """

    def __init__(self, message: str, outcome: Outcome | None = None) -> None:
        super().__init__(message)
        self.outcome = outcome


def run_job(job: Job, watcher: Watcher | None = None, *, show: int = 20, explained: bool = False) -> Outcome:
    """Run a job to its end. ``show``: how many of the first matches to bring back. ``explained``: bring back the plan
    too, with what a sample of the events made of it. The session is left open: the next job starts sooner.
    docs/job.md has an example.
    """
    from cepheid.job.stream import run_stream
    from cepheid.spark.pyspark_names import Py4JError, PySparkException
    from cepheid.spark.session import JavaError

    watcher = watcher or Nobody()
    _check_places(job)
    patterns = read_patterns(job)
    run = run_stream if job.mode == "stream" else run_batch
    watcher.phase("starting Spark")
    try:
        spark = _started(job)
        versions = {"spark": spark.version, "cepheid": version("cepheid")}
        with no_repeated_errors(), tempfile.TemporaryDirectory(prefix="cepheid-") as scratch:
            outcome = run(spark, job, patterns, Path(scratch), watcher, show=show, explained=explained)
    except (PySparkException, Py4JError, JavaError) as error:
        raise RunError(said(error, job)) from None
    outcome = replace(outcome, versions=versions)
    if outcome.failed is not None:
        raise RunError(outcome.failed, outcome)
    return outcome


def _check_places(job: Job) -> None:
    """Once more, for who has not let the description be checked: what is overwritten does not come back."""
    found = one_place(job.model_dump(), job.folder)
    problems = [FieldProblem(path_text(place), message, hint=hint) for place, message, hint in found]
    if problems:
        raise JobError(job.name, problems)


def _started(job: Job) -> SparkSession:
    """A session. Ctrl-C in the midst of its start would leave a Java behind that nobody ends, so it has to wait."""
    with Stop() as stop:
        waiting = signal.getsignal(signal.SIGINT)
        spark = open_session(job)
        handler = signal.getsignal(signal.SIGINT)
    if handler != waiting:  # Spark has set one of its own, which is to stay
        signal.signal(signal.SIGINT, handler)
    if stop.asked:
        raise KeyboardInterrupt
    return spark
