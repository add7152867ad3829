"""The SDK's own server and client over HTTP: a stream that is cut is resumed, in its session alone."""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket
from collections.abc import AsyncIterator
from typing import Any

import httpx2
import mcp_types as types
import pytest
import uvicorn
from mcp.client.client import Client
from mcp.server.lowlevel.server import Server
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from starlette.applications import Starlette
from starlette.routing import Mount

from eventlog import EventLog
from gateway.adapters.mcp import EventLogSessionManager

pytestmark = pytest.mark.anyio


async def tools(_: Any, __: Any) -> types.ListToolsResult:
    return types.ListToolsResult(tools=[types.Tool(name="count", input_schema={"type": "object"})])


async def count(context: Any, params: types.CallToolRequestParams) -> types.CallToolResult:
    """Says a number before and after it has cut the stream it speaks on."""
    who = (params.arguments or {}).get("who", "")
    for number in range(3):
        if number == 1:
            await context.close_sse_stream()
        await context.session.report_progress(number, message=f"{who}{number}")
    return types.CallToolResult(content=[types.TextContent(type="text", text=f"{who}done")])


@pytest.fixture
async def url(log: EventLog) -> AsyncIterator[str]:
    """A server whose events are in the log."""
    server: Server[Any] = Server("counter", on_list_tools=tools, on_call_tool=count)
    manager = EventLogSessionManager(server, log.tenant("t"), retry_interval=10)
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        port = listening.getsockname()[1]
        async with manager.run():
            app = Starlette(routes=[Mount("/mcp", app=manager.handle_request)])
            web = uvicorn.Server(uvicorn.Config(app, log_level="error", lifespan="off", timeout_graceful_shutdown=1))
            web.install_signal_handlers = lambda: None  # type: ignore[attr-defined]
            serving = asyncio.create_task(web.serve([listening]))
            while not web.started:
                await asyncio.sleep(0.01)
            yield f"http://127.0.0.1:{port}/mcp/"
            web.should_exit = True
            await serving


async def test_the_client_of_the_sdk_misses_nothing_when_its_stream_is_cut(url: str) -> None:
    said: list[str] = []

    async def heard(progress: float, total: float | None, message: str | None) -> None:
        said.append(f"{message}")

    async with Client(url, mode="legacy") as client:
        result = await client.call_tool("count", {"who": "a"}, progress_callback=heard)
    assert result.content[0].text == "adone"  # type: ignore[union-attr]
    assert said == ["a0", "a1", "a2"]


HEADERS = {"accept": "application/json, text/event-stream", "content-type": "application/json"}


async def begun(http: httpx2.AsyncClient, url: str) -> dict[str, str]:
    """The headers of a session that was begun."""
    params = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "c", "version": "1"}}
    request = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params}
    reply = await http.post(url, headers=HEADERS, content=json.dumps(request))
    headers = {**HEADERS, "mcp-session-id": reply.headers["mcp-session-id"], "mcp-protocol-version": "2025-11-25"}
    done = {"jsonrpc": "2.0", "method": "notifications/initialized"}
    await http.post(url, headers=headers, content=json.dumps(done))
    return headers


async def ids_of_a_call(http: httpx2.AsyncClient, url: str, headers: dict[str, str], who: str) -> list[str]:
    """Call the tool, until the stream is cut; return the ids of what came."""
    params = {"name": "count", "arguments": {"who": who}, "_meta": {"progressToken": who}}
    call = {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": params}
    reply = await http.post(url, headers=headers, content=json.dumps(call))
    return [line.removeprefix("id: ") for line in reply.text.splitlines() if line.startswith("id: ")]


async def replayed(http: httpx2.AsyncClient, url: str, headers: dict[str, str], last: str) -> str:
    """What comes to a client that says it saw this event last."""
    text = ""
    with contextlib.suppress(TimeoutError, httpx2.RemoteProtocolError):
        async with asyncio.timeout(2), http.stream("GET", url, headers={**headers, "last-event-id": last}) as reply:
            async for line in reply.aiter_lines():
                text += line + "\n"
                if "done" in line:
                    break
    return text


async def test_an_event_id_of_another_session_replays_nothing(url: str, caplog: pytest.LogCaptureFixture) -> None:
    async with httpx2.AsyncClient() as http:
        mine, theirs = await begun(http, url), await begun(http, url)
        my_ids = await ids_of_a_call(http, url, mine, "mine")
        their_ids = await ids_of_a_call(http, url, theirs, "theirs")
        assert my_ids
        assert their_ids
        found = await replayed(http, url, mine, my_ids[0])
        assert ("minedone" in found, "theirs" in found) == (True, False)
        with caplog.at_level("ERROR"):
            stolen = await replayed(http, url, mine, their_ids[0])
        assert "theirs" not in stolen
        assert "CursorInvalid" in caplog.text


async def test_a_store_that_sessions_would_share_is_refused(log: EventLog) -> None:
    server: Server[Any] = Server("counter")
    with pytest.raises(TypeError, match="each session gets a store of its own"):
        EventLogSessionManager(server, log.tenant("t"), event_store=object())
    manager = EventLogSessionManager(server, log.tenant("t"))
    assert isinstance(manager, StreamableHTTPSessionManager)
    assert manager.event_store is not manager.event_store
