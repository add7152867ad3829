"""Where a session's log is: one the application has open, or one that is opened when it is first needed."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from typing import Any, Protocol
from urllib.parse import quote, urlencode
from weakref import WeakKeyDictionary

from redis.asyncio import Connection, Redis, RedisCluster, SSLConnection, UnixDomainSocketConnection

from eventlog.durability import Durability
from eventlog.errors import InvalidInput
from eventlog.log import EventLog, Tenant
from eventlog.store.port import Limits

LIMITS = Limits(events=20_000, operation_bytes=64 * 1024 * 1024)
"""What one ``add_items`` may carry: the SDK's own sessions take any number of items."""
_TLS = ("ssl_certfile", "ssl_keyfile", "ssl_ca_certs", "ssl_ca_path", "ssl_cert_reqs", "ssl_check_hostname")


class Place(Protocol):
    """A tenant of some log."""

    owned: bool
    """Closing it ends it."""

    async def tenant(self) -> Tenant:
        """The tenant; its log is opened when that was not done. Raises errors of the ``ServerError`` branch."""
        ...

    async def close(self) -> None:
        """Let go of what was opened for this session."""
        ...


class Given:
    """A tenant of a log that the application has open, and closes."""

    owned = False

    def __init__(self, tenant: Tenant) -> None:
        self._tenant = tenant

    async def tenant(self) -> Tenant:
        return self._tenant

    async def close(self) -> None:
        pass


class Opened:
    """A log of the session's own."""

    owned = True

    def __init__(self, url: str, tenant: str, durability: Durability | str) -> None:
        self._url = url
        self._name = tenant
        self._durability = durability
        self._closing: AsyncExitStack | None = None
        self._tenant: Tenant | None = None

    async def tenant(self) -> Tenant:
        if self._tenant is None:
            closing = AsyncExitStack()
            opening = EventLog.open(self._url, limits=LIMITS, durability=self._durability)
            log = await closing.enter_async_context(opening)
            self._closing, self._tenant = closing, log.tenant(self._name)
        return self._tenant

    async def close(self) -> None:
        closing, self._closing, self._tenant = self._closing, None, None
        if closing is not None:
            await closing.aclose()


class _Log:
    """A log beside a client's own connections, and how many sessions use it."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.loop = asyncio.get_running_loop()
        self.users = 0
        self.opening = asyncio.Lock()
        self.closing = AsyncExitStack()
        self.log: EventLog | None = None


_logs: WeakKeyDictionary[Any, _Log] = WeakKeyDictionary()
"""Of each client that sessions were made with, the log they share."""


class Beside:
    """A log on the server of a client that the application has. All sessions with the same client share it."""

    owned = False

    def __init__(self, client: Any, tenant: str) -> None:
        self._client = client
        self._url = url_of(client)
        self._name = tenant
        self._mine: _Log | None = None

    async def tenant(self) -> Tenant:
        if self._mine is None:
            shared = _logs.get(self._client)
            if shared is None or shared.loop is not asyncio.get_running_loop():
                shared = _logs[self._client] = _Log(self._url)
            self._mine = shared
            shared.users += 1
        mine = self._mine
        async with mine.opening:
            if mine.log is None:
                opening = EventLog.open(self._url, limits=LIMITS, durability="memory")
                mine.log = await mine.closing.enter_async_context(opening)
        return mine.log.tenant(self._name)

    async def close(self) -> None:
        mine, self._mine = self._mine, None
        if mine is None:
            return
        mine.users -= 1
        if mine.users == 0:
            async with mine.opening:
                mine.log = None
                closing, mine.closing = mine.closing, AsyncExitStack()
                await closing.aclose()


def url_of(client: Any) -> str:
    """The URL of the server that a client talks to.

    Raises ``InvalidInput`` for what is not a client of one server, and for a client whose way in no URL can tell.
    """
    way = "give tenant=, a tenant of a log that you opened, or make the session with from_url"
    if isinstance(client, RedisCluster) or not isinstance(client, Redis):
        raise InvalidInput(f"redis_client={type(client).__name__}: it is not a client of one server; {way}")
    pool = client.connection_pool
    kind, known = pool.connection_class, dict(pool.connection_kwargs)
    if not issubclass(kind, Connection | UnixDomainSocketConnection) or kind.__module__.split(".")[0] != "redis":
        raise InvalidInput(f"redis_client: its connections are {kind.__name__}, which lead to no server; {way}")
    if known.get("credential_provider") is not None:
        raise InvalidInput(f"redis_client: its credentials come from a provider, which no URL can tell; {way}")
    login = ""
    if known.get("username") or known.get("password"):
        login = f"{quote(known.get('username') or '', safe='')}:{quote(known.get('password') or '', safe='')}@"
    query = {"db": known["db"]} if known.get("db") else {}
    if issubclass(kind, UnixDomainSocketConnection):
        return f"unix://{login}{quote(known['path'])}" + (f"?{urlencode(query)}" if query else "")
    scheme = "redis"
    if issubclass(kind, SSLConnection):
        scheme = "rediss"
        query |= {name: known[name] for name in _TLS if known.get(name) is not None}
    host = known.get("host", "localhost")
    where = f"[{host}]" if ":" in host else quote(host)
    return f"{scheme}://{login}{where}:{known.get('port', 6379)}" + (f"?{urlencode(query)}" if query else "")
