"""Failures of the shipped suite should tell as much as those of tests."""

import pytest

pytest.register_assert_rewrite("eventlog.store.conformance")
