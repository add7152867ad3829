"""A session of the OpenAI Agents SDK whose items are kept in the log: nothing is lost, and nothing torn.

The session behaves as the SDK's ``RedisSession`` does. What it takes back (``pop_item``,
``clear_session``) is a rewind: the log keeps all.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Sequence
from contextlib import suppress
from typing import Any, TypeVar

from agents.memory.session import SessionABC
from agents.memory.session_settings import SessionSettings, coerce_session_settings, resolve_session_limit
from redis.asyncio import Redis

from eventlog.conversation import Conversation
from eventlog.durability import Durability
from eventlog.errors import EventLogError, InvalidInput
from eventlog.identity import check_id, new_fence
from eventlog.log import Tenant
from eventlog.run import this_holder
from eventlog.store.port import RunClaim, Step
from gateway.adapters.openai_agents.errors import SessionClosed
from gateway.adapters.openai_agents.items import taken
from gateway.adapters.openai_agents.kinds import Item
from gateway.adapters.openai_agents.place import Beside, Given, Opened, Place, url_of
from gateway.adapters.openai_agents.recorded_run import RecordedRun
from gateway.adapters.openai_agents.session_log import LayOut, SessionLog
from gateway.adapters.openai_agents.turns import Operation, by_position

T = TypeVar("T")

KEY_PREFIX = "agents:session"
LEASE_MS = 60_000
"""How long a run that is told from the items' place could be held; it ends in the append that begins it."""


class EventLogSession(SessionABC):
    """A session in the log: in place of the SDK's ``RedisSession``.

    ``tenant`` is whose conversations these are, in a log that the application has open. Without
    it, ``redis_client`` says on which server the log is (connections of its own are made; sessions
    with the same client share them), and ``key_prefix`` names the tenant. ``ttl`` in seconds: what nobody
    has added to for so long is taken back when the session is next used; the log keeps it.
    """

    session_settings: SessionSettings | None = None

    def __init__(
        self,
        session_id: str,
        *,
        tenant: Tenant | None = None,
        redis_client: Redis | None = None,
        key_prefix: str = KEY_PREFIX,
        ttl: int | None = None,
        session_settings: SessionSettings | dict[str, Any] | None = None,
    ) -> None:
        if (tenant is None) == (redis_client is None):
            raise InvalidInput("give either tenant=, of a log that you opened, or redis_client=; or use from_url")
        place = Beside(redis_client, check_id(key_prefix, "key_prefix")) if tenant is None else Given(tenant)
        self._set_up(session_id, place, ttl, session_settings)

    @classmethod
    def from_url(
        cls,
        session_id: str,
        *,
        url: str,
        redis_kwargs: dict[str, Any] | None = None,
        session_settings: SessionSettings | dict[str, Any] | None = None,
        key_prefix: str = KEY_PREFIX,
        ttl: int | None = None,
        durability: Durability | str = "memory",
    ) -> EventLogSession:
        """A session that opens the log at ``url`` when it is first used, and closes it with ``close``.

        ``redis_kwargs`` as in ``redis.asyncio.from_url``: what says where the server is and who asks.
        ``durability`` is what an added item must survive (see ``EventLog.open``): by default,
        as with the SDK's session, whatever the server keeps.
        """
        if redis_kwargs and url != "memory://":
            url = url_of(Redis.from_url(url, **redis_kwargs))
        session = cls.__new__(cls)
        session._set_up(session_id, Opened(url, check_id(key_prefix, "key_prefix"), durability), ttl, session_settings)
        return session

    def _set_up(
        self, session_id: str, place: Place, ttl: int | None, settings: SessionSettings | dict[str, Any] | None
    ) -> None:
        self.session_id = check_id(session_id, "session_id")
        self.session_settings = SessionSettings() if settings is None else coerce_session_settings(settings)
        if ttl is not None and (type(ttl) is not int or ttl < 1):
            raise InvalidInput(f"ttl={ttl!r}: give whole seconds, at least 1, or None")
        self._ttl = ttl
        self._place = place
        self._lock = asyncio.Lock()
        self._closed = False
        self._opened: SessionLog | None = None
        self._run: RecordedRun | None = None

    async def conversation(self) -> Conversation:
        """The conversation that holds the session: for views, explanations, follows."""
        return (await self._log()).conversation

    def run(self, *, agent: str | None = None, exclusive: bool = False, lease: float = 60.0) -> RecordedRun:
        """A run to be recorded as it happens, used as an asynchronous context manager and as the run's hooks.

        What is added within it belongs to this run, and its service calls are recorded when they
        are made. An ``exclusive`` one keeps all others out of the conversation.
        """
        return RecordedRun(self, agent=agent, exclusive=exclusive, lease=lease)

    async def get_items(self, limit: int | None = None) -> list[Any]:
        """The session's items in order; with a limit, about that many of the newest.

        A limit never cuts a call from its result, nor reasoning from what it led to: the window grows
        to at most twice the limit, else it shrinks, but never to nothing.
        """
        wanted = resolve_session_limit(limit, self.session_settings)
        if wanted is not None and not isinstance(wanted, int):
            raise InvalidInput(f"limit={wanted!r}: give a whole number of items, or None for all")
        async with self._lock:
            self._check_open()
            log = await self._up_to_date()
            if wanted is None:
                return await log.items()
            return await log.newest(wanted) if wanted > 0 else []

    async def add_items(self, items: Sequence[Any], *, operation_id: str | None = None) -> None:
        """Add items at the end: all of them, or none.

        One call is one operation: a lost reply is retried under its id, and equal items of two calls are
        added twice. With an ``operation_id`` of yours, or that of an ``OutcomeUnknown``, the same items
        can be added again safely, also by another process.
        """
        self._check_open()
        if not items:
            return
        given = [taken(item, index) for index, item in enumerate(items)]
        run = self._run
        if run is not None:
            await run.add(given, operation_id)
        else:
            await self.record(lambda operation: _laid_out_by_position(operation, given), operation_id=operation_id)

    async def pop_item(self) -> Any | None:
        """Take the newest item back and return it; None when there is none."""
        async with self._lock:
            self._check_open()
            return await _whatever_happens(self._pop())

    async def clear_session(self) -> None:
        """Take everything back."""
        async with self._lock:
            self._check_open()
            await _whatever_happens(self._clear())

    async def _atomic_replace_items(self, items: Sequence[Any]) -> bool:
        """Put these items in place of all others, in one step: the SDK's compaction asks for it by this name.

        False when a subclass stores otherwise.
        """
        mine = ("get_items", "add_items", "clear_session")
        if any(getattr(type(self), name) is not getattr(EventLogSession, name) for name in mine):
            return False
        given = [taken(item, index) for index, item in enumerate(items)]
        if given:
            await self.record(lambda operation: _laid_out_by_position(operation, given, anew=True))
        else:
            await self.clear_session()
        return True

    async def ping(self) -> bool:
        """Whether the log can be reached. Raises ``SessionClosed``."""
        async with self._lock:
            self._check_open()
            try:
                await (await self.conversation()).head()
            except EventLogError:
                return False
            return True

    async def close(self) -> None:
        """Close the log when the session opened it by a URL; the session is then of no more use.

        One with a tenant or a client of the application's stays usable.
        """
        async with self._lock:
            self._closed = self._place.owned
            self._opened = None
            await self._place.close()

    async def record(self, lay_out: LayOut, *, operation_id: str | None = None) -> Operation | None:
        """Append what ``lay_out`` makes. For the runs of this session."""
        async with self._lock:
            self._check_open()
            return await _whatever_happens(self._append(lay_out, operation_id))

    async def _append(self, lay_out: LayOut, operation_id: str | None) -> Operation | None:
        log = await self._up_to_date()
        return await log.append(lay_out, operation_id=operation_id)

    async def _pop(self) -> Any | None:
        log = await self._up_to_date()
        return await log.pop(alone=await self._is_held(log))

    async def _clear(self) -> None:
        log = await self._log()
        await log.clear(alone=await self._is_held(log))

    async def _is_held(self, log: SessionLog) -> bool:
        """Whether somebody else holds the conversation for himself: history is not rewound under him."""
        if self._run is not None and self._run.exclusive:
            return False
        return any(run.exclusive for run in (await log.conversation.head()).runs)

    async def _up_to_date(self) -> SessionLog:
        log = await self._log()
        if self._ttl is not None:
            await log.expire(self._ttl, alone=await self._is_held(log))
        return log

    async def _log(self) -> SessionLog:
        if self._opened is None:
            self._opened = SessionLog((await self._place.tenant()).conversation(self.session_id))
        return self._opened

    def _check_open(self) -> None:
        if self._closed:
            raise SessionClosed(f"{type(self).__name__} is closed: make another for session {self.session_id!r}")


def _laid_out_by_position(operation: Operation, items: Sequence[Item | str], *, anew: bool = False) -> RunClaim:
    if anew:
        operation.clear()
    by_position(operation, items)
    return RunClaim(
        operation.run,
        Step.START,
        new_fence(),
        LEASE_MS,
        mode="per-service-call",
        exclusive=False,
        holder=this_holder(),
        last_call=operation.number,
        closes=True,
    )


async def _whatever_happens(work: Coroutine[Any, Any, T]) -> T:
    """Wait for the outcome of ``work`` although the caller is cancelled; then let the cancellation through."""
    task = asyncio.create_task(work)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        while not task.done():
            with suppress(asyncio.CancelledError):  # the first one is let through below
                await asyncio.wait([task])
        if not task.cancelled():
            task.exception()  # it is known; the cancellation goes first
        raise
