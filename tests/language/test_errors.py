"""Each mistake is named where it stands, with what was expected and what may help."""

from __future__ import annotations

import pickle

import pytest

import cepheid

# text, line, column, part of the message, part of what is expected or hinted
# fmt: off
SYNTAX = [
    ("", 1, 1, "no pattern here", "PATTERN"),
    ("PATTERN SEQ(A a, B b)", 1, 1, "no window", "WITHIN 10 minutes"),
    ("WITHIN 5", 1, 1, "no PATTERN clause", "PATTERN SEQ"),
    ("PATTERN SEQ(A a, B) WITHIN 5", 1, 19, "unexpected ')'", "each event has a type and a variable: B b"),
    ("PATTERN SEQ(A a, NOT B b) WITHIN 5", 1, 22, "unexpected 'B'", "write NOT(…)"),
    ("PATTERN SEQ(A a, B b WITHIN 5", 1, 22, "unexpected 'WITHIN'", "')' or ','"),
    ("PATTERN SEQ(A a, end b) WITHIN 5", 1, 18, "unexpected 'end'", "write it in backquotes: `end`"),
    ("PATTERN SEQ(A a, NOT(SEQ(B b, C c))) WITHIN 5", 1, 22, "NOT takes one event", "NOT for each"),
    ("PATTERN SEQ(A a, KL(SEQ(B b, C c))) WITHIN 5", 1, 21, "KL takes one event", "KL(Type variable)"),
    ("PATTERN ANY(1, SEQ(A a)) WITHIN 5", 1, 16, "ANY chooses among single events", "Type variable"),
    ("PATTERN SEQ(A* a) WITHIN 5", 1, 14, "unexpected '*'", "use OR"),
    ("PATTERN A a WHERE a.x < 3 < 4 WITHIN 5", 1, 27, "unexpected '<'", "comparisons do not chain"),
    ("PATTERN A a WHERE a.x = WITHIN 5", 1, 25, "unexpected 'WITHIN'", "a value"),
    ("PATTERN A a WHERE a.x = 'abc\nWITHIN 5", 1, 25, "string is not closed", "a closing '"),
    ('PATTERN A a WHERE a.x = "abc" WITHIN 5', 1, 25, "double quotes", "single quotes ('abc')"),
    ("PATTERN A a WHERE a.x = 1 ? WITHIN 5", 1, 27, "unexpected '?'", "no parameters"),
    ("PATTERN A a WHERE a.x = E'\\q' WITHIN 5", 1, 25, "unknown escape", "\\n"),
    ("PATTERN KL(A a) WHERE a[j].x > a[i-1].x WITHIN 5", 1, 25, "unknown index [j]", "[i] or [i-1]"),
    ("PATTERN KL(A a) WHERE FIRST(a) > 1 WITHIN 5", 1, 23, "FIRST gives an event", "FIRST(variable).attribute"),
    ("PATTERN KL(A a) WHERE SUM(1) > 1 WITHIN 5", 1, 23, "SUM needs an attribute", "SUM(b.x)"),
    ("PATTERN A a WITHIN 5 hurs", 1, 22, "unknown unit 'hurs'", "did you mean 'hours'"),
    ("PATTERN A a WITHIN 2 months", 1, 22, "unknown unit 'months'", "no fixed length"),
    ("PATTERN A a WITHIN 2.5", 1, 20, "2.5 is not a whole number", "with a unit"),
    ("PATTERN A a WITHIN 0.3 ns", 1, 20, "not a whole number of nanoseconds", ""),
    ("PATTERN A a USING skip_til_next WITHIN 5", 1, 19, "unknown strategy", "did you mean 'skip_till_next'"),
    ("PATTERN A a USING CONSUME WITHIN 5", 1, 19, "unknown strategy", "CONSUME follows a strategy"),
    ("PATTERN A a WITHIN 5 WHERE a.x = 1", 1, 22, "WHERE stands after WITHIN", "PARTITION BY WITHIN"),
    ("PATTERN A a WHERE a.x = 1 WHERE a.y = 2 WITHIN 5", 1, 27, "WHERE is given twice", "AND"),
    ("hello PATTERN A a WITHIN 5", 1, 1, "unexpected 'hello'", "NAME or PATTERN"),
    ("PATTERN A a WITHIN 5 RETURN a.x + 1", 1, 29, "this column has no name", "AS"),
    ("PATTERN A a WHERE a.ts > TIMESTAMP '2024-13-01' WITHIN 5", 1, 26, "not a timestamp", "TIMESTAMP '2024"),
    ("PATTERN A a WHERE a.x = 99999999999999999999 WITHIN 5", 1, 25, "does not fit a 64-bit integer", ""),
    ("PATTERN A a WHERE a.x = 1e999 WITHIN 5", 1, 25, "too large for a double", ""),
    ("PATTERN SEQ(A a, B b) a.x = b.x WITHIN 5", 1, 23, "unexpected 'a'", "follow the word WHERE"),
    ("PATTERN SEQ(A a, B b) WHER a.x = b.x WITHIN 5", 1, 23, "unexpected 'WHER'", "did you mean 'WHERE'"),
    ("PATTERN SEQ(A a, B b)) WITHIN 5", 1, 22, "unexpected ')'", "the next clause"),
    ("PATTERN SEQ(Stock AS a) WITHIN 5", 1, 19, "unexpected 'AS'", "the variable follows the type"),
    ("PATTERN A a WHERE a.x === 3 WITHIN 5", 1, 25, "unexpected '='", "a value"),
    ("PATTERN A a WHERE a.x > $threshold WITHIN 5", 1, 25, "unexpected '$threshold'", "no parameters"),
    ("PATTERN A a WHERE a.x > 1 && a.y < 2 WITHIN 5", 1, 27, "unexpected '&&'", "write AND"),
    ("PATTERN A a WHERE a.x = 'it's' WITHIN 5", 1, 30, "string is not closed", "doubled: 'it''s'"),
    ("PATERN A a WITHIN 5", 1, 1, "unexpected 'PATERN'", "did you mean 'PATTERN'"),
    ("PATTERN A a WITHIN INTERVAL '1' HOUR", 1, 20, "unexpected 'INTERVAL'", "WITHIN 1 hour"),
    ("PATTERN A a WITHIN '1 hour'", 1, 20, "unexpected ''1 hour''", "WITHIN 1 hour"),
    ("PATTERN A a -> B b WITHIN 5", 1, 13, "unexpected '-'", "SEQ(A a, B b)"),
    ("PATTERN SEQ(card-payment p) WITHIN 5", 1, 17, "unexpected '-'", "backquotes: `card-…`"),
    ("PATTERN SEQ(card payment p) WITHIN 5", 1, 26, "unexpected 'p'", "backquotes: `card payment`"),
    ("PATTERN SQE(A a, B b) WITHIN 5", 1, 12, "unexpected '('", "did you mean 'SEQ'"),
    ("PATTERN SEQ(A a, Stock b+) WITHIN 5", 1, 25, "unexpected '+'", "Stock+ b"),
    ("PATTERN KL(A b) WHERE b[i+1].x > b[i].x WITHIN 5", 1, 26, "unexpected '+'", "b[i-1] and b[i]"),
    ("PATTERN KL(A b) WHERE COUNT(*) > 1 WITHIN 5", 1, 29, "unexpected '*'", "COUNT(b)"),
    ("PATTERN A a PARTITION BY a.region WITHIN 5", 1, 27, "unexpected '.'", "names columns"),
    ("PATTERN A a WHERE a.x >= 1 // c\nWITHIN 5", 1, 29, "unexpected '/'", "a comment starts with --"),
    ("PATTERN A a WHERE a.x ≥ 5 WITHIN 5", 1, 23, "unexpected '≥'", "write >="),
    ("PATTERN A a WHERE a.d < 1e-99999999999999999999 s WITHIN 5", 1, 25, "not a length of time", ""),
    ("PATTERN A a WHERE a.d < 1e-999999999 s WITHIN 5", 1, 25, "not a length of time", ""),
    ("PATTERN A a WHERE a.t < TIMESTAMP '0001-01-01 00:00:00+02:00' WITHIN 5", 1, 25, "years 1 to 9999", ""),
    ("PATTERN A a WITHIN 5 5", 1, 22, "unexpected '5'", "a unit of time, SLIDE or the next clause"),
    ("PATTERN A a WHERE a.x BETWEEN 1 2 WITHIN 5", 1, 33, "unexpected '2'", "an operator, a unit of time or AND"),
    ("PATTERN A a WHERE a.x < 5 events WITHIN 5", 1, 25, "a window, not a value", "unit of time"),
]
MEANING = [
    ("PATTERN SEQ(A a, B a) WITHIN 5", 1, 18, "'a' is declared twice", "name of its own"),
    ("PATTERN NOT(A a) WITHIN 5", 1, 9, "NOT cannot be a pattern of its own", "beside an event"),
    ("PATTERN OR(A a, NOT(B b)) WITHIN 5", 1, 17, "NOT cannot be a part of OR", "absence of an event"),
    ("PATTERN SEQ(A a, AND(NOT(B b))) WITHIN 5", 1, 22, "no positive event beside it in its AND", "absence"),
    ("PATTERN KL(A a, 0) WITHIN 5", 1, 9, "at least 0 events", "use OR"),
    ("PATTERN A{3,2} a WITHIN 5", 1, 9, "maximum 2 is below the minimum 3", ""),
    ("PATTERN ANY(3, A a, B b) WITHIN 5", 1, 9, "ANY asks for 3 of 2 events", "1 to 2"),
    ("PATTERN AND(A a, B b) USING strict WITHIN 5", 1, 23, "strict needs events in a fixed order", "SEQ"),
    ("PATTERN A a WITHIN 0 events", 1, 20, "a window of no events", "1 events"),
    ("PATTERN A a WITHIN 5 SLIDE 5 seconds", 1, 28, "different kinds", "both"),
    ("PATTERN A a WITHIN 5 SLIDE 0", 1, 28, "windows must move on", "above zero"),
    ("PATTERN A a WITHIN 5 events SLIDE 2 events", 1, 35, "SLIDE cuts time", "units of time"),
    ("PATTERN A start WITHIN 5", 1, 9, "'start' has the name of a column", "a name other than"),
    ("PATTERN A a WITHIN 5 RETURN a.x, a.y AS x", 1, 34, "column 'x' already", "AS and another name"),
    ("PATTERN A a PARTITION BY k, k WITHIN 5", 1, 29, "'k' stands twice", ""),
    ("PATTERN SEQ(A first, B b) WHERE frist.x = b.x WITHIN 5", 1, 33, "unknown variable 'frist'", "did you mean 'first'"),
    ("PATTERN SEQ(A a, B b) WHERE price > b.x WITHIN 5", 1, 29, "unknown variable 'price'", "a.price"),
    ("PATTERN KL(A b) WHERE b.x > PREV(b.x) WITHIN 5", 1, 29, "unknown function 'PREV'", "b[i-1]"),
    ("PATTERN A a WHERE a = 1 WITHIN 5 RETURN a", 1, 19, "'a' is an event", "such as a.x"),
    ("PATTERN KL(A a) WITHIN 5 RETURN a, MIN(a) AS z", 1, 40, "'a' is an event", "such as a.x"),
    ("PATTERN SEQ(A a, B b) WHERE a = b.x WITHIN 5", 1, 29, "'a' is an event", "such as a.x"),
    ("PATTERN SEQ(A a, B b) WHERE AVG(b.x) > 1 WITHIN 5", 1, 29, "'b' is a single event", "KL(… b)"),
    ("PATTERN SEQ(A a, KL(B b)) WHERE SUM(b.x + a.x) > 1 WITHIN 5", 1, 33, "events of one variable", "'b' only"),
    ("PATTERN KL(B b) WHERE SUM(MAX(b.x)) > 1 WITHIN 5", 1, 23, "cannot hold another aggregate", ""),
    ("PATTERN SEQ(A a, KL(B b)) WHERE a[i].x > a[i-1].x WITHIN 5", 1, 33, "has no neighbours", "KL variable"),
    ("PATTERN KL(B b) WHERE b[i].x > 1 WITHIN 5", 1, 23, "come together", "write b.x"),
    ("PATTERN SEQ(NOT(A n), B b, NOT(C m)) WHERE n.x = m.x WITHIN 5", 1, 44, "two negated variables, m and n", "on its own"),
    ("PATTERN OR(A a, B b) WHERE a.x = b.x WITHIN 5", 1, 28, "no alternative of the pattern has all of a, b", "OR and ANY"),
    ("PATTERN SEQ(A a, NOT(B n)) WITHIN 5 RETURN n.x", 1, 44, "'n' is negated", ""),
    ("PATTERN SEQ(KL(A a), KL(B b)) WITHIN 5 RETURN a.x + b.x AS s", 1, 47, "one KL variable, found a, b", "aggregates"),
    ("PATTERN KL(A a) WITHIN 5 RETURN a[i].x AS s", 1, 33, "RETURN has no [i]", ""),
    ("PATTERN A a WHERE abss(a.x) > 1 WITHIN 5", 1, 19, "unknown function 'abss'", "did you mean 'ABS'"),
    ("PATTERN A a WHERE ABS(a.x, 1) > 1 WITHIN 5", 1, 19, "ABS takes 1 argument, found 2", ""),
    ("PATTERN A a WHERE 'a' < 5 WITHIN 5", 1, 19, "a string and an integer cannot be compared", "of one type"),
    ("PATTERN A a WHERE 1 + 'x' = a.y WITHIN 5", 1, 19, "'+' has no meaning between an integer and a string", "CONCAT"),
    ("PATTERN A a WHERE 5 WITHIN 5", 1, 19, "a condition is true or false, and this is an integer", ""),
    ("PATTERN A a WHERE NOT 5 WITHIN 5", 1, 23, "NOT takes a truth value", ""),
    ("PATTERN A a WHERE a.x LIKE 5 WITHIN 5", 1, 28, "LIKE takes a string", ""),
    ("PATTERN A a WHERE a.ts > 5 minutes * 1.5 WITHIN 5", 1, 26, "no meaning between an interval", "whole number"),
    ("PATTERN A a WHERE a.x = -9223372036854775809 WITHIN 5", 1, 25, "does not fit a 64-bit integer", ""),
    (
        "PATTERN SEQ(" + ", ".join(f"OR(A a{i}, B b{i})" for i in range(11)) + ") WITHIN 5",
        1, 9, "too many alternatives", "at most 1,000",
    ),
]
# fmt: on


@pytest.mark.parametrize(("text", "line", "column", "message", "help_"), SYNTAX + MEANING)
def test_a_mistake_is_named_where_it_stands(text: str, line: int, column: int, message: str, help_: str) -> None:
    with pytest.raises(cepheid.PatternError) as caught:
        cepheid.parse(text)
    (problem,) = caught.value.problems
    assert (problem.line, problem.column) == (line, column), str(problem)
    assert message in problem.message
    assert help_ in f"{problem.expected} {problem.hint}"


def test_all_independent_mistakes_are_reported_at_once() -> None:
    text = """\
NAME first
PATTERN SEQ(Login l, NOT(Confirm c), Transfer+ t)
WHERE l.user = x.user AND COUNT(l) > 3
WITHIN 10 minuts
;
NAME second
PATTERN SEQ(A a, B, NOT C c)
WHERE a.x > AND a.y < < 3 AND foo(a.z) = z.z
WITHIN 5
RETURN a.x +, COUNT(a) AS n
;
NAME first
PATTERN SEQ(NOT(Login l))
WITHIN 5 minutes
"""
    with pytest.raises(cepheid.PatternError) as caught:
        cepheid.parse_all(text, name="rules.cep")
    found = [(p.line, p.column, p.message) for p in caught.value.problems]
    assert found == [
        (3, 16, "unknown variable 'x'"),
        (3, 27, "COUNT looks at a set of events, and 'l' is a single event"),
        (4, 11, "unknown unit 'minuts'"),
        (7, 19, "unexpected ','"),
        (7, 25, "unexpected 'C'"),
        (8, 13, "unexpected 'AND'"),
        (8, 23, "unexpected '<'"),
        (8, 31, "unknown function 'foo'"),
        (8, 42, "unknown variable 'z'"),
        (10, 13, "unexpected ','"),
        (12, 6, "there are two patterns called 'first'"),
        (13, 13, "this NOT has no positive event beside it in its SEQ"),
    ]


def test_an_error_shows_the_line_and_points_at_the_place() -> None:
    with pytest.raises(cepheid.PatternError) as caught:
        cepheid.parse("PATTERN SEQ(A first, B b)\n\tWHERE frist.x = b.x\nWITHIN 5", name="rules.cep")
    assert str(caught.value) == (
        "rules.cep:2:8: unknown variable 'frist'\n"
        " 2 | \tWHERE frist.x = b.x\n"
        "   | \t      ^^^^^^^\n"
        "   = expected: first or b\n"
        "   = hint: did you mean 'first'?"
    )


def test_a_long_line_is_cut_around_the_place() -> None:
    long = " AND ".join(f"a.x{i} = {i}" for i in range(100))
    with pytest.raises(cepheid.PatternError) as caught:
        cepheid.parse(f"PATTERN A a WHERE {long} AND z.x = 1 AND {long} WITHIN 5")
    _, line, caret = str(caught.value).splitlines()[:3]
    assert len(line) < 120
    assert line[caret.index("^") :].startswith("z.x")


def test_more_than_one_pattern_where_one_is_expected() -> None:
    with pytest.raises(cepheid.PatternError, match="more than one pattern"):
        cepheid.parse("PATTERN A a WITHIN 5; PATTERN B b WITHIN 5")


def test_an_error_survives_being_sent_to_another_process() -> None:
    with pytest.raises(cepheid.PatternError) as caught:
        cepheid.parse("PATTERN A a")
    again = pickle.loads(pickle.dumps(caught.value))
    assert str(again) == str(caught.value)
    assert again.problems == caught.value.problems
