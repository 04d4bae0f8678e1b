"""What Spark says went wrong, as a user may read it."""

from __future__ import annotations

from cepheid.job.description import Job
from cepheid.job.environment import scrubbed

_STACKS = ("\n\nJVM stacktrace:", "\n\tat org.apache", "\n\tat scala", "\n\tat java", "\n=== Streaming Query ===")


def said(error: Exception, job: Job) -> str:
    """Without the stack of Java, the plan of the query and the secrets of the job."""
    text = str(error)
    for start in _STACKS:
        text = text.partition(start)[0]
    if "DATA_SOURCE_NOT_FOUND" in text or "Failed to find data source" in text:
        text += "\nHint: name the Maven coordinates of its jar in spark.packages."
    return scrubbed(text.strip(), job.model_dump())


def in_a_line(error: Exception, job: Job) -> str:
    return said(error, job).partition("\n")[0] or type(error).__name__
