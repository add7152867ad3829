"""The way in: a log of logs, its tenants, and their conversations."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

from eventlog.conversation import Conversation
from eventlog.durability import ALWAYS, EVERYSEC, Durability
from eventlog.identity import LogId, check_id, tenant_path
from eventlog.server.check import check_durability, inspect
from eventlog.server.embedded import EmbeddedServer, Fsync
from eventlog.store.memory import MemoryStore
from eventlog.store.port import Limits, LogStore
from eventlog.store.redis.store import RedisStore

_PAGE = 500


class EventLog:
    """All conversations of all tenants in one store."""

    def __init__(self, store: LogStore, notes: tuple[str, ...] = ()) -> None:
        self.store = store
        self.notes = notes
        """What a person should know of the server: what was repaired at start, what is not as it should be."""

    @classmethod
    @asynccontextmanager
    async def open(
        cls,
        url: str | None = None,
        *,
        data: str | Path | None = None,
        namespace: str = "eventlog",
        partitions: int | None = None,
        limits: Limits | None = None,
        deadline: float = 30.0,
        durability: Durability | str = EVERYSEC,
    ) -> AsyncIterator[EventLog]:
        """Open the log at ``url`` (``redis://``, ``rediss://``, ``unix://``; ``memory://`` for tests).

        Without a URL the embedded server is used: it is started when nobody has, keeps its files
        in ``data``, and stops with its last user. ``partitions`` (16 unless chosen) is fixed when
        the namespace is first used. ``deadline`` in seconds bounds each operation, retries
        included. ``durability`` is what an acknowledged append must survive: ``memory``,
        ``everysec`` (a power cut loses about a second), ``always``, or ``replicated(n)``; a server
        that is known not to keep it is refused. Raises errors of the ``ServerError`` branch, and
        ``InvalidInput`` for what is no URL.
        """
        wanted = Durability.parse(durability) if isinstance(durability, str) else durability
        if url == "memory://":
            yield cls(MemoryStore(partitions=partitions or 16, limits=limits))
            return
        async with AsyncExitStack() as closing:
            if url is None:
                fsync: Fsync = "always" if wanted == ALWAYS else "everysec"
                server = await closing.enter_async_context(await EmbeddedServer.open(data, fsync=fsync))
                url, notes = server.url, server.notes
            else:
                notes = ()
            report = await inspect(url)
            check_durability(report, wanted)
            store = await RedisStore.connect(
                url,
                namespace=namespace,
                partitions=partitions,
                limits=limits,
                deadline=deadline,
                replicas=wanted.replicas,
            )
            closing.push_async_callback(store.close)
            yield cls(store, (*notes, *report.warnings))

    def tenant(self, tenant: str) -> Tenant:
        """Whose data it is. The application captures this; never let a model fill it in."""
        return Tenant(self.store, check_id(tenant, "tenant"))


class Tenant:
    """One owner's conversations."""

    def __init__(self, store: LogStore, tenant: str) -> None:
        self._store = store
        self.id = tenant

    def conversation(self, conversation: str) -> Conversation:
        """A handle on one conversation. It need not exist yet."""
        return Conversation(self._store, LogId(self.id, check_id(conversation, "conversation")))

    async def conversations(self) -> AsyncIterator[str]:
        """The ids of this tenant's conversations, partition by partition in the order of their first append."""
        mine = tenant_path(self.id)
        for partition in range(self._store.partitions):
            offset = 0
            while page := await self._store.conversations(partition, offset, _PAGE):
                for log in page:
                    if log.path.startswith(mine):
                        yield log.conversation
                offset += len(page)
