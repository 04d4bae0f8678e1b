"""Cepheid on Apache Spark. Imported only by those who want it: PySpark is an extra."""

from importlib.util import find_spec

if find_spec("pyspark") is None:
    raise ModuleNotFoundError(
        "Cepheid on Spark needs PySpark, which is not installed. Install it with: pip install '.[spark]', in a clone "
        "of Cepheid",
        name="pyspark",
    )

from cepheid.spark.match import match
from cepheid.spark.monitor import coordinate, monitor
from cepheid.spark.monitor_channels import FolderChannel, KafkaChannel
from cepheid.spark.session import session
from cepheid.spark.sql import register

__all__ = ["FolderChannel", "KafkaChannel", "coordinate", "match", "monitor", "register", "session"]
