"""How a strategy is named, and what is said about one that cannot be."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import cepheid
from cepheid.shed.strategies import STRATEGIES

PATTERN = "PATTERN SEQ(A a, B b) WITHIN 5"
EVENTS = pa.table({"ts": range(100), "type": ["A", "B"] * 50})


@pytest.mark.parametrize("word", STRATEGIES)
def test_a_word_stands_for_a_strategy(word: str) -> None:
    engine = cepheid.Engine([cepheid.parse(PATTERN)], shed=word)
    assert engine.shed == STRATEGIES[word]()
    result = cepheid.run(PATTERN, cepheid.Replay(EVENTS, rate=10_000), shed=word)
    assert result.report["shedding"]["strategy"] == STRATEGIES[word].__name__
    assert result.latency_bound == 1.0


@pytest.mark.parametrize(
    ("shed", "kind", "said"),
    [
        ("hspicy", ValueError, "one of hspice, .*did you mean 'hspice'"),
        (cepheid.HSpice, TypeError, r"write cepheid\.HSpice\(\)"),
        (True, TypeError, "shed is a strategy .* or one of the words hspice, .*; got True"),
        (cepheid.HSpice(weights={"x": 1}), ValueError, "no pattern of that name; there are pattern_1"),
    ],
)
def test_what_is_no_strategy(shed: Any, kind: type[Exception], said: str) -> None:
    with pytest.raises(kind, match=said):
        cepheid.run(PATTERN, cepheid.Replay(EVENTS, rate=10_000), shed=shed)
    with pytest.raises(kind, match=said):
        cepheid.Engine([cepheid.parse(PATTERN)], shed=shed)


@pytest.mark.parametrize(
    ("options", "kind", "said"),
    [
        ({"safety": "0.8"}, ValueError, "safety is a part of the latency bound, .*; got '0.8'"),
        ({"safety": True}, ValueError, "safety is a part"),
        ({"safety": float("nan")}, ValueError, "safety is a part"),
        ({"observations": "3"}, ValueError, "observations is a whole number, 1 or more; got '3'"),
        ({"observations": 1.5}, ValueError, "observations is a whole number"),
        ({"observations": float("nan")}, ValueError, "observations is a whole number"),
        ({"observations": 0}, ValueError, "observations is a whole number"),
        ({"weights": 3}, TypeError, "weights are numbers by the names of patterns, .*; got 3"),
        ({"weights": {"p": True}}, ValueError, "the weight of a pattern is a number"),
        ({"weights": {"p": "10"}}, ValueError, "the weight of a pattern is a number"),
    ],
)
def test_options_of_a_strategy(options: dict[str, Any], kind: type[Exception], said: str) -> None:
    with pytest.raises(kind, match=said):
        cepheid.HSpice(**options)


def test_numbers_of_numpy_are_numbers() -> None:
    found = cepheid.HSpice(safety=np.float32(0.5), observations=np.int64(7), weights={"p": np.int64(2)})  # type: ignore[arg-type, dict-item]
    assert (found.safety, found.observations, found.weights) == (0.5, 7, {"p": 2})


@pytest.mark.parametrize("ratio", ["0.5", None, 1, -0.1, float("nan")])
def test_a_share_that_is_none(ratio: Any) -> None:
    session = cepheid.Engine([cepheid.parse(PATTERN)], shed="hspice").open()
    with pytest.raises(ValueError, match="the share of the work to drop is a number from 0"):
        session.overload(ratio)
