"""Runs one golden scenario through the recorder, and puts a view into the scenario's terms."""

from __future__ import annotations

from typing import Any

from eventlog import Conversation, FunctionCall, Message, Run, assistant, tool_call, user
from projections import history
from projections.history import ViewName


async def play(conversation: Conversation, steps: list[dict[str, Any]]) -> None:
    """Record every step."""
    await Player(conversation).play(steps)


class Player:
    def __init__(self, conversation: Conversation) -> None:
        self._conversation = conversation
        self._runs: dict[str, Run] = {}
        self._refs: dict[str, int] = {}
        self._calls: dict[str, FunctionCall] = {}
        self._labels: dict[str, int] = {}

    async def play(self, steps: list[dict[str, Any]]) -> None:
        for step in steps:
            await getattr(self, "do_" + step["do"].replace("-", "_"))(step)
            if "label" in step:
                self._labels[step["label"]] = (await self._conversation.head()).last.version

    async def do_start(self, step: dict[str, Any]) -> None:
        run = self._conversation.run(step["mode"], exclusive=False, carry="none")
        await run.__aenter__()
        self._runs[step["run"]] = run

    async def do_message(self, step: dict[str, Any]) -> None:
        message = Message(step["role"], [{"type": "text", "content": step["text"]}], step.get("message"))
        where = self._runs[step["run"]] if "run" in step else self._conversation
        appended = await where.add(message)
        assert appended is not None
        self._remember(step, appended.first)

    async def do_result(self, step: dict[str, Any]) -> None:
        call = self._calls[step["answers"]] if "answers" in step else step["call"]
        where = self._runs[step["run"]] if "run" in step else self._conversation
        appended = await where.add_result(call, step["output"], message_id=step.get("message"))
        assert appended is not None
        self._remember(step, appended.first)

    async def do_call(self, step: dict[str, Any]) -> None:
        sends = [self._refs[ref] for ref in step["accepts"]] if "accepts" in step else None
        async with self._runs[step["run"]].service_call(sends=sends) as call:
            reply = [assistant(*map(_to_part, step["reply"]))] if step["reply"] else []
            await call.complete(*reply)
        refs = [part["ref"] for part in step["reply"] if "call" in part and "ref" in part]
        for ref, function_call in zip(refs, call.function_calls, strict=False):
            self._calls[ref] = function_call

    async def do_call_fails(self, step: dict[str, Any]) -> None:
        async with self._runs[step["run"]].service_call() as call:
            await call.fail(step["error"], partial=[_to_part(part) for part in step.get("partial", ())])

    async def do_commit(self, step: dict[str, Any]) -> None:
        await self._runs[step["run"]].commit()

    async def do_abort(self, step: dict[str, Any]) -> None:
        await self._runs[step["run"]].abort()

    async def do_rewind(self, step: dict[str, Any]) -> None:
        last = (await self._conversation.head()).last
        await self._conversation.rewind(self._labels[step["to"]], expected=last)

    async def do_compact(self, step: dict[str, Any]) -> None:
        last = (await self._conversation.head()).last
        messages = [Message(message["role"], user(message["text"]).parts) for message in step["messages"]]
        await self._conversation.compact(self._labels[step["through"]], messages, expected=last)

    async def do_label(self, step: dict[str, Any]) -> None:
        """A place for a label."""

    def _remember(self, step: dict[str, Any], version: int) -> None:
        if "ref" in step:
            self._refs[step["ref"]] = version


async def read(conversation: Conversation, view: ViewName) -> dict[str, Any]:
    """The view in the scenario's terms."""
    loaded = await history.load(conversation, view=view)
    return {
        "history": [
            {"role": message.role, "parts": [_from_part(part) for part in message.parts]} for message in loaded.messages
        ],
        "dropped": [
            {"what": f"{fate.kind} {fate.what}", "why": fate.fate}
            for fate in await history.explain(conversation, view=view)
            if fate.fate != "in-view"
        ],
        "open_calls": [call.call_id for call in loaded.open_calls],
    }


def _to_part(part: dict[str, Any]) -> dict[str, Any]:
    if "call" in part:
        return tool_call(part["call"], part["name"], part["arguments"])
    kind = "text" if "text" in part else "reasoning"
    return {"type": kind, "content": part[kind]}


def _from_part(part: dict[str, Any]) -> dict[str, Any]:
    if part["type"] == "tool_call":
        return {"call": part["id"], "name": part["name"], "arguments": part["arguments"]}
    if part["type"] == "tool_call_response":
        return {"result": part["id"], "output": part["response"]}
    return {part["type"]: part["content"]}
