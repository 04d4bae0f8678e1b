"""From YAML to a job, or to all that is wrong with it at once."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from pydantic import ValidationError

from cepheid.job.checks import problems_in
from cepheid.job.columns import column_problems
from cepheid.job.description import Job, Workload, located
from cepheid.job.environment import is_known, resolved, scrubbed
from cepheid.job.faults import faults_in, found
from cepheid.job.generated import made_otherwise
from cepheid.job.problems import FieldProblem, JobError
from cepheid.job.sources import kept_events
from cepheid.job.yaml_text import Document, load, path_text
from cepheid.language.pattern import Pattern, with_names
from cepheid.language.problems import PatternError, closest
from cepheid.pattern.read import parse_all


def read_job(path: str | Path) -> Job:
    """The job that a file describes. JobError says all that is wrong, with its patterns too."""
    path = Path(path)
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        reason = "there is no such file" if isinstance(error, FileNotFoundError) else str(error)
        raise JobError(str(path), [FieldProblem("", reason)]) from None
    return parse_job(text, name=str(path), folder=path.parent)


def parse_job(text: str, *, name: str = "<job>", folder: str | Path = ".", check: bool = True) -> Job:
    """The job that a text describes. ``check=False`` leaves out whether files and variables are there.

    >>> from cepheid.job import JobError, parse_job
    >>> try:
    ...     parse_job("{source: {format: parqet, path: x}, patterns: [], sink: {format: none}, tigger: 1 day}")
    ... except JobError as error:
    ...     for problem in error.problems:
    ...         print(problem.field, problem.hint)
    patterns None
    source.format did you mean 'parquet'?
    source.path None
    tigger did you mean 'trigger'?
    """
    folder = Path(folder)
    document = load(text)
    problems = list(document.problems)
    job = None
    if not problems or document.values is not None:
        job = _validated(document, folder, problems)
    wrong: list[PatternError] = []
    if check:
        problems += problems_in(document, folder)
        wrong, patterns = _read_patterns(document, folder, problems)
        unfit, wrong_for_columns = column_problems(document, () if wrong else with_names(patterns))
        problems += unfit
        wrong += wrong_for_columns
        if job is not None and not wrong and not any(problem.field.startswith("patterns") for problem in problems):
            problems += _unknown_weights(document, job)
        if job is not None:
            problems += _other_events(document, job)
    if problems or wrong or job is None:
        raise JobError(name, problems, wrong)
    return job


def read_patterns(job: Job) -> tuple[Pattern, ...]:
    """The patterns of all files of a job."""
    found: list[Pattern] = []
    for file in job.patterns:
        found += parse_all(Path(job.place(resolved(file))).read_text(encoding="utf-8-sig"), name=file)
    return with_names(found)


def _validated(document: Document, folder: Path, problems: list[FieldProblem]) -> Job | None:
    values = document.values
    if not isinstance(values, Mapping):
        expected = "a mapping with source, patterns and sink"
        problems.append(FieldProblem("", "this is no job", expected, found("", values), line=document.line(())))
        return None
    try:
        job = Job.model_validate({key: value for key, value in values.items() if key != "folder"})
    except ValidationError as error:
        problems += faults_in(error, document)
        return None
    if "folder" in values:
        problems.append(FieldProblem("folder", "there is no such field", line=document.line(("folder",))))
    return job.model_copy(update={"folder": folder})


def _unknown_weights(document: Document, job: Job) -> Iterator[FieldProblem]:
    """Weights of patterns that there are not."""
    names = [pattern.name or "" for pattern in read_patterns(job)]
    for name in {} if job.engine.shed is None else job.engine.shed.weights:
        if name not in names:
            place = ("engine", "shed", "weights", name)
            near = closest(name, names) or f"there are {', '.join(names)}"
            yield FieldProblem(
                path_text(place), "there is no pattern of that name", hint=near, line=document.line(place)
            )


def _other_events(document: Document, job: Job) -> Iterator[FieldProblem]:
    """A workload whose files a run before has made of something else."""
    if not isinstance(job.source, Workload) or not is_known(job.checkpoint or ""):
        return
    folder = kept_events(job)
    was = None if folder is None else made_otherwise(job.source, folder)
    if was is not None:
        shown = f"{job.place(job.checkpoint or '')}.events"
        message = f"the events in {shown} were made of {was}, and stay as they are for the life of the checkpoint"
        hint = "say the same as then, or remove this folder and the checkpoint to start anew"
        yield FieldProblem("source", message, hint=hint, line=document.line(("source",)))


def _read_patterns(
    document: Document, folder: Path, problems: list[FieldProblem]
) -> tuple[list[PatternError], list[Pattern]]:
    """What is wrong with the patterns, and those that can be read; what is wrong with their files is added to the
    problems.
    """
    values = document.values
    named = values.get("patterns") if isinstance(values, Mapping) else None
    wrong: list[PatternError] = []
    read: list[Pattern] = []
    seen: dict[str, str] = {}
    for number, file in enumerate([named] if isinstance(named, str) else named if isinstance(named, list) else ()):
        place = ("patterns",) if isinstance(named, str) else ("patterns", number)
        field, line = path_text(place), document.line(place)
        if not is_known(str(file)):
            continue  # that has been said
        try:
            path = Path(located(folder, resolved(str(file))))
            patterns = parse_all(path.read_text(encoding="utf-8-sig"), name=str(file))
        except PatternError as error:
            wrong.append(error)
            continue
        except (OSError, UnicodeDecodeError) as error:
            reason = f"there is no {located(folder, str(file))}" if isinstance(error, FileNotFoundError) else str(error)
            problems.append(FieldProblem(field, scrubbed(reason, document.values), line=line))
            continue
        if not patterns:
            problems.append(FieldProblem(field, "there is no pattern in this file", line=line))
        read += patterns
        for pattern in patterns:
            first = seen.setdefault(pattern.name or "", str(file))
            if first != str(file):
                message = f"{file} has a pattern called {pattern.name!r}, and so has {first}"
                problems.append(FieldProblem(field, message, hint="give them names: NAME …", line=line))
    return wrong, read
