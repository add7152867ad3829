"""That everything has settled. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from chaos.checker.evidence import Evidence
from chaos.checker.finding import Finding
from chaos.checker.state import State

VIEWS = ("directory", "history", "open_calls", "runs", "usage")


def lag(evidence: Evidence) -> Iterator[Finding]:
    """Every reader stands at its feed's end, with nothing waiting and nothing parked; every view at its logs' ends."""
    state = evidence.state
    for group in _of_use(state):
        for partition, entries in sorted(state.feeds.items()):
            mark = state.marks.get((group, partition))
            end = (entries[-1].seq, entries[-1].stamp) if entries else (0, 0)
            if mark is None:
                start = state.groups[group].get("start") or []
                seq, _, stamp = (start[partition] if start else "0-0").partition("-")
                mark = int(seq), int(stamp)
            where = f"group {group}, partition {partition}"
            if mark != end:
                yield Finding("lag", where, f"stands at {mark}, the feed ends with {end}")
            for what, there in (("waits", state.waiting), ("is parked", state.parked)):
                if there.get((group, partition)):
                    yield Finding("lag", where, f"{sorted(there[group, partition])} {what}")
    for name in VIEWS:
        generation = state.live.get(name)
        if generation is None:
            yield Finding("lag", f"view {name}", "is not there")
            continue
        for number, how in sorted(state.generations[name].items()):
            if how != "ready":
                yield Finding("lag", f"view {name}", f"generation {number} is {how}")
        kept = state.views[name, generation].kept
        for path in evidence.sound():
            log = state.logs[path]
            last = (log[-1].version, log[-1].stamp) if log else (0, 0)
            if kept.get(path, (0, 0)) != last:
                yield Finding("lag", f"view {name} of {path}", f"stands at {kept.get(path)}, the log ends with {last}")


def _of_use(state: State) -> list[str]:
    """The groups but for those of generations that are dropped: who was killed over that left them behind."""
    found = []
    for group in sorted(state.groups):
        projection, _, generation = group.removeprefix("%40").rpartition(".")
        if not group.startswith("%40") or int(generation) in state.generations.get(projection, {}):
            found.append(group)
    return found
