"""The way in: a log of logs, its tenants, and their conversations."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Literal

from eventlog.consumer_group import ConsumerGroup, Start
from eventlog.conversation import Conversation
from eventlog.durability import ALWAYS, EVERYSEC, Durability
from eventlog.errors import InvalidInput
from eventlog.hub import Hub
from eventlog.identity import LogId, check_id, tenant_path
from eventlog.server.check import check_durability, inspect
from eventlog.server.embedded import EmbeddedServer, Fsync
from eventlog.store.beside import readers_beside
from eventlog.store.memory import MemoryStore
from eventlog.store.port import Limits, LogStore
from eventlog.store.redis.store import RedisStore
from eventlog.store.views import RESERVED
from eventlog.subscription import POLL
from eventlog.tenant_cursor import TenantCursor
from eventlog.tenant_subscription import TenantSubscription

_PAGE = 500


class EventLog:
    """All conversations of all tenants in one store."""

    def __init__(self, store: LogStore, notes: tuple[str, ...] = ()) -> None:
        self.store = store
        self.hub = Hub(store)
        """Wakes the followers."""
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
            log = cls(MemoryStore(partitions=partitions or 16, limits=limits))
            try:
                yield log
            finally:
                await log.hub.close()
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
            log = cls(store, (*notes, *report.warnings))
            closing.push_async_callback(log.hub.close)
            yield log

    def group(self, name: str, *, start: Start = "beginning", tenant: str | None = None) -> ConsumerGroup:
        """Competing consumers under one name: of one tenant's conversations, or of all when None.

        ``start`` is settled when the group is first used: the ``beginning``, or ``now``. A name that
        was used for another tenant is refused when it is used. Names that begin with ``@`` are those of
        projections: ``InvalidInput``.
        """
        if isinstance(name, str) and name.startswith(RESERVED):
            raise InvalidInput(
                f"group {ascii(name)[:80]}: names that begin with {RESERVED!r} are kept for projections: choose another"
            )
        store, readers = readers_beside(self.store)
        return ConsumerGroup(store, readers, name, start=start, tenant=tenant)

    def tenant(self, tenant: str) -> Tenant:
        """Whose data it is. The application captures this; never let a model fill it in."""
        return Tenant(self.store, check_id(tenant, "tenant"), self.hub)


class Tenant:
    """One owner's conversations."""

    def __init__(self, store: LogStore, tenant: str, hub: Hub | None = None) -> None:
        self.store = store
        self._hub = hub or Hub(store)
        self.id = tenant

    def conversation(self, conversation: str) -> Conversation:
        """A handle on one conversation. It need not exist yet."""
        return Conversation(self.store, LogId(self.id, check_id(conversation, "conversation")), self._hub)

    def follow(
        self,
        after: TenantCursor | str | Literal["start", "now"] = "start",
        *,
        types: Sequence[str] | None = None,
        heartbeat: float | None = None,
        poll: float = POLL,
    ) -> TenantSubscription:
        """Follow all conversations of this tenant, new ones included, with one cursor; as ``Conversation.follow``.

        Each conversation's events come in order. What others append moves the cursor, too.
        """
        return TenantSubscription(self._hub, self.store, self.id, after, types=types, heartbeat=heartbeat, poll=poll)

    async def conversations(self) -> AsyncIterator[str]:
        """The ids of this tenant's conversations, partition by partition in the order of their first append."""
        mine = tenant_path(self.id)
        for partition in range(self.store.partitions):
            offset = 0
            while page := await self.store.conversations(partition, offset, _PAGE):
                for log in page:
                    if log.path.startswith(mine):
                        yield log.conversation
                offset += len(page)
