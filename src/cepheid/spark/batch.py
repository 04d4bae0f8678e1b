"""Matching a whole DataFrame: rows to shards by key, or to slices of time, one engine session for each."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import reduce

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812

from cepheid.engine.engine import Engine
from cepheid.pattern.normal import NormalForm
from cepheid.pattern.normalise import normalise
from cepheid.spark.columns import arrow_schema, needed_columns, spark_schema
from cepheid.spark.groups import grouped
from cepheid.spark.pushdown import wanted_rows
from cepheid.spark.routes import EVERYTHING, Route
from cepheid.spark.sizing import all_rows, heavy_keys, parallelism
from cepheid.spark.slices import can_be_sliced, cut, reach_of
from cepheid.spark.task import Task, functions_in
from cepheid.spark.ticks import TimeColumn

FEWEST = 50_000
"""Fewer rows than these are not worth a task of their own."""
LARGE = 5_000_000
"""More rows than these are too many for one."""


def match_batch(engine: Engine, df: DataFrame, *, shards: int | None = None, estimate: bool = True) -> DataFrame:
    """The matches of an engine's patterns, which have names and fit the columns, in all rows of a DataFrame.

    ``estimate``: choose plans by the events that a task sees first.
    """
    job = _Job(engine, df, shards, estimate)
    return reduce(lambda one, other: one.unionAll(other), job.results())


@dataclass(frozen=True)
class _Part:
    """Patterns, by their places, whose events take the same route."""

    places: Sequence[int]
    route: Route


class _Job:
    def __init__(self, engine: Engine, df: DataFrame, shards: int | None, estimate: bool) -> None:
        self._engine = engine
        self._shards = shards
        self._estimate = estimate
        self._events = arrow_schema(df.schema)
        self._matches = spark_schema(engine.output_schema(self._events))
        self._normals = [normalise(pattern) for pattern in engine.patterns]
        # Columns are numbered on the way: any name will do, and none clashes with another.
        self._frame = df.toDF(*(f"c{place}" for place in range(len(self._events))))
        self._named = {name: F.col(f"c{place}") for place, name in enumerate(self._events.names)}
        time = engine.columns.time
        self._time = TimeColumn(self._named[time], self._events.field(time).type)

    def results(self) -> Iterator[DataFrame]:
        for group in grouped(self._normals, self._events.names):
            for part in self._parts(group.places, group.keys):
                yield self._matched(part)

    # --- which way the rows go

    def _parts(self, places: Sequence[int], names: Sequence[str]) -> Iterator[_Part]:
        """Those patterns that can be sliced where that helps, and the others, whose events stay together."""
        keys = [self._key(name) for name in names]
        sliceable = [place for place in places if can_be_sliced(self._normals[place])]
        route = Route(keys, self._shards or self._hands())
        if sliceable:
            route = self._sliced(sliceable, route)
        if not route.slices:
            yield _Part(places, route)
            return
        yield _Part(sliceable, route)
        if rest := [place for place in places if place not in sliceable]:
            yield _Part(rest, replace(route, slices={}))

    def _hands(self) -> int:
        """As many parts as keep everyone busy to the end."""
        cores = parallelism(self._frame.sparkSession)
        return 2 * cores if cores > 1 else 1

    def _sliced(self, places: Sequence[int], route: Route) -> Route:
        """With slices for all rows, if there are no keys, or for those of the keys that have too many."""
        rows = self._rows(places)
        reach = reach_of(self._normals[place] for place in places)
        wanted = route.shards
        if not route.keys:
            if wanted == 1:
                return route
            crowd = all_rows(rows, self._time, self._engine.columns.time, wanted)
            if self._shards is None:
                wanted = min(max(wanted, -(-crowd.count // LARGE)), max(crowd.count // FEWEST, 1))
            slices = cut(crowd.times, wanted, max(wanted // 2, 1), reach)
            return replace(route, slices={EVERYTHING: slices}) if len(slices) > 1 else route
        if self._shards is not None:
            return route
        total, crowds = heavy_keys(rows, route.keys, self._time, wanted, FEWEST)
        shards = min(max(wanted, -(-total // LARGE)), max(total // FEWEST, 1))
        cuts = {key: cut(c.times, -(-c.count * wanted // total), 2, reach) for key, c in crowds.items()}
        return replace(route, shards=shards, slices={key: slices for key, slices in cuts.items() if len(slices) > 1})

    def _key(self, name: str) -> Column:
        """A column so that Spark's hash agrees with what is equal to the engine: NaN is NULL, -0.0 is 0.0."""
        column, type_ = self._named[name], self._events.field(name).type
        if pa.types.is_decimal(type_):
            column, type_ = column.cast("double"), pa.float64()
        if pa.types.is_floating(type_):
            return F.when(~F.isnan(column), column + F.lit(0.0))
        return column

    # --- what is done with them there

    def _rows(self, places: Iterable[int]) -> DataFrame:
        normals = [self._normals[place] for place in places]
        wanted = wanted_rows(normals, self._engine.columns, self._events, self._named)
        return self._frame if wanted is None else self._frame.filter(wanted)

    def _matched(self, part: _Part) -> DataFrame:
        normals: list[NormalForm] = [self._normals[place] for place in part.places]
        engine = replace(self._engine, patterns=tuple(self._engine.patterns[place] for place in part.places))
        needed = needed_columns(engine, normals, self._events)
        task = Task(
            engine,
            pa.schema([self._events.field(name) for name in needed]),
            arrow_schema(self._matches),
            part.route.cells,
            self._estimate,
            functions_in(normals),
        )
        rows = self._rows(part.places).select(*(self._named[name] for name in needed))
        sent = part.route.sent(rows, self._time)
        return sent.mapInArrow(task.run, self._matches)
