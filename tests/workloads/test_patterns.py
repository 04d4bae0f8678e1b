"""Workloads of patterns are as they are asked for."""

from __future__ import annotations

from statistics import mean

import pytest

import cepheid
from cepheid.language import syntax as s
from cepheid.plan.sharing.graph import MultiPatternGraph
from cepheid.plan.sharing.members import Catalogue, Member
from cepheid.stats.estimates import Estimates
from cepheid.workloads.patterns import pattern_workload

TYPES = [f"T{number}" for number in range(12)]
RATES = {name: float(place) for place, name in enumerate(TYPES)}


def patterns(count: int = 300, **options: object) -> list[cepheid.Pattern]:
    return [cepheid.parse(text) for text in pattern_workload(count, RATES, **options)]  # type: ignore[arg-type]


def types(pattern: cepheid.Pattern) -> list[str]:
    return [s.event_of(leaf).type for leaf in s.leaves(pattern.structure)]


@pytest.mark.parametrize("overlap", [0.0, 1.0])
def test_size_predicates_and_special_operators(overlap: float) -> None:
    made = patterns(size=5, overlap=overlap)
    assert mean(len(types(pattern)) for pattern in made) == pytest.approx(5, abs=0.2)
    assert {len(types(pattern)) for pattern in made} == {4, 5, 6}
    assert all(len(set(types(pattern))) == len(types(pattern)) for pattern in made)
    compared = [len(s.conjuncts(pattern.condition)) for pattern in made]
    assert mean(compared) == pytest.approx(2.5, abs=0.8)
    special = [any(not isinstance(leaf, s.Event) for leaf in s.leaves(pattern.structure)) for pattern in made]
    assert mean(special) == pytest.approx(0.2, abs=0.08)
    assert mean(isinstance(pattern.structure, s.Sequence) for pattern in made) == pytest.approx(0.5, abs=0.1)


def test_every_pattern_can_be_run_and_matched() -> None:
    for pattern in patterns(size=6, margins=[0.0, 0.5], window="500 events", result="{first}.ts AS t"):
        normal = cepheid.normalise(pattern)
        assert normal.branches[0].never is None


def test_the_same_seed_gives_the_same_patterns() -> None:
    assert pattern_workload(20, TYPES, seed=3) == pattern_workload(20, TYPES, seed=3)
    assert pattern_workload(20, TYPES, seed=3) != pattern_workload(20, TYPES, seed=4)


def test_rates_within_a_pattern_differ_as_little_as_asked() -> None:
    for pattern in patterns(size=4, difference=0.5):
        rates = [RATES[name] for name in types(pattern)]
        assert max(rates) - min(rates) <= 0.5 * 11


def density(overlap: float) -> float:
    graph, catalogue = MultiPatternGraph(), Catalogue(frozenset({"change"}))
    for pattern in patterns(40, overlap=overlap):
        graph.add(Member(cepheid.normalise(pattern).branches[0], Estimates(), catalogue))
    return graph.density()


def test_patterns_that_keep_to_what_is_usual_have_more_in_common() -> None:
    assert density(0.0) < 0.8 * density(0.6) < 0.8 * density(1.0)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"size": 1}, "size is from 2 to 11"),
        ({"size": 12}, "size is from 2 to 11"),
        ({"special": 2}, "special"),
        ({"predicates": 0}, "predicates"),
    ],
)
def test_wrong_arguments(wrong: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        patterns(2, **wrong)
    with pytest.raises(ValueError, match="needs rates"):
        pattern_workload(2, TYPES, difference=0.5)
