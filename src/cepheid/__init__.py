"""Cepheid finds complex event patterns in data, on Apache Spark and on one machine."""

from cepheid.language.build import and_, any_of, ev, kl, not_, or_, seq
from cepheid.language.functions import register_function
from cepheid.language.pattern import Pattern
from cepheid.language.problems import CepheidError, PatternError, Problem
from cepheid.language.terms import case, current, fn, lit, previous
from cepheid.pattern.check import check
from cepheid.pattern.normal import Branch, Condition, Negation, NormalForm, Variable
from cepheid.pattern.normalise import normalise
from cepheid.pattern.read import parse, parse_all
from cepheid.pattern.schema import SchemaError

__version__ = "0.1.0"

__all__ = [
    "Branch",
    "CepheidError",
    "Condition",
    "Negation",
    "NormalForm",
    "Pattern",
    "PatternError",
    "Problem",
    "SchemaError",
    "Variable",
    "and_",
    "any_of",
    "case",
    "check",
    "current",
    "ev",
    "fn",
    "kl",
    "lit",
    "normalise",
    "not_",
    "or_",
    "parse",
    "parse_all",
    "previous",
    "register_function",
    "seq",
]
