"""What an agent does in a run: messages, service calls that complete, fail or are cancelled, results late or never."""

from __future__ import annotations

from functools import partial

import anyio

from chaos.hand import Hand, mark_of, marks_of, shown
from chaos.recorded import path_of
from eventlog.conversation import Conversation
from eventlog.messages import Message, text, tool_call
from eventlog.progress import FunctionCall
from eventlog.run import Run
from eventlog.service_call import ServiceCall
from projections import history

MODES = ("per-service-call", "per-run")


class Stumbled(Exception):
    """The agent's own failure: what its run is left by."""


async def turn(hand: Hand, chat: Conversation) -> None:
    """A run from its start to its end."""
    draw = hand.draw
    with anyio.move_on_after(draw.uniform(0.0, 0.1) if draw.random() < 0.08 else 60):
        opening = chat.run(
            draw.choice(MODES),
            agent=hand.name,
            exclusive=draw.random() < 0.85,
            lease=draw.choice((0.3, 1.0, 4.0)),
            carry="results" if draw.random() < 0.9 else "none",
            operation_id=f"{hand.mark()}/run",
        )
        try:
            async with opening as run:
                await steps(hand, chat, run)
        except Stumbled:
            pass


async def steps(hand: Hand, chat: Conversation, run: Run) -> None:
    """Ask, let the model answer, run its tools; then end one way or another."""
    draw = hand.draw
    await _ask(hand, chat, run)
    for _ in range(draw.randint(1, 4)):
        try:
            calls = await _call(hand, chat, run)
        except Stumbled:
            continue
        await answer(hand, chat, run, calls, 0.85)
        if draw.random() < 0.25:
            await _ask(hand, chat, run)
        elif not calls:
            break
    await anyio.sleep(draw.uniform(0, 0.02))
    ending = draw.random()
    if ending < 0.1:
        await hand.told(chat, ["failed"], lambda: run.abort("failed", "gave up"))
    elif ending < 0.2:
        raise Stumbled
    elif ending < 0.4:
        await hand.told(chat, ["terminated"], lambda: run.commit("terminated"))


async def _ask(hand: Hand, chat: Conversation, run: Run) -> None:
    messages = [Message("user", [text(hand.text())]) for _ in range(hand.draw.randint(1, 2))]
    operation = f"{hand.mark()}/ask"
    await hand.told(chat, marks_of(messages), lambda: run.add(*messages, operation_id=operation))


async def _call(hand: Hand, chat: Conversation, run: Run) -> list[FunctionCall]:
    """A service call. Raises ``Stumbled`` when it did not complete."""
    draw = hand.draw
    fate = draw.random()
    async with run.service_call(
        model="model", continues={"response": hand.mark()} if draw.random() < 0.1 else None
    ) as call:
        if draw.random() < 0.5:
            messages = await history.for_call(call)
            assert call.started is not None
            hand.ledger.write(
                "request",
                path=path_of(chat.log),
                at=call.started.version,
                run=run.id,
                sends=list(call.sends),
                continues=call.continues is not None,
                messages=shown([message.as_json() for message in messages]),
            )
        if fate < 0.05:
            await call.fail(hand.mark(), outcome="refused")
        elif fate < 0.1:
            await call.fail(hand.mark(), outcome="unknown", partial=[text(hand.text())])
        elif fate < 0.14:
            raise Stumbled
        elif fate < 0.18:
            return []  # left without a reply
        else:
            with anyio.move_on_after(draw.uniform(0, 0.01) if fate < 0.24 else 60):
                await _complete(hand, chat, call)
    return call.function_calls


async def _complete(hand: Hand, chat: Conversation, call: ServiceCall) -> None:
    """A reply of text, calls, or both, in one or two messages."""
    draw = hand.draw
    reply: list[Message] = []
    if draw.random() < 0.8:
        parts = [text(hand.text())] if draw.random() < 0.7 else []
        for number in range(draw.choice((0, 0, 1, 1, 2, 3))):
            # Services use ids again.
            call_id = f"call_{number}" if draw.random() < 0.3 else hand.mark()
            parts.append(tool_call(call_id, hand.text() if draw.random() < 0.01 else hand.mark(), {"n": number}))
        if parts:
            reply.append(Message("assistant", parts))
    if not reply or draw.random() < 0.2:
        reply.append(Message("assistant", [text(hand.text())]))
    service = {"response": hand.mark()} if draw.random() < 0.3 else None
    usage = {"input_tokens": draw.randrange(1000), "output_tokens": draw.randrange(100)}
    await hand.told(
        chat,
        [*marks_of(reply), "service-call-completed"],
        lambda: call.complete(*reply, finish_reason="stop", usage=usage, service=service),
    )


async def answer(hand: Hand, chat: Conversation, run: Run, calls: list[FunctionCall], share: float) -> None:
    """Run the tools of some of these calls, in any order."""
    draw = hand.draw
    for call in draw.sample(calls, len(calls)):
        if draw.random() > share:
            continue
        await anyio.sleep(draw.uniform(0, 0.01))
        output, operation = hand.text(), f"{hand.mark()}/result"
        make = partial(
            run.add_result,
            call.call_id if draw.random() < 0.25 else call,
            output,
            is_error=draw.random() < 0.1,
            message_id=f"{run.id}/results" if draw.random() < 0.3 else None,
            operation_id=operation,
        )
        await hand.told(chat, [mark_of(output)], make)
