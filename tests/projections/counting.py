"""A projection with all there is (rows, entries moved between indexes, sums, a refold), and what it should give."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from eventlog.events import Event
from projections.projection import REFOLD, Add, Change, Drop, Projection, Push, Put, sortable

Counts = dict[str, Any]


class Counting(Projection[Counts]):
    """Rows: [version, rank] of each message that no rewind took away. Entries: calls; runs, aborted ones not."""

    name = "counting"

    def initial(self) -> Counts:
        return {"messages": 0, "runs": {}}

    def apply(self, state: Counts, event: Event) -> Iterable[Change]:
        if event.type == "history-rewound":
            return REFOLD
        return list(_changes(state, event))

    def refold(self, events: Sequence[Event]) -> tuple[Counts, Iterable[Change]]:
        state, changes, rows = self.initial(), list[Change](), list[int]()
        for event in events:
            if event.type == "history-rewound":
                rows = [version for version in rows if version <= event.data["to"]]
                changes += [Add("events", 1), Add(event.type, 1)]
                continue
            for change in _changes(state, event):
                if isinstance(change, Push):
                    rows.append(event.version)
                else:
                    changes.append(change)
        state["messages"] = len(rows)
        return state, [*changes, *(Push([version, rank]) for rank, version in enumerate(rows, 1))]


def _changes(state: Counts, event: Event) -> Iterator[Change]:
    yield Add("events", 1)
    yield Add(event.type, 1)
    run, at = event.run or "", sortable(event.version)
    if event.type == "message-added":
        state["messages"] += 1
        yield Push([event.version, state["messages"]])
    elif event.type == "function-call":
        yield Put(f"call {event.version}", event.data["call_id"], {"calls": event.data["call_id"]})
    elif event.type == "run-started":
        state["runs"][run] = event.version
        yield Put(f"run {run}", {"since": event.version}, {"runs": at, "open": at})
        yield Add("open", 1)
    elif event.type == "run-committed":
        since = state["runs"].pop(run)
        yield Put(f"run {run}", {"since": since, "until": event.version}, {"runs": sortable(since), "done": at})
        yield Add("open", -1)
    elif event.type == "run-aborted":
        del state["runs"][run]
        yield Drop(f"run {run}")
        yield Add("open", -1)


class Wanted(NamedTuple):
    """What the projection should keep of a log."""

    rows: list[list[int]]
    entries: dict[str, tuple[Any, dict[str, str]]]
    sums: dict[str, int]


def wanted(events: Sequence[Event]) -> Wanted:
    """From the whole log at once, by looking, not by folding."""
    rewinds = [(event.data["to"], event.version) for event in events if event.type == "history-rewound"]
    said = [event.version for event in events if event.type == "message-added"]
    left = [one for one in said if not any(to < one < rewound for to, rewound in rewinds)]
    ends = {event.run: event for event in events if event.type in ("run-committed", "run-aborted")}
    entries: dict[str, tuple[Any, dict[str, str]]] = {}
    for event in events:
        at = sortable(event.version)
        if event.type == "function-call":
            entries[f"call {event.version}"] = event.data["call_id"], {"calls": event.data["call_id"]}
        elif event.type == "run-started" and event.run not in ends:
            entries[f"run {event.run}"] = {"since": event.version}, {"runs": at, "open": at}
        elif event.type == "run-started" and ends[event.run].type == "run-committed":
            until = ends[event.run].version
            document = {"since": event.version, "until": until}
            entries[f"run {event.run}"] = document, {"runs": at, "done": sortable(until)}
    kinds = Counter(event.type for event in events)
    sums = {**kinds, "events": len(events), "open": kinds["run-started"] - len(ends)}
    rows = [[version, rank] for rank, version in enumerate(left, 1)]
    return Wanted(rows, entries, {name: amount for name, amount in sums.items() if amount})


class Failing(Counting):
    """The same, which cannot apply the events that ``fails`` names."""

    def __init__(self, fails: Callable[[Event], bool]) -> None:
        self.fails = fails

    def apply(self, state: Counts, event: Event) -> Iterable[Change]:
        if self.fails(event):
            raise ValueError(f"no such thing as {event.type}")
        return super().apply(state, event)


COUNTING = Counting()
