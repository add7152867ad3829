"""A store of logs whose every append is written down: before it is sent, and what came back."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

from chaos.ledger import Ledger
from eventlog import EventLog
from eventlog.errors import AppendRefused, OutcomeUnknown, ServerError
from eventlog.identity import LogId
from eventlog.store.port import Append, Appended


def path_of(log: LogId) -> str:
    """As it stands in keys."""
    return f"{quote(log.tenant, safe='')}/{quote(log.conversation, safe='')}"


def record_appends(log: EventLog, ledger: Ledger) -> None:
    """From now on the log's appends are written to the ledger."""
    real, store = log.store.append, log.store

    async def append(request: Append) -> Appended:
        claim, operation = request.claim, request.operation_id
        fields: dict[str, Any] = {"op": operation, "path": path_of(request.log)}
        ledger.write(
            "sent",
            **fields,
            n=len(request.encoded.documents),
            run=claim.run if claim else None,
            step=claim.step.value if claim else None,
            fence=claim.fence if claim else None,
            closes=claim.closes if claim else False,
            exclusive=claim.exclusive if claim else None,
        )
        try:
            outcome = await real(request)
        except AppendRefused as error:
            ledger.write("refused", op=operation, error=type(error).__name__)
            raise
        except ServerError as error:
            ledger.write("refused", op=operation, error=type(error).__name__)
            raise
        except OutcomeUnknown:
            ledger.write("unknown", op=operation)
            raise
        last = outcome.cursor
        ledger.write(
            "acked", **fields, first=outcome.first, last=last.version, stamp=last.stamp, duplicate=outcome.duplicate
        )
        return outcome

    store.append = append  # type: ignore[method-assign]
