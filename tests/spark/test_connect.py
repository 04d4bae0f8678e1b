"""On Spark Connect: a client that has no JVM. In a process of its own, since a process is either this or classic."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.spark.long import long

SCRIPT = """
import os
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
from pyspark.sql import SparkSession

import cepheid
from cepheid.spark import match, register

folder = sys.argv[1]
builder = SparkSession.builder.remote("local[1]").config("spark.sql.shuffle.partitions", 1)
spark = builder.config("spark.sql.session.timeZone", "UTC").getOrCreate()
assert "connect" in type(spark).__module__
rng = np.random.default_rng(0)
table = pa.table({"ts": np.arange(400), "type": np.array(list("ABCD"))[rng.integers(0, 4, 400)], "x": rng.random(400)})
pattern = "PATTERN SEQ(A a, B b) WHERE a.x < b.x - 0.5 WITHIN 10 RETURN a.ts AS first, b.ts AS second"
wanted = sorted(map(repr, cepheid.match(pattern, table).to_pylist()))
assert len(wanted) > 10
frame = spark.createDataFrame(table)
for shards in (None, 3):
    assert sorted(map(repr, match(pattern, frame, shards=shards).toArrow().to_pylist())) == wanted

register(spark)
frame.createOrReplaceTempView("events")
found = spark.sql(f"SELECT * FROM cepheid_match(TABLE(events), '{pattern}', shards => 1)")
assert sorted(map(repr, found.toArrow().to_pylist())) == wanted

frame.coalesce(1).write.parquet(f"{folder}/in")
events = spark.readStream.schema(frame.schema).parquet(f"{folder}/in")
found = match(pattern, events, allowed_lateness=0, late_events=f"{folder}/late")
assert os.path.isdir(f"{folder}/late")
writer = found.writeStream.format("parquet").option("path", f"{folder}/out")
writer.option("checkpointLocation", f"{folder}/checkpoint").trigger(availableNow=True).start().awaitTermination()
assert sorted(map(repr, spark.read.parquet(f"{folder}/out").toArrow().to_pylist())) == wanted
spark.stop()
print("all the same")
"""


@long
@pytest.mark.skipif(find_spec("grpc") is None, reason="needs the client: pip install 'pyspark[connect]'")
def test_batch_sql_and_stream(tmp_path: Path) -> None:
    environment = {**os.environ, "PYSPARK_PYTHON": sys.executable}  # the workers of the server have what this one has
    command = [sys.executable, "-c", SCRIPT, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False, env=environment)
    assert done.stdout.endswith("all the same\n"), done.stderr
