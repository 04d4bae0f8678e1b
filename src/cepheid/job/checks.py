"""What the parts of a description must say about each other, and what must be there before a job starts.

The checks look at the values as they were read, so that a mistake in one field does not hide one in another. Each
yields the place of a problem and what it is.
"""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from cepheid.job.description import is_local, located
from cepheid.job.environment import is_name, names_in
from cepheid.job.generator_checks import generator
from cepheid.job.part import as_length, interval
from cepheid.job.places import one_place
from cepheid.job.problems import FieldProblem
from cepheid.job.values import Found, Values, at, mode, texts
from cepheid.job.yaml_text import Document, Place, path_text
from cepheid.language.problems import closest, told
from cepheid.spark.shard_keys import EVEN

WITH_VARIABLES: tuple[Place, ...] = (
    ("name",), ("patterns",), ("checkpoint",), ("engine", "late_events"),
    *(("source", name) for name in ("path", "servers", "topics", "starting", "ending", "host")),
    *(("source", name) for name in ("options", "where", "select")),
    *(("sink", name) for name in ("path", "servers", "topic", "options")),
    *(("spark", name) for name in ("master", "remote", "packages", "settings")),
)  # fmt: skip
"""The fields in whose texts environment variables are replaced."""
_OFFSETS = {"startingoffsets": "starting", "endingoffsets": "ending"}


def problems_in(document: Document, folder: Path) -> Iterator[FieldProblem]:
    if not isinstance(document.values, Mapping):
        return
    for check in CHECKS:
        for place, message, hint in check(document.values, folder):
            yield FieldProblem(path_text(place), message, hint=hint, line=document.line(place))


def _variables(values: Values, folder: Path) -> Found:
    """Environment variables stand where their values are put in, have a name, and are set."""
    for place, text in texts(values):
        for name in names_in(text):
            if not any(place[: len(field)] == field for field in WITH_VARIABLES):
                fields = ", ".join(map(path_text, WITH_VARIABLES))
                yield place, f"a variable such as ${{{name}}} is not replaced here", f"it is in {fields}"
            elif not is_name(name):
                yield place, f"${{{name}}} names no environment variable", "names are letters, digits and _"
            elif name not in os.environ:
                near = closest(name, os.environ)
                yield place, f"the environment variable {name} is not set", near or f"export {name}=… before the run"


def _stream_only(values: Values, folder: Path) -> Found:
    if mode(values) != "batch":
        return
    for name in ("checkpoint", "trigger", "run_for"):
        if values.get(name) is not None:
            yield (name,), "only a stream has this", "say mode: stream, or leave it away"
    for name in ("allowed_lateness", "late_events"):
        if at(values, "engine", name) is not None:
            yield ("engine", name), "a batch has no late events", "say mode: stream, or leave it away"
    if at(values, "engine", "shed") is not None:
        yield (
            ("engine", "shed"),
            "the events of a batch do not come too fast: they wait",
            "say mode: stream, or leave it",
        )
    source = at(values, "source", "format")
    if source in ("rate", "socket"):
        yield ("source", "format"), f"{source} is a stream, and this job is a batch", "say mode: stream"
    for name in ("max_files", "max_events"):
        if at(values, "source", name) is not None:
            yield ("source", name), "only a stream has micro-batches", "say mode: stream, or leave it away"


def _lateness(values: Values, folder: Path) -> Found:
    if mode(values) == "stream" and at(values, "engine", "allowed_lateness") is None:
        help_ = "engine: {allowed_lateness: 10 seconds}; the longer, the later matches with NOT come out"
        yield ("engine", "allowed_lateness"), "a stream needs to know how late an event may come", help_


def _shards(values: Values, folder: Path) -> Found:
    shards = at(values, "engine", "shards")
    if mode(values) == "stream" and isinstance(shards, int) and shards > EVEN:
        help_ = "as many as there are cores is a good number"
        yield ("engine", "shards"), f"a stream has {EVEN:,} shards at most, found {shards:,}", help_


def _bound(values: Values, folder: Path) -> Found:
    """An event may wait for a trigger, and then for its micro-batch."""
    shed = at(values, "engine", "shed")
    bound = _nanoseconds(shed.get("latency_bound")) if isinstance(shed, Mapping) else None
    trigger = _nanoseconds(values.get("trigger"))
    if bound is not None and trigger is not None and 2 * trigger > bound:
        said = f"events wait for {values['trigger']} until a micro-batch starts, and then for the micro-batch"
        yield ("engine", "shed", "latency_bound"), said, "say at least twice the trigger, or leave the trigger away"


def _nanoseconds(length: object) -> int | None:
    try:
        return interval(as_length(length)).nanoseconds
    except ValueError:
        return None


def _checkpoint(values: Values, folder: Path) -> Found:
    """What is written must be known again after a restart."""
    kept = at(values, "sink", "format") in ("parquet", "csv", "json", "delta", "kafka")
    if mode(values) == "stream" and kept and values.get("checkpoint") is None:
        yield (
            ("checkpoint",),
            "a stream whose matches are kept needs a checkpoint",
            "a folder: checkpoint: state/my_job",
        )
    if at(values, "sink", "format") == "memory" and values.get("checkpoint") is not None:
        help_ = "leave the checkpoint away, or write to files"
        yield ("checkpoint",), "a table in memory ends with its session: no run can go on from a checkpoint", help_
    if mode(values) == "stream" and at(values, "sink", "mode") in ("error", "overwrite"):
        yield ("sink", "mode"), "a stream adds to what there is", "leave it away, or say mode: append"


def _schema(values: Values, folder: Path) -> Found:
    source = values.get("source")
    if not isinstance(source, Mapping) or source.get("schema") is not None:
        return
    kind = source.get("format")
    example = "schema: {ts: timestamp, type: string, amount: double}"
    if kind == "kafka":
        yield ("source", "schema"), "the values of records have no schema of their own: say it here", example
    elif kind in ("csv", "json") and mode(values) == "stream":
        yield ("source", "schema"), f"a stream of {kind} files needs to know its columns beforehand", example
    elif kind in ("rate", "socket") and not source.get("select"):
        columns = "timestamp and value" if kind == "rate" else "value"
        made = "select: [timestamp AS ts, \"concat('T', value % 3) AS type\"]"
        help_ = made if kind == "rate" else f"{made}, or {example} for lines of JSON"
        yield ("source", "select"), f"its columns are {columns}: say how events are made of them", help_


def _offsets(values: Values, folder: Path) -> Found:
    """What has a field is said there, where the rest of a job looks for it."""
    options = at(values, "source", "options")
    if at(values, "source", "format") != "kafka" or not isinstance(options, Mapping):
        return
    for name, value in options.items():
        field = _OFFSETS.get(str(name).lower())
        if field is not None:
            yield ("source", "options", name), f"this is the field {field} of the source", f"say {field}: {value}"


def _paths(values: Values, folder: Path) -> Found:
    """Files of this machine are there. What stands for several names is left to Spark."""
    path = at(values, "source", "path")
    if isinstance(path, str) and not names_in(path) and not set("*?[{") & set(path):
        place = located(folder, path)
        if is_local(place) and not Path(place).exists():
            yield ("source", "path"), f"there is no {place}", _neighbour(Path(place))


def _where_it_runs(values: Values, folder: Path) -> Found:
    if at(values, "spark", "master") is not None and at(values, "spark", "remote") is not None:
        yield ("spark", "remote"), "a session is started at a master, or it is a server's", "say one of them"
    if at(values, "spark", "remote") is not None and at(values, "sink", "format") == "console":
        yield ("sink", "format"), "a server would print the matches on its own console", "use a sink with files"
    settings = at(values, "spark", "settings")
    for name in settings if isinstance(settings, Mapping) else ():
        if not str(name).startswith("spark."):
            yield ("spark", "settings", name), "Spark's settings start with spark.", f"spark.{name}"


def _modules(values: Values, folder: Path) -> Found:
    """Modules that register functions are looked for beside the description first."""
    named = values.get("import")
    if str(folder.resolve()) not in sys.path:
        sys.path.insert(0, str(folder.resolve()))
    for number, module in enumerate([named] if isinstance(named, str) else named if isinstance(named, list) else ()):
        place: Place = ("import",) if isinstance(named, str) else ("import", number)
        try:
            importlib.import_module(str(module))
        except (Exception, SystemExit) as error:  # whatever the module does when it is imported
            yield place, f"{module} cannot be imported: {told(error, folder)}", None


CHECKS: tuple[Callable[[Values, Path], Found], ...] = (
    _variables,
    _stream_only,
    _lateness,
    _shards,
    _bound,
    _checkpoint,
    _schema,
    _offsets,
    _paths,
    one_place,
    generator,
    _where_it_runs,
    _modules,
)


def _neighbour(path: Path) -> str | None:
    """A file beside it with a similar name."""
    try:
        return closest(path.name, [entry.name for entry in path.parent.iterdir()])
    except OSError:
        return f"there is no folder {path.parent} either"
