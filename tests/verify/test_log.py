"""Every kind of fault in a log is found and named: where it is, what is wrong, what should be."""

from __future__ import annotations

import pytest

from tests.verify import plant
from tests.verify.conftest import Namespace
from tests.verify.harm import (
    COMPLETED,
    IN_RUN,
    NOTE,
    OUTPUT,
    STARTED,
    Plant,
    append,
    append_each,
    approval,
    check_chat,
    drop,
    edit,
    edit_data,
    rename,
    result,
)

pytestmark = pytest.mark.anyio

LOG_FAULTS: dict[str, tuple[Plant, str]] = {
    "a missing event": (drop(5), r"version 5: it is missing; the entry after version 4 should be 5"),
    "missing events at the beginning": (drop(1, 2), r"version 1 to 2: it is missing"),
    "a missing event at the end": (
        drop(37),
        r"field 'last' of the head: it is b'37-.*should be 36-\d+, the log's last",
    ),
    "an event that the head does not know": (
        lambda ns: ns.client.xadd(ns.chat.log, {"e": "{}"}, id="38-5"),
        r"version 38: it holds b'\{\}'; it should hold an event",
    ),
    "two events of one version": (
        lambda ns: ns.client.xadd(ns.chat.log, {"e": "{}"}, id=f"37-{(1 << 63) - 1}"),
        r"version 37: two entries have this version; there should be one",
    ),
    "a stamp that none can be": (rename(37, f"37-{1 << 63}"), r"entry b'37-9223372036854775808': its id is not well"),
    "a stamp of nothing": (rename(37, "37-0"), r"entry b'37-0': its id is not well formed"),
    "another stamp within an operation": (
        rename(2, "2-5"),
        r"version 2: its stamp is 5; it should be \d+, as of its whole",
    ),
    "a second field": (
        lambda ns: plant.rewrite(ns, lambda found: [*found[:-1], (found[-1][0], {**found[-1][1], b"f": b"1"})]),
        r"version 37: the entry has the fields \[b'e', b'f'\]; it should have one",
    ),
    "bytes that are no event": (
        lambda ns: plant.write(ns, 4, b"\xff\0{"),
        r"version 4: it holds b'\\xff\\x00\{'; it should",
    ),
    "JSON that is no event": (
        lambda ns: plant.write(ns, 4, b"[1]"),
        r"version 4: it holds b'\[1\]'; it should hold an event",
    ),
    "deep JSON": (lambda ns: plant.write(ns, 4, b'{"id":' + b"[" * 5000), r"version 4: it holds"),
    "an id that does not stand first": (
        lambda ns: plant.edit(ns, 4, lambda event: event.update(id=event.pop("id"))),
        r"version 4: the document begins b'\{\"type\".*; its id should stand first",
    ),
    "an id without an index": (
        edit(4, id="abc"),
        r"version 4: the event id is 'abc'; it should be <operation>.<index>",
    ),
    "an id that is no text": (edit(4, id=7), r"version 4: the event id is 7; it should be <operation>.<index>"),
    "an operation that begins with another index": (
        edit(4, id="abc.3"),
        r"version 4: the event id is 'abc.3'; it should be abc.0",
    ),
    "an index that does not follow": (
        lambda ns: plant.edit(ns, 7, lambda event: event.update(id=event["id"].replace(".1", ".2"))),
        r"version 7: the event id is '.*\.2'; it should be .*\.1",
    ),
    "an operation id used twice": (
        edit(37, id="the-request.0"),
        r"version 37: operation 'the-request' was used at version 25",
    ),
    "a type that is none": (edit(4, type="no type"), r"version 4: the type is 'no type'; it should be 1 to 64 of"),
    "a time that is none": (edit(4, at="yesterday"), r"version 4: the time is 'yesterday'; it should be RFC 3339"),
    "a run that is no text": (edit(4, run=[1]), r"version 4: run is \[1\]; it should be a str"),
    "a call that is no number": (edit(6, call="1"), r"version 6: call is '1'; it should be 1 or more"),
    "a schema that is none": (edit(4, schema=0), r"version 4: schema is 0; it should be 1 or more"),
    "data of another shape": (edit_data(4, role=7), r"version 4: data.role is 7; it should be that of a message-added"),
    "sends that are no versions": (
        edit_data(5, sends=5),
        r"version 5: data.sends is 5; it should be that of a service-call",
    ),
    "an event of a run that names none": (
        lambda ns: plant.edit(ns, 15, lambda event: event.pop("run")),
        r"version 15: run-committed: it names no run; it should name the run",
    ),
    "an end of a call that names none": (
        lambda ns: plant.edit(ns, 11, lambda event: event.pop("call")),
        r"version 11: service-call-failed: it names no service call",
    ),
    "a run that was never started": (
        append({**NOTE, "run": "nobody"}),
        r"version 38: note: run 'nobody' was never started",
    ),
    "a run that was started twice": (
        append({"type": "run-started", "run": "the-per-run", "data": {"mode": "per-run"}}),
        r"version 38: run-started: run 'the-per-run' was started before, at version 19",
    ),
    "a run whose id is not its operation": (
        append({"type": "run-started", "run": "x", "data": {"mode": "per-run"}}),
        r"version 38: run-started: run 'x' in operation 'planted-38'; a run's id should be that of its operation",
    ),
    "an event after its run ended": (
        append({**NOTE, "run": "the-per-run"}),
        r"version 38: note: run 'the-per-run' had ended at version 24; nothing should be recorded in it",
    ),
    "a call number used twice": (
        append({**STARTED, "call": 1}),
        r"version 38: .*: call 1 of run .* was started before",
    ),
    "a call that ended twice": (
        append({**COMPLETED, "call": 1}),
        r"version 38: .*: call 1 of run .* had ended at version 33",
    ),
    "a call that was never started": (
        append({**COMPLETED, "call": 9}),
        r"version 38: .*: call 9 of run .* was never started",
    ),
    "an output behind its completion": (append({**OUTPUT, "call": 1}), r"version 38: .*: call 1 of run .* had ended"),
    "an output without its completion": (
        append({**OUTPUT, "call": 2}),
        r"version 38: an output of call 2 of run 'the-open-run' without the call's completion",
    ),
    "an output whose completion comes in another operation": (
        lambda ns: append_each(ns, {**OUTPUT, "call": 2}, {**COMPLETED, "call": 2}),
        r"version 38: an output of call 2 of run 'the-open-run' without the call's completion",
    ),
    "sends of what comes later": (
        edit_data(5, sends=[9]),
        r"version 5: .*: sends names version 9; it should name an earlier",
    ),
    "sends of what is no message": (
        edit_data(5, sends=[3]),
        r"version 5: .*: sends names version 3; that should be a func",
    ),
    "a result of what is no call": (
        append(result(4)),
        r"version 38: .*: answers names version 4; that should be a function-call",
    ),
    "a result of what comes later": (
        append(result(99)),
        r"version 38: .*: answers names version 99; it should name an earlier",
    ),
    "a second result in its run": (
        append({**result(31), **IN_RUN}),
        r"version 38: .*: version 31 was answered before in its run; a run should answer a call once",
    ),
    "an approval of what is no call": (
        append(approval(1)),
        r"version 38: .*: function_call names version 1; that should",
    ),
    "an approval of what comes later": (
        append(approval(50)),
        r"version 38: .*: function_call names version 50; it should name",
    ),
    "a rewind to what comes later": (
        edit_data(16, to=16),
        r"version 16: history-rewound: to names version 16; it should name",
    ),
    "a compaction through what comes later": (
        edit_data(18, through=30),
        r"version 18: .*: through names version 30; it should",
    ),
}


@pytest.mark.parametrize("kind", LOG_FAULTS)
async def test_a_fault_of_an_event_is_named_with_its_conversation_and_version(namespace: Namespace, kind: str) -> None:
    await check_chat(namespace, *LOG_FAULTS[kind])
