"""A writer that is a process of its own: appends operations to one conversation as fast as it goes.

Arguments: URL, namespace, name of the writer, how many operations, and ``any`` or ``exact``. Says
``ready``, waits for a line, and at the end tells the versions of its operations.
"""

from __future__ import annotations

import json
import sys

import anyio

from eventlog.errors import VersionConflict
from eventlog.store.conformance.suite import LOG, notes, put
from eventlog.store.redis.store import RedisStore


async def main(url: str, namespace: str, name: str, operations: int, expected: str) -> None:
    store = await RedisStore.connect(url, namespace=namespace)
    print("ready", flush=True)
    sys.stdin.readline()
    won: list[list[int]] = []
    conflicts = 0
    for number in range(operations):
        if expected == "any":
            outcome = await put(store, notes(*range(number % 4 + 1)), f"{name}-{number}")
        else:
            cursor = (await store.head(LOG)).last
            while True:
                try:
                    outcome = await put(store, number, f"{name}-{number}", expected=cursor, cursor=cursor)
                except VersionConflict as conflict:
                    conflicts += 1
                    cursor = conflict.actual
                else:
                    break
        won.append(list(outcome.versions))
    await store.close()
    print(json.dumps({"won": won, "conflicts": conflicts}), flush=True)


anyio.run(main, sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4]), sys.argv[5])
