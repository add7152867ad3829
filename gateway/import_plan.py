"""From a transcript to the operations that record it. Pure.

A transcript tells what was said and not when: each assistant message is taken for one completed
service call that carried what stood unsent before it, and each turn for a run. The log is new, so
every version is known beforehand, and the same transcript always gives the same operations.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from typing import NamedTuple

import orjson

from eventlog import recording
from eventlog.codec import encode
from eventlog.errors import LimitExceeded
from eventlog.events import Draft, Mode
from eventlog.messages import Message
from eventlog.store.port import Limits, RunClaim, Step

LEASE_MS = 60_000
"""How long a run that takes several operations is held from each of them on."""
_ENVELOPE = 1_000
"""More bytes than an event has besides its data."""
_NO_TIME = "1970-01-01T00:00:00.000000Z"
"""As long as any time; what is encoded with it is only measured."""


class Operation(NamedTuple):
    """One append: all of a run where it fits, else its start, its middle or its end."""

    id: str
    drafts: list[Draft]
    claim: RunClaim


class _Call(NamedTuple):
    """A function call without a result."""

    run: str
    version: int
    call_id: str


@dataclass
class _Turn:
    """One run in the making. ``groups`` are its events, each group in one append."""

    run: str
    groups: list[list[Draft]]
    calls: int = 0
    messages: int = 0
    waiting: set[int] = field(default_factory=set)
    """The versions of the newest service call's function calls that have no result."""
    unsent: bool = False
    """It has inputs behind its newest service call."""


def plan(
    conversation: str, messages: Sequence[Message], *, form: str, mode: Mode, limits: Limits | None = None
) -> list[Operation]:
    """The operations that record these messages in a new conversation, in order.

    ``form`` names where they came from. The first is to be appended with the expectation *none*,
    each other with the exact cursor of the one before. Raises ``InvalidEvent`` or
    ``LimitExceeded`` for what cannot be recorded, before anything is.
    """
    limits = limits or Limits()
    planner = _Planner(conversation, form, mode)
    for message in messages:
        planner.add(message)
    operations = [operation for turn in planner.finish() for operation in _operations(turn, mode, limits)]
    for operation in operations:
        too_large = limits.exceeded_by(encode(operation.drafts, operation.id, _NO_TIME).documents)
        if too_large:
            raise LimitExceeded(f"run {operation.claim.run!r} of conversation {conversation!r}: {too_large}")
    return operations


class _Planner:
    """Lays the messages out as runs, and knows the version of each event."""

    def __init__(self, conversation: str, form: str, mode: Mode) -> None:
        self._conversation = conversation
        self._form = form
        self._mode = mode
        self._version = 0
        self._unsent: list[int] = []
        self._open: list[_Call] = []
        self._turns: list[_Turn] = []
        self._begin()

    def add(self, message: Message) -> None:
        turn = self._turns[-1]
        if message.role not in ("assistant", "tool") and turn.calls and not turn.waiting:
            turn = self._begin()
        named = replace(message, message_id=f"{turn.run}.m{turn.messages}")
        turn.messages += 1
        if message.role == "assistant":
            self._call(turn, named)
        else:
            self._input(turn, named)

    def finish(self) -> list[_Turn]:
        self._end()
        return self._turns

    def _begin(self) -> _Turn:
        if self._turns:
            self._end()
        run = _id(self._form, self._mode, self._conversation, len(self._turns) + 1)
        turn = _Turn(run, [])
        self._turns.append(turn)
        self._record(
            turn, [Draft("run-started", {"mode": self._mode.value, "labels": {"import": self._form}}, run=run)]
        )
        return turn

    def _end(self) -> None:
        turn = self._turns[-1]
        outcome = "terminated" if turn.unsent else "completed"
        self._record(turn, [Draft("run-committed", {"outcome": outcome}, run=turn.run)])

    def _input(self, turn: _Turn, message: Message) -> None:
        drafts = recording.inputs([message], turn.run, turn.run)
        for draft in drafts:
            call = self._answered(turn.run, draft.data["call_id"]) if draft.type == "function-result" else None
            if call is not None:
                draft.data["answers"] = call.version
                self._open.remove(call)
                turn.waiting.discard(call.version)
        self._unsent += self._record(turn, drafts)
        turn.unsent = True

    def _call(self, turn: _Turn, reply: Message) -> None:
        turn.calls += 1
        run, number = turn.run, turn.calls
        started = {"sends": self._unsent, "continues": None}
        self._record(turn, [Draft("service-call-started", started, run=run, call=number)])
        outputs = recording.outputs([reply], run, run, number)
        versions = self._record(turn, [*outputs, Draft("service-call-completed", {}, run=run, call=number)])
        calls = [
            _Call(run, version, draft.data["call_id"])
            for version, draft in zip(versions, outputs, strict=False)
            if draft.type == "function-call"
        ]
        self._open += calls
        turn.waiting = {call.version for call in calls}
        self._unsent, turn.unsent = [], False

    def _answered(self, run: str, call_id: str) -> _Call | None:
        """The call that a result of this id answers: the run's oldest open one, else the newest of all."""
        same = [call for call in self._open if call.call_id == call_id]
        own = [call for call in same if call.run == run]
        return own[0] if own else (same[-1] if same else None)

    def _record(self, turn: _Turn, drafts: list[Draft]) -> range:
        """Put these events into one append of the run; return their versions."""
        first = self._version + 1
        self._version += len(drafts)
        turn.groups.append(drafts)
        return range(first, self._version + 1)


def _id(*what: object) -> str:
    """An id that is the same for the same import, and no other's."""
    return "import-" + blake2b(json.dumps(what).encode(), digest_size=16).hexdigest()


def _operations(turn: _Turn, mode: Mode, limits: Limits) -> Iterator[Operation]:
    chunks = list(_chunks(turn.groups, limits))
    fence = blake2b(turn.run.encode(), digest_size=8).hexdigest()
    for index, drafts in enumerate(chunks):
        claim = RunClaim(
            turn.run,
            Step.GO_ON if index else Step.START,
            fence,
            LEASE_MS,
            mode=mode.value,
            holder="import",
            last_call=max((draft.call or 0 for draft in drafts if draft.type == "service-call-started"), default=0),
            closes=index == len(chunks) - 1,
            answers=tuple(draft.data["answers"] for draft in drafts if "answers" in draft.data),
        )
        yield Operation(f"{turn.run}-{index}" if index else turn.run, drafts, claim)


def _chunks(groups: Sequence[list[Draft]], limits: Limits) -> Iterator[list[Draft]]:
    """The groups in order, as many to an append as the limits allow; one that is too large stays alone."""
    chunk: list[Draft] = []
    size = 0
    for group in groups:
        weight = sum(len(orjson.dumps(draft.data)) + _ENVELOPE for draft in group)
        if chunk and (len(chunk) + len(group) > limits.events or size + weight > limits.operation_bytes):
            yield chunk
            chunk, size = [], 0
        chunk.extend(group)
        size += weight
    yield chunk
