"""The command ``verify``: what it says, where, and how it ends."""

from __future__ import annotations

import json

import anyio
import pytest

from tests.doctor.conftest import command
from tests.verify.conftest import CHAT, Namespace

pytestmark = pytest.mark.anyio


async def verify(namespace: Namespace, *arguments: str) -> tuple[int, str, str]:
    """Its exit code, and what it writes on stdout and stderr."""
    result = await anyio.to_thread.run_sync(
        command, "verify", "--url", namespace.url, "--namespace", namespace.keys.namespace, *arguments
    )
    return result.exit_code, result.stdout, result.stderr


async def test_a_sound_namespace_ends_with_0_and_says_what_was_read(namespace: Namespace) -> None:
    assert await verify(namespace) == (0, "", "eventlog: no fault in 2 conversations, 74 events\n")


async def test_a_conversation_alone_is_verified(namespace: Namespace) -> None:
    await namespace.client.hset(namespace.chat.head, "open", 5)  # type: ignore[misc]
    code, out, said = await verify(namespace, "--tenant", "blue", "-c", "other one/ü")
    assert (code, out) == (0, "")
    assert said.startswith("eventlog: no fault in 1 conversation, ")
    code, out, _ = await verify(namespace, "--tenant", "blue", "-c", "chat")
    assert code == 1
    assert out == (
        "conversation 'chat' of 'blue', field 'open' of the head: it is b'5'; it should be 1, the number of its runs\n"
    )


async def test_a_conversation_that_is_not_there_is_said(namespace: Namespace) -> None:
    said = "eventlog: conversation 'misspelt' of 'default' has no events: there is nothing to verify\n"
    assert await verify(namespace, "-c", "misspelt") == (0, "", said)


async def test_the_first_fault_is_named_or_all(namespace: Namespace) -> None:
    await namespace.client.hset(namespace.chat.head, mapping={"open": 5, "odd": 1})  # type: ignore[misc]
    code, out, said = await verify(namespace)
    assert (code, out.count("\n")) == (1, 1)
    assert "so far" in said
    code, out, said = await verify(namespace, "--all")
    assert (code, out.count("\n")) == (1, 2)
    assert said == "eventlog: faulty in 2 conversations, 74 events\n"
    code, out, _ = await verify(namespace, "--all", "--json")
    assert {json.loads(line)["where"] for line in out.splitlines()} == {
        "field 'open' of the head",
        "field 'odd' of the head",
    }


async def test_nothing_is_changed(namespace: Namespace) -> None:
    await namespace.client.hset(namespace.chat.head, "open", 5)  # type: ignore[misc]
    before = [await namespace.client.dump(key) for key in namespace.keys.of_log(CHAT)]
    assert (await verify(namespace, "--all"))[0] == 1
    assert [await namespace.client.dump(key) for key in namespace.keys.of_log(CHAT)] == before
