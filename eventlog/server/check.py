"""Looking at a server before it is used: is it one that keeps what it is given?

Reads INFO and CONFIG GET through the client it is given, and changes nothing. Managed services often forbid
CONFIG; what cannot be learnt then becomes a warning, not an error.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import redis.exceptions
from redis.asyncio import Redis
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff

from eventlog.durability import Durability
from eventlog.errors import InvalidInput, ServerUnavailable, ServerUnfit
from eventlog.server.binary import OLDEST
from eventlog.server.cluster import primaries

_CUTS_WHOLE = (9, 1, 2)
"""The oldest Valkey that was seen to cut a torn transaction off whole."""


@dataclass(frozen=True)
class ServerReport:
    """What a server said about itself. None: it would not say."""

    name: str
    """``redis`` or ``valkey``."""
    version: str
    role: str
    appendonly: bool | None
    appendfsync: str | None
    """``everysec``, ``always`` or ``no``."""
    may_keep_half: bool | None
    """Whether it may start with half an operation at the end of its append-only file, and do that half later."""
    maxmemory_policy: str | None
    replicas: int
    """How many replicas are connected."""
    clustered: bool
    """Whether it is a node of a cluster."""
    warnings: tuple[str, ...]
    """For people to read: what is not as it should be, and what could not be learnt."""


async def inspect(url: str) -> ServerReport:
    """Report on the server at ``url``; raises what ``check`` does, and ``InvalidInput`` for what is no URL.

    Of a node of a cluster, the report is on all primaries together: what the weakest of them keeps. Raises
    ``ServerUnfit``, too, when some slots are served by nobody.
    """
    try:
        client: Redis = Redis.from_url(url, retry=Retry(NoBackoff(), 0))
    except ValueError as error:
        raise InvalidInput(f"this is not the URL of a server: {error}") from error
    try:
        report = await check(client, nodes=True)
        if not report.clustered:
            return report
        return await _inspect_nodes(await primaries(client, url))
    finally:
        await client.aclose()


async def _inspect_nodes(urls: list[str]) -> ServerReport:
    """One report on all. One that is away is a warning: its place may be about to be taken by a replica."""
    reports, away = [], []
    for url in urls:
        try:
            reports.append(await _inspect_node(url))
        except ServerUnavailable as error:
            away.append(f"a node of the cluster is away, and what it keeps is not known: {error}")
    if not reports:
        raise ServerUnavailable(f"no primary of the cluster answers: {away[0]}")
    together = _together(reports)
    return replace(together, warnings=(*together.warnings, *away))


async def _inspect_node(url: str) -> ServerReport:
    client: Redis = Redis.from_url(url, retry=Retry(NoBackoff(), 0))
    try:
        return await check(client, nodes=True)
    finally:
        await client.aclose()


def _together(reports: list[ServerReport]) -> ServerReport:
    """One report on all: of each thing the worst that one of them says."""
    by_fsync = {None: 0, "no": 1, "everysec": 2, "always": 3}
    appendonly = [report.appendonly for report in reports]
    policies = [report.maxmemory_policy for report in reports]
    return replace(
        reports[0],
        appendonly=False if False in appendonly else None if None in appendonly else True,
        may_keep_half=any(report.may_keep_half for report in reports),
        appendfsync=min((report.appendfsync for report in reports), key=lambda fsync: by_fsync.get(fsync, 0)),
        maxmemory_policy=next((policy for policy in policies if policy != "noeviction"), policies[0]),
        replicas=min(report.replicas for report in reports),
        warnings=tuple(dict.fromkeys(warning for report in reports for warning in report.warnings)),
    )


async def check(client: Redis, *, nodes: bool = False) -> ServerReport:
    """Report on the one server behind ``client``.

    Raises ``ServerUnfit`` for a server that may evict keys, a replica, one older than 7.0, a node of a
    cluster, one that refuses the user or the password, and one that has or allows no INFO;
    ``ServerUnavailable`` when it does not answer. With ``nodes``, those of a cluster are let in, its
    replicas too.
    """
    try:
        info: dict[str, Any] = await client.info()
        settings, forbidden = await _settings(client)
    except redis.exceptions.NoPermissionError as error:
        raise ServerUnfit(
            f"the server lets this user not see INFO ({error}): allow it (ACL SETUSER … +info)"
        ) from error
    except (redis.exceptions.ConnectionError, redis.exceptions.TimeoutError, OSError) as error:
        if _is_login(error):
            raise ServerUnfit(
                f"the server refuses the user or password ({error}): give them in the URL (redis://USER:PASSWORD@HOST)"
            ) from error
        raise ServerUnavailable(f"the server does not answer: {error}. See whether it runs, and its URL") from error
    except redis.exceptions.ResponseError as error:  # unknown command: renamed or disabled
        raise ServerUnfit(
            f"the server does not answer INFO ({error}): let it have INFO (no rename-command INFO in its configuration)"
        ) from error
    except redis.exceptions.InvalidResponse as error:
        raise ServerUnfit(
            f"what listens there does not speak the Redis protocol ({error}): give the URL of a server"
        ) from error
    name = "valkey" if info.get("server_name") == "valkey" or "valkey_version" in info else "redis"
    version = str(info.get("valkey_version") or info.get("redis_version", ""))
    policy = settings.get("maxmemory-policy") or info.get("maxmemory_policy")
    limit = int(settings.get("maxmemory") or info.get("maxmemory") or 0)  # bytes; 0 is no limit
    role = str(info.get("role", ""))
    clustered = bool(int(info.get("cluster_enabled", 0)))
    _refuse_unfit(name, version, policy, limit)
    if clustered and not nodes:
        raise ServerUnfit("the server is a node of a cluster (cluster_enabled:1): give the URL of a single server")
    if role in ("slave", "replica") and not clustered:  # in a cluster, commands find their way to the primary
        raise ServerUnfit(f"the server is a replica (role:{role}), and takes no writes: give the URL of its primary")

    appendonly = bool(int(info["aof_enabled"])) if "aof_enabled" in info else None
    appendfsync = settings.get("appendfsync")
    warnings = []
    if forbidden:
        warnings.append(
            f"CONFIG is forbidden ({forbidden}), so it is not known when writes reach the disk (appendfsync)"
        )
    if policy is None:
        warnings.append("the server does not tell its maxmemory-policy: make sure that it is noeviction")
    elif policy != "noeviction":
        warnings.append(f"maxmemory-policy is {policy}: set it to noeviction, before somebody sets a maxmemory")
    if appendonly is False:
        warnings.append("appendonly is no: a crash of the server loses events. Set it to yes")
    elif appendfsync == "no":
        warnings.append("appendfsync is no: a power cut loses up to some 30 s of events. Set it to everysec or always")
    replicas = int(info.get("connected_slaves", 0))
    half = _may_keep_half(name, version, settings.get("aof-load-truncated"))
    return ServerReport(
        name, version, role, appendonly, appendfsync, half, policy, replicas, clustered, tuple(warnings)
    )


def check_durability(report: ServerReport, wanted: Durability) -> None:
    """Raise ``ServerUnfit`` when the server is known not to keep what ``wanted`` promises."""
    wish = f"durability={wanted}"
    if wanted.replicas:
        if report.replicas < wanted.replicas:
            raise ServerUnfit(
                f"{wish} needs {wanted.replicas} connected replicas, the server has {report.replicas}: "
                "connect replicas (REPLICAOF), or open with another durability"
            )
        return
    if wanted.name == "memory":
        return
    if report.appendonly is False:
        raise ServerUnfit(
            f"{wish} needs an append-only file, and the server keeps none: CONFIG SET appendonly yes, "
            "or open with durability='memory' when losing events is fine"
        )
    fitting = ("always",) if wanted.name == "always" else ("everysec", "always")
    if report.appendfsync is not None and report.appendfsync not in fitting:
        raise ServerUnfit(
            f"{wish} needs appendfsync {wanted.name}, and the server has {report.appendfsync}: "
            f"CONFIG SET appendfsync {wanted.name}, or open with another durability"
        )


def _refuse_unfit(name: str, version: str, policy: str | None, limit: int) -> None:
    if _numbers(version) < OLDEST:
        wanted = ".".join(map(str, OLDEST))
        raise ServerUnfit(f"the server is {name} {version or '(no version)'}: {wanted} or newer is needed")
    if limit > 0 and policy is not None and policy != "noeviction":
        raise ServerUnfit(
            f"the server may evict keys (maxmemory {limit} bytes, maxmemory-policy {policy}), and events "
            "with them: CONFIG SET maxmemory-policy noeviction"
        )


def _may_keep_half(name: str, version: str, load_truncated: str | None) -> bool | None:
    """A server that cuts a torn end off by itself cuts a command, and leaves the transaction around it open."""
    if name == "valkey" and _numbers(version, 3) >= _CUTS_WHOLE:
        return False
    return None if load_truncated is None else load_truncated == "yes"


def _is_login(error: BaseException) -> bool:
    """Whether the server refused who we are. The client wraps what was refused while it connected."""
    return any(isinstance(one, redis.exceptions.AuthenticationError) for one in (error, error.__cause__))


async def _settings(client: Redis) -> tuple[dict[str, str], str | None]:
    """The settings that matter, and why they could not be read."""
    try:
        answer = await client.config_get("maxmemory", "maxmemory-policy", "appendfsync", "aof-load-truncated")
    except redis.exceptions.ConnectionError:
        raise
    except redis.exceptions.ResponseError as error:  # NOPERM, or unknown command: renamed or disabled
        return {}, str(error)
    return {_text(name): _text(value) for name, value in answer.items()}, None


def _text(value: object) -> str:
    return value.decode() if isinstance(value, bytes) else str(value)


def _numbers(version: str, count: int = 2) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split(".")[:count] if part.isdigit())
