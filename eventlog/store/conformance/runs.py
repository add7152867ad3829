"""Runs: who may open one, and what an open one takes."""

from __future__ import annotations

import asyncio

from eventlog.errors import AlreadyAnswered, ConversationBusy, RunClosed, RunFenced
from eventlog.store.conformance.suite import (
    LEASE_MS,
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
from eventlog.store.port import ANY, LogStore, OpenRun


def opening(run: str, *, exclusive: bool = True) -> dict[str, object]:
    """What ``request`` needs to open a run."""
    return {"drafts": run_started(run), "operation_id": run, "claim": starting(run, exclusive=exclusive)}


class Runs(Suite):
    async def test_the_head_tells_an_open_run(self, store: LogStore) -> None:
        await put(store, 0, "op-0")
        await start(store, "run-1")
        head = await store.head(LOG)
        now = head.updated_ms
        assert head.runs == (OpenRun("run-1", "per-service-call", True, 2, 0, now, now + LEASE_MS, "first-holder"),)

    async def test_each_append_of_a_run_renews_its_lease_by_the_servers_clock(self, store: LogStore) -> None:
        await start(store, "run-1", lease_ms=1_000)
        since = (await store.head(LOG)).runs[0].since_ms
        await put(store, 1, "op-1", claim=going_on("run-1", lease_ms=5_000))
        head = await store.head(LOG)
        assert head.runs[0].lease_ms == head.updated_ms + 5_000
        assert (head.runs[0].since_ms, head.runs[0].holder) == (since, "first-holder")

    async def test_an_append_outside_the_run_renews_nothing(self, store: LogStore) -> None:
        await start(store, "run-1")
        before = (await store.head(LOG)).runs
        await put(store, 1, "op-1")
        assert (await store.head(LOG)).runs == before

    async def test_the_head_tells_the_newest_service_call(self, store: LogStore) -> None:
        await start(store, "run-1")
        for last_call, told in ((1, 1), (0, 1), (2, 2), (0, 2)):
            await put(store, 1, f"op-{last_call}-{told}", claim=going_on("run-1", last_call=last_call))
            assert (await store.head(LOG)).runs[0].last_call == told

    async def test_the_newest_service_call_never_goes_back(self, store: LogStore) -> None:
        await start(store, "run-1")
        await put(store, 1, "op-1", claim=going_on("run-1", last_call=10))
        await put(store, 1, "op-2", claim=going_on("run-1", last_call=9))
        assert (await store.head(LOG)).runs[0].last_call == 10

    async def test_an_exclusive_run_keeps_all_others_out_and_is_named(self, store: LogStore) -> None:
        await start(store, "run-1")
        before = await self.known(store, LOG)
        for exclusive in (True, False):
            error = await refused(ConversationBusy, store, request(**opening("run-2", exclusive=exclusive)))  # type: ignore[arg-type]
            assert (error.run, error.expired) == ("run-1", False)
            assert "'run-1'" in str(error)
            assert "first-holder" in str(error)
        assert await self.known(store, LOG) == before

    async def test_a_shared_run_keeps_exclusive_ones_out(self, store: LogStore) -> None:
        await start(store, "run-1", exclusive=False)
        error = await refused(ConversationBusy, store, request(**opening("run-2")))  # type: ignore[arg-type]
        assert error.run == "run-1"

    async def test_shared_runs_interleave(self, store: LogStore) -> None:
        for run in ("run-1", "run-2", "run-3"):
            await start(store, run, exclusive=False)
        for number in range(6):
            await put(store, number, f"op-{number}", claim=going_on(f"run-{number % 3 + 1}"))
        head = await store.head(LOG)
        assert [(run.run, run.first, run.exclusive) for run in head.runs] == [
            ("run-1", 1, False),
            ("run-2", 2, False),
            ("run-3", 3, False),
        ]
        await put(store, 6, "op-6", claim=going_on("run-2", closes=True))
        assert [run.run for run in (await store.head(LOG)).runs] == ["run-1", "run-3"]

    async def test_the_last_shared_run_that_closes_lets_an_exclusive_one_in(self, store: LogStore) -> None:
        await start(store, "run-1", exclusive=False)
        await start(store, "run-2", exclusive=False)
        await put(store, 1, "op-1", claim=going_on("run-1", closes=True))
        await refused(ConversationBusy, store, request(**opening("run-3")))  # type: ignore[arg-type]
        await put(store, 2, "op-2", claim=going_on("run-2", closes=True))
        await start(store, "run-3")
        assert [run.run for run in (await store.head(LOG)).runs] == ["run-3"]

    async def test_of_those_that_open_an_exclusive_run_at_once_one_wins(self, store: LogStore) -> None:
        async def attempt(number: int) -> bool:
            try:
                await start(store, f"run-{number}")
            except ConversationBusy:
                return False
            return True

        assert (await asyncio.gather(*(attempt(number) for number in range(10)))).count(True) == 1

    async def test_runs_of_other_conversations_are_not_in_the_way(self, store: LogStore) -> None:
        await start(store, "run-1")
        await start(store, "run-1", log=LOG._replace(conversation="other"))
        await start(store, "run-2", log=LOG._replace(tenant="other"))

    async def test_appends_outside_any_run_are_not_kept_out(self, store: LogStore) -> None:
        await start(store, "run-1")
        assert (await put(store, 1, "op-1", expected=ANY)).first == 2

    async def test_only_the_fence_itself_opens_the_run(self, store: LogStore) -> None:
        await start(store, "run-1")
        before = await self.known(store, LOG)
        for fence in ("ab", "AA", "a", "aaa", "", "00", "ff"):
            error = await refused(RunFenced, store, request(1, "op-1", claim=going_on("run-1", fence=fence)))
            assert error.run == "run-1"
            assert "first-holder" in str(error)
        assert await self.known(store, LOG) == before

    async def test_a_closed_run_takes_nothing_more(self, store: LogStore) -> None:
        await start(store, "run-1")
        await put(store, 1, "op-1", claim=going_on("run-1", closes=True))
        before = await self.known(store, LOG)
        error = await refused(RunClosed, store, request(2, "op-2", claim=going_on("run-1")))
        assert error.run == "run-1"
        assert await self.known(store, LOG) == before
        assert before.head.runs == ()

    async def test_a_run_that_was_never_opened_is_closed(self, store: LogStore) -> None:
        await refused(RunClosed, store, request(1, "op-1", claim=going_on("run-1")))

    async def test_a_run_may_open_and_close_in_one_append(self, store: LogStore) -> None:
        claim = starting("run-1")
        both = going_on("run-1", closes=True)
        await put(store, notes(1, 2), "run-1", claim=type(claim)(claim.run, claim.step, "aa", LEASE_MS, closes=True))
        assert (await store.head(LOG)).runs == ()
        await refused(RunClosed, store, request(1, "op-1", claim=both))
        await start(store, "run-2")

    async def test_a_call_has_one_result_in_its_run(self, store: LogStore) -> None:
        await start(store, "run-1")
        await put(store, "result", "op-1", claim=going_on("run-1", answers=(7, 8)))
        before = await self.known(store, LOG)
        for answers in ((7,), (9, 8)):
            error = await refused(
                AlreadyAnswered, store, request("other", "op-2", claim=going_on("run-1", answers=answers))
            )
            assert error.run == "run-1"
            assert f"version {answers[-1]} " in str(error)
            assert "at version 2" in str(error)
        assert await self.known(store, LOG) == before
        await put(store, "result", "op-3", claim=going_on("run-1", answers=(9, 78)))

    async def test_another_run_may_answer_the_same_call(self, store: LogStore) -> None:
        await start(store, "run-1", exclusive=False)
        await start(store, "run-2", exclusive=False)
        await put(store, "result", "op-1", claim=going_on("run-1", answers=(7,)))
        await put(store, "result", "op-2", claim=going_on("run-2", answers=(7,)))

    async def test_run_ids_that_end_like_each_other_are_apart(self, store: LogStore) -> None:
        hostile = ("r", "7:r", "x|r", "r|1|2", "a\nr", "r\x00", "open", "run:r", "%", "é")
        for run in hostile:
            await start(store, run, exclusive=False)
            await put(store, "result", f"{run}-1", claim=going_on(run, answers=(7,)))
        assert [run.run for run in (await store.head(LOG)).runs] == list(hostile)
        await put(store, "end", "end", claim=going_on("r", closes=True))
        assert [run.run for run in (await store.head(LOG)).runs] == list(hostile[1:])
        for run in hostile[1:]:
            await refused(AlreadyAnswered, store, request("x", "again", claim=going_on(run, answers=(7,))))

    async def test_alone_is_refused_while_a_run_is_open(self, store: LogStore) -> None:
        assert (await put(store, 0, "op-0", alone=True)).first == 1
        await start(store, "run-1", exclusive=False)
        error = await refused(ConversationBusy, store, request(1, "op-1", alone=True))
        assert error.run == "run-1"

    async def test_superseded_runs_are_closed_in_the_same_append(self, store: LogStore) -> None:
        await start(store, "run-1", exclusive=False)
        await start(store, "run-2", exclusive=False)
        error = await refused(ConversationBusy, store, request(1, "op-1", alone=True, supersedes=("run-1",)))
        assert error.run == "run-2"
        await put(store, notes(1, 2, 3), "op-1", alone=True, supersedes=("run-1", "run-2", "never-opened"))
        assert (await store.head(LOG)).runs == ()
        for run in ("run-1", "run-2"):
            await refused(RunClosed, store, request(1, "op-2", claim=going_on(run)))
        await start(store, "run-3")

    async def test_a_run_may_start_in_place_of_those_it_supersedes(self, store: LogStore) -> None:
        await start(store, "run-1")
        await start(store, "run-2", supersedes=("run-1",))
        assert [run.run for run in (await store.head(LOG)).runs] == ["run-2"]
        await refused(ConversationBusy, store, request(**opening("run-3")))  # type: ignore[arg-type]

    async def test_runs_are_superseded_by_an_append_that_need_not_be_alone(self, store: LogStore) -> None:
        for run in ("run-1", "run-2", "run-3"):
            await start(store, run, exclusive=False)
        await put(store, 1, "op-1", supersedes=("run-1",))
        assert [run.run for run in (await store.head(LOG)).runs] == ["run-2", "run-3"]
        await put(store, 2, "op-2", supersedes=("run-2",), claim=going_on("run-3"))
        assert [run.run for run in (await store.head(LOG)).runs] == ["run-3"]
        await put(store, 3, "op-3", claim=going_on("run-3", closes=True))
        await start(store, "run-4")
