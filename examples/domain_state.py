"""Conversation state is not application state.

A tool of a Microsoft Agent Framework agent reads an order from the application's own database. The
application captured whose order it may be; the model has no argument to name another tenant with.
The record has a version of its own, and changes between two requests of one session. A fresh
session begins without a history, and the record is still there.

python examples/domain_state.py        (needs agent-framework-core)
"""

import logging
import sqlite3
import tempfile
from collections.abc import Callable, Sequence
from typing import Any

import anyio
from agent_framework import (
    Agent,
    BaseChatClient,
    ChatMiddlewareLayer,
    ChatResponse,
    Content,
    FunctionInvocationLayer,
    Message,
    tool,
)

from eventlog import EventLog
from gateway.adapters.agent_framework import record
from projections import history


class Orders:
    """The application's records: each of one tenant, with a version that counts its changes."""

    def __init__(self) -> None:
        self._db = sqlite3.connect(":memory:", check_same_thread=False)
        self._db.execute("CREATE TABLE orders (tenant, id, version, status, PRIMARY KEY (tenant, id))")

    def put(self, tenant: str, order: str, status: str) -> int:
        """Write the order; its new version."""
        row = self._db.execute(
            "INSERT INTO orders VALUES (?, ?, 1, ?) ON CONFLICT (tenant, id) "
            "DO UPDATE SET version = version + 1, status = excluded.status RETURNING version",
            (tenant, order, status),
        ).fetchone()
        self._db.commit()
        return int(row[0])

    def get(self, tenant: str, order: str) -> tuple[int, str]:
        """The order's version and status. Raises ``PermissionError`` for what is not this tenant's."""
        row = self._db.execute(
            "SELECT version, status FROM orders WHERE tenant = ? AND id = ?", (tenant, order)
        ).fetchone()
        if row is None:
            raise PermissionError(f"tenant {tenant!r} has no order {order!r}")
        return int(row[0]), str(row[1])

    def close(self) -> None:
        self._db.close()


def order_tool(orders: Orders, tenant: str, read: list[int]) -> Callable[..., Any]:
    """The tool for one tenant's conversations. ``read`` notes which versions it saw."""

    @tool
    def order_status(order: str) -> str:
        """The status of an order."""
        version, status = orders.get(tenant, order)  # the tenant is the application's, whatever the model asks for
        read.append(version)
        return f"{status} (version {version})"

    return order_status


class Model(FunctionInvocationLayer[Any], ChatMiddlewareLayer[Any], BaseChatClient[Any]):
    """Stands for a model service: looks the order up, then tells what it was told."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.received: list[int] = []
        """How many messages each request had."""

    async def _inner_get_response(
        self, *, messages: Sequence[Message], stream: bool, **options: Any
    ) -> ChatResponse[Any]:
        self.received.append(len(messages))
        last = messages[-1]
        if last.role == "tool":
            return ChatResponse(messages=[Message("assistant", [f"Your order is {last.contents[0].result}."])])
        order = last.text.split()[-1].rstrip("?")
        call = Content.from_function_call(f"call_{len(messages)}", "order_status", arguments={"order": order})
        return ChatResponse(messages=[Message("assistant", [call])])


async def main() -> None:
    logging.getLogger("agent_framework").setLevel(logging.CRITICAL)  # it would log the refusal that is shown here
    orders, read, model = Orders(), [], Model()
    orders.put("blue", "A-1", "packed")
    orders.put("red", "R-9", "on its way")
    with tempfile.TemporaryDirectory() as data:
        async with EventLog.open(data=data) as log:
            tenant = log.tenant("blue")
            agent = record(Agent(model, name="orders", tools=[order_tool(orders, tenant.id, read)]), tenant)

            session = agent.create_session(session_id="monday")
            print((await agent.run("Where is my order A-1?", session=session)).text)
            orders.put("blue", "A-1", "shipped")  # the application changes its record; no conversation knows
            print((await agent.run("And now, where is A-1?", session=session)).text)

            fresh = agent.create_session(session_id="tuesday")
            before = await history.load(tenant.conversation("tuesday"))
            print(f"history of the fresh session: {len(before.messages)} messages")
            print((await agent.run("Where is my order A-1?", session=fresh)).text)
            print(f"messages received by the model: {', '.join(map(str, model.received))}")
            print(f"versions read by the tool: {', '.join(map(str, read))}")

            foreign = agent.create_session(session_id="wednesday")
            answer = await agent.run("Where is order R-9?", session=foreign)
            refused = [content for message in answer.messages for content in message.contents if content.exception]
            print(f"an order of another tenant: {refused[0].exception}")
            print(f"the record itself: {orders.get('blue', 'A-1')}")
    orders.close()


if __name__ == "__main__":
    anyio.run(main)
