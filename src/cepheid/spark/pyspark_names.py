"""What other layers need of PySpark, so that they need not import it themselves."""

from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark import cloudpickle
from pyspark.errors import PySparkException, StreamingQueryException
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

__all__ = [
    "DataFrame",
    "Py4JError",
    "PySparkException",
    "Row",
    "SparkSession",
    "StreamingQuery",
    "StreamingQueryException",
    "cloudpickle",
]
