"""The directory: one document per conversation, what a person needs to find it again. Pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any, ClassVar

import orjson

from eventlog.events import Event
from eventlog.messages import Json
from eventlog.store.views import Found
from projections.projection import Change, Projection, Put, sortable
from projections.views.fields import CUT, MOST_LABELS, agent_index, label_index, labels, milliseconds, name, text

KEY = "conversation"
"""The key of a conversation's only document."""
ACTIVITY = "activity"
"""The index of all conversations, by their last activity."""
MOST_AGENTS = 20
_SHOWN = (
    "title",
    "labels",
    "agents",
    "messages",
    "runs",
    "first_text",
    "last_text",
    "created_ms",
    "active_ms",
)

State = dict[str, Any]


@dataclass(frozen=True, slots=True)
class DirectoryEntry:
    """A conversation as the directory tells it. Times are milliseconds since 1970, by its writers' clocks."""

    conversation: str
    title: str | None
    labels: dict[str, str]
    """The newest value of each; the 50 that were set last."""
    agents: tuple[str, ...]
    """Whose runs were started in it, in order of appearance; at most 20."""
    messages: int
    """How many messages were recorded, in the history or not."""
    runs: int
    first_text: str | None
    """How the first message of the user that has text begins: at most 250 characters."""
    last_text: str | None
    """How the last one begins."""
    created_ms: int
    """0 when its first event does not tell."""
    active_ms: int
    """The latest time of its events."""

    @classmethod
    def of(cls, found: Found) -> DirectoryEntry:
        """The entry that a line of an index holds."""
        fields = orjson.loads(found.document or b"")
        return cls(found.log.conversation, **{**fields, "agents": tuple(fields["agents"])})

    def as_json(self) -> dict[str, Json]:
        """The entry as a JSON object."""
        shown = {field: getattr(self, field) for field in _SHOWN}
        return {"conversation": self.conversation, **shown, "agents": list(self.agents)}


class Directory(Projection[State]):
    """One document per conversation, filed by last activity, in all and under its labels and agents."""

    name: ClassVar[str] = "directory"

    def initial(self) -> State:
        return {
            "title": None,
            "labels": [],  # [label, value], those set last at the end
            "agents": [],
            "messages": 0,
            "runs": 0,
            "first_text": None,
            "last_text": None,
            "created_ms": None,
            "active_ms": 0,
            # The message that the next event may continue: what tells it from others, what its user
            # said in it so far, and whether that is the first text of a user.
            "message": None,
            "said": "",
            "is_first": False,
        }

    def apply(self, state: State, event: Event) -> Sequence[Change]:
        rule = _RULES.get(event.type, _other)
        changed = rule(state, event)
        at = milliseconds(event.at) or 0
        if state["created_ms"] is None:
            state["created_ms"], changed = at, True
        if at > state["active_ms"]:
            state["active_ms"], changed = at, True
        return (_put(state),) if changed else ()


DIRECTORY = Directory()


def _put(state: State) -> Put:
    by = sortable(state["active_ms"])
    under = {ACTIVITY: by}
    for label, value in state["labels"]:
        under[label_index(label, value)] = by
    for agent in state["agents"]:
        under[agent_index(agent)] = by
    return Put(KEY, {field: state[field] for field in _SHOWN} | {"labels": dict(state["labels"])}, under)


def _spoken(state: State, event: Event) -> bool:
    """A message is the events of one message id and role next to each other, results apart from others."""
    data, is_result = event.data, event.type == "function-result"
    role: Json = "tool" if is_result else "assistant"
    if event.type == "message-added":
        role = data.get("role", "")
    message = [_brief(data.get("message_id")), _brief(role), is_result]
    is_new = bool(message != state["message"])
    if is_new:
        state["messages"] += 1
        state["message"], state["said"], state["is_first"] = message, "", False
    said = _said(data.get("parts")) if event.type == "message-added" and role == "user" else ""
    if not said:
        return is_new
    state["said"] = said = (state["said"] + said)[:CUT]
    if state["first_text"] is None or state["is_first"]:
        state["first_text"], state["is_first"] = said, True
    state["last_text"] = said
    return True


def _silent(state: State, event: Event) -> bool:
    """What stands between the events of a message and does not end it."""
    return False


def _other(state: State, event: Event) -> bool:
    state["message"], state["said"], state["is_first"] = None, "", False
    return False


def _run_started(state: State, event: Event) -> bool:
    _other(state, event)
    state["runs"] += 1
    agent = name(event.data.get("agent"))
    if agent is not None and agent not in state["agents"] and len(state["agents"]) < MOST_AGENTS:
        state["agents"].append(agent)
    return True


def _annotated(state: State, event: Event) -> bool:
    _other(state, event)
    if "title" in event.data and (event.data["title"] is None or type(event.data["title"]) is str):
        state["title"] = text(event.data["title"])
    new = labels(event.data.get("labels"))
    kept = [pair for pair in state["labels"] if pair[0] not in new]
    state["labels"] = [*kept, *map(list, new.items())][-MOST_LABELS:]
    return True


def _said(parts: Any) -> str:
    """The beginning of what the text parts say together."""
    if type(parts) is not list:
        return ""
    said = ""
    for part in parts:
        if type(part) is dict and part.get("type") == "text":
            said += text(part.get("content")) or ""
            if len(said) >= CUT:
                break
    return said


def _brief(value: Any) -> Json:
    """Something short that is the same for the same value, and for no other."""
    if type(value) is str and len(value) <= CUT:
        return text(value)
    try:
        document = orjson.dumps(value, option=orjson.OPT_SORT_KEYS)
    except TypeError:  # nested too deep to be JSON
        document = b""
    return [blake2b(document, digest_size=12).hexdigest()]


_RULES: dict[str, Callable[[State, Event], bool]] = {
    "message-added": _spoken,
    "function-call": _spoken,
    "function-result": _spoken,
    "service-call-started": _silent,
    "service-call-completed": _silent,
    "run-started": _run_started,
    "conversation-annotated": _annotated,
}
