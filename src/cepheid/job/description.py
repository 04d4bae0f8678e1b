"""A job as an immutable value: what its YAML file says, with what is left unsaid filled in."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Discriminator, Field, Tag

from cepheid.adapt.every import Every
from cepheid.adapt.follower import Migration
from cepheid.engine.engine import NEGATIONS
from cepheid.language.values import UNITS, Interval
from cepheid.plan.planner import PLANNERS
from cepheid.plan.sharing.plan import MODES, Sharing
from cepheid.shed.strategies import STRATEGIES, Strategy, strategy_called

_LENGTH = re.compile(r"(\d+(?:\.\d+)?)\s*([a-zµμ]+)", re.IGNORECASE)


def interval(text: str) -> Interval:
    """``10 seconds``, ``1.5 hours``; ValueError for anything else.

    >>> interval("90 seconds")
    Interval(nanoseconds=90000000000)
    """
    found = _LENGTH.fullmatch(text.strip())
    if not found or found.group(2).lower() not in UNITS:
        raise ValueError("a length of time such as 10 seconds")
    length = Interval.of(found.group(1), found.group(2))
    if length.nanoseconds % 1_000_000:
        raise ValueError("a length of time in whole milliseconds")
    return length


def _length(text: str) -> str:
    interval(text)
    return text.strip()


def _one_of(*words: str) -> AfterValidator:
    def known(word: str) -> str:
        if word not in words:
            raise ValueError(f"one of {', '.join(words)}")
        return word

    return AfterValidator(known)


def _as_list(value: object) -> object:
    return [value] if isinstance(value, str) else value


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


Length = Annotated[str, AfterValidator(_length)]
Texts = Annotated[tuple[str, ...], BeforeValidator(_as_list), Field(min_length=1)]
Options: TypeAlias = Mapping[str, str | bool | int | float]
Ddl = Annotated[str | None, BeforeValidator(ddl_of)]
Count = Annotated[int, Field(ge=1)]


class Part(BaseModel):
    """What all parts of a description share: they do not change, and take no field that they do not know."""

    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True)


class Refined(Part):
    """A source. ``schema``: the columns, where the source does not say them. ``select`` and ``where`` are Spark SQL:
    they make of what is read the columns and rows that the patterns are to see.
    """

    ddl: Ddl = Field(None, alias="schema")
    select: Texts | None = None
    where: str | None = None
    options: Options = {}


class Files(Refined):
    """``max_files``: how many files a micro-batch takes at most."""

    format: Literal["parquet", "csv", "json", "delta"]
    path: str
    max_files: Count | None = None


class Kafka(Refined):
    """The values of the records are JSON. ``record_time``: a column to put the record's own time into.

    ``starting``: from where a first run reads; ``ending``: where a batch ends. ``max_events``: how many a micro-batch
    takes at most. ``malformed``: a value that is no JSON of this schema stops the job, or is dropped.
    """

    format: Literal["kafka"]
    servers: Texts
    topics: Texts
    record_time: str | None = None
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
    """``mode``: what a batch does where there is something already. A stream always adds to it."""

    format: Literal["parquet", "csv", "json", "delta"]
    path: str
    mode: Literal["error", "append", "overwrite"] = "error"
    options: Options = {}


class KafkaSink(Part):
    """A record for each match: its value is JSON, its key says which match it is, so that one that is written twice can
    be told. ``key``: columns to make the key of; what tells matches apart is then the header ``match-id``.
    """

    format: Literal["kafka"]
    servers: Texts
    topic: str
    key: Texts | None = None
    options: Options = {}


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


class SharingOptions(Part):
    """A search for a plan that patterns share, as ``cepheid.Sharing`` describes it."""

    search: Literal["annealing", "tabu"] = "annealing"
    neighbourhood: Literal["edge", "vertex"] = "edge"
    k: Annotated[int, Field(ge=2)] = 4
    seconds: Annotated[float, Field(ge=0)] = 5.0
    seed: int = 0
    steps: Annotated[int, Field(ge=0)] | None = None
    plans: Literal["trees", "chains"] = "trees"
    descend: bool = True

    def sharing(self) -> Sharing:
        return Sharing(**self.model_dump())


def _share_word(value: object) -> object:
    if value not in MODES:
        raise ValueError(f"one of {', '.join(MODES)}, or a mapping with search, seconds, …")
    return value


def _often(value: object) -> object:
    try:
        Every.of(value)  # type: ignore[arg-type]
    except ValueError:
        raise ValueError("a number of events, or text such as 500 events or 10 minutes") from None
    return value


Share = Annotated[
    Annotated[str, BeforeValidator(_share_word), Tag("word")] | Annotated[SharingOptions, Tag("search")],
    Discriminator(lambda value: "search" if isinstance(value, (Mapping, SharingOptions)) else "word"),
]


def _safe(part: float) -> float:
    if not 0 < part < 1:
        raise ValueError("a part of the latency bound, between 0 and 1")
    return part


class ShedOptions(Part):
    """What to drop under overload, as the strategies such as ``cepheid.HSpice`` describe it."""

    strategy: Annotated[str, _one_of(*STRATEGIES)]
    latency_bound: Length
    safety: Annotated[float, AfterValidator(_safe)] = 0.8
    weights: Mapping[str, Annotated[float, Field(ge=0)]] = {}
    observations: Count = 20_000

    def made(self) -> Strategy:
        return strategy_called(self.strategy)(**self.model_dump(exclude={"strategy"}))


class EngineOptions(Part):
    """As for ``cepheid.spark.match``. ``allowed_lateness``: a number where times are numbers."""

    adapt: bool = False
    check_every: Annotated[int | str | None, BeforeValidator(_often)] = None
    migrate: Migration = "rebuild"
    planner: Annotated[str, _one_of("auto", *PLANNERS)] = "auto"
    order: Texts | None = None
    negation: Annotated[str, _one_of(*NEGATIONS)] = "auto"
    share: Share | None = None
    shed: ShedOptions | None = None
    max_partial_matches: Count = 100_000_000
    shards: Count | None = None
    allowed_lateness: Length | int | None = None
    late_events: str | None = None

    @property
    def sharing(self) -> str | Sharing | None:
        """As ``cepheid.match`` takes it."""
        return self.share.sharing() if isinstance(self.share, SharingOptions) else self.share

    @property
    def shedding(self) -> Strategy | None:
        return None if self.shed is None else self.shed.made()


class SparkSettings(Part):
    """``master``: where a session is started, all cores of this machine if not said. ``remote``: a Spark Connect server
    that has one. ``packages``: Maven coordinates of jars to fetch.
    """

    master: str | None = None
    remote: str | None = None
    packages: Texts | None = None
    settings: Options = {}
    log_level: Literal["ALL", "DEBUG", "INFO", "WARN", "ERROR", "OFF"] = "ERROR"


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
    trigger: Annotated[str, AfterValidator(lambda text: text if text == "available_now" else _length(text))] | None = (
        None
    )
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
