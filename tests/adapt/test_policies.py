"""When a policy asks for another plan."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest

import cepheid
from cepheid.adapt.policies import DEFAULT, Invariant, Memory, Policy, Threshold, Unconditional, Watch, policy_called
from cepheid.plan.cardinality import Cardinality
from cepheid.plan.planner import PLANNERS
from cepheid.stats.estimates import Estimates

BRANCH = cepheid.normalise(cepheid.parse("PATTERN SEQ(A a, B b, C c) WITHIN 10")).branches[0]
BEFORE = Cardinality(BRANCH, Estimates({"a": 100.0, "b": 15.0, "c": 10.0}))


def watch(policy: Policy, memory: Memory | None = None) -> Watch:
    plan = PLANNERS["greedy"](BRANCH, BEFORE)
    return policy.watch(plan, "greedy", BEFORE, {} if memory is None else memory)


def engine(**options: Any) -> cepheid.Engine:
    return cepheid.Engine([cepheid.parse("PATTERN SEQ(A a, B b) WITHIN 1")], **options)


def with_rates(**rates: float) -> Cardinality:
    return Cardinality(BRANCH, Estimates({**BEFORE.estimates.counts, **rates}))


def test_unconditionally() -> None:
    assert watch(Unconditional()).reason(BEFORE) == "every check plans again"


def test_a_threshold_is_on_every_value() -> None:
    found = watch(Threshold(0.3))
    assert found.reason(with_rates(a=129.0)) is None
    assert found.reason(with_rates(a=131.0)) == "the rate of a was 100 and is 131"


def test_an_invariant_is_on_what_decided() -> None:
    found = watch(Invariant())
    assert found.reason(with_rates(a=1000.0)) is None  # a stays the most frequent
    assert found.reason(with_rates(c=14.0)) is None
    assert found.reason(with_rates(c=16.0)) == "it no longer holds that c at place 1 makes less work than b"


def test_a_distance_lets_small_changes_pass() -> None:
    found = watch(Invariant(distance=0.5))
    assert found.reason(with_rates(c=20.0)) is None
    assert found.reason(with_rates(c=23.0)) is not None


def test_the_average_distance_is_that_of_the_comparisons_when_the_plan_was_made() -> None:
    # c before b: 15/10 - 1, c before a: 100/10 - 1, b before a: 100/15 - 1; the mean is 5.06
    found = watch(Invariant(distance="average"))
    assert found.reason(with_rates(c=90.0)) is None
    assert found.reason(with_rates(c=91.5)) is not None


def test_a_learned_distance_grows_with_changes_that_bring_little() -> None:
    memory: Memory = {}
    for _ in range(4):
        found = watch(Invariant(distance="meta"), memory)
        assert found.reason(with_rates(c=25.0)) is not None
        found.learn(0.0)
    # From 0 by 0.1 to 0.8: the chosen 15 may become 27.
    found = watch(Invariant(distance="meta"), memory)
    assert found.reason(with_rates(c=25.0)) is None
    assert found.reason(with_rates(c=28.0)) is not None
    found.learn(0.9)
    assert watch(Invariant(distance="meta"), memory).reason(with_rates(c=25.0)) is not None


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: Invariant(k=0), "k says how many .*: 1 or more, or None for all; got 0"),
        (lambda: Invariant(k=1.5), "or None for all; got 1.5"),  # type: ignore[arg-type]
        (lambda: Invariant(k="1"), "or None for all; got '1'"),  # type: ignore[arg-type]
        (lambda: Invariant(distance=math.nan), "distance is 0 or more"),
        (lambda: Threshold(math.nan), "relative change above 0, .*; got nan"),
        (lambda: Threshold("0.3"), "relative change above 0, .*; got '0.3'"),  # type: ignore[arg-type]
        (lambda: Invariant(distance=-1), "distance is 0 or more"),
        (lambda: Invariant(distance="mean"), "'average' or 'meta'; got 'mean'"),  # type: ignore[arg-type]
        (lambda: Threshold(0), "relative change above 0"),
        (
            lambda: engine(adapt="sometimes"),
            "adapt is 'static', True, or a policy .*, one of static, true, .*; got 'so",
        ),
        (lambda: engine(adapt=Invariant), "adapt is 'static', True, or a policy such as .*Invariant"),
        (lambda: engine(adapt=True, check_every=0), "check_every is 1 event or more"),
        (lambda: engine(adapt=True, check_every="bogus"), "check_every is 1 event or more, .*; got 'bogus'"),
        (lambda: engine(check_every="bogus"), "check_every is 1 event or more, .*; got 'bogus'"),
        (lambda: engine(adapt=True, migrate="bogus"), "migrate is 'rebuild' or 'parallel'; got 'bogus'"),
        (lambda: engine(migrate="bogus"), "migrate is 'rebuild' or 'parallel'; got 'bogus'"),
    ],
)
def test_senseless_options_are_refused(make: Callable[[], object], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        make()


@pytest.mark.parametrize(
    ("words", "policy"),
    [
        ("static", None),
        ("true", DEFAULT),
        ("True", DEFAULT),
        ("unconditional", Unconditional()),
        ("threshold", Threshold()),
        ("threshold 0.5", Threshold(0.5)),
        ("threshold:0.5", Threshold(0.5)),
        ("invariant", Invariant()),
        ("invariant 0.1", Invariant(distance=0.1)),
        ("invariant: average", Invariant(distance="average")),
    ],
)
def test_policies_have_words(words: str, policy: Policy | None) -> None:
    assert policy_called(words) == policy
    assert ("adaptation" in engine(adapt=words).open().report()) == (policy is not None)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("treshold 0.3", "one of static, true, unconditional, threshold, invariant, .*'threshold'"),
        ("", "one of static, .*; got ''"),
        ("unconditional 3", "one of static, .*; got 'unconditional 3'"),
        ("threshold much", "a number, such as 0.3, .*; got 'threshold much'"),
        ("threshold 0", "relative change above 0"),
        ("invariant 1 2", "one of static, .*; got 'invariant 1 2'"),
    ],
)
def test_other_words_are_refused(words: str, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        policy_called(words)
