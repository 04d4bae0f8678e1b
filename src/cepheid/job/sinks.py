"""Where the matches of a job go."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from typing_extensions import assert_never

from cepheid.job import sql
from cepheid.job.description import FileSink, Job, KafkaSink, ShownSink
from cepheid.job.environment import resolved
from cepheid.job.part import interval
from cepheid.job.session import as_texts

if TYPE_CHECKING:
    from cepheid.spark.pyspark_names import DataFrame, SparkSession, StreamingQuery

_NESTED = ("struct", "array", "map")


def where_to(job: Job) -> str | None:
    """Where matches are found afterwards, in words; None if nowhere."""
    match job.sink:
        case FileSink(path=path):
            return job.place(path)
        case KafkaSink(topic=topic):
            return f"the topic {topic}"
        case ShownSink(format="memory", name=name):
            return f"the table {name}"
        case ShownSink():
            return None
    assert_never(job.sink)


def write_batch(found: DataFrame, job: Job) -> None:
    """Write matches. Nothing is written by the sinks that only show or count."""
    sink = job.sink
    match sink:
        case FileSink():
            writer = (
                _fitting(found, sink).write.format(sink.format).mode(sink.mode).partitionBy(*sink.partition_by or ())
            )
            writer.options(**_file_options(sink)).save(job.place(resolved(sink.path)))
        case KafkaSink():
            kafka_records(found, sink).write.format("kafka").options(**_kafka_options(sink)).save()
        case ShownSink(format="memory"):
            found.createOrReplaceTempView(sink.name)
        case ShownSink():
            pass
        case _:
            assert_never(sink)


def start_stream(found: DataFrame, job: Job, show: Callable[[DataFrame, int], Any]) -> StreamingQuery:
    """Start writing matches. ``show`` is called with the matches of each micro-batch, if the sink is the console."""
    sink = job.sink
    match sink:
        case FileSink():
            writer = _fitting(found, sink).writeStream.format(sink.format).partitionBy(*sink.partition_by or ())
            writer = writer.options(**_file_options(sink)).option("path", job.place(resolved(sink.path)))
        case KafkaSink():
            writer = kafka_records(found, sink).writeStream.format("kafka").options(**_kafka_options(sink))
        case ShownSink(format="memory"):
            writer = found.writeStream.format("memory").queryName(sink.name)
        case ShownSink(format="console"):
            writer = found.writeStream.foreachBatch(show)
        case ShownSink():
            writer = found.writeStream.format("noop")
        case _:
            assert_never(sink)
    if not (isinstance(sink, ShownSink) and sink.format == "memory"):
        writer = writer.queryName(resolved(job.name))
    if job.checkpoint is not None:
        writer = writer.option("checkpointLocation", job.place(resolved(job.checkpoint)))
    if job.trigger == "available_now":
        writer = writer.trigger(availableNow=True)
    elif job.trigger is not None:
        writer = writer.trigger(processingTime=f"{interval(job.trigger).nanoseconds // 1_000_000} milliseconds")
    return writer.outputMode("append").start()


def kafka_records(found: DataFrame, sink: KafkaSink) -> DataFrame:
    """A record for each match: JSON with a key that is the same whenever the same match is written."""
    value = sql.to_json(sql.struct(found.columns))
    identity = f"sha2({value}, 256)"
    if sink.key is None:
        return found.selectExpr(f"{identity} AS key", f"{value} AS value")
    header = f"array(struct('match-id' AS key, CAST({identity} AS BINARY) AS value)) AS headers"
    return found.selectExpr(f"{sql.to_json(sql.struct(sink.key))} AS key", f"{value} AS value", header)


def _fitting(found: DataFrame, sink: FileSink) -> DataFrame:
    """A CSV file has no lists and no structs: they become JSON."""
    if sink.format != "csv":
        return found
    nested = {field.name for field in found.schema if field.dataType.typeName() in _NESTED}
    names = ((column, sql.name(column)) for column in found.columns)
    return found.selectExpr(*(f"{sql.to_json(n)} AS {n}" if column in nested else n for column, n in names))


def _file_options(sink: FileSink) -> dict[str, str]:
    usual = dict(sql.JSON) if sink.format in ("csv", "json") else {}
    if sink.format == "csv":
        usual |= sql.CSV
    return usual | as_texts(sink.options)


def _kafka_options(sink: KafkaSink) -> dict[str, str]:
    servers, topic = resolved(",".join(sink.servers)), resolved(sink.topic)
    return {"kafka.bootstrap.servers": servers, "topic": topic, **as_texts(sink.options)}


def read_back(spark: SparkSession, job: Job, sink: FileSink, found: DataFrame) -> DataFrame:
    """The matches that were written, all of them. ``found``: for the columns."""
    reader = spark.read.format(sink.format).options(**_file_options(sink))
    return reader.schema(_fitting(found, sink).schema).load(job.place(resolved(sink.path)))
