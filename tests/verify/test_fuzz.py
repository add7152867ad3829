"""Whatever bytes are stored: readers raise errors of ours alone, others' conversations stay, and verify says where."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from typing import Any

import pytest

from eventlog import Conversation, EventLog, EventLogError, LogId
from eventlog.codec import decode
from eventlog.ledger import Ledger
from eventlog.progress import progress
from projections import history
from projections.explain import fates
from tests.verify import plant
from tests.verify.conftest import CHAT, OTHER, Namespace

pytestmark = pytest.mark.anyio

SEEDS = range(6)
ODD: list[Any] = [None, 0, -1, 1 << 62, 1.5, "", "x", "\0", [], [1], {}, {"a": 1}, True]


async def read(namespace: Namespace, log_id: LogId) -> tuple[list[str], list[str]]:
    """What each reader makes of a conversation; an error of ours by its name, and any other with its text."""
    results, crashes = [], []

    async def attempt(name: str, reading: Callable[[Conversation], Any]) -> None:
        try:
            async with EventLog.open(namespace.url, namespace=namespace.keys.namespace, deadline=2) as log:
                results.append(repr(await reading(log.tenant(log_id.tenant).conversation(log_id.conversation))))
        except EventLogError as error:
            results.append(type(error).__name__)
        except Exception as error:
            crashes.append(f"{name}: {type(error).__name__}: {error}")

    async def events(chat: Conversation) -> list[Any]:
        return [event async for event in chat.read()]

    async def backwards(chat: Conversation) -> list[Any]:
        return [event async for event in chat.read(reverse=True)]

    async def listed(chat: Conversation) -> list[str]:
        async with EventLog.open(namespace.url, namespace=namespace.keys.namespace, deadline=2) as log:
            return [name async for name in log.tenant(chat.tenant).conversations()]

    for name, reading in (
        ("read", events),
        ("read back", backwards),
        ("head", Conversation.head),
        ("load", history.load),
        ("load untrimmed", lambda chat: history.load(chat, view="untrimmed")),
        ("load everything", lambda chat: history.load(chat, view="everything")),
        ("load last", lambda chat: history.load(chat, last=3)),
        ("explain", history.explain),
        ("progress", lambda chat: chat.progress("the-open-run")),
        ("conversations", listed),
    ):
        await attempt(name, reading)
    return results, crashes


async def check(namespace: Namespace, before: list[str], *, shared: bool = False) -> None:
    """After a harm to the chat. ``shared``: the key is the partition's or the namespace's."""
    _, crashes = await read(namespace, CHAT)
    after, others = await read(namespace, OTHER)
    assert crashes + others == []
    if not shared:
        assert after == before
    assert await namespace.texts() != []


def noise(random_: random.Random) -> bytes:
    return random_.choice(
        [random_.randbytes(random_.randrange(1, 40)), b"", b"\xff\xfe", b"9" * 5000, b"-1", b"|||||||"]
    )


def differs(value: bytes, random_: random.Random) -> bytes:
    while (changed := noise(random_)) == value:
        pass
    return changed


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("family", ["head", "ops", "meta"])
async def test_bytes_in_the_fields_of_a_hash(namespace: Namespace, family: str, seed: int) -> None:
    random_ = random.Random(f"{family}{seed}")
    before, _ = await read(namespace, OTHER)
    key = namespace.keys.meta if family == "meta" else getattr(namespace.chat, family)
    fields = await namespace.client.hgetall(key)  # type: ignore[misc]
    name = random_.choice(sorted(fields))
    await namespace.client.hset(key, name, differs(fields[name], random_))  # type: ignore[misc]
    await check(namespace, before, shared=family == "meta")


@pytest.mark.parametrize("name", ["last", "base", "updated", "state", "open", "rotated", "run:the-open-run"])
@pytest.mark.parametrize("value", [b"\xff\xfe", b"", b"1", b"x-y", b"9" * 5000, b"1-2-3", b"a|b|c|d|e|f|g|h"])
async def test_bytes_in_each_field_of_the_head(namespace: Namespace, name: str, value: bytes) -> None:
    before, _ = await read(namespace, OTHER)
    await namespace.client.hset(namespace.chat.head, name, value)  # type: ignore[misc]
    _, crashes = await read(namespace, CHAT)
    after, _ = await read(namespace, OTHER)
    assert crashes == []
    assert after == before
    if (name, value) not in (("updated", b"1"), ("open", b"1")):
        assert await namespace.texts(CHAT) != []


@pytest.mark.parametrize("seed", SEEDS)
async def test_bytes_in_an_event(namespace: Namespace, seed: int) -> None:
    random_ = random.Random(seed)
    before, _ = await read(namespace, OTHER)
    await plant.write(namespace, random_.randrange(1, 38), noise(random_) or b"x")
    await check(namespace, before)


async def test_an_event_of_another_shape(namespace: Namespace) -> None:
    """Each field of each event in turn holds what it should not; decoded and read as the readers do."""
    stored = [(entry_id, fields[b"e"]) for entry_id, fields in await plant.entries(namespace)]
    async with EventLog.open("memory://") as log:
        chat = log.tenant(CHAT.tenant).conversation(CHAT.conversation)
    crashes = set()
    for version, (_, document) in enumerate(stored, 1):
        whole = json.loads(document)
        for place, name in [("", name) for name in whole] + [("data", name) for name in whole["data"]]:
            for odd in ODD:
                changed = json.loads(document)
                (changed["data"] if place else changed)[name] = odd
                documents = [other for _, other in stored]
                documents[version - 1] = json.dumps(changed).encode()
                what = f"{whole['type']}.{place}{'.' if place else ''}{name} = {odd!r}"
                crashes |= {f"{what}: {crash}" for crash in read_documents(documents, chat)}
    assert crashes == set(), "\n".join(sorted(crashes))


def read_documents(documents: list[bytes], chat: Conversation) -> list[str]:
    """What is raised beside errors of ours."""
    try:
        events = [decode(version, 1, document) for version, document in enumerate(documents, 1)]
    except EventLogError:
        return []
    crashes = []
    for name, reading in (
        ("service", lambda: history.build(events, chat)),
        ("untrimmed, last 3", lambda: history.build(events, chat, view="untrimmed", last=3)),
        ("everything", lambda: history.build(events, chat, view="everything")),
        ("explain", lambda: fates(events, Ledger.of(events))),
        ("progress", lambda: progress(events, "the-open-run")),
    ):
        try:
            reading()
        except EventLogError:
            continue
        except Exception as error:
            crashes.append(f"{name}: {type(error).__name__}: {error}")
    return crashes


@pytest.mark.parametrize("seed", SEEDS)
async def test_bytes_in_the_set_of_conversations(namespace: Namespace, seed: int) -> None:
    random_ = random.Random(seed)
    before, _ = await read(namespace, OTHER)
    await namespace.client.zadd(namespace.chat.conversations, {differs(b"", random_): seed})
    await check(namespace, before, shared=True)


@pytest.mark.parametrize("seed", SEEDS)
async def test_bytes_in_the_feed(namespace: Namespace, seed: int) -> None:
    random_ = random.Random(seed)
    before, _ = await read(namespace, OTHER)
    entries = await plant.entries(namespace, namespace.chat.feed)
    place, field = random_.randrange(len(entries)), random_.choice([b"c", b"f", b"n", b"k", b"s"])
    entries[place][1][field] = differs(entries[place][1][field], random_)
    await plant.rewrite(namespace, lambda _: entries, namespace.chat.feed)
    await check(namespace, before)


@pytest.mark.parametrize("family", ["log", "head", "ops", "old_ops", "feed", "conversations", "meta"])
async def test_a_key_of_another_type(namespace: Namespace, family: str) -> None:
    before, _ = await read(namespace, OTHER)
    key = namespace.keys.meta if family == "meta" else getattr(namespace.chat, family)
    await namespace.client.set(key, b"\0\xff")
    await check(namespace, before, shared=family in ("conversations", "meta"))
