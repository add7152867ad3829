"""The conformance suite: what every ``LogStore`` must do, as tests that anyone can run on theirs.

Subclass ``LogStoreConformance``, give it a pytest fixture ``store`` (fresh and empty, with
``PARTITIONS`` partitions and ``LIMITS``) and the hooks of ``Suite``. The tests are asynchronous
methods: mark the class as your pytest plugin for asynchronous tests wants it. Nothing here imports
pytest; ``pytest.register_assert_rewrite("eventlog.store.conformance")`` makes failures tell more.
"""

from __future__ import annotations

from eventlog.store.conformance.appending import Appending
from eventlog.store.conformance.cursors import Cursors
from eventlog.store.conformance.deleting import Deleting
from eventlog.store.conformance.limiting import Limiting
from eventlog.store.conformance.order import OrderOfChecks
from eventlog.store.conformance.readers import ReaderStoreConformance
from eventlog.store.conformance.reading import Reading
from eventlog.store.conformance.retries import Retries
from eventlog.store.conformance.runs import Runs
from eventlog.store.conformance.suite import LIMITS, PARTITIONS, FeedEntry, Suite
from eventlog.store.conformance.takeovers import TakeOvers
from eventlog.store.conformance.tenancy import Tenancy
from eventlog.store.conformance.trimming import Trimming
from eventlog.store.conformance.views import ViewStoreConformance

__all__ = [
    "LIMITS",
    "PARTITIONS",
    "FeedEntry",
    "LogStoreConformance",
    "ReaderStoreConformance",
    "Suite",
    "ViewStoreConformance",
]


class LogStoreConformance(
    Appending,
    Retries,
    Runs,
    TakeOvers,
    Limiting,
    Cursors,
    Tenancy,
    Reading,
    OrderOfChecks,
    Deleting,
    Trimming,
    Suite,
):
    """Every test of the suite."""
