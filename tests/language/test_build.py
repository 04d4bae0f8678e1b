"""Patterns built in Python are the patterns that the text says."""

from __future__ import annotations

import datetime as dt

import numpy as np
import pytest

import cepheid
from cepheid import and_, any_of, case, current, ev, fn, kl, lit, not_, or_, previous, seq
from cepheid.language.pattern import Pattern

a, b, c, n = ev("Stock", "a"), ev("Stock", "b"), ev("Trade", "c"), ev("News", "n")


@pytest.mark.parametrize(
    ("built", "text"),
    [
        (
            seq(a, kl(b), not_(n), and_(c, ev("Stock", "d")))
            .where(a.ticker == "MSFT", a.price < b.price, fn.avg(b.price) < c.price, n.ticker == a.ticker)
            .partition_by("region")
            .within("4 hours", slide="10 minutes")
            .returning(ticker=a.ticker, n=fn.count(b), gain=fn.max(b.price) - a.price)
            .named("stocks_up"),
            """NAME stocks_up
            PATTERN SEQ(Stock a, KL(Stock b), NOT(News n), AND(Stock c, Stock d))
            WHERE a.ticker = 'MSFT' AND a.price < b.price AND AVG(b.price) < c.price AND n.ticker = a.ticker
            PARTITION BY region WITHIN 4 hours SLIDE 10 minutes
            RETURN a.ticker AS ticker, COUNT(b) AS n, MAX(b.price) - a.price AS gain""".replace("Stock c", "Trade c"),
        ),
        (or_(a, kl(b, 2, 3)).within(5), "PATTERN OR(Stock a, KL(Stock b, 2, 3)) WITHIN 5"),
        (any_of(1, a, c).within(dt.timedelta(minutes=5)), "PATTERN ANY(1, Stock a, Trade c) WITHIN 5 minutes"),
        (seq(a).using("strict", consume=True).within("9 events"), "PATTERN SEQ(Stock a) USING strict CONSUME WITHIN 9 events"),
        (
            seq(a).where((a.x > 1) | ~(a.y * 2 - 1 <= 3) & (a.z != 5)).within(5),
            "PATTERN SEQ(Stock a) WHERE a.x > 1 OR NOT a.y * 2 - 1 <= 3 AND a.z <> 5 WITHIN 5",
        ),
        (
            seq(kl(b)).where(current(b).x > previous(b).x, fn.first(b).x == 1, fn.sum(b.x % 2) >= -1).within(5),
            "PATTERN SEQ(KL(Stock b)) WHERE b[i].x > b[i-1].x AND FIRST(b).x = 1 AND SUM(b.x % 2) >= -1 WITHIN 5",
        ),
        (
            seq(a).where(a.x.isin(1, None), a.x.between(1, 2), a.k.like("x%"), a.x.is_null(), -a.x < 1).within(5),
            "PATTERN SEQ(Stock a) WHERE a.x IN (1, NULL) AND a.x BETWEEN 1 AND 2 AND a.k LIKE 'x%' AND a.x IS NULL AND -a.x < 1 WITHIN 5",
        ),
        (
            seq(a).where(lit(2) / a.x > 1 - a.x, 1 + a.x > 2 * a.x, 5 % a.x == 1).within(5),
            "PATTERN SEQ(Stock a) WHERE 2 / a.x > 1 - a.x AND 1 + a.x > 2 * a.x AND 5 % a.x = 1 WITHIN 5",
        ),
        (
            seq(a, c)
            .where(c.ts - a.ts < dt.timedelta(minutes=90), a.ts > dt.datetime(2024, 1, 1, tzinfo=dt.timezone.utc))
            .within("1 day"),
            "PATTERN SEQ(Stock a, Trade c) WHERE c.ts - a.ts < 90 minutes AND a.ts > TIMESTAMP '2024-01-01' WITHIN 1 day",
        ),
        (
            seq(a).where(case((a.x > 1, "high"), (a.x > 0, "low"), otherwise="none") == "low").within(5),
            "PATTERN SEQ(Stock a) WHERE CASE WHEN a.x > 1 THEN 'high' WHEN a.x > 0 THEN 'low' ELSE 'none' END = 'low' WITHIN 5",
        ),
        (
            seq(a).where("a.x > 1 OR a.y > 2", fn.abs(a.z) > 3).returning("a.x, a.y AS why").within(5),
            "PATTERN SEQ(Stock a) WHERE (a.x > 1 OR a.y > 2) AND ABS(a.z) > 3 WITHIN 5 RETURN a.x AS x, a.y AS why",
        ),
        (seq(a).where(a["unit price"] > 1, a["_id"] > 0).within(5), "PATTERN SEQ(Stock a) WHERE a.`unit price` > 1 AND a._id > 0 WITHIN 5"),
        (seq(a).within(5).returning(event=a), "PATTERN SEQ(Stock a) WITHIN 5 RETURN a AS event"),
    ],
)  # fmt: skip
def test_built_and_written_patterns_are_equal(built: Pattern, text: str) -> None:
    assert built == cepheid.parse(text)
    cepheid.check(built)


def test_numbers_of_numpy_are_numbers() -> None:
    low, high = np.array([2.5])[0], np.array([3])[0]
    built = seq(a).where(a.x.between(low, high)).within(np.int64(5))
    assert built == cepheid.parse("PATTERN SEQ(Stock a) WHERE a.x BETWEEN 2.5 AND 3 WITHIN 5")


def test_conditions_add_up() -> None:
    assert seq(a).where(a.x > 1).where(a.y > 2, a.z > 3) == seq(a).where("a.x > 1 AND a.y > 2 AND a.z > 3")


def test_a_pattern_is_a_value() -> None:
    first, second = seq(a, b).within(5), seq(a, b).within(5)
    assert first == second
    assert len({first, second, first.named("x")}) == 2
    assert first.named("x").name == "x"
    assert first.name is None


def test_mistakes_in_python_are_shown_on_the_text_that_the_pattern_stands_for() -> None:
    with pytest.raises(cepheid.PatternError) as caught:
        cepheid.check(seq(a, b).where(c.price > a.price).within("5 minutes"))
    (problem,) = caught.value.problems
    assert (problem.line, problem.column, problem.message) == (2, 7, "unknown variable 'c'")


def test_a_pattern_without_a_window_cannot_be_run() -> None:
    with pytest.raises(cepheid.PatternError, match="no window"):
        cepheid.normalise(seq(a, b))


@pytest.mark.parametrize(
    ("make", "error", "said"),
    [
        (lambda: ev("", "a"), ValueError, "an event's type"),
        (lambda: ev("A", "a\nb"), ValueError, "an event's variable"),
        (seq, ValueError, "at least one part"),
        (lambda: seq("A a"), TypeError, "single events"),  # type: ignore[arg-type]
        (lambda: not_(seq(a)), TypeError, "not_"),  # type: ignore[arg-type]
        (lambda: kl(kl(a)), TypeError, "kl"),  # type: ignore[arg-type]
        (lambda: seq(a, seq(b).within(5)), ValueError, "belong to the whole pattern"),
        (lambda: seq(a).using("skip"), ValueError, "skip_till_any, skip_till_next, strict"),
        (lambda: seq(a).within(True), TypeError, "a window is"),
        (lambda: seq(a).within(2.5), TypeError, "a window is"),
        (lambda: seq(a).within(-5), TypeError, "0 or more"),
        (lambda: seq(a).returning(), ValueError, "at least one column"),
        (lambda: seq(a).where(sum([a.x] * 1500, lit(0)) > 1), ValueError, "levels deep"),
        (lambda: seq(a).within("5 hurs"), cepheid.PatternError, "unknown unit"),
        (lambda: seq(a).where("a.x >"), cepheid.PatternError, "ends too early"),
        (lambda: seq(a).where(object()), TypeError, "expected a condition"),  # type: ignore[arg-type]
        (lambda: lit(float("nan")), ValueError, "nan"),
        (lambda: a.x == object(), TypeError, "expected a condition"),
        (lambda: bool(a.x > 1), TypeError, "use & for AND"),
        (lambda: 1 < a.x < 2, TypeError, "use & for AND"),
        (lambda: fn.first(a.x), TypeError, "takes a variable"),
        (lambda: fn.sum(1), TypeError, "needs an attribute"),
        (lambda: fn.sum(a.x, a.y), TypeError, "one argument"),
        (lambda: a[1], ValueError, "name of an attribute"),  # type: ignore[index]
        (lambda: seq(a).named(""), ValueError, "printable"),
    ],
)
def test_what_cannot_be_built_says_why(make, error: type[Exception], said: str) -> None:
    with pytest.raises(error, match=said):
        make()


def test_registered_functions() -> None:
    cepheid.register_function("twice", lambda x: 2 * x)
    cepheid.check(seq(a).where(fn.twice(a.x) > 1).within(5))
    with pytest.raises(cepheid.PatternError, match="twice takes 1 argument, found 2"):
        cepheid.parse("PATTERN A a WHERE twice(a.x, 1) > 1 WITHIN 5")
    for name, function, returns, error in [
        ("abs", abs, "double", "function of the language"),
        ("sum", sum, "double", "function of the language"),
        ("two words", abs, "double", "plain identifier"),
        ("where", abs, "double", "no keyword"),
        ("f", 5, "double", "expected a function"),
        ("f", abs, "list", "returns="),
    ]:
        with pytest.raises((ValueError, TypeError), match=error):
            cepheid.register_function(name, function, returns=returns)  # type: ignore[arg-type]


def test_never_shed_is_a_clause_and_its_words_are_names_elsewhere() -> None:
    critical = cepheid.parse("PATTERN SEQ(A a, B b) WHERE a.x > 1 WITHIN 10 RETURN a.x never shed")
    assert critical == cepheid.parse("PATTERN SEQ(A a, B b) WHERE a.x > 1 WITHIN 10 RETURN a.x AS x NEVER SHED")
    assert critical.critical
    assert critical == cepheid.parse("PATTERN SEQ(A a, B b) WHERE a.x > 1 WITHIN 10 RETURN a.x").never_shed()
    plain = cepheid.parse("NAME never PATTERN never shed WHERE shed.never > 1 WITHIN 10 RETURN shed.shed AS never")
    assert not plain.critical
    assert cepheid.parse(str(plain)) == plain
    a, b = cepheid.ev("A", "a"), cepheid.ev("B", "b")
    for made in (cepheid.seq, cepheid.and_, cepheid.or_):
        assert made(a, b, critical=True).critical
    assert cepheid.any_of(1, a, b, critical=True).critical
    assert cepheid.kl(a, critical=True).critical
    for wrong in ("no", 1, None):
        with pytest.raises(TypeError, match="critical is True or False, got"):
            cepheid.seq(a, critical=wrong)  # type: ignore[arg-type]
        with pytest.raises(TypeError, match="critical is True or False, got"):
            plain.never_shed(wrong)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="belong to the whole pattern"):
        cepheid.seq(cepheid.and_(a, b, critical=True))


def test_never_shed_stands_last() -> None:
    with pytest.raises(cepheid.PatternError, match="WITHIN stands after NEVER"):
        cepheid.parse("PATTERN A a NEVER SHED WITHIN 10")
    with pytest.raises(cepheid.PatternError):
        cepheid.parse("PATTERN A a WITHIN 10 NEVER")
