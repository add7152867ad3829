"""Waiting for news of feeds on a cluster, where no command can wait on keys of two slots.

The feeds are looked at again and again, those of a node in one write over its shared connection, at
growing intervals: at once after something was found, every ``LONGEST_PAUSE`` seconds while nothing
happens. That costs no connection, and for each idle process one small read a feed and interval.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from eventlog.errors import ServerUnavailable
from eventlog.store.port import FeedEntry
from eventlog.store.redis import replies
from eventlog.store.redis.cluster import Cluster
from eventlog.store.redis.keys import Keys
from eventlog.store.redis.wire import PASSING, ConnectionLost, ReplyError, pack

FIRST_PAUSE, LONGEST_PAUSE = 0.001, 0.05
_GROWTH = 1.5


async def poll_feeds(
    cluster: Cluster, keys: Keys, after: Mapping[int, int], seconds: float, count: int
) -> list[FeedEntry]:
    """The next entries of any feed after ``after[partition]``, at most ``count`` of each; none after ``seconds``.

    A node that cannot be reached keeps nobody from news of the others. Raises ``ServerUnavailable`` when none
    could be reached.
    """
    nodes: dict[str | None, dict[int, int]] = {}
    for partition, seq in after.items():
        nodes.setdefault(cluster.node_of(keys.feed(partition)), {})[partition] = seq
    looks = [_Look(cluster, keys, of_node, count) for of_node in nodes.values()]
    tasks = [asyncio.create_task(look.run()) for look in looks]
    try:
        done, _ = await asyncio.wait(tasks, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
    if not done and looks and all(look.trouble for look in looks):
        raise ServerUnavailable(f"no node of the cluster tells of news: {looks[0].trouble}")
    return [entry for task in done for entry in task.result()]


class _Look:
    """Looking at the feeds that one node serves. ``trouble`` is what the last look met, or empty."""

    def __init__(self, cluster: Cluster, keys: Keys, after: Mapping[int, int], count: int) -> None:
        self.trouble = ""
        self._cluster = cluster
        self._keys = keys
        self._after = after
        self._count = count

    async def run(self) -> list[FeedEntry]:
        """Look until something is found."""
        pause = FIRST_PAUSE
        while not (found := await self._once()):
            await asyncio.sleep(pause)
            pause = min(pause * _GROWTH, LONGEST_PAUSE)
        return found

    async def _once(self) -> list[FeedEntry]:
        sent = (
            self._cluster.execute(pack("XRANGE", self._keys.feed(partition), f"(0-{seq}", "+", "COUNT", self._count))
            for partition, seq in self._after.items()
        )
        looked: list[Any] = await asyncio.gather(*sent, return_exceptions=True)
        self.trouble = ""
        found: list[FeedEntry] = []
        for partition, reply in zip(self._after, looked, strict=True):
            if isinstance(reply, ReplyError) and not str(reply).startswith(PASSING):
                raise replies.server_error(str(reply))
            if isinstance(reply, (ReplyError, ConnectionLost, ServerUnavailable)):
                self.trouble = str(reply)
            elif isinstance(reply, BaseException):
                raise reply
            else:
                found += [replies.feed_entry(partition, item) for item in reply]
        return found
