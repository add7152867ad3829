"""From a fold and its rows to a view. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from eventlog.carry import Results, recorded_results
from eventlog.fold import State
from eventlog.identity import Cursor
from eventlog.messages import Message
from projections.assembly import Lookup
from projections.continuation import Chain, continue_from
from projections.view import DoubtfulCall, OpenCall, View
from projections.window import newest


class Fold(Results, Protocol):
    """A fold of a log: the ledger, or what stands of it."""

    def stray_results(self) -> list[int]:
        """The versions of the results in the view that answer no call in it, in log order."""
        ...


def show(
    fold: Fold,
    chain: Chain,
    cursor: Cursor,
    events: Lookup,
    messages: Sequence[Message],
    outputs_of: Sequence[int | None],
    pairs: Mapping[int, int],
    *,
    last: int | None = None,
    whole: bool = True,
) -> View | None:
    """The view with these messages, or the newest ``last`` of them; ``outputs_of``, ``pairs`` and ``whole`` as there.

    ``events`` must know those of the messages and of the open calls. None: the messages, which are
    not the whole history, do not suffice.
    """
    start, window, kept = 0, None, dict(pairs)
    if last is not None:
        found = newest(messages, last, outputs_of, pairs, whole=whole)
        if found is None:
            return None
        start, window = found
    if start:
        shown = {version for message in messages[start:] for version in message.versions}
        kept = {result: call for result, call in pairs.items() if result in shown and call in shown}
    return View(
        tuple(messages[start:]),
        cursor.version,
        cursor,
        _open_calls(fold, events),
        tuple(fold.stray_results()),
        _in_doubt(fold.state),
        continue_from(fold.state, chain),
        window,
        kept,
    )


def _open_calls(fold: Fold, events: Lookup) -> tuple[OpenCall, ...]:
    state = fold.state
    results = recorded_results(fold) if state.calls.open else {}
    return tuple(
        OpenCall(
            call.version,
            call.call_id,
            events[call.version].data.get("name", ""),
            call.run,
            call.run in state.runs,
            call.version in state.awaiting,
            results[call.version].version if call.version in results else None,
        )
        for call in state.calls.open
    )


def _in_doubt(state: State) -> tuple[DoubtfulCall, ...]:
    calls = [*state.doubtful, *(call for run in state.runs.values() for call in run.calls.values())]
    return tuple(
        DoubtfulCall(call.run, call.call, call.started) for call in sorted(calls, key=lambda call: call.started)
    )
