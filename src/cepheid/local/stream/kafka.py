"""Topics of Kafka with an event, or a match, as JSON in each message. Needs ``confluent-kafka``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from time import perf_counter
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from cepheid.engine.ingest import EventColumns
from cepheid.language.problems import CepheidError
from cepheid.local.signals import Stop
from cepheid.local.stream.lines import JsonEvents
from cepheid.local.stream.queue import Chunk
from cepheid.local.stream.sinks import json_lines

if TYPE_CHECKING:
    from confluent_kafka import Consumer, Producer

MESSAGES = 10_000
"""To take at once, at the most."""
PATIENCE = 10.0
"""Seconds in which a broker answers, or there is none."""


class KafkaStreamError(CepheidError):
    """What Kafka said."""


@dataclass(frozen=True)
class KafkaSource(JsonEvents):
    """A topic, all its partitions. Nothing is committed: a run starts with the newest events, or with the earliest.

    ``start``: ``"latest"`` or ``"earliest"``. ``to_the_end``: ends where the topic ended when it was reached, instead
    of waiting for more. ``options`` are librdkafka's, for security and the like.
    """

    servers: str
    topic: str
    start: str = "latest"
    to_the_end: bool = False
    options: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.start not in ("latest", "earliest"):
            raise ValueError(f"start is 'latest' or 'earliest', got {self.start!r}")
        super().__post_init__()
        _client()

    def read(self, stop: Stop, columns: EventColumns) -> Iterator[Chunk]:
        parser = self.parser(f"kafka://{self.servers}/{self.topic}", columns)
        consumer, open_partitions = self._opened()
        try:
            while not stop.asked and (open_partitions or not self.to_the_end):
                # A wait that ends with the first message, or soon, so that a stop is seen.
                messages = consumer.consume(1, timeout=0.1)
                came = perf_counter()
                if messages:
                    messages += consumer.consume(MESSAGES - 1, timeout=0)
                values = []
                for message in messages:
                    error = message.error()
                    if error is None:
                        value = message.value()
                        if value:  # one that deletes has none
                            values.append(bytes(value).replace(b"\n", b" "))
                    elif error.code() == _client().KafkaError._PARTITION_EOF:
                        open_partitions.discard(message.partition())
                    else:
                        raise KafkaStreamError(f"kafka://{self.servers}/{self.topic}: {error.str()}")
                if values:
                    yield Chunk(parser.table(b"\n".join(values)), came)
        finally:
            consumer.close()

    def _opened(self) -> tuple[Consumer, set[int]]:
        kafka = _client()
        consumer = kafka.Consumer(
            {
                "bootstrap.servers": self.servers,
                "group.id": "cepheid",
                "enable.auto.commit": False,
                "enable.partition.eof": self.to_the_end,
                "fetch.wait.max.ms": 10,
                "logger": _quiet(),
                **self.options,
            }
        )
        try:
            found = consumer.list_topics(self.topic, timeout=PATIENCE).topics[self.topic]
            if found.error is not None:
                raise KafkaStreamError(f"kafka://{self.servers}/{self.topic}: {found.error.str()}")
            begin = kafka.OFFSET_BEGINNING if self.start == "earliest" else kafka.OFFSET_END
            consumer.assign([kafka.TopicPartition(self.topic, number, begin) for number in found.partitions])
        except kafka.KafkaException as error:
            consumer.close()
            raise KafkaStreamError(f"kafka://{self.servers}: {error.args[0].str()}") from None
        except BaseException:
            consumer.close()
            raise
        return consumer, set(found.partitions)


class KafkaSink:
    """Matches as JSON to a topic. A match that a broker does not take in is an error, at the next push or at the
    end."""

    def __init__(self, servers: str, topic: str, options: Mapping[str, Any] | None = None) -> None:
        kafka = _client()
        self._name = f"kafka://{servers}/{topic}"
        self._topic = topic
        self._producer: Producer = kafka.Producer(
            {"bootstrap.servers": servers, "linger.ms": 5, "enable.idempotence": True, "logger": _quiet()}
            | dict(options or {})
        )
        self._failed: str | None = None

    def check(self) -> None:
        try:
            self._producer.list_topics(self._topic, timeout=PATIENCE)
        except _client().KafkaException as error:
            raise KafkaStreamError(f"{self._name}: {error.args[0].str()}") from None

    def begin(self) -> None:
        """Messages are added to those that are there."""

    def write(self, matches: pa.Table) -> None:
        for line in json_lines(matches):
            while True:
                try:
                    self._producer.produce(self._topic, line.encode(), on_delivery=self._delivered)
                    break
                except BufferError:  # full: wait until some are delivered
                    self._producer.poll(0.1)
        self._producer.poll(0)
        self._check()

    def close(self) -> None:
        left = self._producer.flush(3 * PATIENCE)
        self._check()
        if left:
            raise KafkaStreamError(f"{self._name}: {left} matches were not taken in within {3 * PATIENCE:.0f} s")

    def _delivered(self, error: Any, message: Any) -> None:
        if error is not None:
            self._failed = error.str()

    def _check(self) -> None:
        if self._failed is not None:
            raise KafkaStreamError(f"{self._name}: {self._failed}")


def _quiet() -> Any:
    """What librdkafka says goes to the log, not to the terminal."""
    import logging

    logger = logging.getLogger("cepheid.kafka")
    if not logger.handlers:  # else Python itself would print warnings where nobody has set up a log
        logger.addHandler(logging.NullHandler())
    return logger


def _client() -> Any:
    try:
        import confluent_kafka
    except ModuleNotFoundError:
        raise ModuleNotFoundError(
            "Kafka needs confluent-kafka, which is not installed. Install it with: pip install '.[kafka]', in a clone "
            "of Cepheid"
        ) from None
    return confluent_kafka
