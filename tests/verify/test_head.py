"""Every kind of fault in the keys beside a log is found and named."""

from __future__ import annotations

import pytest

from tests.verify import plant
from tests.verify.conftest import CHAT, Namespace
from tests.verify.harm import (
    Plant,
    check_chat,
    drop,
    head,
    no_head,
)

pytestmark = pytest.mark.anyio

HEAD_FAULTS: dict[str, tuple[Plant, str]] = {
    "a last that lags": (head(last="36-1"), r"field 'last' of the head: it is b'36-1'; it should be 37-\d+"),
    "no last": (no_head("last"), r"field 'last' of the head: it is missing; it should be 37-"),
    "no head": (lambda ns: ns.client.delete(ns.chat.head), r"field 'last' of the head: it is missing"),
    "a base of what is there": (
        head(base="3-1"),
        r"field 'base' of the head: it is b'3-1'; the log begins at version 1",
    ),
    "a base that is none": (head(base="x"), r"field 'base' of the head: it is b'x'; it should be <version>-<stamp>"),
    "a base without what follows": (drop(1, 2, 3), r"version 1 to 3: it is missing"),
    "a state that is none": (head(state="odd"), r"field 'state' of the head: it is b'odd'; it should be 'deleted'"),
    "a count that is none": (
        head(open="many"),
        r"field 'open' of the head: it is b'many'; it should be a whole number",
    ),
    "a rotation beyond the log": (head(rotated=99), r"field 'rotated' of the head: it is b'99'; it should lie between"),
    "no time": (
        no_head("updated"),
        r"field 'updated' of the head: it is missing; it should be the time of the last append",
    ),
    "a field that nobody writes": (head(odd=1), r"field 'odd' of the head: it is b'1'; nobody writes such a field"),
    "a wrong number of open runs": (head(open=3), r"field 'open' of the head: it is b'3'; it should be 1, the number"),
    "an open run without its field": (
        no_head("run:the-open-run"),
        r"field 'run:the-open-run' of the head: it is missing; the run of version 28",
    ),
    "a run's field without its run": (
        head(**{"run:the-per-run": "per-run|0|19|1|5|5|aa|x"}),
        r"field 'run:the-per-run' of the head: it is b'per-run.*no such run is open",
    ),
    "an exclusive run beside another": (
        head(**{"run:x": "per-run|0|19|1|5|5|aa|x"}),
        r"field 'run:the-open-run' of the head: .*an exclusive run should be the only one open",
    ),
    "a run's field that is none": (
        head(**{"run:the-open-run": "x|y"}),
        r"field 'run:the-open-run' .*it should be mode\|exclusive",
    ),
    "another mode": (
        lambda ns: plant.change_run(ns, 0, "per-run"),
        r"'run:the-open-run' .*it should say per-service-call and version 28",
    ),
    "another first version": (
        lambda ns: plant.change_run(ns, 2, "27"),
        r"'run:the-open-run' .*it should say per-service-call and version 28",
    ),
    "another last call": (lambda ns: plant.change_run(ns, 3, "7"), r"'run:the-open-run' .*its last call should be 2"),
    "another fence": (
        lambda ns: plant.change_run(ns, 6, "ab"),
        r"'run:the-open-run' .*its fence should be [0-9a-f]{16}",
    ),
    "an answer that is missing": (
        no_head("answer:31:the-open-run"),
        r"field 'answer:31:the-open-run' .*missing; it should be 34",
    ),
    "an answer of another version": (
        head(**{"answer:31:the-open-run": 33}),
        r"'answer:31:the-open-run' .*it is b'33'; it should be 34",
    ),
    "an answer that nobody gave": (
        head(**{"answer:32:the-open-run": 34}),
        r"'answer:32:the-open-run' .*no open run has such a result",
    ),
    "an answer of a run that ended": (
        head(**{"answer:22:the-per-run": 24}),
        r"'answer:22:the-per-run' .*no open run has such a result",
    ),
    "a record of another first version": (
        lambda ns: plant.change_record(ns, "the-request", first=24),
        r"record 'the-request' of the operations: it says 24:1:\d+; it should say 25:1:\d+, as the log does",
    ),
    "a record of another count": (
        lambda ns: plant.change_record(ns, "the-request", count=2),
        r"it says 25:2:\d+; it should say 25:1",
    ),
    "a record of another stamp": (
        lambda ns: plant.change_record(ns, "the-request", stamp=5),
        r"it says 25:1:5; it should say 25:1",
    ),
    "a record beyond the log": (
        lambda ns: plant.change_record(ns, "the-last", count=9),
        r"record 'the-last' of the operations: it names versions 37 to 45; the log should have them; it ends at",
    ),
    "a record that is none": (
        lambda ns: ns.client.hset(ns.chat.ops, "the-request", "x"),
        r"record 'the-request' of the operations: it is b'x'; it should be first:count:stamp:digest",
    ),
    "a record of nothing": (
        lambda ns: ns.client.hset(ns.chat.ops, "odd", f"3:1:5:{'0' * 40}"),
        r"record 'odd' of the operations: it names version 3; an operation of that id and age should be in the log",
    ),
    "a record that is missing": (
        lambda ns: ns.client.hdel(ns.chat.ops, "the-request"),
        r"record 'the-request' of the operations: it is missing; it should name version 25",
    ),
    "an old record of nothing": (
        lambda ns: ns.client.hset(ns.chat.old_ops, "the-request", f"25:1:5:{'0' * 40}"),
        r"record 'the-request' of the old operations: it names version 25",
    ),
    "a log that is not listed": (
        lambda ns: ns.client.zrem(ns.chat.conversations, CHAT.path),
        r"the set of conversations: its path is not there; it should be",
    ),
    "a log listed at no time": (
        lambda ns: ns.client.zadd(ns.chat.conversations, {CHAT.path: -0.5}),
        r"the set of conversations: its score is b'-0.5'; it should be the number of its",
    ),
}


@pytest.mark.parametrize("kind", HEAD_FAULTS)
async def test_a_fault_beside_the_log_is_named_with_its_conversation(namespace: Namespace, kind: str) -> None:
    await check_chat(namespace, *HEAD_FAULTS[kind])
