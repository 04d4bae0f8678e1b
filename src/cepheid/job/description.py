"""A job as an immutable value: what its YAML file says, with what is left unsaid filled in."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Discriminator, Field, Tag

from cepheid.job.engine_options import EngineOptions
from cepheid.job.part import Count, Length, Options, Part, Texts, as_length, length


def ddl_of(columns: object) -> object:
    """A schema as Spark writes it; a mapping of names to types becomes that.

    >>> ddl_of({"ts": "timestamp", "place": {"x": "double"}, "history": ["double"]})
    '`ts` timestamp, `place` STRUCT<`x`: double>, `history` ARRAY<double>'
    """
    if not isinstance(columns, Mapping):
        return columns
    return ", ".join(f"{_quoted(name)} {_type(type_)}" for name, type_ in columns.items())


def _type(type_: object) -> str:
    match type_:
        case str():
            return type_
        case Mapping():
            return f"STRUCT<{', '.join(f'{_quoted(name)}: {_type(inner)}' for name, inner in type_.items())}>"
        case [inner]:
            return f"ARRAY<{_type(inner)}>"
    raise ValueError("for each column a type, [a type] for a list, or a mapping for a struct")


def _quoted(name: object) -> str:
    return "`" + str(name).replace("`", "``") + "`"


Ddl = Annotated[str | None, BeforeValidator(ddl_of)]


class Refined(Part):
    """A source. ``schema``: the columns, where the source does not say them. ``select`` and ``where`` are Spark SQL:
    they make of what is read the columns and rows that the patterns are to see.
    """

    ddl: Ddl = Field(None, alias="schema")
    select: Texts | None = None
    where: str | None = None
    options: Options = Field(default_factory=dict)


class Files(Refined):
    """``max_files``: how many files a micro-batch takes at most."""

    format: Literal["parquet", "csv", "json", "delta"]
    path: str
    max_files: Count | None = None


class Kafka(Refined):
    """The values of the records are JSON. ``record_time``, ``record_key``, ``record_partition``, ``record_offset``:
    columns to put the record's own time, key (as text), partition and offset into.

    ``starting``: from where a first run reads; ``ending``: where a batch ends. ``max_events``: how many a micro-batch
    takes at most. ``malformed``: a value that is no JSON of this schema stops the job, or is dropped.
    """

    format: Literal["kafka"]
    servers: Texts
    topics: Texts
    record_time: str | None = None
    record_key: str | None = None
    record_partition: str | None = None
    record_offset: str | None = None
    starting: str = "earliest"
    ending: str = "latest"
    max_events: Count | None = None
    malformed: Literal["fail", "drop"] = "fail"


class Rate(Refined):
    """Spark's own made-up stream of a number and a time, of which ``select`` makes events."""

    format: Literal["rate"]
    rows_per_second: Count = 1000


class Socket(Refined):
    """Lines from a socket: JSON if there is a schema, else a column ``value``. For trials: a restart loses lines."""

    format: Literal["socket"]
    host: str = "localhost"
    port: Annotated[int, Field(ge=1, le=65535)]


class Workload(Refined):
    """A generator of ``cepheid.workloads``. ``files``: in how many it is written; a stream takes one at a time."""

    workload: str
    events: Count = 100_000
    arguments: Mapping[str, Any] = {}
    files: Count = 8


def _source_kind(value: object) -> str | None:
    if isinstance(value, Mapping):
        return "workload" if "workload" in value else _FILES.get(value.get("format"), value.get("format"))
    return _FILES.get(getattr(value, "format", "workload"), getattr(value, "format", "workload"))


_FILES: dict[Any, str] = dict.fromkeys(("parquet", "csv", "json", "delta"), "files")
Source = Annotated[
    Annotated[Files, Tag("files")]
    | Annotated[Kafka, Tag("kafka")]
    | Annotated[Rate, Tag("rate")]
    | Annotated[Socket, Tag("socket")]
    | Annotated[Workload, Tag("workload")],
    Discriminator(_source_kind),
]
SOURCES = (*_FILES, "kafka", "rate", "socket")


class FileSink(Part):
    """``mode``: what a batch does where there is something already. A stream always adds to it. ``partition_by``:
    columns whose values become folders.
    """

    format: Literal["parquet", "csv", "json", "delta"]
    path: str
    mode: Literal["error", "append", "overwrite"] = "error"
    partition_by: Texts | None = None
    options: Options = Field(default_factory=dict)


class KafkaSink(Part):
    """A record for each match: its value is JSON, its key says which match it is, so that one that is written twice can
    be told. ``key``: columns to make the key of; what tells matches apart is then the header ``match-id``.
    """

    format: Literal["kafka"]
    servers: Texts
    topic: str
    key: Texts | None = None
    options: Options = Field(default_factory=dict)


class ShownSink(Part):
    """``console`` prints ``rows`` matches of a batch or micro-batch; ``memory`` makes a table ``name`` in the session
    for who runs a job from Python; ``none`` only counts.
    """

    format: Literal["console", "memory", "none"]
    rows: Count = 20
    name: str = "matches"


def _sink_kind(value: object) -> str | None:
    kind = value.get("format") if isinstance(value, Mapping) else getattr(value, "format", None)
    return {**_FILES, **dict.fromkeys(("console", "memory", "none"), "shown")}.get(kind, kind)


Sink = Annotated[
    Annotated[FileSink, Tag("files")] | Annotated[KafkaSink, Tag("kafka")] | Annotated[ShownSink, Tag("shown")],
    Discriminator(_sink_kind),
]
SINKS = (*_FILES, "kafka", "console", "memory", "none")


class EventColumns(Part):
    """The columns with a role. ``type: null`` says that every event has every type."""

    time: str = "ts"
    type: str | None = "type"
    tie_breaker: str | None = None


class SparkSettings(Part):
    """``master``: where a session is started, all cores of this machine if not said. ``remote``: a Spark Connect server
    that has one. ``packages``: Maven coordinates of jars to fetch.
    """

    master: str | None = None
    remote: str | None = None
    packages: Texts | None = None
    settings: Options = Field(default_factory=dict)
    log_level: Literal["ALL", "DEBUG", "INFO", "WARN", "ERROR", "OFF"] = "ERROR"


def _start(value: object) -> object:
    return value if value == "available_now" else length(as_length(value))


Trigger = Annotated[str, BeforeValidator(_start)]


class Job(Part):
    """``folder``: what paths are relative to. ``trigger``: how often micro-batches start, or ``available_now`` to take
    what there is and end. ``run_for``: when to stop a stream. ``modules``: those that register functions.
    """

    source: Source
    patterns: Texts
    sink: Sink
    name: str = "cepheid"
    mode: Literal["batch", "stream"] = "batch"
    events: EventColumns = EventColumns()
    engine: EngineOptions = EngineOptions()
    checkpoint: str | None = None
    trigger: Trigger | None = None
    run_for: Length | None = None
    spark: SparkSettings = SparkSettings()
    modules: Annotated[Texts | None, Field(alias="import")] = None
    folder: Annotated[Path, Field(exclude=True, repr=False)] = Path()

    def place(self, path: str) -> str:
        """A path of the description, from where we are; addresses such as ``s3a://…`` stay as they are.

        >>> from cepheid.job import parse_job
        >>> job = parse_job("{source: {workload: card_payments}, patterns: x.cep, sink: {format: none}}", check=False)
        >>> job.place("/data/events"), job.place("s3a://bucket/events")
        ('/data/events', 's3a://bucket/events')
        """
        return located(self.folder, path)


def is_local(path: str) -> bool:
    """Whether a path is one of this machine's, and no address."""
    return "://" not in path and not path.startswith(("dbfs:", "hdfs:", "file:"))


def located(folder: Path, path: str) -> str:
    if not is_local(path):
        return path
    return str((folder / Path(path).expanduser()).resolve())
