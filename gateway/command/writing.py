"""The commands that write to a conversation: append, rewind, compact."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from eventlog.codec import find_fault
from eventlog.conversation import Conversation
from eventlog.errors import EventLogError, InvalidInput
from eventlog.events import Draft
from eventlog.identity import Cursor
from eventlog.messages import Json, Message, text
from eventlog.store.port import Appended
from gateway.command.options import (
    AsJson,
    ConversationId,
    Data,
    Durability,
    Expecting,
    JsonFile,
    MessagesFile,
    Namespace,
    Tenant,
    Url,
)
from gateway.command.output import write, write_json
from gateway.command.place import Place, fail
from gateway.formats.json_text import parse

_FIELDS = frozenset(Draft._fields)
_MESSAGE = frozenset({"role", "parts", "author", "extra"})


def append(
    conversation: ConversationId,
    file: JsonFile = None,
    url: Url = None,
    data: Data = None,
    durability: Durability = "everysec",
    namespace: Namespace = "eventlog",
    tenant: Tenant = "default",
    message: Annotated[str | None, typer.Option(help="Append a message with this text instead.")] = None,
    role: Annotated[str, typer.Option(help="The role of the message.")] = "user",
    operation_id: Annotated[str | None, typer.Option(help="Makes a repetition safe: it adds nothing.")] = None,
    expected: Annotated[str, typer.Option(metavar="any|none|exists|CURSOR", help="Where the log must be.")] = "any",
    as_json: AsJson = False,
) -> None:
    """Append events outside any run, all or none.

    An event is a JSON object: type, data, and if need be actor, causation and meta.
    """
    if message is not None and file is not None:
        raise typer.BadParameter("give a FILE or --message, not both")
    _check_texts([] if message is None else [message])
    drafts = [] if message is not None else _drafts(_read(file, "give FILE or --message"))

    async def write_events(handle: Conversation) -> Appended:
        if message is not None:
            added = await handle.add(Message(role, [text(message)]), operation_id=operation_id, expected=expected)
            assert added is not None, "a message that was never read is new"
            return added
        return await handle.append(*drafts, operation_id=operation_id, expected=expected)

    _show(Place(url, data, namespace, tenant, durability).on(conversation, write_events), as_json=as_json)


def rewind(
    conversation: ConversationId,
    to: Annotated[int, typer.Option(min=0, metavar="VERSION", help="0 empties the history.")],
    url: Url = None,
    data: Data = None,
    durability: Durability = "everysec",
    namespace: Namespace = "eventlog",
    tenant: Tenant = "default",
    force: Annotated[bool, typer.Option("--force", help="Abort open runs in the same operation.")] = False,
    expected: Expecting = None,
    as_json: AsJson = False,
) -> None:
    """Make the history what it was at a version. Nothing is deleted."""

    async def write_event(handle: Conversation) -> Appended:
        return await handle.rewind(to, expected=await _cursor(handle, expected), force=force)

    _show(Place(url, data, namespace, tenant, durability).on(conversation, write_event), as_json=as_json)


def compact(
    conversation: ConversationId,
    through: Annotated[int, typer.Option(min=1, metavar="VERSION", help="What entered up to here gives way.")],
    url: Url = None,
    data: Data = None,
    durability: Durability = "everysec",
    namespace: Namespace = "eventlog",
    tenant: Tenant = "default",
    message: Annotated[list[str] | None, typer.Option(help="The text of a message to put in; may be repeated.")] = None,
    role: Annotated[str, typer.Option(help="The role of these messages.")] = "user",
    file: MessagesFile = None,
    expected: Expecting = None,
    as_json: AsJson = False,
) -> None:
    """Put messages in place of the history up to a version.

    They take the place of what entered it up to there. Nothing is deleted.

    A message of a file is a JSON object: role and parts, or content where it is one text.
    """
    if bool(message) == (file is not None):
        raise typer.BadParameter("give the messages with either --message or --file")
    _check_texts(message or [])
    messages = [Message(role, [text(words)]) for words in message or ()]
    if file is not None:
        messages = _messages(_read(file, "give a JSON list of messages, or --message"))

    async def write_event(handle: Conversation) -> Appended:
        return await handle.compact(through, messages, expected=await _cursor(handle, expected))

    _show(Place(url, data, namespace, tenant, durability).on(conversation, write_event), as_json=as_json)


async def _cursor(handle: Conversation, expected: str | None) -> Cursor | str:
    return (await handle.head()).last if expected is None else expected


def _check_texts(texts: list[str]) -> None:
    if "" in texts:
        raise typer.BadParameter("--message: the text is empty")


def _read(file: Path | None, else_give: str) -> Json:
    """The JSON of a file or of stdin. Read before anything is opened, so that an interruption ends it at once."""
    path = None if file is None or str(file) == "-" else file
    try:
        content = typer.get_binary_stream("stdin").read() if path is None else path.read_bytes()
        if not content.strip():
            fail(f"nothing {'on stdin' if path is None else f'in {path}'}: {else_give}")
        return parse(content)
    except (EventLogError, OSError) as error:
        fail(f"{path or 'stdin'}: {error}")


def _drafts(document: Json) -> list[Draft]:
    events = document if isinstance(document, list) else [document]
    try:
        return [_draft(event, f"events[{index}]") for index, event in enumerate(events)]
    except EventLogError as error:
        fail(str(error))


def _draft(event: Json, path: str) -> Draft:
    fields = _fields(event, path, _FIELDS)
    for name in ("type", "data"):
        if name not in fields:
            raise InvalidInput(f"{path}.{name}: is missing")
    return Draft(**fields)


def _messages(document: Json) -> list[Message]:
    try:
        if not isinstance(document, list):
            raise InvalidInput("messages: must be a list")
        return [_message(message, f"messages[{index}]") for index, message in enumerate(document)]
    except EventLogError as error:
        fail(str(error))


def _message(message: Json, path: str) -> Message:
    fields = _fields(message, path, _MESSAGE | {"content"})
    if isinstance(fields.get("content"), str) and "parts" not in fields:
        fields["parts"] = [text(fields.pop("content"))]
    if "content" in fields:
        raise InvalidInput(f"{path}.content: must be a text, and stand without parts")
    if not isinstance(fields.get("parts"), list) or not all(isinstance(part, dict) for part in fields["parts"]):
        raise InvalidInput(f"{path}.parts: must be a list of objects")
    if not isinstance(fields.get("role"), str):
        raise InvalidInput(f"{path}.role: must be a text")
    return Message(**fields)


def _fields(value: Json, path: str, known: frozenset[str]) -> dict[str, Any]:
    """The fields of an object, of which none may be unknown."""
    if not isinstance(value, dict):
        raise InvalidInput(f"{path}: must be an object")
    find_fault(value, path)
    for name in value:
        if name not in known:
            raise InvalidInput(f"{path}.{name}: is not known; there are {', '.join(sorted(known))}")
    return dict(value)


def _show(outcome: Appended, *, as_json: bool) -> None:
    versions = outcome.versions
    if as_json:
        write_json(
            {
                "cursor": str(outcome.cursor),
                "versions": list(versions),
                "operation_id": outcome.operation_id,
                "duplicate": outcome.duplicate,
            }
        )
        return
    write(f"cursor {outcome.cursor}")
    write(f"versions {versions[0]}" if len(versions) == 1 else f"versions {versions[0]}-{versions[-1]}")
    write(f"operation {outcome.operation_id}")
    write(f"duplicate {'yes' if outcome.duplicate else 'no'}")
