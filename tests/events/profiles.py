"""How many examples hypothesis tries, and which.

``HYPOTHESIS_PROFILE=ci`` tries more, always the same ones; where ``CI`` is set the default does not vary, either.
"""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings

_QUIET = (HealthCheck.too_slow,)  # a busy machine is no fault of a test
_IN_CI = bool(os.environ.get("CI"))

settings.register_profile(
    "default",
    max_examples=100,
    deadline=None,
    derandomize=_IN_CI,
    database=None if _IN_CI else settings.get_profile("default").database,
    suppress_health_check=_QUIET,
)
settings.register_profile(
    "ci", max_examples=600, deadline=None, derandomize=True, database=None, suppress_health_check=_QUIET
)


def load() -> None:
    """Take the profile that the environment asks for."""
    settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "default"))
