"""The command on each real server, and logs to look at."""

from __future__ import annotations

from uuid import uuid4

import pytest

from tests.gateway.cli import Cli


@pytest.fixture
def cli(server: str) -> Cli:
    """The command in a namespace of its own on a real server."""
    return Cli(server, f"t{uuid4().hex[:12]}")
