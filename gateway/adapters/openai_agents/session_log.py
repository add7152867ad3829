"""A session's way to its log: it appends behind a known end, and remembers what it has read."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from eventlog.appender import Appender, Prepared
from eventlog.conversation import Conversation
from eventlog.errors import EditRefused, OperationReused, OutcomeUnknown, VersionConflict
from eventlog.events import Draft
from eventlog.identity import Cursor, new_id
from eventlog.store.port import Appended, RunClaim
from gateway.adapters.openai_agents.backwards import Backwards
from gateway.adapters.openai_agents.items import items_of, packed
from gateway.adapters.openai_agents.kinds import Item
from gateway.adapters.openai_agents.limit import newest, unmet
from gateway.adapters.openai_agents.remembered import Remembered
from gateway.adapters.openai_agents.turns import Operation

LayOut = Callable[[Operation], RunClaim | None]
"""Puts events into an operation, and says which run they are of. It may be asked again, at a later end of the log."""

_FEW = 64
"""Events that are looked at first where the end of the log is all that matters."""
_PAGE = 1_000


class SessionLog:
    """The items of one session in one conversation. One call at a time.

    Every append names the exact end of the log it was laid out for: where somebody else was faster,
    it is laid out again behind what they appended. So nothing of others comes in between.
    """

    def __init__(self, conversation: Conversation) -> None:
        self.conversation = conversation
        self._appender = Appender(conversation.store, conversation.log)
        self._remembered: Remembered | None = None
        self._unlearnt: dict[str, tuple[Operation, Prepared]] = {}
        """Operations whose outcome was not learnt, by their ids."""

    async def items(self) -> list[Item]:
        """All items in order."""
        remembered = await self._followed()
        if remembered is not None and remembered.kept is not None:
            return remembered.items()
        return await self._load()

    async def newest(self, n: int) -> list[Item]:
        """About ``n`` of the newest items, reading no more of the log than that takes."""
        if self._remembered is not None and self._remembered.kept is not None:
            items = await self.items()
            return items[newest(items, n) :]

        def enough(back: Backwards) -> bool:
            found = sum(len(one.items) for one in back.found)
            if found <= n or not back.settled():
                return False
            items = [item for _, item in back.items()]
            start = newest(items, n)
            # Whether a window that had to shrink could have grown is known once twice its items are.
            return start > 0 and (found - start >= n or found > 2 * n) and not unmet(items[start:])

        back, _ = await self._backwards(enough, min(16 + 3 * n, _PAGE))
        items = [item for _, item in back.items()]
        return items[newest(items, n) :]

    async def append(self, lay_out: LayOut, *, operation_id: str | None = None) -> Operation | None:
        """Append what ``lay_out`` makes, once; None when it makes nothing.

        Under an id that was used before, the same items are not added again; other ones are ``OperationReused``.
        """
        operation_id = operation_id or new_id()
        unlearnt = self._unlearnt.pop(operation_id, None)
        while True:
            if unlearnt is None:
                remembered = await self._ending()
                operation = Operation(operation_id, remembered.cursor.version, list(remembered.unsent or ()))
                claim = lay_out(operation)
                if claim is None:
                    return None
                prepared = self._appender.prepare(
                    operation.drafts, operation_id=operation_id, expected=remembered.cursor, claim=claim
                )
            else:
                operation, prepared = unlearnt
            try:
                appended = await self._send(prepared)
            except VersionConflict:
                unlearnt = None
                await self._followed()
                continue
            except OutcomeUnknown:
                self._unlearnt[operation_id] = operation, prepared
                raise
            except OperationReused:
                # Laid out behind another end of the log, the same items make other events.
                if await self._added(operation_id) != [_json(item) for _, item in operation.items]:
                    raise
                return operation
            known = self._followed_by(appended)
            if known is not None and operation.anew:
                known.rewound(0, appended.cursor)
            if known is not None:
                for version, item in operation.items:
                    known.keep(version, item)
                known.unsent, known.cursor = operation.unsent, appended.cursor
            return operation

    async def _added(self, operation_id: str) -> list[str | bytes]:
        """The items that an operation added, as JSON."""
        found: list[str | bytes] = []
        async for event in self.conversation.read(reverse=True):
            if event.operation_id == operation_id:
                found += [_json(item) for item in items_of(event)]
            elif found:
                break
        return found[::-1]

    async def pop(self, *, alone: bool) -> Item | None:
        """Take the newest item back and return it; None when there is none."""
        while True:
            remembered = await self._followed()
            if remembered is not None and remembered.kept is not None:
                if not remembered.kept:
                    return None
                version, document = remembered.kept[-1]
                cursor, summary = remembered.cursor, remembered.summary
            else:
                back, cursor = await self._backwards(_has_item, _FEW)
                if not back.found:
                    return None
                last = back.found[0]
                version, document, summary = last.version, packed(last.items[-1]), back.summary
            if summary >= version:
                raise EditRefused(
                    f"the newest item of {self.conversation.id!r} (version {version}) stands in or behind a summary "
                    "that was made later, and cannot be taken back alone: clear the session, or rewind its conversation"
                )
            if await self._rewind(version - 1, cursor, alone=alone):
                return Remembered(cursor, [(version, document)]).items()[0]

    async def clear(self, *, alone: bool) -> None:
        """Take everything back."""
        while True:
            back, cursor = await self._backwards(_has_item, _FEW)
            if not back.found or await self._rewind(0, cursor, alone=alone):
                return

    async def expire(self, seconds: int, *, alone: bool) -> None:
        """Take everything back when nothing was appended for so long, by the server's clock."""
        head = await self.conversation.head()
        if head.last.version and head.updated_ms + seconds * 1000 <= await self.conversation.store.now_ms():
            back, cursor = await self._backwards(_has_item, _FEW)
            if back.found and cursor == head.last:
                await self._rewind(0, cursor, alone=alone)

    async def _rewind(self, to: int, cursor: Cursor, *, alone: bool) -> bool:
        """Rewind, unless somebody has appended behind the cursor."""
        draft = Draft("history-rewound", {"to": to})
        try:
            appended = await self._send(self._appender.prepare([draft], expected=cursor, alone=alone))
        except VersionConflict:
            await self._followed()
            return False
        known = self._followed_by(appended)
        if known is not None:
            known.rewound(to, appended.cursor)
        return True

    async def _send(self, prepared: Prepared) -> Appended:
        """Append; when it is not known what the log holds now, nothing is remembered."""
        try:
            return await self._appender.send(prepared)
        except VersionConflict:
            raise
        except BaseException:
            self._remembered = None
            raise

    def _followed_by(self, appended: Appended) -> Remembered | None:
        """What is remembered, when what was appended is all that came since; else nothing is remembered."""
        if self._remembered is not None and self._remembered.cursor != appended.before:
            self._remembered = None
        return self._remembered

    async def _load(self) -> list[Item]:
        """Read the session, remember it, and return its items."""
        back, cursor = await self._backwards(_is_complete, _PAGE, runs=False)
        if back.unread:
            back, cursor = await self._backwards(_is_complete, _PAGE)
        items = back.items()
        kept = [(version, packed(item)) for version, item in items]
        self._remembered = Remembered(cursor, kept, back.unsent(), back.last_edit, back.summary)
        return [item for _, item in items]

    async def _ending(self) -> Remembered:
        """Where the log ended when it was last looked at, and what was unsent there."""
        remembered = self._remembered
        if remembered is None or remembered.unsent is None:
            back, cursor = await self._backwards(_knows_unsent, _FEW)
            known = remembered if remembered is not None and remembered.cursor == cursor else None
            remembered = Remembered(cursor, None, back.unsent())
            if known is not None:
                remembered.kept, remembered.last_edit, remembered.summary = known.kept, known.last_edit, known.summary
            self._remembered = remembered
        return remembered

    async def _followed(self) -> Remembered | None:
        """What is remembered, with what others have appended since."""
        remembered = self._remembered
        if remembered is not None:
            try:
                async for page in self.conversation.pages(remembered.cursor):
                    for event in page:
                        remembered.apply(event)
            except BaseException:
                self._remembered = None
                raise
        return remembered

    async def _backwards(
        self, enough: Callable[[Backwards], bool], count: int, *, runs: bool = True
    ) -> tuple[Backwards, Cursor]:
        """Read back from the end of the log until it is enough, first ``count`` events."""
        log, store = self.conversation.log, self.conversation.store
        # Asked for together, so that both go out at once: the appender needs the end of the log anyway.
        entries, cursor = await asyncio.gather(store.read(log, 1, None, count, reverse=True), self._appender.cursor())
        back = Backwards(runs=runs)
        if not entries and cursor.version == 0:
            back.complete = True
            return back, cursor
        cursor = log.cursor(entries[0].version, entries[0].stamp) if entries else cursor
        expected = entries[0].version if entries else 0
        while entries and entries[0].version == expected and expected - entries[-1].version == len(entries) - 1:
            for version, stamp, document in entries:
                back.take_document(version, stamp, document)
            if back.complete or enough(back):
                return back, cursor
            edge, expected = entries[-1], entries[-1].version - 1
            count = min(2 * count, _PAGE)
            entries = await store.read(log, 1, edge.version, count + 1, reverse=True)
            if not entries or entries[0] != edge:
                break  # what was read is not there any more
            entries = entries[1:]
        return await self._backwards_page_by_page(enough)

    async def _backwards_page_by_page(self, enough: Callable[[Backwards], bool]) -> tuple[Backwards, Cursor]:
        """The same, saying every gap: for a log whose events are not all there."""
        log = self.conversation.log
        back, cursor = Backwards(), log.cursor(0, 0)
        async for page in self.conversation.pages(reverse=True):
            if cursor.version == 0:
                cursor = log.cursor(page[0].version, page[0].stamp)
            for event in page:
                back.take(event)
            if back.complete or enough(back):
                return back, cursor
        back.complete = True
        return back, cursor


def _json(item: Item | str) -> str | bytes:
    return item if isinstance(item, str) else packed(item)


def _has_item(back: Backwards) -> bool:
    return bool(back.found) and back.settled()


def _is_complete(back: Backwards) -> bool:
    return back.complete


def _knows_unsent(back: Backwards) -> bool:
    return back.unsent() is not None and back.settled()
