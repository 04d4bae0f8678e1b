"""Made-up workloads of many patterns, as multi-pattern engines are compared on."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations

from cepheid.workloads.arguments import distinct_names, positive, whole, within

TRIES = 100
"""So often types are drawn until about as many of them are usually compared as wanted."""


def pattern_workload(
    count: int,
    types: Sequence[str] | Mapping[str, float],
    *,
    seed: int = 0,
    size: float = 5,
    attributes: Sequence[str] = ("change",),
    margins: Sequence[float] = (0.0,),
    predicates: float = 0.5,
    special: float = 0.2,
    sequences: float = 0.5,
    overlap: float = 0.8,
    window: str = "15 minutes",
    difference: float | None = None,
    result: str | None = None,
) -> list[str]:
    """The texts of ``count`` patterns over some event types, named p1, p2, …

    Each is a sequence or, with a chance of 1 - ``sequences``, a conjunction of different types; ``size`` is how many on
    average. About ``predicates`` times as many conditions as types compare two of the events: whether each of the
    ``attributes`` of one, and a margin, is less than that of the other. Each two types have one of the ``margins``. A
    share of ``special`` has a negation or a KL of one or two events.

    ``overlap``: the share of the patterns that keep to what is usual in the workload: which type comes first, and which
    two types are compared. The others decide for themselves, so they have less in common with others.

    ``types`` may be a mapping to arrival rates; then ``difference`` limits by how much those within a pattern differ,
    as part of the largest difference that there is. ``window``: a text such as ``15 minutes`` or ``500 events``.
    ``result``: what follows RETURN, with ``{first}`` for the name of the first variable.

    >>> from cepheid.workloads.patterns import pattern_workload
    >>> print(pattern_workload(2, ["AAPL", "MSFT", "GOOG", "JPM", "INTC"], size=4, seed=1, window="1 minute")[0])
    NAME p1
    PATTERN SEQ(`MSFT` v1, `INTC` v2, `JPM` v3)
    WHERE v2.change < v1.change AND v3.change < v2.change
    WITHIN 1 minute
    """
    whole("count", count)
    names = distinct_names("types", list(types))
    if not 2 <= size <= len(names) - 1:
        raise ValueError(f"size is from 2 to {len(names) - 1}, one less than there are types; got {size}")
    positive("predicates", predicates)
    for name, value in (("special", special), ("sequences", sequences), ("overlap", overlap)):
        within(name, value, 0, 1)
    if difference is not None and not isinstance(types, Mapping):
        raise ValueError("a difference of rates needs rates: give types as a mapping from each type to its rate")
    rates = dict(types) if isinstance(types, Mapping) else dict.fromkeys(names, 1.0)
    widest = max(rates.values()) - min(rates.values())
    limit = float("inf") if difference is None else difference * widest
    source = random.Random(seed)
    usual = _Usual(source, names, margins, 2 * predicates / max(1.0, size - 1))
    patterns = []
    for place in range(count):
        is_usual, is_sequence, is_special = (source.random() < chance for chance in (overlap, sequences, special))
        wanted = _size(source, size, len(names))
        for _ in range(TRIES):
            events = _Events(source, _types(source, rates, wanted, limit), usual, is_usual, is_sequence, is_special)
            pairs = events.pairs(predicates * wanted)
            if abs(len(pairs) - predicates * wanted) <= 1:
                break
        where = " AND ".join(text for pair in pairs for text in events.compared(pair, attributes))
        lines = [f"NAME p{place + 1}", f"PATTERN {events.structure()}"]
        lines += [f"WHERE {where}"] if where else []
        lines += [f"WITHIN {window}"]
        lines += [] if result is None else [f"RETURN {result.format(first=events.variable(events.singles[0]))}"]
        patterns.append("\n".join(lines))
    return patterns


def _size(source: random.Random, mean: float, most: int) -> int:
    """A number of events around a mean: one less, as many, or one more."""
    near = int(mean) + (source.random() < mean - int(mean))
    return min(max(2, near + source.choice((-1, 0, 1))), most)


def _types(source: random.Random, rates: Mapping[str, float], size: int, limit: float) -> list[str]:
    """Different types whose rates differ by no more than a limit, or as little as can be where there are too few."""
    others = list(rates)
    source.shuffle(others)
    chosen = [others.pop()]
    while len(chosen) < size:
        apart = {name: max(abs(rates[name] - rates[other]) for other in chosen) for name in others}
        near = [name for name in others if apart[name] <= limit] or [min(others, key=apart.__getitem__)]
        chosen.append(near[0])
        others.remove(near[0])
    source.shuffle(chosen)
    return chosen


class _Usual:
    """What the patterns of a workload have in common."""

    def __init__(self, source: random.Random, names: Sequence[str], margins: Sequence[float], share: float) -> None:
        self.order = {name: place for place, name in enumerate(source.sample(names, len(names)))}
        pairs = list(combinations(names, 2))
        value = {name: place for place, name in enumerate(source.sample(names, len(names)))}
        self.less = {frozenset(pair): min(pair, key=value.__getitem__) for pair in pairs}  # so no pattern is impossible
        self.margin = {frozenset(pair): source.choice(list(margins)) for pair in pairs}
        self.compared = {frozenset(pair) for pair in pairs if source.random() < share}


@dataclass
class _Events:
    """The events of one pattern."""

    source: random.Random
    types: list[str]
    usual: _Usual
    is_usual: bool
    is_sequence: bool
    is_special: bool
    singles: list[str] = field(init=False)  # those that are neither negated nor repeated

    def __post_init__(self) -> None:
        if self.is_usual:
            self.types.sort(key=self.usual.order.__getitem__)
        odd = self.source.choice(self.types[1:-1]) if self.is_special and len(self.types) > 2 else None
        self.singles = [type_ for type_ in self.types if type_ != odd]

    def variable(self, type_: str) -> str:
        return f"v{self.types.index(type_) + 1}"

    def structure(self) -> str:
        events = {type_: f"`{type_}` {self.variable(type_)}" for type_ in self.types}
        for odd in set(self.types) - set(self.singles):
            events[odd] = self.source.choice((f"NOT({events[odd]})", f"KL({events[odd]}, 1, 2)"))
        return f"{'SEQ' if self.is_sequence else 'AND'}({', '.join(events.values())})"

    def pairs(self, wanted: float) -> list[frozenset[str]]:
        """The types that are compared: those that usually are, or about so many."""
        pairs = [frozenset(pair) for pair in combinations(self.singles, 2)]
        if self.is_usual:
            return [pair for pair in pairs if pair in self.usual.compared]
        count = int(wanted) + (self.source.random() < wanted - int(wanted))
        return self.source.sample(pairs, min(count, len(pairs)))

    def compared(self, pair: frozenset[str], attributes: Sequence[str]) -> list[str]:
        less = self.usual.less[pair]
        (more,) = pair - {less}
        margin = f" + {self.usual.margin[pair]!r}" if self.usual.margin[pair] else ""
        return [f"{self.variable(less)}.{a}{margin} < {self.variable(more)}.{a}" for a in attributes]
