"""What a partition's mark has passed and left behind: conversations that wait, events that are parked. Pure.

A conversation waits under its path. A parked event that is replayed while its conversation went on
waits by itself, under ``<path>#<version>``. Changes are collected until a step of the reader has
written them.
"""

from __future__ import annotations

from collections.abc import Iterator

from eventlog.identity import LogId
from eventlog.parking import Parked, parked_field
from eventlog.store.readers import NEVER, Advance, Waiting


def single_key(path: str, version: int) -> str:
    """The key of one event that is replayed by itself."""
    return f"{path}#{version}"


def path_of(key: str) -> str:
    """The conversation of a key."""
    return key.partition("#")[0]


class Backlog:
    """The waiting conversations of a partition, and what is to be written of them."""

    def __init__(self) -> None:
        self.waiting: dict[str, Waiting] = {}
        self._changed: set[str] = set()
        self._parked: dict[str, bytes | None] = {}
        self._done: set[str] = set()

    def __bool__(self) -> bool:
        """Whether something is to be written."""
        return bool(self._changed or self._parked or self._done)

    def set(self, key: str, waiting: Waiting) -> None:
        """From now on this waits."""
        self.waiting[key] = waiting
        self._changed.add(key)

    def extend(self, path: str, last: int, stamp: int) -> None:
        """Hold back the events of a waiting conversation up to ``last``, too."""
        waiting = self.waiting[path]
        if last > waiting.through:
            self.set(path, waiting._replace(through=last, stamp=stamp))

    def doubt(self, path: str, first: int, last: int, stamp: int) -> None:
        """A holder that died may have handed these events over."""
        waiting = self.waiting.get(path)
        if waiting is None:
            self.set(path, Waiting(first, last, stamp, given=1, doubtful=last))
        elif last > waiting.through:
            doubtful = last if waiting.doubtful == waiting.through else waiting.doubtful
            self.set(path, waiting._replace(through=last, stamp=stamp, doubtful=doubtful))

    def hand_over(self, key: str) -> int:
        """Its next event is about to be handed over: counted now, so that a crash is counted. Returns the count."""
        waiting = self.waiting[key]
        self.set(key, waiting._replace(given=waiting.given + 1, busy=True))
        return waiting.given + 1

    def take_back(self, key: str) -> None:
        """It was not handed over after all."""
        waiting = self.waiting[key]
        self.set(key, waiting._replace(given=waiting.given - 1, busy=False))

    def pass_one(self, key: str) -> None:
        """Its next event was handled or parked: on to the one after, or it waits no longer."""
        waiting = self.waiting[key]
        version = waiting.version + 1
        if version > waiting.through:
            del self.waiting[key]
            self._changed.add(key)
        else:
            count = 1 if version <= waiting.doubtful else 0
            self.set(key, waiting._replace(version=version, given=count, due_ms=0))

    def rest(self, key: str, due_ms: int = 0) -> None:
        """Its next event is not in anyone's hands, and due then."""
        self.set(key, self.waiting[key]._replace(busy=False, due_ms=due_ms))

    def park(self, parked: Parked) -> None:
        """Keep a parked event."""
        self._parked[parked.field] = parked.encode()

    def park_waiting(self, key: str, parked: Parked) -> None:
        """Park the next event of what waits. Its conversation goes on, or waits for a person."""
        self.park(parked)
        self.rest(key)
        if parked.waits and key == path_of(key):
            self.rest(key, NEVER)
        else:
            self.pass_one(key)

    def drop(self, log: LogId, version: int) -> None:
        """A parked event is done with; a conversation that waits for it goes on behind it."""
        self._parked[parked_field(log, version)] = None
        waiting = self.waiting.get(log.path)
        if waiting is not None and waiting.due_ms == NEVER and waiting.version == version:
            self.pass_one(log.path)

    def replay(self, parked: Parked) -> None:
        """A parked event is delivered again: alone and named, its deliveries counted anew."""
        self._parked[parked.field] = None
        path, version = parked.log.path, parked.version
        waiting = self.waiting.get(path)
        if waiting is not None and waiting.due_ms == NEVER and waiting.version == version:
            self.set(path, waiting._replace(given=0, due_ms=0, doubtful=max(version, waiting.doubtful)))
        else:
            self.set(single_key(path, version), Waiting(version, version, parked.stamp, doubtful=version))

    def let_go(self, path: str) -> int:
        """Nothing of this conversation waits any longer; how many events did."""
        count = 0
        for key in [key for key in self.waiting if path_of(key) == path]:
            waiting = self.waiting.pop(key)
            count += waiting.through - waiting.version + 1
            self._changed.add(key)
        for name in self._parked:
            if name.partition("@")[2] == path:
                self._parked[name] = None
        return count

    def unpark(self, field: str) -> None:
        """An event is parked no longer."""
        self._parked[field] = None

    def forget(self, field: str) -> None:
        """What was asked concerns nothing that is parked."""
        self._done.add(field)

    def left_busy(self) -> Iterator[tuple[str, Waiting]]:
        """What a holder that died had in hand. Whether it was named or not, it is in doubt from now on."""
        for key, waiting in list(self.waiting.items()):
            if waiting.busy:
                if waiting.version > waiting.doubtful:
                    self.set(key, waiting._replace(doubtful=waiting.through))
                yield key, self.waiting[key]

    def due(self, now_ms: int) -> list[str]:
        """What may be handed over now."""
        return [key for key, one in self.waiting.items() if 0 <= one.due_ms <= now_ms and not one.busy]

    def next_due(self, now_ms: int) -> int | None:
        """When the next one will be due, in milliseconds of the store's clock."""
        return min((one.due_ms for one in self.waiting.values() if one.due_ms > now_ms), default=None)

    def changes(self) -> Advance:
        """All that is to be written, as a step that has no mark yet."""
        waiting = {key: self.waiting.get(key) for key in self._changed}
        return Advance(None, None, waiting=waiting, parked=dict(self._parked), done=set(self._done))

    def written(self, step: Advance) -> None:
        """The step was taken; what changed since is still to be written."""
        self._changed = {key for key in self._changed if key not in step.waiting or self._differs(key, step)}
        self._parked = {
            field: document
            for field, document in self._parked.items()
            if field not in step.parked or step.parked[field] != document
        }
        self._done -= step.done

    def _differs(self, key: str, step: Advance) -> bool:
        return self.waiting.get(key) != step.waiting[key]
