"""Holding a run on, and taking it over: when its lease has expired, or by force."""

from __future__ import annotations

import asyncio
from dataclasses import replace

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
    taking_over,
)
from eventlog.store.port import LogStore, Step

PATIENCE = 5.0
"""Seconds to wait for a lease of a few milliseconds to expire."""


async def expired(store: LogStore, run: str) -> None:
    """Wait until the store says that the lease of this run has expired."""
    async with asyncio.timeout(PATIENCE):
        while True:
            probe = request(1, f"probe-{run}", claim=starting(f"probe-{run}"))
            error = await refused(ConversationBusy, store, probe)
            assert error.run == run
            if error.expired:
                assert "expired" in str(error)
                return
            await asyncio.sleep(0.002)


class TakeOvers(Suite):
    async def test_a_run_whose_lease_runs_is_not_resumed(self, store: LogStore) -> None:
        await start(store, "run-1")
        before = await self.known(store, LOG)
        error = await refused(ConversationBusy, store, request(1, "op-1", claim=taking_over("run-1", Step.RESUME)))
        assert (error.run, error.expired) == ("run-1", False)
        assert await self.known(store, LOG) == before

    async def test_an_expired_run_is_resumed_and_its_former_holder_is_fenced(self, store: LogStore) -> None:
        await start(store, "run-1", lease_ms=5)
        await expired(store, "run-1")
        await put(store, 1, "op-1", claim=taking_over("run-1", Step.RESUME))
        head = await store.head(LOG)
        run = head.runs[0]
        assert (run.holder, run.since_ms, run.lease_ms) == (
            "second-holder",
            head.updated_ms,
            head.updated_ms + LEASE_MS,
        )
        assert (run.first, run.mode, run.exclusive) == (1, "per-service-call", True)
        error = await refused(RunFenced, store, request(2, "op-2", claim=going_on("run-1")))
        assert "second-holder" in str(error)
        await put(store, 2, "op-2", claim=going_on("run-1", fence="bb"))

    async def test_of_those_that_resume_at_once_one_wins(self, store: LogStore) -> None:
        await start(store, "run-1", lease_ms=5)
        await expired(store, "run-1")

        async def attempt(number: int) -> bool:
            claim = taking_over("run-1", Step.RESUME, fence=f"{number:02x}")
            try:
                await put(store, number, f"op-{number}", claim=claim)
            except ConversationBusy:
                return False
            return True

        assert (await asyncio.gather(*(attempt(number) for number in range(10)))).count(True) == 1

    async def test_an_expired_run_that_nobody_took_over_goes_on(self, store: LogStore) -> None:
        await start(store, "run-1", lease_ms=5)
        await expired(store, "run-1")
        await put(store, 1, "op-1", claim=going_on("run-1"))
        error = await refused(ConversationBusy, store, request(2, "op-2", claim=taking_over("run-1", Step.RESUME)))
        assert not error.expired

    async def test_an_expired_run_still_keeps_others_out(self, store: LogStore) -> None:
        await start(store, "run-1", lease_ms=5)
        await expired(store, "run-1")
        attempt = request(run_started("run-2"), "run-2", claim=starting("run-2"))
        assert (await refused(ConversationBusy, store, attempt)).expired

    async def test_force_takes_a_run_over_whose_lease_runs(self, store: LogStore) -> None:
        await start(store, "run-1")
        await put(store, 1, "op-1", claim=going_on("run-1", last_call=4, answers=(7,)))
        await put(store, 2, "op-2", claim=taking_over("run-1", Step.FORCE))
        run = (await store.head(LOG)).runs[0]
        assert (run.holder, run.last_call) == ("second-holder", 4)
        await refused(RunFenced, store, request(3, "op-3", claim=going_on("run-1")))
        again = request(3, "op-3", claim=going_on("run-1", fence="bb", answers=(7,)))
        await refused(AlreadyAnswered, store, again)

    async def test_a_take_over_may_close_the_run(self, store: LogStore) -> None:
        await start(store, "run-1")
        await put(store, 1, "op-1", claim=taking_over("run-1", Step.FORCE, closes=True))
        assert (await store.head(LOG)).runs == ()
        await refused(RunClosed, store, request(2, "op-2", claim=going_on("run-1")))

    async def test_a_closed_run_is_not_taken_over(self, store: LogStore) -> None:
        await start(store, "run-1")
        await put(store, notes(1), "op-1", claim=going_on("run-1", closes=True))
        for step in (Step.RESUME, Step.FORCE):
            await refused(RunClosed, store, request(2, "op-2", claim=taking_over("run-1", step)))

    async def test_renewing_holds_the_run_from_now_on_by_the_servers_clock_and_changes_nothing_else(
        self, store: LogStore
    ) -> None:
        await start(store, "run-1", lease_ms=1)
        await put(store, 1, "op-1", claim=going_on("run-1", lease_ms=1, last_call=3))
        before = await self.known(store, LOG)
        await store.renew(LOG, "run-1", "aa", LEASE_MS)
        after = await self.known(store, LOG)
        held = after.head.runs[0].lease_ms
        assert held >= before.head.updated_ms + LEASE_MS
        renewed = replace(before.head.runs[0], lease_ms=held)
        assert after == before._replace(head=replace(before.head, runs=(renewed,)))
        error = await refused(ConversationBusy, store, request(2, "op-2", claim=taking_over("run-1", Step.RESUME)))
        assert not error.expired

    async def test_an_expired_run_that_nobody_took_over_is_renewed(self, store: LogStore) -> None:
        await start(store, "run-1", lease_ms=5)
        await expired(store, "run-1")
        await store.renew(LOG, "run-1", "aa", LEASE_MS)
        error = await refused(ConversationBusy, store, request(2, "op-2", claim=taking_over("run-1", Step.RESUME)))
        assert not error.expired

    async def test_only_the_holder_renews(self, store: LogStore) -> None:
        await start(store, "run-1")
        await put(store, 1, "op-1", claim=taking_over("run-1", Step.FORCE))
        before = await self.known(store, LOG)
        for fence in ("aa", "", "b", "bbb", "BB"):
            try:
                await store.renew(LOG, "run-1", fence, LEASE_MS)
            except RunFenced as fenced:
                said = fenced
            else:
                raise AssertionError(f"fence {fence!r} renewed the run")
            assert said.run == "run-1"
            assert "second-holder" in str(said)
        assert await self.known(store, LOG) == before

    async def test_a_closed_run_is_not_renewed(self, store: LogStore) -> None:
        await start(store, "run-1")
        await put(store, 1, "op-1", claim=going_on("run-1", closes=True))
        before = await self.known(store, LOG)
        for run in ("run-1", "never-opened"):
            try:
                await store.renew(LOG, run, "aa", LEASE_MS)
            except RunClosed as closed:
                said = closed
            else:
                raise AssertionError(f"run {run!r} was renewed")
            assert said.run == run
        assert await self.known(store, LOG) == before
