"""Events by hand: one after another, each with its time."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from eventlog.events import Event

START = datetime(2026, 12, 1, 23, 59, 58, tzinfo=UTC)
START_MS = 1_796_169_598_000


class Story:
    """The events of one log; each is a second later than the one before unless it shares its operation."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self._operations = 0

    def add(
        self,
        kind: str,
        data: dict[str, Any] | None = None,
        run: str | None = None,
        call: int | None = None,
        **more: Any,
    ) -> int:
        """Append an operation of one event; ``at`` and ``same`` (in the operation before) may be given."""
        same = more.get("same", False)
        self._operations += 0 if same else 1
        at = more.get("at", _text(START + timedelta(seconds=self._operations - 1)))
        version = len(self.events) + 1
        identity = f"op{self._operations}.{version if same else 0}"
        self.events.append(Event(version, version, kind, identity, run, call, at, None, None, 1, data or {}, None))
        return version

    def says(self, text: str, message_id: str | None = None, *, role: str = "user", **more: Any) -> int:
        parts = [{"type": "text", "content": text}]
        identity = message_id or f"m{len(self.events)}"
        return self.add("message-added", {"message_id": identity, "role": role, "parts": parts}, **more)

    def calls(self, call_id: str, run: str | None = None, call: int | None = None) -> int:
        data = {"message_id": f"m{len(self.events)}", "call_id": call_id, "name": f"tool-{call_id}"}
        return self.add("function-call", data, run, call)

    def returns(self, call_id: str, answers: int | None = None, run: str | None = None) -> int:
        data = {"message_id": f"m{len(self.events)}", "call_id": call_id, "output": "x", "answers": answers}
        return self.add("function-result", data, run)

    def starts(self, run: str, mode: str = "per-service-call", **data: Any) -> int:
        return self.add("run-started", {"mode": mode, **data}, run)

    def asks(self, run: str, number: int, *call_ids: str, sends: tuple[int, ...] = (), **completed: Any) -> list[int]:
        """A completed service call that replies with these calls; return their versions."""
        self.add("service-call-started", {"sends": list(sends)}, run, number)
        found = [self.calls(call_id, run, number) for call_id in call_ids]
        self.add("service-call-completed", completed, run, number)
        return found


def ms(second: int) -> int:
    """The time of the operation with this number, counted from 0."""
    return START_MS + second * 1000


def _text(at: datetime) -> str:
    return at.isoformat(timespec="microseconds").replace("+00:00", "Z")
