"""A DataFrame of events as it goes in: columns with numbers for names, and text that is compared by its bytes."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql import types as t


def entered(df: DataFrame) -> tuple[DataFrame, dict[str, Column]]:
    """The DataFrame, and its columns by the names that they had.

    Any name will do, and none clashes with another. A collation, under which Spark would take "login" for "Login", is
    taken off: text means what it means to :func:`cepheid.match`.
    """
    frame = df.toDF(*(f"c{place}" for place in range(len(df.columns))))
    plain = [without_collation(field.dataType) for field in df.schema]
    if plain != [field.dataType for field in df.schema]:
        columns = zip(frame.schema, plain, strict=True)
        frame = frame.select(*(F.col(f.name) if type_ == f.dataType else _cast(f.name, type_) for f, type_ in columns))
    return frame, {name: F.col(f"c{place}") for place, name in enumerate(df.columns)}


def _cast(name: str, type_: t.DataType) -> Column:
    return F.col(name).cast(type_).alias(name)


def without_collation(type_: t.DataType) -> t.DataType:
    """The type with text as it was before Spark had collations, wherever there is text in it.

    >>> without_collation(t.ArrayType(t.StringType("UTF8_LCASE")))
    ArrayType(StringType(), True)
    """
    match type_:
        case t.StringType():
            return t.StringType()
        case t.ArrayType():
            return t.ArrayType(without_collation(type_.elementType), type_.containsNull)
        case t.MapType():
            keys, values = without_collation(type_.keyType), without_collation(type_.valueType)
            return t.MapType(keys, values, type_.valueContainsNull)
        case t.StructType():
            fields = [
                t.StructField(f.name, without_collation(f.dataType), f.nullable, f.metadata) for f in type_.fields
            ]
            return t.StructType(fields)
    return type_
