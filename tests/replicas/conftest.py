"""A primary with a replica, a way to it that can be moved, and how often chance is tried."""

from __future__ import annotations

import os

from tests.loss.conftest import executable, primary, pytest_generate_tests, replica, switch

__all__ = ["TRIES", "executable", "primary", "pytest_generate_tests", "replica", "switch"]

TRIES = int(os.environ.get("EVENTLOG_REPLICA_TRIES", "2"))
"""How often a promotion is tried, with ``replicated(1)`` and without. ``make failovers`` tries ten times."""
