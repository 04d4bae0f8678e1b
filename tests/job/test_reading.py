"""A description that is right is a value; of one that is wrong, all that is wrong is said at once."""

from __future__ import annotations

import importlib
import pickle
import sys
from pathlib import Path

import pytest
from pydantic import ValidationError

import cepheid
from cepheid.job import Job, JobError, parse_job, read_job, run_job
from cepheid.job.batch import grows, match_options
from cepheid.job.description import Files, Kafka
from cepheid.job.part import interval
from cepheid.job.reading import read_patterns

GOOD = {
    "source": "{format: parquet, path: events.parquet}",
    "patterns": "rules.cep",
    "sink": "{format: none}",
}
KAFKA = "{format: kafka, servers: x, topics: t, schema: {ts: timestamp, type: string, k: int, x: int}, options: {%s}}"
LATE = {"mode": "stream", "sink": "{format: parquet, path: out}", "checkpoint": "state"}


def text(**fields: str) -> str:
    return "\n".join(f"{name}: {value}" for name, value in {**GOOD, **fields}.items() if value)


@pytest.fixture
def folder(patterns: Path) -> Path:
    (patterns.parent / "events.parquet").touch()
    return patterns.parent


def problems(place: Path, /, **fields: str) -> dict[str, str]:
    """What is said of each field."""
    with pytest.raises(JobError) as caught:
        parse_job(text(**fields), folder=place)
    return {problem.field: str(problem) for problem in caught.value.problems}


def test_what_is_left_unsaid_is_filled_in(folder: Path) -> None:
    job = parse_job(text(), folder=folder)
    assert (job.name, job.mode, job.events.time, job.events.type) == ("cepheid", "batch", "ts", "type")
    assert isinstance(job.source, Files)
    assert job.engine.planner == "auto"
    options = match_options(job)
    assert options["check_every"] is options["share"] is None
    assert job.checkpoint is job.trigger is None


def test_a_job_is_a_value(folder: Path) -> None:
    job = parse_job(text(), folder=folder)
    assert job == parse_job(text(), folder=folder)
    with pytest.raises(ValidationError):
        job.name = "other"


def test_everything_that_can_be_said(folder: Path) -> None:
    job = parse_job(
        """
        name: all of it
        mode: stream
        source:
          format: kafka
          servers: [one:9092, two:9092]
          topics: payments
          schema: {ts: timestamp, type: string, place: {x: double}, history: [double]}
          record_time: arrived
          starting: latest
          max_events: 100000
          malformed: drop
          select: [ts, type, place.x AS x]
          where: type <> 'Ping'
          options: {kafka.security.protocol: SASL_SSL, failOnDataLoss: false}
        patterns: [rules.cep]
        events: {time: ts, type: null, tie_breaker: seq}
        engine: {planner: greedy, negation: post, max_partial_matches: 1000, shards: 4, allowed_lateness: 1.5 minutes,
          late_events: late, adapt: true, check_every: 10 minutes, migrate: parallel,
          share: {search: tabu, neighbourhood: vertex, k: 8, seconds: 0.5, seed: 3, descend: false},
          shed: {strategy: hspice, latency_bound: 12 seconds, safety: 0.7, weights: {up: 5}}}
        sink: {format: kafka, servers: one:9092, topic: matches, key: account}
        checkpoint: state
        trigger: 5 seconds
        run_for: 1 hour
        spark: {master: "local[2]", packages: [a:b:1], settings: {spark.driver.memory: 2g}, log_level: WARN}
        import: [json]
        """,
        folder=folder,
    )
    assert isinstance(job.source, Kafka)
    assert job.source.ddl == "`ts` timestamp, `type` string, `place` STRUCT<`x`: double>, `history` ARRAY<double>"
    assert job.source.topics == ("payments",)
    assert job.events.type is None
    assert job.modules == ("json",)
    options = match_options(job)
    assert (options["adapt"], options["check_every"], options["migrate"]) == (True, "10 minutes", "parallel")
    assert options["share"] == cepheid.Sharing("tabu", "vertex", k=8, seconds=0.5, seed=3, descend=False)
    assert options["late_events"] == str(folder / "late")
    assert options["shed"] == cepheid.HSpice("12 seconds", 0.7, {"up": 5})


def test_a_topic_grows_unless_its_end_is_said(folder: Path) -> None:
    kafka = "{format: kafka, servers: x, topics: t, schema: {ts: timestamp, type: string, k: int, x: int}%s}"
    assert grows(parse_job(text(source=kafka % ""), folder=folder))
    assert not grows(parse_job(text(source=kafka % """, ending: '{"t": {"0": 5}}'"""), folder=folder))
    assert not grows(parse_job(text(), folder=folder))


def test_variables_in_places(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BUCKET", "s3a://bank")
    monkeypatch.setenv("RULES", "rules")
    more = {"mode": "stream", "engine": "{allowed_lateness: 250 ms, late_events: '${BUCKET}/late'}"}
    job = parse_job(text(**more).replace("rules.cep", "${RULES}.cep"), folder=folder)
    assert match_options(job)["late_events"] == "s3a://bank/late"
    assert read_patterns(job) == read_patterns(parse_job(text(), folder=folder))
    monkeypatch.delenv("RULES")
    with pytest.raises(JobError) as caught:
        parse_job(text(**more).replace("rules.cep", "${RULES}.cep"), folder=folder)
    assert [problem.message for problem in caught.value.problems] == ["the environment variable RULES is not set"]


def test_a_number_is_one_of_seconds(folder: Path) -> None:
    engine = "{allowed_lateness: 1 s, shed: {strategy: cost, latency_bound: 2.5}}"
    job = parse_job(text(mode="stream", run_for="60", trigger="1", engine=engine), folder=folder)
    assert (job.run_for, job.trigger) == ("60 seconds", "1 seconds")
    assert job.engine.shedding == cepheid.CostAware(latency_bound="2.5 seconds")


@pytest.mark.parametrize("every", ["500", "500 events", "10 minutes"])
@pytest.mark.parametrize("share", ["none", "reorder", "maximal", "prefix", "spass", "motto"])
def test_words_of_the_engine(folder: Path, every: str, share: str) -> None:
    options = match_options(parse_job(text(engine=f"{{check_every: {every}, share: {share}}}"), folder=folder))
    assert options["share"] == share
    assert str(options["check_every"]) == every


@pytest.mark.parametrize(
    ("said", "policy"),
    [
        ("true", True),
        ("static", "static"),
        ("threshold 0.5", "threshold 0.5"),
        ("{policy: unconditional, cautious: false}", cepheid.Unconditional(cautious=False)),
        ("{policy: threshold, change: 0.5}", cepheid.Threshold(0.5)),
        ("{policy: invariant, k: 3, distance: meta}", cepheid.Invariant(k=3, distance="meta")),
        ("{policy: invariant, k: null}", cepheid.Invariant(k=None)),
        ("{policy: invariant, distance: null}", cepheid.Invariant()),
        ("{policy: threshold, k: null}", cepheid.Threshold()),
    ],
)
def test_policies(folder: Path, said: str, policy: object) -> None:
    assert match_options(parse_job(text(engine=f"{{adapt: {said}}}"), folder=folder))["adapt"] == policy


@pytest.mark.parametrize(
    ("said", "milliseconds"), [("1 minute 30 seconds", 90_000), ("1 day 12 hours", 129_600_000), ("0 seconds", 0)]
)
def test_lengths_of_time_are_those_of_patterns(folder: Path, said: str, milliseconds: int) -> None:
    job = parse_job(text(mode="stream", engine=f"{{allowed_lateness: {said}}}", run_for=said), folder=folder)
    assert job.engine.allowed_lateness == job.run_for == said
    assert interval(said).nanoseconds == milliseconds * 1_000_000


@pytest.mark.parametrize("path", ["events.parq?et", "event[s].parquet", "{events,more}.parquet", "*.parquet"])
def test_names_that_stand_for_several(folder: Path, path: str) -> None:
    parse_job(text(source=f"{{format: parquet, path: '{path}'}}"), folder=folder)


OVERWRITE = "{format: parquet, path: %s, mode: overwrite}"


@pytest.mark.parametrize(
    ("source", "sink", "field", "said"),
    [
        ("data/events", OVERWRITE % "data", "sink.path", "source.path would be gone before anything is read"),
        ("data/day=*/x.parquet", OVERWRITE % "data", "sink.path", "source.path would be gone"),
        ("data/*/in/*.parquet", OVERWRITE % "data/out", "sink.path", "source.path would be gone"),
        ("file:///data/events", OVERWRITE % "/data/", "sink.path", "source.path would be gone"),
        ("s3a://bank/data/events", OVERWRITE % "s3a://bank/data/", "sink.path", "source.path would be gone"),
        ("${DATA}/events", OVERWRITE % "data", "sink.path", "source.path would be gone"),
        ("data/events", OVERWRITE % ".", "sink.path", "source.path and patterns and the folder of this description would be gone"),
        ("/elsewhere/*", OVERWRITE % "..", "sink.path", "patterns and the folder of this description would be gone"),
        ("data/*.parquet", OVERWRITE % "data", "source.path", "stands for the files of sink.path too"),
        ("data/*.parquet", "{format: parquet, path: data}", "source.path", "stands for the files of sink.path too"),
        ("data/*", OVERWRITE % "data/out", "source.path", "stands for the files of sink.path too"),
        ("data/{in,out}", "{format: json, path: data/out, mode: append}", "source.path", "stands for the files of sink.path too"),
        ("s3a://bank/x/", "{format: parquet, path: 's3a://bank/x'}", "sink.path", "the same place as source.path"),
    ],
)  # fmt: skip
def test_what_is_read_is_not_written_over(
    folder: Path, monkeypatch: pytest.MonkeyPatch, source: str, sink: str, field: str, said: str
) -> None:
    """Spark empties a folder that is overwritten before it reads the events."""
    monkeypatch.setenv("DATA", "data")
    (folder / "data" / "events").mkdir(parents=True)
    fields = {"source": f"{{format: parquet, path: '{source}'}}", "sink": sink}
    found = problems(folder, **fields)
    assert said in found[field]
    with pytest.raises(JobError, match=r"would be gone|stands for|same place"):
        run_job(parse_job(text(**fields), folder=folder, check=False))


@pytest.mark.parametrize(
    ("source", "sink"),
    [
        ("data", OVERWRITE % "data/out"),
        ("data/{in,more}/*.parquet", OVERWRITE % "data/out"),
        ("data/in*", OVERWRITE % "data/out"),
        ("data/*.parquet", OVERWRITE % "data2"),
        ("data/*.parquet", "{format: csv, path: data}"),
        ("data/events", "{format: parquet, path: data}"),
        ("s3a://bank/x", OVERWRITE % "s3a://other/x"),
    ],
)
def test_places_that_are_apart(folder: Path, source: str, sink: str) -> None:
    (folder / "data" / "events").mkdir(parents=True)
    parse_job(text(source=f"{{format: parquet, path: '{source}'}}", sink=sink), folder=folder)


def test_paths_are_relative_to_the_file(folder: Path) -> None:
    (folder / "jobs").mkdir()
    path = folder / "jobs" / "job.yaml"
    path.write_text(
        text(source="{format: parquet, path: ../events.parquet}", patterns="../rules.cep"), encoding="utf-8"
    )
    job = read_job(path)
    assert isinstance(job.source, Files)
    assert job.place(job.source.path) == str(folder / "events.parquet")
    assert job.place("s3a://bucket/x") == "s3a://bucket/x"


def test_all_mistakes_at_once(folder: Path) -> None:
    found = problems(
        folder,
        name="5",
        mode="strem",
        source="{format: kafka, server: a, topics: t, options: {kafka.password: '${NO_SUCH_VARIABLE}'}}",
        patterns="[missing.cep]",
        engine="{planner: gredy, shards: 0, allowed_lateness: soon}",
        sink="{format: parqet, path: x}",
        trigger="5 parsecs",
        chekpoint="x",
    )
    assert set(found) == {
        "name", "mode", "source.servers", "source.server", "source.schema", "source.options.kafka.password",
        "patterns[0]", "engine.planner", "engine.shards", "engine.allowed_lateness", "sink.format", "trigger", "chekpoint",
    }  # fmt: skip
    assert "did you mean 'stream'?" in found["mode"]
    assert "did you mean 'servers'?" in found["source.server"]
    assert "did you mean 'greedy'?" in found["engine.planner"]
    assert "did you mean 'parquet'?" in found["sink.format"]
    assert "did you mean 'checkpoint'?" in found["chekpoint"]
    assert "expected: 1 or more" in found["engine.shards"]
    assert "found: 0" in found["engine.shards"]
    assert "found: text 'soon'" in found["engine.allowed_lateness"]
    assert "the environment variable NO_SUCH_VARIABLE is not set" in found["source.options.kafka.password"]


@pytest.mark.parametrize(
    ("fields", "field", "said"),
    [
        ({"source": ""}, "source", "this field is missing"),
        ({"patterns": "[]"}, "patterns", "at least one"),
        ({"source": "{path: x}"}, "source.format", "this field is missing"),
        ({"source": "{workload: card_payment}"}, "source.workload", "did you mean 'card_payments'?"),
        ({"source": "{workload: card_payments, arguments: {acounts: 5}}"}, "source.arguments.acounts", "did you mean 'accounts'?"),
        ({"source": "{format: parquet, path: evnts.parquet}"}, "source.path", "did you mean 'events.parquet'?"),
        ({"source": "{format: rate, select: [timestamp AS ts]}"}, "source.format", "say mode: stream"),
        ({"source": "{format: rate}", "mode": "stream"}, "source.select", "its columns are timestamp and value"),
        ({"source": "{format: json, path: .}", "mode": "stream"}, "source.schema", "needs to know its columns"),
        ({"source": "{format: socket, port: 99999, select: [value]}", "mode": "stream"}, "source.port", "65535 or less"),
        ({"source": "{format: csv, path: ., schema: {ts: 5}}"}, "source.schema", "for each column a type"),
        ({"source": "[1]"}, "source", "a mapping"),
        ({"checkpoint": "x"}, "checkpoint", "only a stream has this"),
        ({"mode": "stream", "sink": "{format: memory}", "checkpoint": "x"}, "checkpoint", "no run can go on from a checkpoint"),
        ({"mode": "stream", "engine": "{allowed_lateness: -5}"}, "engine.allowed_lateness", "0 or more"),
        ({"mode": "stream", "engine": "{allowed_lateness: -5 seconds}"}, "engine.allowed_lateness", "a length of time such as 10 seconds"),
        ({"mode": "stream", "engine": "{allowed_lateness: 500 events}"}, "engine.allowed_lateness", "a length of time such as 10 seconds"),
        ({"mode": "stream", "engine": "{allowed_lateness: true}"}, "engine.allowed_lateness", "found: true"),
        ({"engine": "{adapt: treshold}"}, "engine.adapt", "one of static, true, unconditional, threshold, invariant"),
        ({"engine": "{adapt: {policy: treshold}}"}, "engine.adapt.policy", "did you mean 'threshold'?"),
        ({"engine": "{adapt: {change: 0.5}}"}, "engine.adapt.policy", "one of unconditional, threshold, invariant"),
        ({"engine": "{adapt: {policy: threshold, chnge: 0.5}}"}, "engine.adapt.chnge", "did you mean 'change'?"),
        ({"engine": "{adapt: {policy: threshold, change: -1}}"}, "engine.adapt.change", "more than 0"),
        ({"engine": "{adapt: {policy: threshold, k: 5}}"}, "engine.adapt.k", "k belongs to policy: invariant"),
        ({"engine": "{adapt: {policy: invariant, distance: far}}"}, "engine.adapt.distance", "a number, 0 or more, or average, meta"),
        ({"engine": "{allowed_lateness: 1 day}"}, "engine.allowed_lateness", "a batch has no late events"),
        ({"engine": "{late_events: late}"}, "engine.late_events", "a batch has no late events"),
        ({"engine": "{migrate: slowly}"}, "engine.migrate", "parallel"),
        ({"engine": "{check_every: 0}"}, "engine.check_every", "a number of events, or text such as 500 events or 10 minutes"),
        ({"engine": "{check_every: true}"}, "engine.check_every", "found: true"),
        ({"engine": "{check_every: 5 parsecs}"}, "engine.check_every", "found: text '5 parsecs'"),
        ({"engine": "{share: maximum}"}, "engine.share", "did you mean 'maximal'?"),
        ({"engine": "{share: 5}"}, "engine.share", "one of none, reorder, maximal, spass, motto, prefix, or a mapping"),
        ({"engine": "{share: [none]}"}, "engine.share", "found: a list"),
        ({"engine": "{share: {serch: tabu}}"}, "engine.share.serch", "did you mean 'search'?"),
        ({"engine": "{share: {search: taboo}}"}, "engine.share.search", "did you mean 'tabu'?"),
        ({"engine": "{share: {k: 1}}"}, "engine.share.k", "2 or more"),
        ({"engine": "{share: {search: tabu, k: 1}}"}, "engine.share.k", "2 or more"),
        ({"engine": "{share: {seconds: -1}}"}, "engine.share.seconds", "0 or more"),
        ({"engine": "{shed: {strategy: hspice, latency_bound: 5 seconds}}"}, "engine.shed", "they wait"),
        ({"engine": "{shed: {strategy: hspcie, latency_bound: 5 seconds}}"}, "engine.shed.strategy", "did you mean 'hspice'"),
        ({"engine": "{shed: {latency_bound: 5 seconds}}"}, "engine.shed.strategy", "one of hspice, espice"),
        ({"engine": "{shed: {strategy: cost}}"}, "engine.shed.latency_bound", "such as 5 seconds"),
        ({"engine": "{shed: {strategy: cost, latency_bound: -5}}"}, "engine.shed.latency_bound", "a length of time such as 10 seconds"),
        ({"engine": "{shed: {strategy: cost, latency_bound: true}}"}, "engine.shed.latency_bound", "a length of time such as 10 seconds"),
        ({"mode": "stream", "trigger": "[1]"}, "trigger", "a length of time such as 10 seconds"),
        ({"engine": "{shed: {strategy: cost, latency_bound: 5}}", "trigger": "3"}, "engine.shed.latency_bound", "twice the trigger"),
        ({"engine": "{shed: {strategy: cost, latency_bound: soon}}"}, "engine.shed.latency_bound", "found: text 'soon'"),
        ({"engine": "{shed: {strategy: cost, latency_bound: 5 s, safty: 0.5}}"}, "engine.shed.safty", "did you mean 'safety'?"),
        ({"engine": "{shed: {strategy: cost, latency_bound: 5 s, safety: 2}}"}, "engine.shed.safety", "between 0 and 1"),
        ({"engine": "{shed: {strategy: cost, latency_bound: 5 s, weights: {a: -1}}}"}, "engine.shed.weights.a", "0 or more"),
        ({"engine": "{shed: {strategy: cost, latency_bound: 5 s, weights: {pattern_7: 1}}}"}, "engine.shed.weights.pattern_7", "no pattern of that name"),
        ({"engine": "{shed: {strategy: cost, latency_bound: 5 s}}", "trigger": "3 s"}, "engine.shed.latency_bound", "twice the trigger"),
        ({"engine": "{shed: hspice}", "mode": "stream"}, "engine.shed", "a mapping"),
        ({"mode": "stream"}, "engine.allowed_lateness", "how late an event may come"),
        ({"mode": "stream", "sink": "{format: parquet, path: x}"}, "checkpoint", "needs a checkpoint"),
        ({"mode": "stream", "sink": "{format: csv, path: x, mode: overwrite}"}, "sink.mode", "a stream adds"),
        ({"mode": "stream", "sink": "{format: csv, path: x}", "checkpoint": "x"}, "checkpoint", "the same place as sink.path"),
        ({**LATE, "engine": "{allowed_lateness: 1 s, shards: 9601}"}, "engine.shards", "9,600 shards at most"),
        ({**LATE, "engine": "{allowed_lateness: 1 s, late_events: out}"}, "engine.late_events", "the same place as sink.path"),
        ({**LATE, "engine": "{allowed_lateness: 1 s, late_events: ./state/}"}, "engine.late_events", "the same place as checkpoint"),
        ({**LATE, "source": "{format: parquet, path: .}", "engine": "{allowed_lateness: 1 s, late_events: .}"},
         "engine.late_events", "the same place as source.path"),
        ({"source": KAFKA % "endingOffsets: latest"}, "source.options.endingOffsets", "this is the field ending"),
        ({"source": KAFKA % "startingoffsets: latest"}, "source.options.startingoffsets", "say starting: latest"),
        ({"spark": "{settings: {driver.memory: 2g}}"}, "spark.settings.driver.memory", "spark.driver.memory"),
        ({"spark": "{master: local, remote: 'sc://x'}"}, "spark.remote", "one of them"),
        ({"import": "no_such_module"}, "import", "cannot be imported"),
        ({"source": "{workload: card_payments, arguments: {seed: abc}}"}, "source.arguments.seed", "expected a whole number, found text 'abc'"),
        ({"source": "{workload: card_payments, arguments: {start: x, accounts: x}}"}, "source.arguments.start", "expected a moment such as"),
        ({"source": "{workload: card_payments, arguments: {start: x, accounts: x}}"}, "source.arguments.accounts", "accounts is a whole number"),
        ({"source": "{workload: stock_quotes, arguments: {symbols: [A], rates: {B: 1}}}"}, "source.arguments", "rates"),
        ({"events": "{tyme: ts}"}, "events.tyme", "did you mean 'type' or 'time'?"),
        ({"folder": "x"}, "folder", "there is no such field"),
    ],
)  # fmt: skip
def test_one_mistake(folder: Path, fields: dict[str, str], field: str, said: str) -> None:
    found = problems(folder, **fields)
    assert field in found
    assert said in found[field]


@pytest.mark.parametrize(
    ("code", "said"),
    [
        (
            "def broken(:\n",
            "broken_functions cannot be imported: SyntaxError: invalid syntax (broken_functions.py, line 1)",
        ),
        ("import sys\nsys.exit(3)\n", "SystemExit: 3"),
        ("x = 1\nx.y\n", "AttributeError: 'int' object has no attribute 'y' (broken_functions.py, line 2)"),
        ("import cepheid\ncepheid.register_function('1', abs, returns='number')\n", "broken_functions.py, line 2"),
    ],
)
def test_modules_that_fail(folder: Path, code: str, said: str, request: pytest.FixtureRequest) -> None:
    request.addfinalizer(lambda: sys.path.remove(str(folder)))
    (folder / "broken_functions.py").write_text(code, encoding="utf-8")
    importlib.invalidate_caches()
    assert said in problems(folder, **{"import": "broken_functions"})["import"]


def test_lines_are_named(folder: Path) -> None:
    path = folder / "job.yaml"
    path.write_text(
        "source:\n  workload: card_payments\n  evnts: 5\npatterns: rules.cep\nsink: {format: none}\n", encoding="utf-8"
    )
    with pytest.raises(JobError, match=rf"{path}:3: source.evnts: there is no such field"):
        read_job(path)


def test_what_is_said_twice(folder: Path) -> None:
    assert "first in line 4" in problems(folder, **{"name: a\nname": "b"})["name"]


@pytest.mark.parametrize("wrong", ["a: [1", "a:\n\tb: 1", "- 1", "just text", "", "!!python/object/apply:os.getcwd []"])
def test_what_is_no_job(wrong: str) -> None:
    with pytest.raises(JobError) as caught:
        parse_job(wrong)
    assert len(caught.value.problems) == 1


def test_an_alias_that_holds_itself() -> None:
    with pytest.raises(JobError):
        parse_job("a: &x [*x]")


def test_mistakes_of_patterns_are_among_them(folder: Path) -> None:
    (folder / "wrong.cep").write_text("PATTERN SEQ(A a, B b) WHERE q.x = 1 WITHIN 5", encoding="utf-8")
    with pytest.raises(JobError) as caught:
        parse_job(text(patterns="[wrong.cep, rules.cep]", mode="strem"), folder=folder)
    assert "wrong.cep:1:29: unknown variable 'q'" in str(caught.value)
    assert "did you mean 'stream'?" in str(caught.value)


def test_two_files_with_patterns_of_one_name(folder: Path) -> None:
    (folder / "more.cep").write_text("NAME up PATTERN SEQ(A a, B b) WITHIN 5", encoding="utf-8")
    assert "has a pattern called 'up'" in problems(folder, patterns="[rules.cep, more.cep]")["patterns[1]"]


def test_there_is_no_file(tmp_path: Path) -> None:
    with pytest.raises(JobError, match="there is no such file"):
        read_job(tmp_path / "job.yaml")


def test_the_error_can_be_pickled() -> None:
    with pytest.raises(JobError) as caught:
        parse_job("{}")
    assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)


def test_the_example_of_the_guide(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = Path("docs/job.md").read_text(encoding="utf-8").partition("```yaml\nname:")[2].partition("```")[0]
    monkeypatch.setenv("KAFKA_PASSWORD", "x")
    (folder / "bank_functions.py").touch()
    example = Path("examples/account_taken.cep").read_text(encoding="utf-8")
    (folder / "account_taken.cep").write_text(example, encoding="utf-8")
    assert parse_job(f"name:{text}", folder=folder).name == "stolen accounts"


def test_the_examples_can_be_run() -> None:
    for path in Path("examples").glob("*.yaml"):
        assert isinstance(read_job(path), Job)
