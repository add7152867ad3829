"""The logs, heads and feeds by themselves, and with one another. Pure."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from hashlib import blake2b
from itertools import groupby

from chaos.checker.evidence import Evidence
from chaos.checker.finding import Finding
from chaos.checker.state import Entry, Named


def keys(evidence: Evidence) -> Iterator[Finding]:
    """Every key can be read, and lies in the partition that its conversation hashes to."""
    state = evidence.state
    for key, fault in state.faults:
        yield Finding("keys", key, fault)
    for path, partition in sorted(state.places.items()):
        wanted = int.from_bytes(blake2b(path.encode(), digest_size=8).digest(), "big") % state.partitions
        if partition != wanted:
            yield Finding("keys", path, f"lies in partition {partition}, and belongs to {wanted}")


def versions(evidence: Evidence) -> Iterator[Finding]:
    """Versions count 1, 2, 3 …, and the head names the last one."""
    for path, entries in sorted(evidence.state.logs.items()):
        found = [entry.version for entry in entries]
        if found != list(range(1, len(found) + 1)):
            evidence.broken.add(path)
            gap = next((at for at, version in enumerate(found, 1) if at != version), len(found))
            yield Finding("versions", path, f"version {gap} is missing: there is {found[gap - 1 : gap + 2]}")
            continue
        head = evidence.state.heads.get(path, {}).get("last")
        last = f"{entries[-1].version}-{entries[-1].stamp}" if entries else None
        if head != last:
            yield Finding("versions", path, f"the head says {head}, the log ends with {last}")
    for path in sorted(set(evidence.state.heads) - set(evidence.state.logs)):
        yield Finding("versions", path, "there is a head and no log")


def operations(evidence: Evidence) -> Iterator[Finding]:
    """An operation's events are all there or none, next to each other, in order, by one transmission, and once."""
    sent = evidence.sent()
    for path in evidence.sound():
        seen: set[str] = set()
        for operation, group in _operations(evidence, path):
            events = list(group)
            wanted = {line["n"] for line in sent.get(operation, ())}
            told = _whole(events, wanted, twice=operation in seen)
            seen.add(operation)
            if told:
                evidence.broken.add(path)
                yield Finding("operations", f"{path} {operation} at {events[0].version}", told)


def _whole(events: list[Entry], wanted: set[int], *, twice: bool) -> str:
    if twice:
        return "the operation is there a second time"
    if [event.place for event in events] != list(range(len(events))):
        return f"its events stand as {[event.place for event in events]}"
    if len({event.stamp for event in events}) > 1:
        return "its events were written by several transmissions"
    if wanted and wanted != {len(events)}:
        return f"{len(events)} events are there, {sorted(wanted)} were sent"
    return ""


def runs(evidence: Evidence) -> Iterator[Finding]:
    """The head knows exactly the runs that the log leaves open, and nothing follows a run's end."""
    for path in evidence.sound():
        opened: dict[str, int] = {}
        ended: set[str] = set()
        for entry in evidence.state.logs[path]:
            run, kind = entry.document.get("run"), entry.document["type"]
            if run is None:
                continue
            if run in ended or (kind == "run-started") == (run in opened):
                yield Finding("runs", f"{path} {entry.version}", f"{kind} of run {run}, which is not open there")
            opened.setdefault(run, entry.version)
            if kind in ("run-committed", "run-aborted"):
                ended.add(run)
        head = evidence.state.heads.get(path, {})
        known = {name.removeprefix("run:") for name in head if name.startswith("run:")}
        if known != set(opened) - ended:
            yield Finding("runs", path, f"the head says {sorted(known)}, the log {sorted(set(opened) - ended)}")
        if int(head.get("open", 0)) != len(known):
            yield Finding("runs", path, f"the head counts {head.get('open')} open runs and names {len(known)}")


def feed(evidence: Evidence) -> Iterator[Finding]:
    """Each feed counts 1, 2, 3 …, and names each operation of its partition's logs once, in its order.

    But for what was trimmed from its beginning.
    """
    missing: Counter[int] = Counter()
    named: dict[str, list[Named]] = defaultdict(list)
    for partition, entries in sorted(evidence.state.feeds.items()):
        numbers = [entry.seq for entry in entries]
        base = evidence.state.trimmed.get(partition, 0)
        if numbers != list(range(base + 1, base + len(numbers) + 1)):
            at = next((at for at, seq in enumerate(numbers) if seq != base + 1 + at), len(numbers) - 1)
            yield Finding(
                "feed", f"partition {partition}", f"entry {base + 1 + at} is missing: there is {numbers[at : at + 3]}"
            )
        for entry in entries:
            named[entry.path].append(entry)
    for path in evidence.sound():
        partition = evidence.state.places[path]
        wanted = [_named(partition, path, list(group)) for _, group in _operations(evidence, path)]
        found = [entry._replace(seq=0) for entry in named[path]]
        gone = len(wanted) - len(found) if evidence.state.trimmed.get(partition) else 0
        missing[partition] += max(0, gone)
        if wanted[max(0, gone) :] != found:
            differing = zip([*wanted, None], [*found, None], strict=False)
            at = next(((one, other) for one, other in differing if one != other), (None, None))
            yield Finding("feed", path, f"the log holds {at[0]}, the feed says {at[1]}")
            continue
        listed = evidence.state.listed.get(partition, {}).get(path)
        if gone:
            if listed is None or listed > evidence.state.trimmed[partition]:
                yield Finding("feed", path, f"listed under {listed}, its first feed entry was trimmed")
        elif listed != named[path][0].seq:
            yield Finding("feed", path, f"listed under {listed}, its first feed entry is {named[path][0].seq}")
    for partition, count in sorted(missing.items()):
        base = evidence.state.trimmed.get(partition, 0)
        if count > base:
            yield Finding("feed", f"partition {partition}", f"{base} entries were trimmed, {count} are missing")
    for path in sorted(set(named) - set(evidence.state.logs) - set(evidence.state.deleted)):
        yield Finding("feed", path, "the feed names a conversation that has no log")


def _operations(evidence: Evidence, path: str) -> Iterator[tuple[str, Iterator[Entry]]]:
    return groupby(evidence.state.logs[path], lambda entry: entry.operation)


def _named(partition: int, path: str, events: list[Entry]) -> Named:
    kinds = ",".join(dict.fromkeys(event.document["type"] for event in events))
    return Named(partition, 0, path, events[0].version, len(events), kinds, events[0].stamp)
