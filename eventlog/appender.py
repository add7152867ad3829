"""What every writer of one conversation shares: the last cursor it was given."""

from __future__ import annotations

from collections.abc import Coroutine, Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple

import anyio

from eventlog.codec import Encoded, decode, encode
from eventlog.errors import AlreadyAnswered, InvalidEvent, InvalidInput, OutcomeUnknown
from eventlog.events import Draft, Event
from eventlog.identity import Cursor, LogId, check_id, new_id
from eventlog.store.port import ANY, Append, Appended, Expectation, Expected, LogStore, RunClaim

_NAMED = frozenset(Expectation)
_REMEMBERED = 1_000


class Prepared(NamedTuple):
    """An operation that is checked and encoded, and was not sent yet."""

    operation_id: str
    encoded: Encoded
    expected: Expected
    claim: RunClaim | None
    alone: bool
    supersedes: tuple[str, ...]

    def events(self) -> list[Event]:
        """Its events as they will be read back, but for versions and stamps, which are 0."""
        return [decode(0, 0, document) for document in self.encoded.documents]


class Appender:
    """Appends operations to one conversation, and sends the last cursor it was given with each.

    So a server that lost the end of the log is noticed by whoever wrote it.
    """

    def __init__(self, store: LogStore, log: LogId) -> None:
        self.store = store
        self.log = log
        self._cursor: Cursor | None = None
        self._opening = anyio.Lock()
        self._unknown: dict[str, Cursor] = {}
        """Operations whose outcome was not learnt -> the cursor that was sent first with them."""

    def prepare(
        self,
        drafts: Sequence[Draft],
        *,
        operation_id: str | None = None,
        expected: Expected | str = ANY,
        claim: RunClaim | None = None,
        alone: bool = False,
        supersedes: tuple[str, ...] = (),
    ) -> Prepared:
        """Check and encode the drafts as they are at this moment, to be sent later."""
        operation = new_id() if operation_id is None else check_id(operation_id, "operation id")
        if not drafts:
            raise InvalidEvent("events", "an operation needs at least one event")
        if claim is not None and len(set(claim.answers)) < len(claim.answers):
            raise AlreadyAnswered("two results of one operation answer the same call: send one", claim.run)
        if claim is not None and claim.run in supersedes:
            raise InvalidInput(f"run {claim.run!r} cannot supersede itself: end it, or name other runs")
        if isinstance(expected, str) and expected in _NAMED:
            expected = Expectation(expected)
        elif not isinstance(expected, Expectation):
            expected = self.log.check_cursor(expected)
        return Prepared(operation, encode(drafts, operation, _now()), expected, claim, alone, supersedes)

    def append(
        self,
        drafts: Sequence[Draft],
        *,
        operation_id: str | None = None,
        expected: Expected | str = ANY,
        claim: RunClaim | None = None,
        alone: bool = False,
        supersedes: tuple[str, ...] = (),
    ) -> Coroutine[Any, Any, Appended]:
        """Prepare the drafts now; awaiting the result sends them."""
        return self.send(
            self.prepare(
                drafts,
                operation_id=operation_id,
                expected=expected,
                claim=claim,
                alone=alone,
                supersedes=supersedes,
            )
        )

    async def cursor(self) -> Cursor:
        """The last cursor this writer was given; read from the head the first time."""
        if self._cursor is None:
            async with self._opening:
                if self._cursor is None:
                    self._cursor = (await self.store.head(self.log)).last
        return self._cursor

    async def send(self, prepared: Prepared) -> Appended:
        """Append what was prepared."""
        operation = prepared.operation_id
        cursor = self._cursor or await self.cursor()
        first = self._unknown.get(operation)
        request = Append(
            self.log,
            operation,
            prepared.encoded,
            first or cursor,
            prepared.expected,
            prepared.claim,
            prepared.alone,
            prepared.supersedes,
            retry=first is not None,
        )
        try:
            outcome = await self.store.append(request)
        except (OutcomeUnknown, anyio.get_cancelled_exc_class()):
            self._remember(operation, request.cursor)
            raise
        self._unknown.pop(operation, None)
        # Only what was written right behind the handle's own cursor proves that nothing before it was
        # lost. Else the handle keeps its cursor, and the next append has it checked.
        if outcome.before is not None and self._cursor in (request.cursor, outcome.before):
            self._cursor = outcome.cursor
        return outcome

    def _remember(self, operation: str, cursor: Cursor) -> None:
        self._unknown.setdefault(operation, cursor)
        if len(self._unknown) > _REMEMBERED:
            del self._unknown[next(iter(self._unknown))]


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")
