"""Secrets come from the environment, and go nowhere but to Spark."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest

from cepheid.job import JobError, parse_job
from cepheid.job.environment import hidden, scrubbed
from cepheid.job.session import as_texts, open_session, settings

JOB = """
source:
  format: kafka
  servers: host:9092
  topics: t
  schema: ts timestamp, type string, k bigint, x bigint
  options:
    kafka.sasl.jaas.config: 'username="me" password="${JOB_PASSWORD}"'
    kafka.ssl.truststore.password: written-here
    failOnDataLoss: false
patterns: rules.cep
sink: {format: none}
spark: {settings: {spark.hadoop.fs.s3a.secret.key: "${JOB_PASSWORD}"}}
"""


@pytest.fixture(autouse=True)
def _password(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JOB_PASSWORD", "hunter22")


def test_spark_is_told(patterns: Path) -> None:
    job = parse_job(JOB, folder=patterns.parent)
    options = as_texts(job.source.options)
    assert options["kafka.sasl.jaas.config"] == 'username="me" password="hunter22"'
    assert options["failOnDataLoss"] == "false"
    assert settings(job)["spark.hadoop.fs.s3a.secret.key"] == "hunter22"


def test_nobody_else_is(patterns: Path) -> None:
    job = parse_job(JOB, folder=patterns.parent)
    for told in (repr(job), str(job), str(hidden(job.model_dump())), job.model_dump_json()):
        assert "hunter22" not in told
    assert "written-here" not in str(hidden(job.model_dump()))
    said = scrubbed('login failed with password="hunter22", truststore written-here', job.model_dump())
    assert said == 'login failed with password="${JOB_PASSWORD}", truststore (hidden)'


@pytest.mark.parametrize(
    "name",
    [
        "kafka.ssl.keystore.key", "kafka.ssl.key.password", "kafka.ssl.truststore.passwords", "sasl.password.file",
        "spark.hadoop.fs.s3a.encryption.key", "spark.hadoop.fs.s3a.server-side-encryption.key", "spark.io.encryption.key",
        "spark.hadoop.fs.azure.account.key.bank.blob", "spark.hadoop.fs.azure.sas.fixed.bank", "subscriptionKey",
        "signing-key", "signature", "dbPwd",
    ],
)  # fmt: skip
def test_names_that_speak_of_secrets(name: str) -> None:
    assert hidden({"settings": {name: "k3y-material"}}) == {"settings": {name: "(hidden)"}}
    assert scrubbed("rejected k3y-material", {name: "k3y-material"}) == "rejected (hidden)"


@pytest.mark.parametrize(
    "name",
    ["key", "record_key", "kafka.key.deserializer", "keyspace", "spark.sql.shuffle.partitions", "kafka.ssl.keystore.type",
     "spark.hadoop.fs.s3a.path.style.access", "sasl.mechanism", "compass.heading"],
)  # fmt: skip
def test_names_that_do_not(name: str) -> None:
    assert hidden({name: "as it is"}) == {name: "as it is"}


def test_mistakes_do_not_repeat_secrets(patterns: Path) -> None:
    wrong = JOB.replace("kafka.ssl.truststore.password: written-here", "kafka.ssl.truststore.password: [written-here]")
    with pytest.raises(JobError) as caught:
        parse_job(wrong.replace("servers: host:9092", "servers: {password: hunter33}"), folder=patterns.parent)
    assert "hunter" not in str(caught.value)
    assert "written-here" not in str(caught.value)


@pytest.mark.parametrize("text", ["x${}", "${1X}", "${A B}"])
def test_what_is_no_name(text: str, patterns: Path) -> None:
    with pytest.raises(JobError, match="names no environment variable"):
        parse_job(JOB.replace("topics: t", f"topics: '{text}'"), folder=patterns.parent)


def test_wherever_a_variable_may_be_it_is_replaced(patterns: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    said: dict[str, object] = {}

    class Builder:
        def appName(self, name: str) -> Builder:  # noqa: N802
            said["name"] = name
            return self

        def config(self, name: str, value: str) -> Builder:
            said[name] = value
            return self

        def getOrCreate(self) -> None:  # noqa: N802
            pass

    remote = "spark: {remote: 'sc://me:${JOB_PASSWORD}@x', packages: ['org.foo:spark-sql-kafka:${JOB_PASSWORD}'], "
    job = parse_job(JOB.replace("spark: {", remote) + "name: a ${JOB_PASSWORD}\n", folder=patterns.parent)
    sessions = pytest.importorskip("pyspark.sql").SparkSession
    monkeypatch.setattr(sessions, "builder", SimpleNamespace(remote=lambda url: said.update(url=url) or Builder()))
    open_session(job)
    assert (said["name"], said["url"]) == ("a hunter22", "sc://me:hunter22@x")
    assert said["spark.jars.packages"] == "org.foo:spark-sql-kafka:hunter22"
    assert job.name == "a ${JOB_PASSWORD}"


@pytest.mark.parametrize(
    ("field", "changed"),
    [
        ("source.record_time", ("topics: t", "topics: t\n  record_time: ${JOB_PASSWORD}")),
        ("sink.name", ("{format: none}", "{format: memory, name: '${JOB_PASSWORD}'}")),
        ("events.time", ("sink: ", "events: {time: '${JOB_PASSWORD}'}\nsink: ")),
        ("trigger", ("sink: ", "mode: stream\ntrigger: ${JOB_PASSWORD}\nsink: ")),
    ],
)
def test_anywhere_else_it_is_a_mistake(patterns: Path, field: str, changed: tuple[str, str]) -> None:
    with pytest.raises(JobError) as caught:
        parse_job(JOB.replace(*changed), folder=patterns.parent)
    said = [problem for problem in caught.value.problems if problem.field == field]
    assert any("${JOB_PASSWORD} is not replaced here" in problem.message for problem in said)
    assert any("spark.packages" in str(problem.hint) for problem in said)


def test_kafka_is_fetched_unless_it_is_there(patterns: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.prefix", str(tmp_path))
    job = parse_job(JOB, folder=patterns.parent)
    assert "spark-sql-kafka-0-10_2.13" in settings(job)["spark.jars.packages"]
    own = JOB.replace("spark: {", "spark: {packages: 'my:spark-sql-kafka:1', ")
    assert settings(parse_job(own, folder=patterns.parent))["spark.jars.packages"] == "my:spark-sql-kafka:1"
    (tmp_path / "jars" / "connector").mkdir(parents=True)
    jar = tmp_path / "jars" / "connector" / "spark-sql-kafka-0-10_2.13-4.0.0.jar"
    jar.touch()
    assert settings(job)["spark.jars"] == str(jar)
    assert "spark.jars.packages" not in settings(job)
