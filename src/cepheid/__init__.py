"""Cepheid finds complex event patterns in data, on Apache Spark and on one machine."""

import importlib
from typing import TYPE_CHECKING, Any

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

if TYPE_CHECKING:
    from cepheid.adapt.policies import Invariant, Threshold, Unconditional
    from cepheid.engine.engine import Engine
    from cepheid.engine.session import Session
    from cepheid.local.explain.explain import Explanation, explain
    from cepheid.local.match import match
    from cepheid.local.stream.result import StreamResult
    from cepheid.local.stream.run import run
    from cepheid.local.stream.runner import StreamError
    from cepheid.local.stream.sources import Replay
    from cepheid.local.why.why import Diagnosis, why
    from cepheid.plan.sharing.plan import Sharing
    from cepheid.shed.strategies import CostAware, ESpice, HSpice, PSpice, WeightedSampling

__version__ = "0.1.0"

# The compiler takes half a second to load; who only reads patterns need not wait for it.
_LAZY = {
    "Diagnosis": "cepheid.local.why.why",
    "Invariant": "cepheid.adapt.policies",
    "Threshold": "cepheid.adapt.policies",
    "Unconditional": "cepheid.adapt.policies",
    "Sharing": "cepheid.plan.sharing.plan",
    "CostAware": "cepheid.shed.strategies",
    "ESpice": "cepheid.shed.strategies",
    "HSpice": "cepheid.shed.strategies",
    "PSpice": "cepheid.shed.strategies",
    "WeightedSampling": "cepheid.shed.strategies",
    "Engine": "cepheid.engine.engine",
    "Session": "cepheid.engine.session",
    "Explanation": "cepheid.local.explain.explain",
    "explain": "cepheid.local.explain.explain",
    "match": "cepheid.local.match",
    "Replay": "cepheid.local.stream.sources",
    "StreamError": "cepheid.local.stream.runner",
    "StreamResult": "cepheid.local.stream.result",
    "run": "cepheid.local.stream.run",
    "why": "cepheid.local.why.why",
}


def __getattr__(name: str) -> Any:
    if name in _LAZY:
        return getattr(importlib.import_module(_LAZY[name]), name)
    raise AttributeError(f"module 'cepheid' has no attribute {name!r}")


__all__ = [
    "Branch",
    "CepheidError",
    "Condition",
    "CostAware",
    "Diagnosis",
    "ESpice",
    "Engine",
    "Explanation",
    "HSpice",
    "Invariant",
    "Negation",
    "NormalForm",
    "PSpice",
    "Pattern",
    "PatternError",
    "Problem",
    "Replay",
    "SchemaError",
    "Session",
    "Sharing",
    "StreamError",
    "StreamResult",
    "Threshold",
    "Unconditional",
    "Variable",
    "WeightedSampling",
    "and_",
    "any_of",
    "case",
    "check",
    "current",
    "ev",
    "explain",
    "fn",
    "kl",
    "lit",
    "match",
    "normalise",
    "not_",
    "or_",
    "parse",
    "parse_all",
    "previous",
    "register_function",
    "run",
    "seq",
    "why",
]
