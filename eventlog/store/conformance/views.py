"""What every ``ViewStore`` must do, as tests that anyone can run on theirs.

Subclass ``ViewStoreConformance``, give it the pytest fixtures ``store`` (a fresh and empty
``LogStore`` with feeds), ``readers`` (the ``ReaderStore`` beside it) and ``views`` (the
``ViewStore`` beside both).
"""

from __future__ import annotations

from eventlog.store.conformance.view_finding import ViewFinding
from eventlog.store.conformance.view_names import ViewNames
from eventlog.store.conformance.view_steps import ViewSteps
from eventlog.store.conformance.view_writing import ViewWriting


class ViewStoreConformance(ViewSteps, ViewWriting, ViewFinding, ViewNames):
    """Every test of the suite."""
