"""Random walks on which the memory store and the Redis store must say and do the same."""

from __future__ import annotations

from collections.abc import AsyncIterator
from random import Random
from typing import Any

import pytest
from redis.asyncio import Redis

from eventlog.errors import ConversationBusy, EventLogError, Gap, RunRefused, VersionConflict
from eventlog.identity import Cursor, LogId
from eventlog.store.conformance.suite import LIMITS, notes, request
from eventlog.store.memory import MemoryStore
from eventlog.store.port import ANY, EXISTS, NONE, Append, Expected, LogStore, RunClaim, Step
from eventlog.store.redis.keys import Keys
from eventlog.store.redis.store import RedisStore
from tests.store.redis.conftest import connected

pytestmark = pytest.mark.anyio

RUNS = ("run-1", "run-2", "run-3")
OPERATIONS = ("op-1", "op-2", "op-3", "op-4", "op-5", "op-6")


@pytest.fixture
async def limited(server: str, keys: Keys) -> AsyncIterator[RedisStore]:
    async with connected(server, keys, limits=LIMITS) as opened:
        yield opened


class Walk:
    """One log on both stores. Stamps differ between them, so cursors are drawn as (version, right stamp or not)."""

    def __init__(self, random: Random, log: LogId, stores: tuple[LogStore, LogStore]) -> None:
        self.random = random
        self.log = log
        self.stores = stores
        self.stamps: tuple[dict[int, int], dict[int, int]] = ({}, {})
        self.last = 0

    def cursor(self, which: int, version: int, right: bool) -> Cursor:
        return self.log.cursor(version, self.stamps[which].get(version, 5) if right and version else int(version > 0))

    def draw(self) -> tuple[Append, Append]:
        """The same append for either store."""
        random = self.random
        claim = self.claim() if random.random() < 0.6 else None
        operation = claim.run if claim and claim.step is Step.START else random.choice(OPERATIONS)
        if random.random() < 0.6 and not (claim and claim.step is Step.START):
            operation += f"-{random.random()}"
        drafts = notes(*range(random.choice((1, 1, 2, 3, 65))))
        kind = random.choice(("any", "any", "any", "none", "exists", "last", "other", "wrong"))
        version = {"last": self.last, "other": random.randrange(self.last + 2), "wrong": self.last}.get(kind, 0)
        seen = random.choice((0, 0, self.last, self.last, random.randrange(self.last + 2)))
        seen_right = random.random() < 0.95
        alone = random.random() < 0.15
        own = claim.run if claim else ""
        supersedes = tuple(run for run in RUNS if run != own and random.random() < 0.15)

        def of(which: int) -> Append:
            named: dict[str, Expected] = {"any": ANY, "none": NONE, "exists": EXISTS}
            expected = named.get(kind) or self.cursor(which, version, kind != "wrong")
            return request(
                drafts,
                operation,
                log=self.log,
                cursor=self.cursor(which, seen, seen_right),
                expected=expected,
                claim=claim,
                alone=alone,
                supersedes=supersedes,
            )

        return of(0), of(1)

    def claim(self) -> RunClaim:
        random = self.random
        step = random.choice((Step.START, Step.START, Step.GO_ON, Step.GO_ON, Step.GO_ON, Step.RESUME, Step.FORCE))
        return RunClaim(
            random.choice(RUNS),
            step,
            random.choice(("aa", "aa", "aa", "bb")),
            random.choice((0, 600_000)),  # over at once, or not while this test runs
            "per-run",
            random.random() < 0.3,
            random.choice(("one", "other")),
            random.choice((0, 0, 1, 2, 3)),
            random.random() < 0.2,
            tuple(random.sample((1, 2, 3, 4), random.choice((0, 0, 1, 2)))),
        )

    async def told(self, which: int, append: Append) -> dict[str, Any]:
        """What the store says to the append, without stamps and times."""
        try:
            outcome = await self.stores[which].append(append)
        except EventLogError as error:
            told: dict[str, Any] = {"error": type(error).__name__}
            if isinstance(error, RunRefused) and not isinstance(error, ConversationBusy):
                told["run"] = error.run
            if isinstance(error, VersionConflict):
                told["actual"] = (error.actual.version, error.actual.stamp == self.stamps[which].get(self.last, 0))
            if isinstance(error, Gap):
                told["available"] = error.available.version
            return told
        if not outcome.duplicate:
            self.stamps[which].update(dict.fromkeys(outcome.versions, outcome.cursor.stamp))
        right = self.stamps[which][outcome.cursor.version] == outcome.cursor.stamp
        return {"first": outcome.first, "last": outcome.cursor.version, "duplicate": outcome.duplicate, "right": right}

    async def known(self, which: int) -> dict[str, Any]:
        """What the store holds, without stamps and times."""
        head = await self.stores[which].head(self.log)
        entries = await self.stores[which].read(self.log, 1, None, 10_000)
        assert all(entry.stamp == self.stamps[which][entry.version] for entry in entries)
        return {
            "last": head.last.version,
            "base": head.base.version,
            "deleted": head.deleted,
            "runs": {
                (run.run, run.mode, run.exclusive, run.first, run.last_call, run.lease_ms > head.updated_ms, run.holder)
                for run in head.runs
            },
            "entries": [(entry.version, entry.document) for entry in entries],
        }


async def test_150_walks_of_40_appends(limited: RedisStore, client: Redis, keys: Keys) -> None:
    seen: dict[str, int] = {}
    for seed in range(150):
        random = Random(seed)
        memory = MemoryStore(partitions=16, limits=LIMITS)
        walk = Walk(random, LogId("acme", f"walk-{seed}"), (memory, limited))
        where = keys.of_log(walk.log)
        for step in range(40):
            appends = walk.draw()
            told = [await walk.told(which, appends[which]) for which in (0, 1)]
            assert told[0] == told[1], f"seed {seed}, step {step}: {appends[1]}"
            seen[told[0].get("error") or f"duplicate: {told[0]['duplicate']}"] = step
            walk.last = max(walk.last, told[0].get("last", 0))
            if walk.last > 2 and random.random() < 0.02:
                version = random.randrange(1, walk.last)
                base = (await memory.head(walk.log)).base.version
                if version > base:
                    await memory.trim(walk.log, version)
                    await client.hset(where.head, "base", walk.cursor(1, version, True).entry_id)
                    await client.xtrim(where.log, minid=str(version + 1), approximate=False)
            if step > 30 and random.random() < 0.02:
                await memory.mark_deleted(walk.log)
                await client.hset(where.head, "state", "deleted")
        assert await walk.known(0) == await walk.known(1), f"seed {seed}"
    assert set(seen) == {
        "duplicate: False", "duplicate: True", "OperationReused", "ConversationDeleted", "LogLost", "Truncated",
        "RunFenced", "RunClosed", "ConversationBusy", "AlreadyAnswered", "VersionConflict", "LimitExceeded",
        "OutcomeUnknown",
    }  # fmt: skip
