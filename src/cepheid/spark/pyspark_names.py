"""What other layers need of PySpark, so that they need not import it themselves."""

from pyspark.errors import PySparkException, StreamingQueryException
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

__all__ = ["DataFrame", "PySparkException", "Row", "SparkSession", "StreamingQuery", "StreamingQueryException"]
