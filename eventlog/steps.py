"""The steps of a run that are on their way, and go on although whoever asked for them was cancelled.

An append that was sent happens, whole, whether its caller waits for it or not. So the recorder's own
memory must follow the append, not the caller: each step runs in a task of its own.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, TypeVar

import anyio

T = TypeVar("T")

CLOSING_SECONDS = 10.0
"""How long an end is waited for when a block is left by an exception."""


class Steps:
    """The tasks of one run that have yet to finish."""

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[Any]] = set()

    async def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run ``work`` to its end; a caller that is cancelled only stops waiting for it."""
        return await asyncio.shield(self._begin(work))

    async def enter(self, work: Coroutine[Any, Any, T], undo: Callable[[], Awaitable[object]]) -> T:
        """The same for what a block begins with: when the caller is cancelled, it is undone."""
        task = self._begin(work)
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            await self.close(_undone(task, undo))
            raise

    async def close(
        self, work: Coroutine[Any, Any, object], seconds: float | None = CLOSING_SECONDS
    ) -> Exception | None:
        """Run ``work`` to its end although the caller is being cancelled; return what went wrong.

        None for ``seconds`` waits as long as the work's own deadlines allow.
        """
        task = self._begin(work)
        with anyio.CancelScope(shield=True):
            await asyncio.wait([task], timeout=seconds)
        if not task.done():
            return TimeoutError(f"it did not end within {seconds:g} s, and goes on")
        error = asyncio.CancelledError() if task.cancelled() else task.exception()
        return error if error is None or isinstance(error, Exception) else RuntimeError(repr(error))

    async def settled(self) -> None:
        """Wait until no other step is on its way."""
        while others := self._tasks - {asyncio.current_task()}:
            await asyncio.wait(others)

    def _begin(self, work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task


async def _undone(task: asyncio.Task[Any], undo: Callable[[], Awaitable[object]]) -> None:
    await asyncio.wait([task])
    if not task.cancelled() and task.exception() is None:
        await undo()


def told(error: BaseException) -> str:
    """An exception in words that can be stored: well-formed, at most 4,000 characters, whatever its repr does."""
    try:
        text = repr(error)
    except Exception:
        text = f"<{type(error).__name__}, whose repr fails>"
    return text[:4000].encode(errors="backslashreplace").decode()
