"""Runs, service calls and operations that a transcript is taken for."""

from __future__ import annotations

from typing import Any

import pytest

from eventlog import Conversation, EventLog, InvalidEvent, LimitExceeded, Limits, Mode
from eventlog.codec import encode
from eventlog.store.port import Step
from gateway.formats import openai_chat
from gateway.import_plan import Operation, plan
from gateway.importing import record
from projections import history

pytestmark = pytest.mark.anyio

USER = {"role": "user", "content": "hello"}
SAYS = {"role": "assistant", "content": "well"}


def calls(*names: str) -> dict[str, Any]:
    functions = [{"id": name, "type": "function", "function": {"name": "f", "arguments": "{}"}} for name in names]
    return {"role": "assistant", "content": None, "tool_calls": functions}


def result(name: str, content: Any = "done") -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": name, "content": content}


def planned(
    *raw: dict[str, Any], mode: Mode = Mode.PER_SERVICE_CALL, limits: Limits | None = None, conversation: str = "c"
) -> list[Operation]:
    messages = [openai_chat.read_message(message, f"messages[{index}]") for index, message in enumerate(raw)]
    return plan(conversation, messages, form="openai-chat", mode=mode, limits=limits)


async def written(conversation: Conversation) -> list[tuple[str, dict[str, Any]]]:
    return [(event.type, event.data) async for event in conversation.read()]


async def exported(conversation: Conversation) -> list[dict[str, Any]]:
    view = await history.load(conversation)
    return [raw for message in view.messages for raw in openai_chat.write_message(message)]


async def test_an_assistant_message_is_a_completed_call_that_carried_what_stood_unsent(log: EventLog) -> None:
    conversation = log.tenant("t").conversation("c")
    await record(conversation, planned({"role": "system", "content": "s"}, USER, calls("a", "b"), result("b"), SAYS))
    assert [kind for kind, _ in await written(conversation)] == [
        "run-started",
        "message-added",
        "message-added",
        "service-call-started",
        "function-call",
        "function-call",
        "service-call-completed",
        "function-result",
        "service-call-started",
        "message-added",
        "service-call-completed",
        "run-committed",
    ]
    events = await written(conversation)
    assert events[3][1]["sends"] == [2, 3]
    assert events[8][1]["sends"] == [8]
    assert events[7][1]["answers"] == 6


async def test_a_run_begins_at_a_message_behind_a_call_that_is_answered(log: EventLog) -> None:
    conversation = log.tenant("t").conversation("c")
    operations = planned(USER, SAYS, USER, USER, calls("a"), USER, result("a"), SAYS, USER)
    assert await record(conversation, operations)
    assert [len(operation.drafts) for operation in operations] == [6, 12, 3]
    assert [operation.drafts[-1].data["outcome"] for operation in operations] == [
        "completed",
        "completed",
        "terminated",
    ]
    runs = [event.run async for event in conversation.read(types=["run-started"])]
    assert runs == [operation.id for operation in operations]
    assert (await history.load(conversation)).continuation.in_step


async def test_a_result_of_a_former_run_is_carried_by_the_next(log: EventLog) -> None:
    given = [USER, calls("a"), result("a"), USER, SAYS]
    for mode in Mode:
        conversation = log.tenant(mode).conversation("c")
        operations = planned(*given, mode=mode)
        assert len(operations) == 2
        await record(conversation, operations)
        assert await exported(conversation) == given


async def test_ids_that_are_used_again_are_told_apart_by_version(log: EventLog) -> None:
    conversation = log.tenant("t").conversation("c")
    given = [calls("a"), result("a", "1"), calls("a"), calls("a"), result("a", "2"), result("a", "3"), SAYS]
    await record(conversation, planned(*given))
    answers = [data.get("answers") for kind, data in await written(conversation) if kind == "function-result"]
    found = [index + 1 for index, (kind, _) in enumerate(await written(conversation)) if kind == "function-call"]
    assert answers == found
    assert await exported(conversation) == given


async def test_a_result_that_answers_nothing_is_kept_by_its_bare_id(log: EventLog) -> None:
    conversation = log.tenant("t").conversation("c")
    given = [calls("a"), result("b"), result("a"), result("a"), SAYS]
    await record(conversation, planned(*given))
    assert await exported(conversation) == given
    view = await history.load(conversation)
    assert (view.open_calls, len(view.stray_results)) == ((), 2)


@pytest.mark.parametrize("mode", Mode)
async def test_a_run_beyond_the_limits_takes_several_operations(log: EventLog, mode: Mode) -> None:
    given = [USER, *[message for index in range(40) for message in (calls(f"t{index}"), result(f"t{index}"))], SAYS]
    limits = Limits(events=25)
    operations = planned(*given, mode=mode, limits=limits)
    assert [operation.claim.step for operation in operations] == [Step.START, *[Step.GO_ON] * (len(operations) - 1)]
    assert [operation.claim.closes for operation in operations] == [False] * (len(operations) - 1) + [True]
    assert len({operation.claim.run for operation in operations}) == 1
    assert max(len(operation.drafts) for operation in operations) <= 25
    conversation = log.tenant(mode).conversation("c")
    # The first try ends in the middle of the run.
    assert await record(conversation, operations[:3])
    assert len((await conversation.head()).runs) == 1
    assert await record(log.tenant(mode).conversation("c"), operations)
    assert not await record(log.tenant(mode).conversation("c"), operations)
    assert (await conversation.head()).runs == ()
    assert await exported(conversation) == given


async def test_a_run_of_many_bytes_takes_several_operations(log: EventLog) -> None:
    given = [USER, *[message for _ in range(20) for message in (calls("t"), result("t", "x" * 10_000))], SAYS]
    limits = Limits(operation_bytes=50_000)
    operations = planned(*given, limits=limits)
    for operation in operations:
        assert limits.exceeded_by(encode(operation.drafts, operation.id, "").documents) is None
    conversation = log.tenant("t").conversation("c")
    assert await record(conversation, operations)
    assert await exported(conversation) == given


async def test_operations_are_the_same_for_the_same_import_alone() -> None:
    given = [USER, SAYS, USER, SAYS]
    first = planned(*given)
    assert first == planned(*given)
    others = [planned(*given, mode=Mode.PER_RUN), planned(*given, conversation="d")]
    ids = [operation.id for operations in (first, *others) for operation in operations]
    assert len(set(ids)) == len(ids)


async def test_what_cannot_be_recorded_is_refused_before_anything_is() -> None:
    with pytest.raises(LimitExceeded, match=r"events\[3\] has .* bytes; at most 2,000"):
        planned(USER, SAYS, USER, {"role": "assistant", "content": "x" * 3_000}, limits=Limits(event_bytes=2_000))
    deep: Any = "x"
    for _ in range(199):
        deep = [deep]
    with pytest.raises(InvalidEvent, match="nested deeper"):
        planned({"role": "user", "content": "a", "deep": {"er": deep}})
