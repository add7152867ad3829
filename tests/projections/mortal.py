"""Processes that are killed at a call to the server: before it has its effect, or before its reply is heard."""

from __future__ import annotations

import inspect
from collections.abc import AsyncIterator
from typing import Any

from eventlog.errors import ServerUnavailable
from projections.live import Live
from projections.projector import Projector


class Life:
    """Of one process: it dies at the call with number ``calls``. None: it lives."""

    def __init__(self, calls: int | None = None, *, heard: bool = False) -> None:
        self.left = calls
        self.heard = heard
        """The last call still has its effect."""
        self.over = False

    def live(self, projector: Projector) -> None:
        """Let a projector lead this life."""
        live: Any = projector._live
        readers = _Mortal(self, live.readers)
        projector._live = Live(_Mortal(self, live.store), lambda: readers, _Mortal(self, live.views))

    def takes_effect(self) -> bool:
        """Whether this call does; raises when the process is dead."""
        if self.over:
            raise ServerUnavailable("this process was killed")
        if self.left is not None:
            self.left -= 1
            self.over = self.left < 0
        return not self.over or self.heard

    def reply(self) -> None:
        if self.over:
            raise ServerUnavailable("this process was killed")


class _Mortal:
    """Passes calls on, while there is life."""

    def __init__(self, life: Life, target: Any) -> None:
        self._life = life
        self._target = target

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._target, name)
        if inspect.iscoroutinefunction(found) and name != "close":
            return self._calling(found)
        return self._walking(found) if inspect.isasyncgenfunction(found) else found

    def _calling(self, call: Any) -> Any:
        async def called(*given: Any, **named: Any) -> Any:
            result = await call(*given, **named) if self._life.takes_effect() else None
            self._life.reply()
            return result

        return called

    def _walking(self, walk: Any) -> Any:
        async def walked(*given: Any, **named: Any) -> AsyncIterator[Any]:
            self._life.takes_effect()
            self._life.reply()
            async for one in walk(*given, **named):
                yield one
                self._life.reply()

        return walked
