"""What docs/adapters.md shows is run, all of it."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from agent_framework import Agent
from agents import Agent as SdkAgent
from agents import Runner, set_tracing_disabled
from agents.testing import ScriptedModel, assistant_message
from mcp.server.lowlevel.server import Server
from starlette.applications import Starlette

from eventlog import EventLog, Tenant
from gateway.adapters.agent_framework import record
from gateway.adapters.openai_agents import EventLogSession
from tests.adapters.agent_framework.play import Stage
from tests.adapters.agent_framework.scenarios import OSLO, tools
from tests.adapters.agent_framework.service import Service, call, text
from tests.adapters.agent_framework.shown import events, view

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "adapters.md").read_text()
EXAMPLES = re.findall(r"^```python\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)
SDK_MINUTE, SDK_RUN, MCP, MINUTE, OWN_STACK, APPROVALS, FAILURES = EXAMPLES
"""Each of them has its test."""


def scope_of(code: str) -> dict[str, Any]:
    scope: dict[str, Any] = {}
    exec(code, scope)  # as an import would run it
    return scope


@pytest.fixture
async def tenant() -> Any:
    async with EventLog.open("memory://") as log:
        yield log.tenant("blue")


@pytest.mark.parametrize(
    ("code", "shown"),
    [(SDK_MINUTE, "You said: Good morning\n4\n"), (MINUTE, "message 3: What did I say?\n")],
    ids=["openai-agents", "agent-framework"],
)
@pytest.mark.anyio
async def test_the_first_minute_prints_what_it_says(
    server: str, code: str, shown: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert code.endswith('if __name__ == "__main__":\n    asyncio.run(main())\n')
    await scope_of(code.replace('"blue"', repr(uuid4().hex)))["main"](server)
    assert capsys.readouterr().out == shown


@pytest.mark.anyio
async def test_the_recorded_run_of_the_sdk_is_in_the_log(tenant: Tenant) -> None:
    set_tracing_disabled(True)
    code = f"async def go(agent, session, Runner):\n{textwrap.indent(SDK_RUN, '    ')}"
    session = EventLogSession("s", tenant=tenant)
    agent = SdkAgent(name="support", model=ScriptedModel([[assistant_message("Good morning.")]]))
    await scope_of(code)["go"](agent, session, Runner)
    assert await view(tenant.conversation("s")) == ["user: Hello", "assistant: Good morning."]


@pytest.mark.anyio
async def test_the_mcp_application_is_built(log: EventLog) -> None:
    assert isinstance(scope_of(MCP)["application"](Server("x"), log), Starlette)


@pytest.mark.anyio
async def test_a_stack_of_ones_own_is_recorded_exactly(tenant: Tenant) -> None:
    agent = scope_of(OWN_STACK)["recorded"](lambda **options: Service([[text("hello")]], **options), tenant)
    await agent.run("hi", session=agent.create_session(session_id="s"))
    assert (await events(tenant.conversation("s")))[:3] == ["run-started per-run", "user: hi", "sends [2]"]


@pytest.mark.anyio
@pytest.mark.parametrize("approved", [True, False])
async def test_an_approval_waits_and_is_decided_on_by_another_process(tenant: Tenant, approved: bool) -> None:
    page = scope_of(APPROVALS)
    service = Service([[call("c1", "book", OSLO)], [text("done")]], strict=False)
    stage = Stage()
    agent = record(Agent(service, name="a", tools=tools(stage)), tenant)
    kept = json.loads(json.dumps(await page["ask"](agent, "book!", "s")))
    assert await page["waiting"](tenant, "s") == ["book"]
    assert (await page["decide"](agent, kept, approved)).text == "done"
    assert await page["waiting"](tenant, "s") == []
    assert stage.ran == (["book Oslo"] if approved else [])


@pytest.mark.anyio
async def test_a_log_that_cannot_be_written_stops_the_run_with_its_cause(tenant: Tenant) -> None:
    page = scope_of(FAILURES)
    chat = tenant.conversation("s")
    service = Service([[text("hello")]])

    class Deletes(Service):
        async def _reply(self, *arguments: Any) -> Any:
            await chat.delete(force=True)
            return await super()._reply(*arguments)

    agent = record(Agent(Deletes([[text("hello")]]), name="a"), tenant)
    told = await page["run"](agent, "hi", agent.create_session(session_id="s"))
    assert re.match(r"stopped: .*deleted", told)
    going_on = page["that_goes_on"](Agent(service, name="b"), tenant)
    assert await page["run"](going_on, "hi", going_on.create_session(session_id="other")) == "hello"


def test_the_page_has_every_heading_that_an_adapter_needs() -> None:
    chapter = PAGE.partition("## Microsoft Agent Framework")[2].partition("## Writing an adapter")[0]
    assert re.findall(r"^### (.*)$", chapter, re.MULTILINE) == [
        "First minute",
        "Modes",
        "Conversation ids",
        "Approvals",
        "Sub-agents and handoffs",
        "When the log cannot be written",
        "What is not recorded",
    ]


def test_no_framework_is_imported_unless_it_is_asked_for() -> None:
    code = (
        "import sys, eventlog, projections, gateway.adapters, gateway.command\n"
        "there = {name.partition('.')[0] for name in sys.modules}\n"
        "print(sorted(there & {'agents', 'openai', 'mcp', 'agent_framework'}))"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
