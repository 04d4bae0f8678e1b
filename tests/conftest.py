import os

from hypothesis import HealthCheck, settings

_slow = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much]
settings.register_profile("ci", max_examples=300, deadline=None, suppress_health_check=_slow, derandomize=True)
settings.register_profile("few", settings.get_profile("ci"), max_examples=25)
settings.register_profile("long", max_examples=20_000, deadline=None, suppress_health_check=_slow)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci"))
