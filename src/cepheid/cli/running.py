"""``cepheid run``: a job, from its description to its report."""

from __future__ import annotations

from pathlib import Path

from rich.console import Console

from cepheid.job import Job, RunError, read_job, run_job
from cepheid.job.progress import Display, show_matches, show_summary
from cepheid.job.report import check_report, write_report


def check_job(path: Path, out: Console) -> Job:
    """Read a description and say what it is; JobError says all that is wrong with it."""
    job = read_job(path)
    source = getattr(job.source, "format", None) or getattr(job.source, "workload", "")
    out.print(f"{path}: {job.name}, a {job.mode} from {source} to {job.sink.format}, can be run", markup=False)
    return job


def run_description(path: Path, report: Path | None, plan: bool, show: int, out: Console, err: Console) -> None:
    """RunError if it failed; what is known until then has been shown."""
    job = read_job(path)
    if report is not None:
        check_report(report)
    failure: RunError | None = None
    with Display(out, err) as display:
        try:
            outcome = run_job(job, display, show=show, explained=plan or report is not None)
        except RunError as error:
            if error.outcome is None:
                raise
            outcome, failure = error.outcome, error
    if job.sink.format != "console":
        show_matches(outcome.first, out)
    if plan and outcome.explanation is not None:
        out.print(f"\n{outcome.explanation}\n{outcome.explanation_note}\n", markup=False)
    show_summary(outcome, out)
    if not outcome.matches and failure is None:
        out.print("To see why there is none, run [bold]cepheid why[/bold] with the same patterns and events.")
    try:
        if report is not None:
            write_report(outcome, report)
            out.print(f"report: {report}", markup=False)
    except OSError as error:
        if failure is None:
            raise
        err.print(f"{error}", markup=False)  # the error to end with is the run's
    if failure is not None:
        raise failure
