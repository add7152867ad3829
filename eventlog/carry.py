"""Which recorded results a run's first service call carries, so that the request it makes is valid. Pure.

A loop that was ended early leaves calls in the view whose results were recorded and never sent. A
service refuses a history with an open call; so the next run sends those results first.
"""

from __future__ import annotations

from typing import Protocol

from eventlog.fold import Calls, Item, State


class Results(Protocol):
    """A fold that knows which results are recorded and not in the view."""

    @property
    def state(self) -> State:
        """What is open."""
        ...

    def unentered_results(self) -> list[Item]:
        """The results that are recorded and not in the view, in log order."""
        ...


def carried(fold: Results, run: str) -> list[int]:
    """The versions of the results to carry, in the order of the calls they answer.

    A call that the run itself recorded a result for is left out: the run sends that one.
    """
    return [result.version for result in recorded_results(fold, run).values() if result.run != run]


def recorded_results(fold: Results, run: str = "") -> dict[int, Item]:
    """The recorded result of each call open in the view that has one: version of the call -> its result.

    In the order of the calls. Of several for one call: one that the run ``run`` itself recorded makes
    the others unnecessary; else the first real one, else the first synthetic one.
    """
    calls = Calls(list(fold.state.calls.open))
    results = sorted(fold.unentered_results(), key=lambda item: (item.run != run, item.synthetic, item.version))
    chosen: dict[int, Item] = {}
    for result in results:
        call = calls.closed_by(result)
        if call is not None and call.version < result.version:
            calls.open.remove(call)
            chosen[call.version] = result
    return {call.version: chosen[call.version] for call in fold.state.calls.open if call.version in chosen}
