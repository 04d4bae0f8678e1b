"""One plan for many patterns: what they have in common is evaluated once."""

from cepheid.plan.sharing.identity import SubPattern, sub_pattern
from cepheid.plan.sharing.plan import MODES, SharedNode, SharedPlan, Sharing, share_plans

__all__ = ["MODES", "SharedNode", "SharedPlan", "Sharing", "SubPattern", "share_plans", "sub_pattern"]
