"""Why a server cannot be used at all: what listens there, if anything does."""

from __future__ import annotations

import asyncio
import re
import ssl
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

import redis.exceptions
from redis.asyncio.connection import parse_url

_PATIENCE = 2.0  # seconds
_ELSEWHERE = "--url redis://HOST:PORT"
_LOGIN_REFUSED = re.compile(r"\b(NOAUTH|WRONGPASS)\b")
_LOGIN = "--url redis://USER:PASSWORD@HOST"


async def why_unreachable(url: str, error: Exception) -> tuple[str, str | None]:
    """What is wrong with a server that answered the first command with ``error``, and the line to change."""
    if isinstance(error, redis.exceptions.BusyLoadingError):
        return f"the server is loading its data ({error}): wait until INFO says loading:0", "redis-cli INFO persistence"
    refusal = _refused_login(error)
    if refusal is not None:
        return f"the server refuses the user or password: {refusal}", _LOGIN
    if isinstance(error, redis.exceptions.NoPermissionError):
        return f"the user may not even PING: {error}", "ACL SETUSER USER +ping"
    if isinstance(error, redis.exceptions.ResponseError):
        return f"the server refuses to answer: {error}", None
    options = parse_url(url)
    where = options.get("path") or f"{options.get('host', 'localhost')}:{options.get('port', 6379)}"
    is_tls = url.startswith("rediss:")
    if is_tls and "CERTIFICATE_VERIFY_FAILED" in str(error):
        return f"the certificate of {where} cannot be verified: {error}", "--url rediss://HOST?ssl_ca_certs=FILE"
    try:
        said = await _say_ping(options, None)
    except (OSError, TimeoutError) as silence:
        return (
            f"nothing listens at {where}: {silence or 'no connection in time'}. Start the server, or name another",
            _ELSEWHERE,
        )
    if said.startswith((b"+", b"-")):
        if is_tls:
            return f"{where} does not speak TLS", url.replace("rediss:", "redis:", 1)
        return f"the server at {where} does not answer in time: {error}", None
    if not is_tls and await _speaks_tls(options):
        return f"{where} speaks TLS only", "--url rediss://HOST"
    what = "an HTTP server" if b"HTTP/" in said or b"<html" in said.lower() else "not a Redis server"
    return f"what listens at {where} is {what}: it does not speak the Redis protocol ({said[:40]!r})", _ELSEWHERE


def _refused_login(error: BaseException) -> BaseException | None:
    """What refused who we are: the client may wrap what was refused while it connected."""
    for one in (error, error.__cause__):
        if isinstance(one, redis.exceptions.AuthenticationError) or _LOGIN_REFUSED.search(str(one)):
            return one
    return None


async def _say_ping(options: Mapping[str, Any], tls: ssl.SSLContext | None) -> bytes:
    """What is answered to PING; nothing when the connection is closed or stays silent. Raises OSError."""
    if options.get("path"):
        connecting = asyncio.open_unix_connection(str(options["path"]))
    else:
        connecting = asyncio.open_connection(options.get("host", "localhost"), options.get("port", 6379), ssl=tls)
    reader, writer = await asyncio.wait_for(connecting, _PATIENCE)
    try:
        writer.write(b"PING\r\n\r\n")
        return await asyncio.wait_for(reader.read(512), _PATIENCE)
    except (OSError, TimeoutError):
        return b""
    finally:
        writer.close()
        with suppress(OSError, TimeoutError):
            await asyncio.wait_for(writer.wait_closed(), _PATIENCE)


async def _speaks_tls(options: Mapping[str, Any]) -> bool:
    """Whether a TLS handshake gets anywhere; who is there is not verified, for nothing is told them."""
    if options.get("path"):
        return False
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    try:
        await _say_ping(options, context)
    except ssl.SSLError as error:
        return "CERTIFICATE" in str(error).upper()  # it asks for a certificate of ours
    except (OSError, TimeoutError):
        return False
    return True
