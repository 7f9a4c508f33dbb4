"""How much hypothesis tries: ten times as much with `HYPOTHESIS_PROFILE=thorough`."""

import os

from hypothesis import HealthCheck, settings

settings.register_profile(
    "default", max_examples=1000, deadline=None, suppress_health_check=[HealthCheck.too_slow], derandomize=True
)
settings.register_profile("thorough", settings.get_profile("default"), max_examples=10_000)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "default"))
