"""Matching a DataFrame, batch or streaming."""

from __future__ import annotations

import datetime as dt
import os
from collections.abc import Iterable, Mapping, Sequence

from pyspark.sql import DataFrame

from cepheid.adapt.adapting import Migration
from cepheid.adapt.every import CheckEvery
from cepheid.adapt.policies import Policy
from cepheid.engine.engine import Engine
from cepheid.engine.ingest import EventColumns
from cepheid.engine.planning import Share
from cepheid.language.pattern import Pattern, with_names
from cepheid.pattern.check import check
from cepheid.pattern.normal import Branch
from cepheid.pattern.normalise import normalise
from cepheid.pattern.read import patterns_in
from cepheid.shed.strategies import Strategy
from cepheid.spark.batch import match_batch
from cepheid.spark.columns import arrow_schema, needed_columns, refuse_dates
from cepheid.stats.estimates import Estimates


def match(
    patterns: str | Pattern | Iterable[str | Pattern],
    df: DataFrame,
    *,
    time: str = "ts",
    type: str | None = "type",
    tie_breaker: str | None = None,
    shards: int | None = None,
    allowed_lateness: str | int | dt.timedelta | None = None,
    late_events: str | os.PathLike[str] | None = None,
    metrics: str | None = None,
    planner: str = "auto",
    order: Sequence[str] | None = None,
    statistics: Mapping[Branch, Estimates] | None = None,
    negation: str = "auto",
    adapt: Policy | bool | str | None = None,
    check_every: CheckEvery = None,
    migrate: Migration = "rebuild",
    share: Share = None,
    shed: Strategy | None = None,
    max_partial_matches: int = 100_000_000,
) -> DataFrame:
    """All matches of patterns in a DataFrame of events, a row each; batch or streaming as the DataFrame is.

    ``patterns``, ``time``, ``type``, ``tie_breaker`` and the engine's options are those of :func:`cepheid.match`.
    ``shards``: how many tasks share the work; if not said, as many as keep all cores busy. In a stream,
    ``allowed_lateness`` says how late an event may come, such as ``"10 minutes"`` or, where time is a number, a number;
    ``late_events`` names a folder for those that come later, from which a second stream can read them; ``metrics`` is
    the name of what is counted in the query's progress, ``"cepheid"`` if not said: of several results in one query,
    each needs another. A batch has none of these. With ``adapt``, each task follows its own events; with ``share``,
    each plans for its own. ``shed``, for streams, says what to drop when micro-batches take so long that events would
    wait for longer than a bound, such as ``cepheid.HSpice(latency_bound="5 seconds")``.

    With PARTITION BY, or conditions such as ``a.k = b.k`` that link all events of a match, the rows of a key go to one
    task, and a key with very many rows is cut into slices of time. Other patterns are matched in slices of time.
    To find out how the rows are spread, a sample of a batch is looked at here, in a job of its own; nothing else runs
    before the result is asked for. With one shard, there is nothing to find out.

    >>> from cepheid.spark import match, session
    >>> spark = session(cores=1)
    >>> rows = [(1, "A", 5), (2, "B", 7), (9, "B", 8)]
    >>> events = spark.createDataFrame(rows, "ts long, type string, x long")
    >>> match("PATTERN SEQ(A a, B b) WHERE a.x < b.x WITHIN 5 RETURN b.x - a.x AS gain", events).collect()
    [Row(pattern='pattern_1', start=1, end=2, gain=2)]
    """
    if not isinstance(df, DataFrame):
        raise TypeError(
            f"df is a DataFrame of Spark's, got {_called(df)}. spark.createDataFrame(…) makes one of a table; "
            "cepheid.match takes a table as it is, without Spark"
        )
    if shards is not None and (isinstance(shards, bool) or not isinstance(shards, int)):
        raise TypeError(f"shards is a whole number, 1 or more, got {shards!r}")
    if shards is not None and shards < 1:
        raise ValueError(f"shards is 1 or more, got {shards}")
    columns = EventColumns(time, type, tie_breaker)
    named = with_names(patterns_in(patterns))
    schema = arrow_schema(df.schema)
    check(named, schema, time=time, type=type, tie_breaker=tie_breaker)
    refuse_dates(schema, columns)
    engine = Engine(
        named,
        columns,
        planner,
        order,
        dict(statistics or {}),
        max_partial_matches,
        negation,
        adapt,
        check_every,
        migrate,
        share,
        shed,
    )
    needed_columns(engine, [normalise(pattern) for pattern in named], schema)  # says now what would be wrong then
    engine.output_schema(schema)
    if df.isStreaming:
        from cepheid.spark.stream import METRICS, match_stream

        folder = None if late_events is None else os.fspath(late_events)
        return match_stream(
            engine,
            df,
            shards=shards,
            allowed_lateness=allowed_lateness,
            late_events=folder,
            metrics=METRICS if metrics is None else metrics,
        )
    if allowed_lateness is not None:
        raise ValueError(
            "allowed_lateness is for streams: the events of a table are all there, in any order. Leave it away, or "
            "match a streaming DataFrame"
        )
    if metrics is not None:
        raise ValueError("metrics is for streams: a batch does not report its progress. Leave it away")
    if late_events is not None:
        raise ValueError("late_events is for streams: a batch has none, since all its events are there")
    if shed is not None:
        raise ValueError(
            "shed is for streams: the events of a table do not come too fast, they wait. Leave it away, or match a "
            "streaming DataFrame"
        )
    estimate = not statistics and planner != "pattern_order" and order is None
    return match_batch(engine, df, shards=shards, estimate=estimate)


def _called(value: object) -> str:
    return f"a {type(value).__module__.partition('.')[0]}.{type(value).__qualname__}"
