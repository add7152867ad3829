"""Looking at a cluster before it is used: each of its primaries is a server that must keep what it is given."""

from __future__ import annotations

from typing import Any

from redis.asyncio import Redis
from redis.exceptions import RedisError

from eventlog.errors import ServerUnfit
from eventlog.store.redis.routing import SLOTS, stretches, uncovered

_NODE = "the server is a node of a cluster (cluster_enabled:1)"


async def primaries(client: Redis, url: str) -> list[str]:
    """The URLs of the primaries of the cluster of which ``client`` at ``url`` is a node, in the order of their slots.

    Raises ``ServerUnfit`` when some slots are served by nobody, or it does not tell.
    """
    try:
        told: Any = await client.execute_command("CLUSTER", "SLOTS")  # type: ignore[no-untyped-call]
        found = sorted(stretches(told, url))
    except (RedisError, OSError, ValueError) as error:
        raise ServerUnfit(
            f"{_NODE} and does not tell where the slots are ({error}): allow it (ACL SETUSER … +cluster|slots)"
        ) from error
    missing = uncovered(found)
    if missing:
        raise ServerUnfit(
            f"{_NODE} in which nobody serves {missing:,} of {SLOTS:,} slots: give them to nodes "
            "(CLUSTER ADDSLOTSRANGE), bring the missing nodes back, or give the URL of a single server"
        )
    return list(dict.fromkeys(stretch.primary for stretch in found))
