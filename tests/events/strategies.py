"""Well-formed events of every type, with fields that nobody knows yet, and the messages they are made of."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from eventlog.events import Draft
from eventlog.messages import Message
from tests.events import profiles

profiles.load()

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
ID = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=12)
INTEGER = st.integers(-(1 << 63), (1 << 64) - 1)
LEAF = st.one_of(st.none(), st.booleans(), INTEGER, st.floats(allow_nan=False, allow_infinity=False), TEXT)
JSON = st.recursive(
    LEAF, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3), max_leaves=6
)
OBJECT = st.dictionaries(TEXT, JSON, max_size=3)
VERSION = st.integers(1, (1 << 53) - 1)
UNKNOWN = st.dictionaries(TEXT.map("x-".__add__), JSON, max_size=2)
"""Fields that a later version or another writer may add."""

Strategy = st.SearchStrategy[dict[str, Any]]


def fields(needed: dict[str, Any], optional: dict[str, Any] | None = None) -> Strategy:
    """An object with the needed fields, some of the optional ones, and some that are unknown."""
    known = st.fixed_dictionaries(needed, optional=optional or {})
    return st.builds(lambda known, unknown: {**known, **unknown}, known, UNKNOWN)


def maybe(strategy: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.none() | strategy


_MEDIA = {"modality": TEXT, "mime_type": maybe(TEXT)}
TOOL_CALL = fields({"type": st.just("tool_call"), "id": TEXT, "name": TEXT}, {"arguments": JSON, "extra": OBJECT})
TOOL_RESULT = fields(
    {"type": st.just("tool_call_response"), "id": TEXT, "response": JSON},
    {"is_error": st.booleans(), "synthetic": st.booleans(), "extra": OBJECT},
)
OTHER_PART = fields({"type": TEXT.map("x-".__add__)}, {"id": JSON, "content": JSON})
PLAIN_PART = st.one_of(
    fields({"type": st.just("text"), "content": TEXT}),
    fields({"type": st.just("reasoning"), "content": TEXT}),
    fields({"type": st.just("blob"), "content": TEXT}, _MEDIA),
    fields({"type": st.just("file"), "file_id": TEXT}, _MEDIA),
    fields({"type": st.just("uri"), "uri": TEXT}, _MEDIA),
    OTHER_PART,
)
PART = PLAIN_PART | TOOL_CALL | TOOL_RESULT
PARTS = st.lists(PART, max_size=3)
LABELS = st.dictionaries(TEXT, TEXT, max_size=2)
_SAID = {"author": maybe(TEXT), "extra": maybe(OBJECT)}
_WHOLE = {"message_extra": maybe(OBJECT), "part": maybe(OBJECT)}

DATA: dict[str, Strategy] = {
    "run-started": fields(
        {"mode": st.sampled_from(["per-service-call", "per-run"])},
        {"agent": maybe(TEXT), "parent": maybe(fields({"conversation": TEXT, "run": TEXT})), "labels": LABELS},
    ),
    "run-resumed": fields({"by": TEXT, "fence": TEXT}),
    "message-added": fields({"message_id": TEXT, "role": ID, "parts": st.lists(PLAIN_PART, max_size=3)}, _SAID),
    "function-call": fields(
        {"message_id": TEXT, "call_id": TEXT, "name": TEXT}, {"arguments": JSON, **_SAID, **_WHOLE}
    ),
    "function-result": fields(
        {"message_id": TEXT, "call_id": TEXT, "output": JSON},
        {"answers": maybe(VERSION), "is_error": st.booleans(), "synthetic": st.booleans(), **_SAID, **_WHOLE},
    ),
    "service-call-started": fields(
        {"sends": st.lists(VERSION, max_size=4)},
        {"continues": maybe(OBJECT), "model": maybe(TEXT), "instructions": maybe(TEXT), "tools": maybe(TEXT)},
    ),
    "service-call-completed": fields(
        {}, {"finish_reason": maybe(TEXT), "model": maybe(TEXT), "usage": maybe(OBJECT), "service": maybe(OBJECT)}
    ),
    "service-call-failed": fields(
        {"error": TEXT, "outcome": st.sampled_from(["refused", "unknown"])}, {"partial": PARTS}
    ),
    "approval-requested": fields({"function_call": VERSION}, {"by": maybe(TEXT), "reason": maybe(TEXT)}),
    "approval-resolved": fields(
        {"function_call": VERSION, "decision": st.sampled_from(["approved", "denied"])},
        {"by": maybe(TEXT), "reason": maybe(TEXT)},
    ),
    "run-committed": fields(
        {"outcome": st.sampled_from(["completed", "terminated", "max-iterations"])}, {"usage": maybe(OBJECT)}
    ),
    "run-aborted": fields(
        {"reason": st.sampled_from(["failed", "cancelled", "expired", "superseded", "sealed"])}, {"error": maybe(TEXT)}
    ),
    "history-rewound": fields({"to": st.integers(0, (1 << 53) - 1)}),
    "history-compacted": fields(
        {"through": VERSION, "messages": st.lists(fields({"role": ID, "parts": PARTS}, _SAID), max_size=2)}
    ),
    "conversation-annotated": fields({}, {"title": maybe(TEXT), "labels": LABELS}),
}
UNKNOWN_TYPE = st.from_regex(r"x[A-Za-z0-9._-]{0,20}", fullmatch=True)


def drafts(kind: str) -> st.SearchStrategy[Draft]:
    """Drafts of one type, complete with a run and a service call where it may have them."""
    return st.builds(
        Draft,
        st.just(kind),
        DATA.get(kind, OBJECT),
        run=ID,
        call=VERSION,
        actor=maybe(ID),
        causation=maybe(ID),
        meta=maybe(OBJECT),
    )


ANY_DRAFT = st.sampled_from(sorted(DATA)).flatmap(drafts) | UNKNOWN_TYPE.flatmap(drafts)


@st.composite
def messages(draw: st.DrawFn) -> list[Message]:
    """Messages as an application gives them. Calls are the assistant's, results the tool's."""
    made: list[Message] = []
    for number in range(draw(st.integers(0, 4))):
        role = draw(st.sampled_from(["user", "system", "assistant", "tool", "x-other"]))
        part = {"assistant": PLAIN_PART | TOOL_CALL, "tool": TOOL_RESULT}.get(role, PLAIN_PART)
        parts = draw(st.lists(part, min_size=1 if role == "tool" else 0, max_size=4))
        made.append(Message(role, parts, f"m{number}", draw(maybe(TEXT)), draw(maybe(OBJECT))))
    return made
