"""What the log tells of each turn, in sentences, and how both modes compare, in numbers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from eventlog import Event
from gateway.demo import wording
from gateway.demo.story import Story
from gateway.demo.validity import problems
from projections.explain import IN_VIEW, REASONS, Fate
from projections.view import OpenCall


class Turn(NamedTuple):
    """One run: what was asked, and what is worth saying of it."""

    question: str
    facts: list[str]


class Tally(NamedTuple):
    """How many message parts, calls and results met one fate, per mode: when the process was killed, and at the end."""

    fate: str
    counts: tuple[int, ...]


def turns(story: Story) -> list[Turn]:
    """One account for each run, in order."""
    by_run: dict[str, list[Event]] = {}
    for event in story.events:
        if event.run is not None:
            by_run.setdefault(event.run, []).append(event)
    resumed = next((run for run, events in by_run.items() if events[0].version > story.killed.appended), None)
    return [
        Turn(
            _question(events),
            [
                *_parallel(events),
                *_failures(events),
                *(_kill(story, events) if _holds(events, story.killed.appended) else ()),
                *(_going_on(story, events) if run == resumed else ()),
                _end(story, events),
            ],
        )
        for run, events in by_run.items()
    ]


def open_call(call: OpenCall) -> str:
    """What is known of a call in the history that no result in it answers."""
    said = f"{call.call_id} ({call.name}, version {call.version}) is open"
    if call.recorded_result is None:
        return f"{said}: no result was recorded."
    return (
        f"{said}: its result, version {call.recorded_result}, is recorded and no call has sent it. "
        "The next run's first call will carry it."
    )


def tallies(stories: Sequence[Story]) -> list[Tally]:
    """What is in the history, then each reason that occurred, then all that was recorded."""
    moments = [counts for story in stories for counts in (_count(story.fates_when_killed), _count(story.fates))]
    occurred = [fate for fate in (IN_VIEW, *REASONS) if any(counts[fate] for counts in moments)]
    return [Tally(wording.fate_name(fate), tuple(counts[fate] for counts in moments)) for fate in occurred] + [
        Tally("recorded", tuple(counts.total() for counts in moments))
    ]


def _count(fates: Iterable[Fate]) -> Counter[str]:
    return Counter(fate.fate for fate in fates)


def _question(events: Sequence[Event]) -> str:
    asked = next(event for event in events if event.type == "message-added" and event.call is None)
    return " ".join(map(wording.part, asked.data["parts"]))


def _holds(events: Sequence[Event], version: int) -> bool:
    return any(event.version == version for event in events)


def _parallel(events: Sequence[Event]) -> list[str]:
    """What is to be said where one reply calls several tools."""
    calls: dict[int | None, list[Event]] = {}
    for event in events:
        if event.type == "function-call":
            calls.setdefault(event.call, []).append(event)
    said = []
    for together in calls.values():
        names = {event.version: event.data["name"] for event in together}
        results = [event for event in events if event.data.get("answers") in names]
        if len(names) > 1:
            order = ", then ".join(f"{names[event.data['answers']]} (version {event.version})" for event in results)
            said.append(f"{' and '.join(names.values())} were called together. Results came in this order: {order}.")
    return said


def _failures(events: Sequence[Event]) -> list[str]:
    sends = {event.call: event.data["sends"] for event in events if event.type == "service-call-started"}
    said = []
    for event in events:
        if event.type != "service-call-failed" or event.call is None:
            continue
        partial = " ".join(map(wording.part, event.data.get("partial", ())))
        said.append(f'Service call {event.call} failed ({event.data["error"]}) after "{partial}".')
        if sends.get(event.call + 1) == sends[event.call]:
            again = wording.numbers(sends[event.call])
            said.append(f"Its inputs ({again}) stayed unsent, so call {event.call + 1} sent them again.")
    return said


def _kill(story: Story, events: Sequence[Event]) -> list[str]:
    killed = story.killed
    recorded = {event.version for event in events}
    fates = [fate for fate in story.fates_when_killed if fate.version in recorded]
    told = ", ".join(f"{fate.kind} {fate.version} {wording.fate_name(fate.fate)}" for fate in fates)
    return [
        f"Process {killed.pid} ran this turn. It saw version {killed.appended} appended, "
        f"and was killed by signal {killed.signal}.",
        f"At that moment: {told}.",
    ]


def _going_on(story: Story, events: Sequence[Event]) -> list[str]:
    own = {event.version for event in events}
    first = next(event for event in events if event.type == "service-call-started")
    by_version = {event.version: event for event in story.events}
    earlier = [by_version[version] for version in first.data["sends"] if version not in own]
    carries = ", ".join(f"{event.version} ({wording.content(event, by_version)})" for event in earlier) or "nothing"
    wrong = problems(story.request)
    verdict = "every call in it is answered" if not wrong else "; ".join(wrong)
    return [
        f"From earlier turns its first service call carried: {carries}.",
        f"The history it sent has {len(story.request)} messages; {verdict}.",
    ]


def _end(story: Story, events: Sequence[Event]) -> str:
    last = events[-1]
    how = {"run-committed": "outcome", "run-aborted": "reason"}.get(last.type)
    if how is None:
        return "The run is open."
    own = {event.version for event in events}
    trailing = [fate.version for fate in story.fates if fate.version in own and fate.fate == "trailing-result"]
    said = f"The run was {last.type.removeprefix('run-')}: {last.data[how]}."
    return said if not trailing else f"{said} No service call has sent the result {wording.numbers(trailing)}."
