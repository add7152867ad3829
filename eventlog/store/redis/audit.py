"""Reads a namespace as it is stored, byte by byte. Never writes.

Nothing but plain reads are sent, so a user that may only read can do it; and nothing that is read
is trusted to be what it should.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import redis.exceptions
from redis.asyncio import Redis

from eventlog.errors import EventLogError, InvalidInput, ServerError, ServerUnavailable, ServerUnfit
from eventlog.identity import check_namespace
from eventlog.verify import LogSnapshot

PAGE = 500
Entry = tuple[bytes, list[bytes]]

_RAW = ("XRANGE", "XREVRANGE", "HGETALL", "ZSCORE", "ZSCAN", "SCAN", "TYPE")
FAMILIES = {"log": "stream", "head": "hash", "ops": "hash", "old-ops": "hash"}
"""The keys of a conversation and their types."""


class Audit:
    """Raw reads of one namespace. Make one with ``open``."""

    def __init__(self, client: Redis, namespace: str) -> None:
        self.namespace = check_namespace(namespace)
        self._client = client
        for command in _RAW:
            client.set_response_callback(command, _as_it_came)  # type: ignore[arg-type]

    @classmethod
    @asynccontextmanager
    async def open(cls, url: str, namespace: str = "eventlog") -> AsyncIterator[Audit]:
        """Read the namespace at ``url``. Raises errors of the ``ServerError`` branch, ``InvalidInput`` for no URL."""
        try:
            client: Redis = Redis.from_url(url, protocol=2, decode_responses=False)
        except ValueError as error:
            raise InvalidInput(f"this is not the URL of a server: {error}") from error
        try:
            yield cls(client, namespace)
        finally:
            await client.aclose()

    def key(self, partition: int, family: str, path: bytes | None = None) -> bytes:
        """A key of a partition, or of one of its conversations."""
        name = f"{{{self.namespace}:{partition}}}:{family}".encode()
        return name if path is None else b"%b:%b" % (name, path)

    @property
    def meta_key(self) -> bytes:
        """The namespace's own key."""
        return f"{self.namespace}:meta".encode()

    async def type_of(self, key: bytes) -> str:
        """The type of a key; ``none`` where there is none."""
        return bytes(await self._ask("TYPE", key)).decode()

    async def meta(self) -> dict[bytes, bytes]:
        """The fields of the namespace's own key, which must be a hash."""
        return await self.fields(self.meta_key)

    async def fields(self, key: bytes) -> dict[bytes, bytes]:
        """The fields of any hash."""
        return _pairs(await self._ask("HGETALL", key))

    async def keys(self) -> AsyncIterator[bytes]:
        """Every key of the namespace, some perhaps more than once."""
        ours = (f"{{{self.namespace}:".encode(), f"{self.namespace}:".encode())
        async for page in self._scan("SCAN", "MATCH", f"*{self.namespace}:*", "COUNT", PAGE):
            for key in page:
                if key.startswith(ours):
                    yield key

    async def listed(self, partition: int) -> AsyncIterator[bytes]:
        """The members of the partition's set of conversations, some perhaps more than once."""
        async for page in self._scan("ZSCAN", self.key(partition, "conversations"), "COUNT", PAGE):
            for member in page[::2]:
                yield member

    async def snapshot(self, path: bytes, partition: int) -> LogSnapshot:
        """What the keys of one conversation hold at one moment."""
        log, head, ops, old_ops = (self.key(partition, family, path) for family in FAMILIES)
        replies = await self._together(
            *(("TYPE", key) for key in (log, head, ops, old_ops)),
            ("XRANGE", log, "-", "+", "COUNT", 1),
            ("XREVRANGE", log, "+", "-", "COUNT", 1),
            *(("HGETALL", key) for key in (head, ops, old_ops)),
            ("ZSCORE", self.key(partition, "conversations"), path),
        )
        types = [reply.decode() for reply in replies[:4]]
        unlike = [
            (key.decode(errors="backslashreplace"), found, wanted)
            for key, found, wanted in zip((log, head, ops, old_ops), types, FAMILIES.values(), strict=True)
            if found not in (wanted, "none")
        ]
        first, last, *hashes, score = [[] if isinstance(reply, Exception) else reply for reply in replies[4:]]
        # A set of another type is told once, not for each of its conversations.
        listed = b"" if score == [] else score
        ids = [entries[0][0] if entries else None for entries in (first, last)]
        head_fields, records, old_records = map(_pairs, hashes)
        return LogSnapshot(path, head_fields, records, old_records, ids[0], ids[1], listed, unlike)

    async def entries(self, path: bytes, partition: int, last: bytes) -> AsyncIterator[list[Entry]]:
        """The log's entries from the first to the one with the id ``last``, in pages."""
        async for page in self._range(self.key(partition, "log", path), last.decode()):
            yield page

    async def feed_end(self, partition: int) -> int:
        """The sequence number of the feed's last entry, 0 when it is empty."""
        found = await self._ask("XREVRANGE", self.key(partition, "feed"), "+", "-", "COUNT", 1)
        return int(found[0][0].partition(b"-")[2]) if found else 0

    async def feed(self, partition: int) -> AsyncIterator[list[Entry]]:
        """The feed's entries, in pages, up to where it ends when that is reached."""
        async for page in self._range(self.key(partition, "feed"), "+"):
            yield page

    async def _range(self, key: bytes, end: str) -> AsyncIterator[list[Entry]]:
        start = "-"
        while page := await self._ask("XRANGE", key, start, end, "COUNT", PAGE):
            yield page
            if len(page) < PAGE:
                return
            start = f"({page[-1][0].decode()}"

    async def _scan(self, command: str, *arguments: Any) -> AsyncIterator[list[bytes]]:
        cursor, place = b"0", 0 if command == "SCAN" else 1
        while True:
            cursor, page = await self._ask(command, *arguments[:place], cursor, *arguments[place:])
            yield page
            if cursor == b"0":
                return

    async def _ask(self, *command: Any) -> Any:
        try:
            return await self._client.execute_command(*command)  # type: ignore[no-untyped-call]
        except (redis.exceptions.RedisError, OSError) as error:
            raise _ours(error) from error

    async def _together(self, *commands: tuple[Any, ...]) -> list[Any]:
        """The replies of one transaction; a command that the key's type refused gives its error."""
        try:
            async with self._client.pipeline(transaction=True) as pipeline:
                for command in commands:
                    pipeline.execute_command(*command)
                return list(await pipeline.execute(raise_on_error=False))
        except (redis.exceptions.RedisError, OSError) as error:
            raise _ours(error) from error


def _as_it_came(reply: Any, **_: Any) -> Any:
    return reply


def _pairs(reply: list[bytes]) -> dict[bytes, bytes]:
    return dict(zip(reply[::2], reply[1::2], strict=True))


def _ours(error: Exception) -> EventLogError:
    if isinstance(error, redis.exceptions.NoPermissionError) or "NOPERM" in str(error):
        return ServerUnfit(f"the user may not do this: {error}; grant it the commands and keys it needs")
    if isinstance(error, redis.exceptions.AuthenticationError):
        return ServerUnfit(
            f"the server refuses the user or password: {error}; write them as redis://USER:PASSWORD@HOST"
        )
    if isinstance(error, redis.exceptions.ConnectionError | redis.exceptions.TimeoutError | OSError):
        return ServerUnavailable(f"the server does not answer: {error}. See whether it runs, and its URL")
    return ServerError(f"the server refused: {error}")
