"""What else is done to a conversation: posts, late results, rewinds, compactions, take-overs, repeats, and reading."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from chaos.hand import Hand, mark_of, marks_of
from chaos.recorded import path_of
from chaos.turns import Stumbled, answer, steps, turn
from eventlog import NONE, Draft
from eventlog.conversation import Conversation
from eventlog.messages import Message, text
from eventlog.progress import FunctionCall
from projections import history, recovery

Deed = Callable[[Hand, Conversation], Awaitable[None]]


async def post(hand: Hand, chat: Conversation) -> None:
    """Messages outside any run, sometimes expecting a version. They could be posted again under their id."""
    operation = f"{hand.mark()}/post"
    marks = [mark_of(hand.text()) for _ in range(hand.draw.randint(1, 3))]
    hand.ledger.write(
        "plan", op=operation, path=path_of(chat.log), tenant=chat.tenant, conversation=chat.id, marks=marks
    )
    chance = hand.draw.random()
    if chance < 0.1:
        expected = (await chat.head()).last
        messages = said(marks)
        await hand.told(chat, marks, lambda: chat.add(*messages, operation_id=operation, expected=expected))
    elif chance < 0.13:
        messages = said(marks)
        await hand.told(chat, marks, lambda: chat.add(*messages, operation_id=operation, expected=NONE))
    else:
        await post_again(hand, chat, operation, marks)
    hand.done.append((chat.tenant, chat.id, operation, marks))


async def post_again(hand: Hand, chat: Conversation, operation: str, marks: list[str]) -> None:
    """What these marks stand for, under that id: there once, however often it is sent."""
    messages = said(marks)
    await hand.told(chat, marks, lambda: chat.add(*messages, operation_id=operation))


def said(marks: list[str]) -> list[Message]:
    """The messages of these marks."""
    return [Message("user", [text(mark)]) for mark in marks]


async def annotate(hand: Hand, chat: Conversation) -> None:
    """A title, or a label."""
    mark = mark_of(hand.text())
    fields = {"title": mark} if hand.draw.random() < 0.5 else {"labels": {hand.draw.choice("abc"): mark}}
    draft, operation = Draft("conversation-annotated", fields), f"{hand.mark()}/note"
    await hand.told(chat, [mark], lambda: chat.append(draft, operation_id=operation))


async def repeat(hand: Hand, chat: Conversation) -> None:
    """Send something again that was done before."""
    if hand.done:
        tenant, conversation, operation, marks = hand.draw.choice(list(hand.done))
        await post_again(hand, hand.chat(tenant, conversation), operation, marks)


async def late_result(hand: Hand, chat: Conversation) -> None:
    """Answer a call that is open in the view, outside any run: it was late, or its run is over."""
    view = await history.load(chat)
    if not view.open_calls:
        return
    call = hand.draw.choice(view.open_calls)
    output, operation = hand.text(), f"{hand.mark()}/late"
    which = FunctionCall(call.version, call.call_id, call.name, None) if hand.draw.random() < 0.7 else call.call_id
    await hand.told(chat, [mark_of(output)], lambda: chat.add_result(which, output, operation_id=operation))


async def rewind(hand: Hand, chat: Conversation) -> None:
    """To a version not long ago, or to the beginning."""
    last = (await chat.head()).last
    to = hand.draw.randint(max(0, last.version - 80), last.version) if hand.draw.random() < 0.9 else 0
    force = hand.draw.random() < 0.3
    await chat.rewind(to, expected=last, force=force)


async def compact(hand: Hand, chat: Conversation) -> None:
    """What entered up to some version gives way to one or two messages."""
    last = (await chat.head()).last
    if last.version:
        through = hand.draw.randint(1, last.version)
        summary = [Message("user", [text(hand.text())]) for _ in range(hand.draw.randint(1, 2))]
        marks = [" ".join(marks_of(summary)).split()[0]]
        await hand.told(chat, marks, lambda: chat.compact(through, summary, expected=last))


async def take_over(hand: Hand, chat: Conversation) -> None:
    """Whatever run has expired there: go on with it, abort it or seal it."""
    await _take(hand, chat, force=False)


async def take_by_force(hand: Hand, chat: Conversation) -> None:
    """Whatever run is open there, held or not."""
    await _take(hand, chat, force=True)


async def _take(hand: Hand, chat: Conversation, *, force: bool) -> None:
    draw, now = hand.draw, await hand.log.store.now_ms()
    runs = [run for run in (await chat.head()).runs if force or run.lease_ms <= now]
    if not runs:
        return
    run, how = draw.choice(runs), draw.random()
    if how < 0.15:
        await hand.told(chat, ["run-aborted"], lambda: chat.abort_run(run.run, force=force))
    elif how < 0.3:
        await recovery.seal(chat, run.run, force=force)
    else:
        try:
            async with chat.resume(run.run, force=force, lease=draw.choice((0.3, 2.0))) as taken:
                await answer(hand, chat, taken, list(taken.progress.unanswered.values()), 0.9)
                await steps(hand, chat, taken)
        except Stumbled:
            pass


async def short_life(hand: Hand, chat: Conversation) -> None:
    """A conversation of its own beside: something is done in it, and it is deleted."""
    short = hand.chat(chat.tenant, f"short {hand.mark()}")
    await post(hand, short)
    if hand.draw.random() < 0.5:
        await turn(hand, short)
    hand.ledger.write("delete", path=path_of(short.log))
    if await short.delete(force=True):
        hand.ledger.write("deleted", path=path_of(short.log))
    await post(hand, short)  # refused


async def read(hand: Hand, chat: Conversation) -> None:
    """The history as it is, its newest part, or as it was."""
    how = hand.draw.random()
    if how < 0.6:
        view = await history.load(chat)
        source = "load"
        folded = await history.load(chat, at=view.version)
        if folded.as_json() != view.as_json():  # the two ways to read, and more of a view than the checker folds
            hand.ledger.write("differs", told=f"{chat.id} as of {view.version}: {view.as_json()} {folded.as_json()}")
    elif how < 0.8:
        view = await history.load(chat, last=hand.draw.randint(1, 12))
        source = "last"
    else:
        last = (await chat.head()).last.version
        view = await history.load(chat, at=hand.draw.randint(0, last))
        source = "at"
    hand.saw(chat, view.version, view.cursor.stamp, source, view.as_json())


DEEDS: dict[Deed, int] = {
    post: 20,
    turn: 40,
    late_result: 8,
    rewind: 4,
    compact: 4,
    take_over: 12,
    take_by_force: 6,
    repeat: 6,
    annotate: 3,
    short_life: 4,
    read: 10,
}
"""What is done how often."""
