"""Following a stream of the framework to its end, whichever that is."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from typing import Any, TypeVar
from weakref import ReferenceType, ref

from agent_framework import ResponseStream

UpdateT = TypeVar("UpdateT")
FinalT = TypeVar("FinalT")

_dropped: set[asyncio.Task[None]] = set()
"""The ends of streams that their consumers dropped; a task needs somebody who holds it."""


def followed(
    inner: ResponseStream[UpdateT, FinalT],
    *,
    ended: Callable[[FinalT], Awaitable[None]],
    failed: Callable[[BaseException, Sequence[UpdateT]], Awaitable[None]],
) -> ResponseStream[UpdateT, FinalT]:
    """The same stream. ``ended`` is awaited with its final response before it ends, ``failed`` when it does not.

    A consumer that closes it, or drops it, fails it with ``GeneratorExit``.
    """
    final: list[FinalT] = []
    held: list[ReferenceType[object]] = []

    async def source() -> AsyncGenerator[UpdateT, None]:
        seen: list[UpdateT] = []
        try:
            async for update in inner:
                seen.append(update)
                yield update
            final.append(await inner.get_final_response())
        except GeneratorExit as error:
            if held[0]() is None:
                # Dropped: the event loop closes all its generators at once, so none may wait for another.
                _later(failed(error, seen))
                raise
            try:
                await inner.close()  # whatever is in progress in it ends first
            finally:
                await failed(error, seen)
            raise
        except BaseException as error:
            await failed(error, seen)
            raise
        await ended(final[0])

    async def finalizer(_: Sequence[UpdateT]) -> FinalT:
        return final[0] if final else await inner.get_final_response()

    made: ResponseStream[Any, Any] = ResponseStream(source(), finalizer=finalizer)
    held.append(ref(made))
    return made


def _later(end: Awaitable[None]) -> None:
    task = asyncio.ensure_future(end)
    _dropped.add(task)
    task.add_done_callback(_dropped.discard)
