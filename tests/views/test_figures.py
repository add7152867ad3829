"""The built-in views of 100 real conversations tell what is counted straight from their file."""

from __future__ import annotations

import gzip
import json
from collections import Counter
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from eventlog import Conversation, EventLog, Mode
from eventlog.store.memory import MemoryStore
from gateway.formats import openai_chat
from gateway.import_plan import plan
from gateway.importing import record
from projections.projection import Projection
from projections.views.directory import Directory
from projections.views.open_calls import OpenCalls
from projections.views.runs import Runs
from projections.views.usage import SumName, Usage
from tests.views.content import Content, in_pieces, whole

DATA = Path(__file__).parents[3] / "shared" / "data" / "airline-trajectories.jsonl.gz"
MODES = [Mode.PER_SERVICE_CALL, Mode.PER_RUN]

pytestmark = pytest.mark.anyio


@cache
def lines() -> dict[str, bytes]:
    with gzip.open(DATA) as file:
        return {json.loads(line)["id"]: line.rstrip(b"\n") for line in file}


@cache
def raw() -> dict[str, list[dict[str, Any]]]:
    return {identity: json.loads(line)["messages"] for identity, line in lines().items()}


async def contents(mode: Mode, projection: Projection[Any]) -> dict[str, Content]:
    tenant = EventLog(MemoryStore()).tenant("t")
    found = {}
    for line in lines().values():
        transcript = openai_chat.read_line(line)
        conversation: Conversation = tenant.conversation(transcript.id)
        await record(conversation, plan(transcript.id, transcript.messages, form=openai_chat.NAME, mode=mode))
        events = [event async for page in conversation.pages() for event in page]
        found[transcript.id] = whole(projection, events)
        assert in_pieces(projection, events, range(0, len(events), 7)) == found[transcript.id]
    return found


def turns(messages: list[dict[str, Any]]) -> int:
    """A turn ends with an assistant message that calls no tool, where anything follows."""
    ends = [message["role"] == "assistant" and not message.get("tool_calls") for message in messages]
    return 1 + sum(end and following["role"] != "assistant" for end, following in zip(ends, messages[1:], strict=False))


def said(messages: list[dict[str, Any]]) -> list[str]:
    return [message["content"] for message in messages if message["role"] == "user" and message["content"]]


def test_the_file_holds_what_its_readme_tells() -> None:
    everything = raw().values()
    assert (len(everything), sum(map(len, everything))) == (100, 2658)
    assert Counter(messages[-1]["role"] for messages in everything) == {"tool": 24, "user": 76}


@pytest.mark.parametrize("mode", MODES)
async def test_the_directory_agrees_with_the_file(mode: Mode) -> None:
    found = await contents(mode, Directory())
    assert found.keys() == raw().keys()
    for identity, messages in raw().items():
        (document,) = found[identity].documents("activity")
        assert document["messages"] == len(messages)
        assert document["runs"] == turns(messages)
        assert document["first_text"] == said(messages)[0][:250]
        assert document["last_text"] == said(messages)[-1][:250]
        assert (document["title"], document["labels"], document["agents"]) == (None, {}, [])


@pytest.mark.parametrize("mode", MODES)
async def test_the_open_calls_are_the_24_whose_result_no_model_call_received(mode: Mode) -> None:
    found = await contents(mode, OpenCalls())
    for identity, messages in raw().items():
        trailing = [messages[-1]["tool_call_id"]] if messages[-1]["role"] == "tool" else []
        documents = found[identity].documents("finished-run")
        assert [document["call_id"] for document in documents] == trailing
        assert found[identity].documents() == documents
        assert all(document["result"] is not None and not document["in_open_run"] for document in documents)
        assert found[identity].documents("since") == []
    assert sum(len(content.entries) for content in found.values()) == 24


@pytest.mark.parametrize("mode", MODES)
async def test_the_runs_agree_with_the_file(mode: Mode) -> None:
    found = await contents(mode, Runs())
    for identity, messages in raw().items():
        documents = found[identity].documents("started")
        assert len(documents) == turns(messages)
        assert found[identity].documents("state:committed") == documents
        assert sum(run["completed"] for run in documents) == sum(one["role"] == "assistant" for one in messages)
        outcomes = Counter(run["outcome"] for run in documents)
        assert outcomes == Counter({"completed": turns(messages) - 1, "terminated": 1})
        assert {(run["mode"], run["failed"], run["labels"]["import"]) for run in documents} == {
            (mode.value, 0, "openai-chat")
        }


async def test_the_usage_counts_the_assistant_messages_as_service_calls() -> None:
    found = await contents(Mode.PER_RUN, Usage())
    for identity, messages in raw().items():
        sums = {SumName.unpack(packed)[1:]: amount for packed, amount in found[identity].sums.items()}
        assert sums == {(None, None, "service_calls"): sum(one["role"] == "assistant" for one in messages)}
