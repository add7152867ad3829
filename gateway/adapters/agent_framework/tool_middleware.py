"""The function middleware around each tool."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from agent_framework import (
    Content,
    FunctionInvocationContext,
    FunctionMiddleware,
    MiddlewareFailure,
    MiddlewareTermination,
)
from agent_framework.exceptions import UserInputRequiredException

from gateway.adapters.agent_framework.settings import active, enclosing
from gateway.adapters.agent_framework.watch import Watch

FAILED = "Error: Function failed."
"""What the framework tells the model of a tool that raised."""


class ToolResultRecorder(FunctionMiddleware):
    """Records each tool's result the moment it returns, before the others have and before it is sent.

    ``record`` puts one around all other function middleware: what it sees is what will be sent.
    """

    def __init__(self, *, detailed_errors: bool = False) -> None:
        self._detailed = detailed_errors
        """Whether the framework tells the model what a tool raised."""

    async def process(self, context: FunctionInvocationContext, call_next: Callable[[], Awaitable[None]]) -> None:
        """Run the tool; agents that it runs are known to work for this run."""
        watch = active(context.session)
        if watch is None or watch.recorder is None:
            await call_next()
            return
        before = enclosing.set(watch)
        try:
            await call_next()
        except MiddlewareTermination as termination:
            watch.recorder.outcome = "terminated"
            result = termination.result if context.result is None else context.result
            await self._record(watch, context, result)
            raise
        except (MiddlewareFailure, UserInputRequiredException):
            raise
        except Exception as error:
            told = f"{FAILED} Exception: {error}" if self._detailed else FAILED
            await self._record(watch, context, told, exception=str(error))
            raise
        finally:
            enclosing.reset(before)
        await self._record(watch, context, context.result)

    async def _record(
        self, watch: Watch, context: FunctionInvocationContext, result: Any, *, exception: str | None = None
    ) -> None:
        call_id, occurrence = context.metadata.get("call_id"), context.metadata.get("function_call_occurrence_id")
        if watch.recorder is None or not isinstance(call_id, str):
            return
        if isinstance(result, Content) and result.type != "function_result":
            return  # the tool asks for something instead
        content = (
            result
            if isinstance(result, Content)
            else Content.from_function_result(
                call_id,
                id=occurrence,
                result=result,
                exception=exception,
                additional_properties=watch.recorder.properties_of(call_id, occurrence),
            )
        )
        await watch.keep("a tool's result", watch.recorder.add_result(content))
