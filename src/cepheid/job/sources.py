"""Where the events of a job come from, as a DataFrame."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from typing_extensions import assert_never

from cepheid.job import sql
from cepheid.job.description import Files, Job, Kafka, Rate, Socket, Workload, is_local
from cepheid.job.environment import resolved
from cepheid.job.generated import generate
from cepheid.job.session import as_texts

if TYPE_CHECKING:
    from cepheid.spark.pyspark_names import DataFrame, SparkSession

MALFORMED = "_malformed"


def prepare(job: Job, scratch: Path) -> None:
    """What has to be there before the events can be read: a workload's files."""
    folder = _made_up(job, scratch)
    if isinstance(job.source, Workload) and not folder.exists():
        generate(job.source, folder)


def _made_up(job: Job, scratch: Path) -> Path:
    return kept_events(job) or scratch / "events"


def kept_events(job: Job) -> Path | None:
    """Where a workload's files stay, if there is a checkpoint: beside it, since the next run must know them again."""
    if job.checkpoint is None or not is_local(job.place(resolved(job.checkpoint))):
        return None
    return Path(job.place(resolved(job.checkpoint)) + ".events")


def open_events(spark: SparkSession, job: Job, scratch: Path, *, streaming: bool) -> DataFrame:
    """The events, with the columns and rows that the patterns are to see; nothing is read yet."""
    source = job.source
    match source:
        case Files():
            frame = _files(spark, source, job.place(resolved(source.path)), streaming)
        case Workload():
            written = str(_made_up(job, scratch))
            made = Files.model_validate({"format": "parquet", "path": written, "max_files": 1})
            frame = _files(spark, made, written, streaming)
        case Kafka():
            frame = _kafka(spark, source, streaming)
        case Rate():
            options = {"rowsPerSecond": str(source.rows_per_second), **as_texts(source.options)}
            frame = spark.readStream.format("rate").options(**options).load()
        case Socket():
            options = {"host": resolved(source.host), "port": str(source.port), **as_texts(source.options)}
            frame = spark.readStream.format("socket").options(**options).load()
            if source.ddl is not None:
                frame = _from_json(frame, source.ddl, "FAILFAST", [])
        case _:
            assert_never(source)
    if source.where is not None:
        frame = frame.where(resolved(source.where))
    return frame if source.select is None else frame.selectExpr(*map(resolved, source.select))


def can_be_read_again(job: Job) -> bool:
    """Whether a stream's events can also be had as a batch."""
    return isinstance(job.source, (Files, Workload, Kafka))


def _files(spark: SparkSession, source: Files, path: str, streaming: bool) -> DataFrame:
    options = as_texts(source.options)
    if source.format == "csv":
        options = sql.CSV | options
        if source.ddl is None:
            options = {"inferSchema": "true"} | options
    if not streaming:
        reader = spark.read.format(source.format).options(**options)
        return (reader if source.ddl is None else reader.schema(source.ddl)).load(path)
    if source.max_files is not None:
        options["maxFilesPerTrigger"] = str(source.max_files)
    stream = spark.readStream.format(source.format).options(**options)
    if source.ddl is not None:
        stream = stream.schema(source.ddl)
    elif source.format == "parquet":
        stream = stream.schema(spark.read.parquet(path).schema)  # the files say it themselves
    return stream.load(path)


def _kafka(spark: SparkSession, source: Kafka, streaming: bool) -> DataFrame:
    options = {
        "kafka.bootstrap.servers": resolved(",".join(source.servers)),
        "subscribe": resolved(",".join(source.topics)),
        "startingOffsets": resolved(source.starting),
        **as_texts(source.options),
    }
    if streaming:
        if source.max_events is not None:
            options["maxOffsetsPerTrigger"] = str(source.max_events)
        frame = spark.readStream.format("kafka").options(**options).load()
    else:
        options = {"endingOffsets": resolved(source.ending)} | options
        frame = spark.read.format("kafka").options(**options).load()
    return events_in(frame, source)


def events_in(records: DataFrame, source: Kafka) -> DataFrame:
    """What the values of records say, and what is asked for of the records themselves."""
    assert source.ddl is not None  # a check of the description
    own = {
        "timestamp": source.record_time, "CAST(key AS STRING)": source.record_key,
        "partition": source.record_partition, "offset": source.record_offset,
    }  # fmt: skip
    more = [f"{value} AS {sql.name(column)}" for value, column in own.items() if column is not None]
    return _from_json(records, source.ddl, "FAILFAST" if source.malformed == "fail" else "PERMISSIVE", more)


def _from_json(frame: DataFrame, ddl: str, mode: str, more: list[str]) -> DataFrame:
    """Columns of JSON texts. PERMISSIVE drops what is not JSON of this schema, FAILFAST stops at it."""
    columns = ddl if mode == "FAILFAST" else f"{ddl}, {MALFORMED} STRING"
    options = f"map('mode', '{mode}', 'columnNameOfCorruptRecord', '{MALFORMED}')"
    parsed = f"from_json(CAST(value AS STRING), {sql.text(columns)}, {options}) AS event"
    read = frame.where("value IS NOT NULL").selectExpr(parsed, *more)
    if mode != "FAILFAST":
        read = read.where(f"event IS NOT NULL AND event.{MALFORMED} IS NULL")
    added = [column for column in read.columns if column != "event"]
    wide = read.selectExpr("event.*", *map(sql.name, added))
    return wide if mode == "FAILFAST" else wide.drop(MALFORMED)
