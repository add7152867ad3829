"""The service calls of which the log cannot tell whether the service kept them. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from eventlog.events import Event
from projections.view import DoubtfulCall


def in_doubt(events: Iterable[Event]) -> tuple[DoubtfulCall, ...]:
    """The calls started but neither completed nor refused, in log order.

    Those before the start of the last completed call that continued nothing are left out: that
    call sent the whole history, so what the service made of earlier ones no longer matters.
    """
    doubtful: dict[tuple[str, int], DoubtfulCall] = {}
    fresh: set[tuple[str, int]] = set()
    settled = 0
    for event in events:
        if event.run is None or event.call is None:
            continue
        key = (event.run, event.call)
        if event.type == "service-call-started":
            doubtful[key] = DoubtfulCall(event.run, event.call, event.version)
            if event.data.get("continues") is None:
                fresh.add(key)
        elif event.type == "service-call-completed":
            done = doubtful.pop(key, None)
            if done is not None and key in fresh:
                settled = max(settled, done.started)
        elif event.type == "service-call-failed" and event.data.get("outcome") == "refused":
            doubtful.pop(key, None)
    return tuple(call for call in doubtful.values() if call.started > settled)
