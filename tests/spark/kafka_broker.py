"""A Kafka broker on this machine, for as long as a test wants it."""

from __future__ import annotations

import os
import select
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).parents[2]
JARS = Path(sys.prefix, "jars")
PATIENCE = 120.0


class NoBrokerError(Exception):
    """Why there is none."""


def fetched_jars() -> Path:
    """The folder with the jars; they are fetched if they are not there."""
    if not (JARS / "connector").is_dir() or not (JARS / "broker").is_dir():
        if shutil.which("mvn") is None:
            raise NoBrokerError(
                "needs Kafka's jars, which scripts/fetch_jars.sh fetches with Maven, and there is no Maven"
            )
        done = subprocess.run(
            [ROOT / "scripts" / "fetch_jars.sh", JARS], env={**os.environ, "PYTHON": sys.executable},
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        if done.returncode:
            raise NoBrokerError(
                f"needs Kafka's jars, which scripts/fetch_jars.sh could not fetch: {done.stderr[-500:]}"
            )
    return JARS


def connector() -> str:
    """What Spark's setting ``spark.jars`` is for Kafka."""
    return ",".join(sorted(map(str, (fetched_jars() / "connector").glob("*.jar"))))


@contextmanager
def running_broker(folder: Path) -> Iterator[str]:
    """The address of a broker that has its data in a folder; it is gone afterwards."""
    ports = _free_ports(2)
    settings = folder / "server.properties"
    settings.write_text(
        f"""
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:{ports[1]}
listeners=PLAINTEXT://127.0.0.1:{ports[0]},CONTROLLER://127.0.0.1:{ports[1]}
controller.listener.names=CONTROLLER
log.dirs={folder / "data"}
num.partitions=2
offsets.topic.num.partitions=1
offsets.topic.replication.factor=1
transaction.state.log.num.partitions=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
group.initial.rebalance.delay.ms=0
""",
        encoding="utf-8",
    )
    java = [_java(), "-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-cp", f"{fetched_jars() / 'broker'}/*"]
    cluster = "cepheid-tests-00000000"
    formatted = subprocess.run(
        [*java, "kafka.tools.StorageTool", "format", "-t", cluster, "-c", settings],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    if formatted.returncode:
        raise NoBrokerError(f"the broker's folder could not be made: {formatted.stderr[-500:]}")
    with (folder / "broker.log").open("wb") as log:
        broker = subprocess.Popen([*java, "kafka.Kafka", settings], stdin=subprocess.DEVNULL, stdout=log, stderr=log)
    try:
        _wait_until_it_listens(broker, ports[0])
        yield f"127.0.0.1:{ports[0]}"
    finally:
        broker.kill()
        broker.wait()


def _wait_until_it_listens(broker: subprocess.Popen[bytes], port: int) -> None:
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        with socket.socket() as client:
            if client.connect_ex(("127.0.0.1", port)) == 0:
                return
        if broker.poll() is not None:
            raise NoBrokerError(f"the broker ended with {broker.returncode}")
        select.select([], [], [], 0.2)  # there is no event to wait for
    raise NoBrokerError(f"the broker does not listen after {PATIENCE:.0f} seconds")


def _free_ports(count: int) -> list[int]:
    sockets = [socket.socket() for _ in range(count)]
    try:
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [one.getsockname()[1] for one in sockets]
    finally:
        for one in sockets:
            one.close()


def _java() -> str:
    own = Path(sys.prefix, "java", "bin", "java")
    found = str(own) if own.exists() else shutil.which("java")
    if found is None:
        raise NoBrokerError("needs Java")
    return found
