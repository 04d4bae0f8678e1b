"""The columns of a DataFrame as Arrow has them, and which of them patterns need."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import pyarrow as pa
from pyspark.sql import types as t

from cepheid.engine.engine import Engine
from cepheid.engine.ingest import EventColumns
from cepheid.language import syntax as s
from cepheid.pattern.normal import NormalForm
from cepheid.pattern.schema import SchemaError

_PLAIN: dict[type[t.DataType], pa.DataType] = {
    t.BooleanType: pa.bool_(),
    t.ByteType: pa.int8(),
    t.ShortType: pa.int16(),
    t.IntegerType: pa.int32(),
    t.LongType: pa.int64(),
    t.FloatType: pa.float32(),
    t.DoubleType: pa.float64(),
    t.StringType: pa.string(),
    t.CharType: pa.string(),
    t.VarcharType: pa.string(),
    t.BinaryType: pa.binary(),
    t.DateType: pa.date32(),
    t.TimestampType: pa.timestamp("us", tz="UTC"),
    t.TimestampNTZType: pa.timestamp("us"),
    t.DayTimeIntervalType: pa.duration("us"),
    t.NullType: pa.null(),
}
if hasattr(t, "TimeType"):  # of Spark 4.1
    _PLAIN[t.TimeType] = pa.time64("ns")
_SPARK: dict[pa.DataType, t.DataType] = {
    arrow: spark() for spark, arrow in _PLAIN.items() if spark not in (t.CharType, t.VarcharType)
}
UNKNOWN = pa.large_binary()
"""Stands for a type that Arrow does not have: no condition can use such a column."""


def arrow_schema(columns: t.StructType) -> pa.Schema:
    """The columns as a task gets them. Times with a zone are in UTC, whatever the zone of the session.

    >>> from pyspark.sql.types import LongType, StructField, StructType, TimestampType
    >>> arrow_schema(StructType([StructField("ts", TimestampType()), StructField("x", LongType(), nullable=False)]))
    ts: timestamp[us, tz=UTC]
    x: int64
    """
    names = columns.names
    repeated = sorted({name for name in names if names.count(name) > 1})
    if repeated:
        raise SchemaError(f"several columns are called {', '.join(map(repr, repeated))}; give them names of their own")
    return pa.schema([pa.field(field.name, _to_arrow(field.dataType)) for field in columns])


def _to_arrow(type_: t.DataType) -> pa.DataType:
    match type_:
        case t.DecimalType():
            return pa.decimal128(type_.precision, type_.scale)
        case t.ArrayType():
            return pa.list_(pa.field("element", _to_arrow(type_.elementType)))
        case t.MapType():
            return pa.map_(_to_arrow(type_.keyType), pa.field("value", _to_arrow(type_.valueType)))
        case t.StructType():
            return pa.struct([pa.field(field.name, _to_arrow(field.dataType)) for field in type_])
    return _PLAIN.get(type(type_), UNKNOWN)


def spark_schema(matches: pa.Schema) -> t.StructType:
    """The columns of matches as Spark has them.

    >>> print(spark_schema(pa.schema({"end": pa.timestamp("us", "UTC"), "n": pa.list_(pa.int64())})).simpleString())
    struct<end:timestamp,n:array<bigint>>
    """
    return t.StructType([t.StructField(field.name, _to_spark(field.type)) for field in matches])


def _to_spark(type_: pa.DataType) -> t.DataType:
    if pa.types.is_decimal(type_):
        return t.DecimalType(type_.precision, type_.scale)
    if pa.types.is_map(type_):
        return t.MapType(_to_spark(type_.key_type), _to_spark(type_.item_type))
    if pa.types.is_list(type_):
        return t.ArrayType(_to_spark(type_.value_type))
    if pa.types.is_struct(type_):
        return t.StructType([t.StructField(field.name, _to_spark(field.type)) for field in type_])
    if pa.types.is_duration(type_):
        return t.DayTimeIntervalType()
    if pa.types.is_timestamp(type_):
        return t.TimestampNTZType() if type_.tz is None else t.TimestampType()
    return _SPARK[type_]


def microseconds_of(column: str) -> str:
    """SQL for a time without a zone as microseconds since 1970.

    What Spark has for it, ``timestampdiff`` too, takes the time for one of the session's zone, whose clock may leap.
    """
    seconds = f"CAST({column} - TIMESTAMP_NTZ '1970-01-01' AS INTERVAL SECOND)"
    return f"CAST(CAST({seconds} AS DECIMAL(19, 6)) * 1000000 AS BIGINT)"


def needed_columns(engine: Engine, normals: Iterable[NormalForm], columns: pa.Schema) -> list[str]:
    """The columns without which the matches would not be the same, in their order.

    Where events of the same time are told apart by their attributes, column by column, that is all of them: CONSUME
    chooses by them, and a list of a KL variable's events is ordered by them.
    """
    if any(normal.selection.consume or _lists_events(normal) for normal in normals):
        needed: Sequence[str] = columns.names
    else:
        needed = engine.needed_columns(columns)
    strange = [name for name in needed if _is_unknown(columns.field(name).type)]
    if strange:
        raise SchemaError(
            f"columns of a type that Arrow does not have cannot be handed to the engine: {', '.join(strange)}. Drop "
            "them from the DataFrame, or name the columns of the result with RETURN, so that they are not asked for."
        )
    return list(needed)


def refuse_dates(columns: pa.Schema, roles: EventColumns) -> None:
    """A day is not a point in time; whoever means its first moment can say so."""
    for role, name in (("time", roles.time), ("tie_breaker", roles.tie_breaker)):
        if name in columns.names and pa.types.is_date(columns.field(name).type):
            raise SchemaError(f"{role}={name!r}: this column holds dates; turn them into timestamps first")


def _lists_events(normal: NormalForm) -> bool:
    """Whether RETURN lists something of each event of a KL variable. Aggregates do not."""
    sets = {v.name for branch in normal.branches for v in branch.variables if v.is_kleene}
    return any(sets & _plain(item.expression) for item in normal.output or ())


def _plain(expression: s.Expression) -> frozenset[str]:
    """The variables that are mentioned outside aggregates."""
    match expression:
        case s.Aggregate():
            return frozenset()
        case s.Attribute(variable) | s.EventRef(variable):
            return frozenset({variable})
    return frozenset().union(*map(_plain, s.children(expression)))


def _is_unknown(type_: pa.DataType) -> bool:
    if type_ == UNKNOWN:
        return True
    return any(_is_unknown(type_.field(place).type) for place in range(type_.num_fields))
