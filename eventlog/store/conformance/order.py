"""The order of checks that ``eventlog/store/port.py`` states: the earlier one's error is the one raised.

Each test violates two neighbours at once.
"""

from __future__ import annotations

from eventlog.errors import (
    AlreadyAnswered,
    ConversationBusy,
    ConversationDeleted,
    LogLost,
    OperationReused,
    RunClosed,
    RunFenced,
    Truncated,
    VersionConflict,
)
from eventlog.events import Draft
from eventlog.identity import Cursor
from eventlog.store.conformance.retries import FORGOTTEN, fill
from eventlog.store.conformance.suite import (
    LIMITS,
    LOG,
    Suite,
    going_on,
    notes,
    put,
    refused,
    request,
    run_started,
    start,
    starting,
    taking_over,
)
from eventlog.store.port import EXISTS, NONE, LogStore, Step

TOO_MANY = notes(*range(LIMITS.events + 1))
GONE = LOG.cursor(999, 1)
"""A cursor of an event that was never there."""


class OrderOfChecks(Suite):
    async def test_1_a_recorded_retry_before_2_a_deleted_conversation(self, store: LogStore) -> None:
        first = await put(store, 1, "op-1")
        await self.mark_deleted(store, LOG)
        assert await put(store, 1, "op-1") == first._replace(duplicate=True, before=None)
        await refused(OperationReused, store, request(2, "op-1"))

    async def test_1_a_retry_found_by_its_expectation_before_2_a_deleted_conversation(self, store: LogStore) -> None:
        first = await put(store, 1, "op-1", expected=NONE)
        second = await put(store, 2, "op-2", expected=first.cursor)
        await fill(store, FORGOTTEN)
        await self.mark_deleted(store, LOG)
        assert await put(store, 1, "op-1", expected=NONE) == first._replace(duplicate=True, before=None)
        assert await put(store, 2, "op-2", expected=first.cursor) == second._replace(duplicate=True, before=None)
        await refused(OperationReused, store, request(3, "op-1", expected=NONE))

    async def test_1_the_start_of_an_open_run_before_2_a_deleted_conversation(self, store: LogStore) -> None:
        first = await start(store, "run-1")
        await fill(store, FORGOTTEN)
        await self.mark_deleted(store, LOG)
        assert await start(store, "run-1") == first._replace(duplicate=True, before=None)

    async def test_1_a_retry_before_all_the_rest(self, store: LogStore) -> None:
        await start(store, "run-1")
        first = await put(store, 1, "op-1", claim=going_on("run-1", closes=True, answers=(7,)))
        await start(store, "run-2")
        await put(store, 2, "op-2")
        again = await put(
            store, 1, "op-1", claim=going_on("run-1", fence="ff", answers=(7,)), cursor=GONE, expected=NONE, alone=True
        )
        assert again == first._replace(duplicate=True, before=None)

    async def test_1_other_content_under_a_used_id_before_6_the_limits(self, store: LogStore) -> None:
        await put(store, 1, "op-1")
        await refused(OperationReused, store, request(TOO_MANY, "op-1"))
        await refused(OperationReused, store, request(TOO_MANY, "op-1", expected=NONE))

    async def test_2_a_deleted_conversation_before_3_the_cursor(self, store: LogStore) -> None:
        first = await put(store, 1, "op-1")
        await put(store, notes(2, 3), "op-2")
        await self.trim(store, LOG, 2)
        await self.mark_deleted(store, LOG)
        for cursor in (GONE, first.cursor):
            await refused(ConversationDeleted, store, request(3, "op-3", cursor=cursor))

    async def test_2_a_deleted_conversation_before_4_the_runs_and_5_the_version(self, store: LogStore) -> None:
        await start(store, "run-1")
        await self.mark_deleted(store, LOG)
        for claim in (starting("run-2"), going_on("run-1", fence="ff"), going_on("run-9")):
            await refused(ConversationDeleted, store, request(1, "op-1", claim=claim, expected=NONE))

    async def test_3_the_cursor_before_4_the_runs(self, store: LogStore) -> None:
        first = await put(store, 1, "op-1")
        await put(store, 2, "op-2")
        await start(store, "run-1")
        await put(store, 3, "op-3", claim=going_on("run-1", answers=(7,)))
        await self.trim(store, LOG, 2)
        claims = (
            starting("run-2"),
            going_on("run-9"),
            going_on("run-1", fence="ff"),
            taking_over("run-1", Step.RESUME),
            going_on("run-1", answers=(7,)),
        )
        wrong: tuple[tuple[Cursor, type[LogLost] | type[Truncated]], ...] = ((GONE, LogLost), (first.cursor, Truncated))
        for cursor, kind in wrong:
            for claim in claims:
                await refused(kind, store, request(4, "op-4", cursor=cursor, claim=claim))
            await refused(kind, store, request(4, "op-4", cursor=cursor, alone=True))

    async def test_3_the_cursor_before_5_the_version(self, store: LogStore) -> None:
        await put(store, 1, "op-1")
        await refused(LogLost, store, request(2, "op-2", cursor=GONE, expected=NONE))
        await refused(LogLost, store, request(2, "op-2", cursor=GONE, expected=LOG.cursor(0, 0)))

    async def test_4_the_fence_before_busy(self, store: LogStore) -> None:
        await start(store, "run-1", exclusive=False)
        await start(store, "run-2", exclusive=False)
        error = await refused(RunFenced, store, request(1, "op-1", claim=going_on("run-1", fence="ff"), alone=True))
        assert error.run == "run-1"

    async def test_4_closed_before_busy(self, store: LogStore) -> None:
        await start(store, "run-1", exclusive=False)
        for step in (Step.RESUME, Step.FORCE):
            await refused(RunClosed, store, request(1, "op-1", claim=taking_over("run-9", step), alone=True))
        await refused(RunClosed, store, request(1, "op-1", claim=going_on("run-9"), alone=True))

    async def test_4_the_fence_before_answered(self, store: LogStore) -> None:
        await start(store, "run-1")
        await put(store, 1, "op-1", claim=going_on("run-1", answers=(7,)))
        await refused(RunFenced, store, request(2, "op-2", claim=going_on("run-1", fence="ff", answers=(7,))))

    async def test_4_busy_before_answered(self, store: LogStore) -> None:
        await start(store, "run-1", exclusive=False)
        await put(store, 1, "op-1", claim=going_on("run-1", answers=(7,)))
        resuming = taking_over("run-1", Step.RESUME, answers=(7,))
        await refused(ConversationBusy, store, request(2, "op-2", claim=resuming))
        await start(store, "run-2", exclusive=False)
        alone = request(2, "op-2", claim=going_on("run-1", answers=(7,)), alone=True, supersedes=("run-1",))
        error = await refused(ConversationBusy, store, alone)
        assert error.run == "run-2"

    async def test_4_the_runs_before_5_the_version(self, store: LogStore) -> None:
        await put(store, 0, "op-0")
        await start(store, "run-1")
        await put(store, 1, "op-1", claim=going_on("run-1", answers=(7,)))
        opening = request(run_started("run-2"), "run-2", claim=starting("run-2"), expected=NONE)
        await refused(ConversationBusy, store, opening)
        await refused(RunFenced, store, request(2, "op-2", claim=going_on("run-1", fence="ff"), expected=NONE))
        await refused(RunClosed, store, request(2, "op-2", claim=going_on("run-9"), expected=NONE))
        await refused(ConversationBusy, store, request(2, "op-2", alone=True, expected=NONE))
        answered = request(2, "op-2", claim=going_on("run-1", answers=(7,)), expected=NONE)
        assert (await refused(AlreadyAnswered, store, answered)).run == "run-1"

    async def test_5_the_version_before_6_the_limits(self, store: LogStore) -> None:
        await refused(VersionConflict, store, request(TOO_MANY, "op-1", expected=EXISTS))
        await put(store, 1, "op-1")
        large = [Draft("note", {"value": "x" * LIMITS.event_bytes})]
        for drafts in (TOO_MANY, large, large * 8):
            for expected in (NONE, LOG.cursor(0, 0), LOG.cursor(1, 1)):
                await refused(VersionConflict, store, request(drafts, "op-2", expected=expected))
