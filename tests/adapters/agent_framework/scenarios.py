"""The conversations that are played in every mode."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from agent_framework import (
    AgentSession,
    ChatContext,
    ChatMiddleware,
    Content,
    ContextProvider,
    FunctionInvocationContext,
    FunctionMiddleware,
    FunctionTool,
    Message,
    MiddlewareFailure,
    MiddlewareTermination,
    SessionContext,
    tool,
)

from tests.adapters.agent_framework.play import Played, Scenario, Stage, Turn
from tests.adapters.agent_framework.service import Breaks, Broken, Hangs, InvalidRequest, call, text

OSLO, ROME = '{"city": "Oslo"}', '{"city": "Rome"}'


def tools(stage: Stage) -> list[FunctionTool]:
    @tool
    async def weather(city: str) -> str:
        """The weather in a city."""
        stage.ran.append(f"weather {city}")
        return f"3 C in {city}"

    @tool
    async def slow(city: str) -> str:
        """The same, later."""
        for _ in range(3):
            await asyncio.sleep(0)
        stage.ran.append(f"slow {city}")
        return f"4 C in {city}"

    @tool
    async def fails(city: str) -> str:
        """Raises."""
        stage.ran.append(f"fails {city}")
        raise ValueError(f"no weather in {city}")

    @tool
    async def hangs(city: str) -> str:
        """Never returns."""
        stage.hanging.set()
        await asyncio.Event().wait()
        return ""

    @tool
    async def breaks(city: str) -> str:
        """Ends the whole run."""
        raise MiddlewareFailure("the guard says no")

    @tool(approval_mode="always_require")
    async def book(city: str) -> str:
        """Must be approved."""
        stage.ran.append(f"book {city}")
        return f"booked {city}"

    locate = FunctionTool(name="locate", description="The caller knows.", func=None)
    return [weather, slow, fails, hangs, breaks, book, locate]


class Ends(FunctionMiddleware):
    """Ends the loop at one tool, after it ran."""

    def __init__(self, name: str) -> None:
        self.name = name

    async def process(self, context: FunctionInvocationContext, call_next: Callable[[], Awaitable[None]]) -> None:
        await call_next()
        if context.function.name == self.name:
            raise MiddlewareTermination


class Replaces(FunctionMiddleware):
    """Answers for the tool without running it, and ends the loop: as a handoff does."""

    async def process(self, context: FunctionInvocationContext, call_next: Callable[[], Awaitable[None]]) -> None:
        if context.function.name != "weather":
            return await call_next()
        context.result = "handed over"
        raise MiddlewareTermination(result=context.result)


class Changes(FunctionMiddleware):
    """Changes what a tool returned."""

    async def process(self, context: FunctionInvocationContext, call_next: Callable[[], Awaitable[None]]) -> None:
        await call_next()
        context.result = "redacted"


class Retries(ChatMiddleware):
    """Makes a service call once more when it failed."""

    async def process(self, context: ChatContext, call_next: Callable[[], Awaitable[None]]) -> None:
        try:
            await call_next()
        except Broken:
            await call_next()


class Knows(ContextProvider):
    """Adds what it knows to each run."""

    def __init__(self) -> None:
        super().__init__("knows")
        self.runs = 0

    async def before_run(self, *, context: SessionContext, **kwargs: Any) -> None:
        self.runs += 1
        context.extend_messages(self, [Message("user", [f"fact {self.runs}"])])


def approve(granted: bool) -> Callable[[Played], Message]:
    def answer(played: Played) -> Message:
        response = played.responses[-1]
        assert response is not None
        return Message("user", [asked.to_function_approval_response(granted) for asked in response.user_input_requests])

    return answer


def approve_elsewhere(played: Played) -> Message:
    """The answer comes to another process, which has the session as it was stored."""
    answer = Message.from_dict(approve(True)(played).to_dict())
    played.session = AgentSession.from_dict(played.session.to_dict())
    return answer


def result(call_id: str, output: str) -> Callable[[Played], Message]:
    return lambda played: Message("tool", [Content.from_function_result(call_id, result=output)])


def given_twice(played: Played) -> list[Message]:
    same = text("yes")
    return [Message("user", [same]), Message("user", []), Message("user", [same])]


def hosted_request() -> Content:
    hosted = Content.from_function_call("h1", "mail", id="h1", arguments="{}", hosted=True)
    return Content.from_function_approval_request("h1", hosted)


SIMPLE = [
    Scenario("a question and its answer", lambda: [[text("hello")]], ["hi"]),
    Scenario("two turns", lambda: [[text("hello")], [text("fine")]], ["hi", "how are you?"]),
    Scenario("three equal turns are three turns", lambda: [[text("yes")]] * 3, ["yes", "yes", "yes"]),
    Scenario("an answer without contents", lambda: [[], [text("sorry")]], ["hi", "hello?"]),
    Scenario(
        "a picture",
        lambda: [[text("a cat")]],
        [Turn(lambda _: Message("user", ["what?", Content.from_data(b"\0", "image/png")]))],
    ),
    Scenario(
        "several messages at once",
        lambda: [[text("ok")]],
        [Turn(lambda _: [Message("system", ["be kind"]), "hi", "there"])],
    ),
    Scenario(
        "one content given twice, in messages of its own, and a message without any",
        lambda: [[text("ok")], [text("bye")]],
        [Turn(given_twice), "thanks"],
    ),
    Scenario(
        "what another provider adds", lambda: [[text("ok")], [text("ok")]], ["hi", "again"], providers=lambda: [Knows()]
    ),
]
LOOPS = [
    Scenario(
        "a tool", lambda: [[call("c1", "weather", OSLO)], [text("3 C")], [text("bye")]], ["weather?", "thanks"], tools
    ),
    Scenario(
        "two tools, of which the second returns first",
        lambda: [[call("c1", "slow", OSLO), call("c2", "weather", ROME)], [text("cold")], [text("bye")]],
        ["weather?", "thanks"],
        tools,
    ),
    Scenario(
        "one tool three times at once",
        lambda: [[call(f"c{n}", "weather", OSLO) for n in range(3)], [text("cold")]],
        ["weather?"],
        tools,
    ),
    Scenario(
        "a loop of three calls",
        lambda: [[call("c1", "weather", OSLO)], [call("c2", "weather", ROME)], [text("cold")], [text("bye")]],
        ["weather?", "thanks"],
        tools,
    ),
    Scenario(
        "text and reasoning before a call",
        lambda: [
            [
                Content.from_text_reasoning(text="hm", protected_data="x"),
                text("let me see"),
                call("c1", "weather", OSLO),
            ],
            [text("3 C")],
            [text("bye")],
        ],
        ["weather?", "thanks"],
        tools,
    ),
    Scenario(
        "call ids that the service uses again",
        lambda: [
            [call("c1", "weather", OSLO)],
            [call("c1", "weather", ROME)],
            [text("cold")],
            [call("c1", "slow", OSLO)],
            [text("still")],
        ],
        ["weather?", "and now?"],
        tools,
    ),
    Scenario(
        "a tool that raises",
        lambda: [[call("c1", "fails", OSLO)], [text("no luck")], [text("bye")]],
        ["weather?", "ok"],
        tools,
    ),
    Scenario("a tool that is not known", lambda: [[call("c1", "fly", OSLO)], [text("no luck")]], ["fly!"], tools),
    Scenario("arguments that do not fit", lambda: [[call("c1", "weather", '{"town": 1}')], [text("hm")]], ["?"], tools),
    Scenario(
        "a tool whose result is changed on the way",
        lambda: [[call("c1", "weather", OSLO)], [text("secret")]],
        ["weather?"],
        tools,
        lambda stage: [Changes()],
    ),
    Scenario(
        "tools that the provider ran itself",
        lambda: [
            [
                Content.from_function_call("p1", "search", arguments="{}", informational_only=True),
                Content.from_code_interpreter_tool_call(call_id="p2"),
                Content.from_code_interpreter_tool_result(call_id="p2"),
                text("found"),
            ],
            [text("bye")],
        ],
        ["search!", "thanks"],
        tools,
    ),
]
FAILURES = [
    Scenario("the first service call breaks", lambda: [Broken("gone"), [text("hello")]], ["hi", "again"], stored=False),
    Scenario("the first service call is refused", lambda: [InvalidRequest("no"), [text("hello")]], ["hi", "again"]),
    Scenario(
        "the second service call breaks",
        lambda: [[call("c1", "weather", OSLO)], Broken("gone"), [text("3 C")]],
        ["weather?", "well?"],
        tools,
        stored=False,
    ),
    Scenario(
        "the third service call is refused",
        lambda: [[call("c1", "weather", OSLO)], [call("c2", "weather", ROME)], InvalidRequest("no"), [text("cold")]],
        ["weather?", "well?"],
        tools,
    ),
    Scenario(
        "a stream that breaks in its text",
        lambda: [Breaks([text("hel")]), [text("hello")]],
        ["hi", "again"],
        streams=True,
        stored=False,
    ),
    Scenario(
        "a stream that breaks in its second call",
        lambda: [[call("c1", "weather", OSLO)], Breaks([text("it is")]), [text("3 C")]],
        ["weather?", "well?"],
        tools,
        streams=True,
        stored=False,
    ),
    Scenario(
        "a failed service call that is made again",
        lambda: [Broken("gone"), [call("c1", "weather", OSLO)], Broken("gone"), [text("3 C")], [text("bye")]],
        ["weather?", "thanks"],
        tools,
        lambda stage: [Retries()],
        streams=False,
    ),
    Scenario(
        "a guard that ends the run",
        lambda: [[call("c1", "weather", OSLO), call("c2", "breaks", OSLO)], [text("sorry")]],
        ["weather?", "well?"],
        tools,
        stored=False,
    ),
    Scenario(
        "cancelled in a service call",
        lambda: [[call("c1", "weather", OSLO)], Hangs(), [text("3 C")]],
        [Turn("weather?", "cancel"), "well?"],
        tools,
        stored=False,
    ),
    Scenario(
        "cancelled in a tool beside one that has returned",
        lambda: [[call("c1", "weather", OSLO), call("c2", "hangs", OSLO)], [text("3 C")]],
        [Turn("weather?", "cancel"), "well?"],
        tools,
    ),
    Scenario(
        "cancelled in the text of a stream",
        lambda: [Hangs([text("hel")]), [text("hello")]],
        [Turn("hi", "cancel"), "again"],
        streams=True,
        stored=False,
    ),
    Scenario(
        "a stream that its consumer closes",
        lambda: [[text("hel"), text("lo")], [text("hello")]],
        [Turn("hi", "close"), "again"],
        streams=True,
        stored=False,
    ),
]
ENDS = [
    Scenario(
        "a loop that a filter ends",
        lambda: [[call("c1", "weather", OSLO)], [text("go on")]],
        ["weather?", "and?"],
        tools,
        lambda stage: [Ends("weather")],
    ),
    Scenario(
        "a loop that a filter ends at one of two tools",
        lambda: [[call("c1", "weather", OSLO), call("c2", "slow", ROME)], [text("go on")]],
        ["weather?", "and?"],
        tools,
        lambda stage: [Ends("weather")],
    ),
    Scenario(
        "a loop that a filter ends beside a tool that is not known",
        lambda: [[call("c1", "fly", OSLO), call("c2", "weather", OSLO)], [text("go on")]],
        ["weather?", "and?"],
        tools,
        lambda stage: [Ends("weather")],
    ),
    Scenario(
        "a loop that ends in a handoff",
        lambda: [[call("c1", "weather", OSLO)], [text("back again")]],
        ["weather?", "and?"],
        tools,
        lambda stage: [Replaces()],
    ),
    Scenario(
        "a filter ends the loop and the caller answers the call itself",
        lambda: [[call("c1", "weather", OSLO)], [text("go on")]],
        ["weather?", Turn(result("c1", "5 C"))],
        tools,
        lambda stage: [Ends("weather")],
        per_call=True,
    ),
    Scenario(
        "the limit of iterations",
        lambda: [[call("c1", "weather", OSLO)], [text("that is all")], [text("bye")]],
        ["weather?", "thanks"],
        tools,
        limits={"max_iterations": 1},
    ),
    Scenario(
        "the limit of consecutive errors",
        lambda: [[call("c1", "fails", OSLO)], [text("I give up")], [text("bye")]],
        ["weather?", "thanks"],
        tools,
        limits={"max_consecutive_errors_per_request": 1, "max_iterations": 3},
    ),
    Scenario(
        "the limit of function calls",
        lambda: [[call("c1", "weather", OSLO)], [text("enough")], [text("bye")]],
        ["weather?", "thanks"],
        tools,
        limits={"max_function_calls": 1},
    ),
]
APPROVALS = [
    Scenario(
        "a tool that is approved",
        lambda: [[call("c1", "book", OSLO)], [text("done")], [text("bye")]],
        ["book!", Turn(approve(True)), "thanks"],
        tools,
    ),
    Scenario(
        "a tool that is denied",
        lambda: [[call("c1", "book", OSLO)], [text("as you wish")], [text("bye")]],
        ["book!", Turn(approve(False)), "thanks"],
        tools,
    ),
    Scenario(
        "two tools, one of which must be approved",
        lambda: [[call("c1", "weather", OSLO), call("c2", "book", OSLO)], [text("done")], [text("bye")]],
        ["book if it is warm", Turn(approve(True)), "thanks"],
        tools,
    ),
    Scenario(
        "a tool that is approved in another process",
        lambda: [[call("c1", "book", OSLO)], [text("done")], [text("bye")]],
        ["book!", Turn(approve_elsewhere), "thanks"],
        tools,
    ),
    Scenario(
        "two approvals at once, of calls with ids used before",
        lambda: [
            [call("c1", "weather", OSLO)],
            [call("c1", "book", OSLO), call("c2", "book", ROME)],
            [text("done")],
            [text("bye")],
        ],
        ["book!", Turn(approve(True)), "thanks"],
        tools,
    ),
    Scenario(
        "a tool of the provider that is approved",
        lambda: [[hosted_request()], [text("sent")], [text("bye")]],
        ["mail!", Turn(approve(True)), "thanks"],
        tools,
    ),
    Scenario(
        "a tool that the caller runs",
        lambda: [[call("c1", "locate")], [text("here")], [text("bye")]],
        ["where?", Turn(result("c1", "at home")), "thanks"],
        tools,
    ),
]
SCENARIOS = [*SIMPLE, *LOOPS, *FAILURES, *ENDS, *APPROVALS]
