"""The same operation id with the same content is one append, however often it is sent."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

from eventlog.errors import OperationReused, OutcomeUnknown, Truncated, VersionConflict
from eventlog.events import Draft
from eventlog.identity import LogId
from eventlog.store.conformance.suite import (
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
)
from eventlog.store.port import ANY, EXISTS, NONE, OPERATION_WINDOW, LogStore

FORGOTTEN = 2 * OPERATION_WINDOW + 8
"""So many operations later no store needs to know one any more."""


async def fill(store: LogStore, operations: int, *, log: LogId = LOG, prefix: str = "fill") -> None:
    """Append so many operations of one event each: every one takes a place in the record."""
    await asyncio.gather(*(put(store, number, f"{prefix}-{number}", log=log) for number in range(operations)))


class Retries(Suite):
    async def test_a_retry_gets_the_first_outcome_marked_duplicate(self, store: LogStore) -> None:
        first = await put(store, notes(1, 2), "op-1")
        before = await self.known(store, LOG)
        for expected in (ANY, EXISTS, NONE, LOG.cursor(0, 0), first.cursor):
            again = await put(store, notes(1, 2), "op-1", expected=expected)
            assert again == first._replace(duplicate=True, before=None)
        assert await self.known(store, LOG) == before

    async def test_a_retry_is_recognised_after_more_events(self, store: LogStore) -> None:
        first = await put(store, notes(1, 2), "op-1", expected=NONE)
        later = await put(store, 3, "op-2")
        for expected in (ANY, NONE, LOG.cursor(0, 0)):
            again = await put(store, notes(1, 2), "op-1", expected=expected, cursor=later.cursor)
            assert again == first._replace(duplicate=True, before=None)

    async def test_the_clock_is_no_content(self, store: LogStore) -> None:
        append = request("x", "op-1")
        first = await store.append(append)
        later = append.encoded.documents[0].replace(b"2030-", b"2031-")
        assert later != append.encoded.documents[0]
        retry = replace(append, encoded=append.encoded._replace(documents=(later,)))
        assert await store.append(retry) == first._replace(duplicate=True, before=None)

    async def test_the_order_of_keys_is_no_content(self, store: LogStore) -> None:
        first = await put(store, notes({"a": 1, "b": {"c": 2, "d": 3}}), "op-1")
        again = await put(store, notes({"b": {"d": 3, "c": 2}, "a": 1}), "op-1")
        assert again == first._replace(duplicate=True, before=None)

    async def test_equal_content_under_another_id_is_another_append(self, store: LogStore) -> None:
        assert [(await put(store, "yes", f"op-{number}")).first for number in range(3)] == [1, 2, 3]

    async def test_other_content_under_the_same_id_is_refused(self, store: LogStore) -> None:
        await put(store, notes(1, 2), "op-1")
        await put(store, 3, "op-2")
        before = await self.known(store, LOG)
        others: list[list[Draft]] = [
            notes(1, 2, 3),
            notes(1),
            notes(1, 3),
            notes(2, 1),
            notes(True, 2),
            notes(1.0, 2),
            notes("1", 2),
            [Draft("memo", {"value": 1}), *notes(2)],
            [Draft("note", {"value": 1}, actor="bob"), *notes(2)],
            [Draft("note", {"value": 1}, meta={}), *notes(2)],
        ]
        for other in others:
            for expected in (ANY, NONE):
                error = await refused(OperationReused, store, request(other, "op-1", expected=expected))
                assert "'op-1'" in str(error)
        assert await self.known(store, LOG) == before

    async def test_true_and_1_and_1_point_0_are_three_values(self, store: LogStore) -> None:
        values: tuple[Any, ...] = (True, 1, 1.0)
        for index, value in enumerate(values):
            await put(store, notes(value), f"op-{index}")
            for other in values[:index] + values[index + 1 :]:
                await refused(OperationReused, store, request(notes(other), f"op-{index}"))

    async def test_ids_that_begin_with_each_other_are_apart(self, store: LogStore) -> None:
        for number, operation in enumerate(("a", "a.0", "a.", "a.0.0", 'a"', "a\\", "A", " a", "a\x00")):
            assert (await put(store, "x", operation)).first == number + 1
        for number, operation in enumerate(("a", "a.0", "a.")):
            assert (await put(store, "x", operation)).first == number + 1

    async def test_an_id_that_begins_like_the_next_events_is_no_retry(self, store: LogStore) -> None:
        await put(store, "x", "a.0", expected=NONE)
        for operation in ("a", "a.", "a.0.0", "a.00"):
            await refused(VersionConflict, store, request("x", operation, expected=NONE))

    async def test_the_same_operation_id_on_another_log_is_another_operation(self, store: LogStore) -> None:
        other = LOG._replace(conversation="other")
        await put(store, 1, "op-1")
        assert not (await put(store, 2, "op-1", log=other)).duplicate

    async def test_a_retry_beside_its_first_try_is_one_append(self, store: LogStore) -> None:
        outcomes = await asyncio.gather(*(put(store, notes(1, 2), "op-1") for _ in range(10)))
        assert len({outcome.cursor for outcome in outcomes}) == 1
        assert [outcome.duplicate for outcome in outcomes].count(False) == 1

    async def test_a_retry_is_recognised_while_fewer_operations_than_the_window_followed(self, store: LogStore) -> None:
        for before in (0, 1, OPERATION_WINDOW - 2, OPERATION_WINDOW - 1, OPERATION_WINDOW):
            log = LOG._replace(conversation=f"after-{before}")
            await fill(store, before, log=log, prefix="before")
            first = await put(store, notes(*range(64)), "op-1", log=log)
            await fill(store, OPERATION_WINDOW - 1, log=log)
            assert await put(store, notes(*range(64)), "op-1", log=log) == first._replace(duplicate=True, before=None)

    async def test_none_and_exact_recognise_a_retry_after_the_window(self, store: LogStore) -> None:
        first = await put(store, notes(1, {"a": 1, "b": 2}), "op-1", expected=NONE)
        second = await put(store, notes(1, 2), "op-2", expected=first.cursor)
        await fill(store, FORGOTTEN)
        again = await put(store, notes(1, {"b": 2, "a": 1}), "op-1", expected=NONE)
        assert again == first._replace(duplicate=True, before=None)
        again = await put(store, notes(1, 2), "op-2", expected=first.cursor, cursor=first.cursor)
        assert again == second._replace(duplicate=True, before=None)

    async def test_after_the_window_other_content_is_still_refused_for_none_and_exact(self, store: LogStore) -> None:
        first = await put(store, notes(1, 2), "op-1", expected=NONE)
        await put(store, notes(3, 4), "op-2", expected=first.cursor)
        await fill(store, FORGOTTEN)
        for other in (notes(1), notes(1, 3), notes(1, 2, 3), notes(True, 2)):
            await refused(OperationReused, store, request(other, "op-1", expected=NONE))
        await refused(OperationReused, store, request(notes(3), "op-2", expected=first.cursor))

    async def test_after_the_window_any_appends_again(self, store: LogStore) -> None:
        """The record is bounded: a caller who retries that late must say what it expects."""
        await put(store, 1, "op-1")
        await fill(store, FORGOTTEN)
        again = await put(store, 1, "op-1", expected=ANY)
        assert (again.duplicate, again.first) == (False, FORGOTTEN + 2)

    async def test_another_operation_in_that_place_is_no_retry(self, store: LogStore) -> None:
        first = await put(store, 1, "op-1")
        await put(store, 2, "op-2", expected=first.cursor)
        error = await refused(VersionConflict, store, request(2, "op-3", expected=first.cursor))
        assert error.actual.version == 2

    async def test_the_start_of_an_open_run_is_recognised_after_the_window(self, store: LogStore) -> None:
        first = await start(store, "run-1", exclusive=False)
        await fill(store, FORGOTTEN)
        assert await start(store, "run-1", exclusive=False) == first._replace(duplicate=True, before=None)
        other = [Draft("run-started", {"mode": "per-run"}, run="run-1")]
        await refused(OperationReused, store, request(other, "run-1", claim=starting("run-1", exclusive=False)))

    async def test_a_retry_of_a_start_does_not_change_the_run(self, store: LogStore) -> None:
        await start(store, "run-1")
        before = await store.head(LOG)
        await put(store, run_started("run-1"), "run-1", claim=starting("run-1", fence="cc", lease_ms=1))
        assert await store.head(LOG) == before
        assert not (await put(store, 1, "op-1", claim=going_on("run-1"))).duplicate

    async def test_a_retry_of_the_append_that_closed_its_run_is_recognised(self, store: LogStore) -> None:
        await start(store, "run-1")
        first = await put(store, 1, "op-1", claim=going_on("run-1", closes=True))
        again = await put(store, 1, "op-1", claim=going_on("run-1", closes=True))
        assert again == first._replace(duplicate=True, before=None)

    async def test_a_retry_whose_events_were_trimmed_is_not_taken_for_other_content(self, store: LogStore) -> None:
        """Its record says that it was appended; its content can be compared no more."""
        first = await put(store, notes({"a": 1, "b": 2}), "op-1")
        await put(store, 2, "op-2")
        await self.trim(store, LOG, 1)
        try:
            outcome = await put(store, notes({"b": 2, "a": 1}), "op-1")
        except (OutcomeUnknown, Truncated):
            return
        assert outcome == first._replace(duplicate=True, before=None)
