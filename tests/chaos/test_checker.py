"""The checker is checked: each planted fault is caught by exactly the property that should."""

from __future__ import annotations

import json
from collections.abc import Callable
from itertools import groupby
from pathlib import Path
from typing import Any

import pytest

from chaos.checker.state import Entry
from chaos.ledger import Line
from chaos.report import Report
from tests.chaos.planting import Plot

pytestmark = pytest.mark.timeout(300)


def test_a_run_in_which_nothing_goes_wrong_holds_every_property(calm: tuple[Report, Path], plot: Plot) -> None:
    report, _ = calm
    assert [str(finding) for finding in report.findings] == []
    assert report.settled is not None
    assert plot.found() == []
    assert plot.is_rich(), "hardly anything was done: this run proves nothing"


def operations(plot: Plot, path: str) -> list[list[Entry]]:
    return [list(group) for _, group in groupby(plot.state.logs[path], lambda entry: entry.operation)]


# The logs and feeds


def test_a_conversation_in_a_partition_that_is_not_its_own_is_caught(plot: Plot) -> None:
    path = plot.longest()
    wrong = (plot.state.places[path] + 1) % 4
    here, there = plot.key("log", path), f"{{chaos:{wrong}}}:log:{path}"
    plot.raw[there] = plot.raw.pop(here)
    assert "keys" in plot.properties()


def test_a_key_that_is_none_of_the_layout_is_caught(plot: Plot) -> None:
    plot.raw["{chaos:0}:other"] = "hash", {}
    assert plot.properties() == {"keys"}


def test_a_dropped_event_in_the_middle_of_a_log_is_caught(plot: Plot) -> None:
    path = plot.longest()
    del plot.stream(path)[len(plot.stream(path)) // 2]
    assert plot.properties() == {"versions"}


def test_a_head_that_is_behind_its_log_is_caught(plot: Plot) -> None:
    path = plot.longest()
    plot.head(path)[b"last"] = plot.stream(path)[-2][0]
    assert plot.properties() == {"versions"}


def whole(plot: Plot, size: Callable[[int], bool]) -> tuple[str, list[Entry]]:
    """An operation of such a size."""
    return next(
        (path, events)
        for path in sorted(plot.state.logs)
        for events in operations(plot, path)
        if size(len(events)) and events[0].version > 1
    )


def test_a_torn_operation_is_caught(plot: Plot) -> None:
    """Its last event belongs to another one."""
    path, events = whole(plot, lambda size: size > 1)
    plot.change(path, events[-1].version, lambda document: document.update(id="torn.0"))
    assert plot.properties() == {"operations"}


def test_an_operation_of_which_the_end_was_never_written_is_caught(plot: Plot) -> None:
    path, events = whole(plot, lambda size: size == 1)
    for line in plot.each("sent"):
        if line["op"] == events[0].operation:
            line["n"] = 2
    plot.remove(lambda line: line["do"] in ("acked", "told") and line["op"] == events[0].operation)
    assert plot.properties() == {"operations"}, path


def test_a_doubled_operation_is_caught(plot: Plot) -> None:
    path = plot.longest()
    one, other = operations(plot, path)[-1], operations(plot, path)[3]
    size = min(len(one), len(other))
    for event, copied in zip(one[:size], other[:size], strict=True):
        plot.change(path, event.version, lambda document, copied=copied: document.update(id=copied.document["id"]))
    assert plot.properties() == {"operations"}


def test_events_of_one_operation_that_came_by_two_transmissions_are_caught(plot: Plot) -> None:
    path, events = whole(plot, lambda size: size > 1)
    _, fields = plot.stream(path)[events[-1].version - 1]
    plot.stream(path)[events[-1].version - 1] = f"{events[-1].version}-1".encode(), fields
    if plot.state.logs[path][-1].version == events[-1].version:
        plot.head(path)[b"last"] = plot.stream(path)[-1][0]
    assert plot.properties() == {"operations"}


def test_reordered_events_of_an_operation_are_caught(plot: Plot) -> None:
    path, events = whole(plot, lambda size: size > 1)
    one, other = events[0], events[1]
    for event, of in ((one, other), (other, one)):
        plot.change(path, event.version, lambda document, of=of: (document.clear(), document.update(of.document)))
    assert plot.properties() == {"operations"}


def test_a_hole_in_a_feed_is_caught(plot: Plot) -> None:
    feed = plot.feed(plot.longest())
    last = int(feed[-1][0].partition(b"-")[2])
    _, fields = feed[-1]
    feed[-1] = f"0-{last + 1}".encode(), fields
    found = plot.found()
    assert {finding.property for finding in found} == {"feed", "lag"}  # nobody's mark can stand at such an end
    assert found[0].told.startswith(f"entry {last} is missing")


@pytest.mark.parametrize("field", [b"f", b"n", b"k", b"s"])
def test_a_feed_that_says_something_else_than_the_log_is_caught(plot: Plot, field: bytes) -> None:
    fields = plot.feed(plot.longest())[2][1]
    fields[field] = b"99"
    assert plot.properties() == {"feed"}


def test_a_conversation_that_is_listed_under_another_number_is_caught(plot: Plot) -> None:
    path = plot.longest()
    plot.listed(plot.state.places[path])[path.encode()] += 1
    assert plot.properties() == {"feed"}


def test_a_head_that_forgot_an_open_run_or_kept_one_that_ended_is_caught(plot: Plot) -> None:
    head = plot.head(plot.longest())
    head[b"run:nobody"] = b"per-run|1|1|0|1|1|aa|me"
    head[b"open"] = str(int(head.get(b"open", b"0")) + 1).encode()
    assert plot.properties() == {"runs"}


# What callers were told


def test_an_acknowledged_operation_that_was_lost_everywhere_is_caught(plot: Plot) -> None:
    path = closed(plot)
    plot.lose_end(path)
    assert plot.properties() == {"acknowledged"}


def closed(plot: Plot) -> str:
    """A log whose last operation has nothing to do with a run, and was acknowledged."""
    told = {line["op"] for line in plot.each("acked")}
    for path in sorted(plot.state.logs):
        events = plot.last_operation(path)
        if (
            events[0].version > 5
            and all("run" not in event.document for event in events)
            and events[0].operation in told
        ):
            return path
    path = plot.longest()
    while any("run" in event.document for event in plot.last_operation(path)):
        forgotten = plot.lose_end(path)
        plot.remove(lambda line, operation=forgotten: line.get("op") == operation)
    mend_runs(plot, path)
    return path


def mend_runs(plot: Plot, path: str) -> None:
    """Let the head know the runs that the log leaves open."""
    head, entries = plot.head(path), plot.state.logs[path]
    ended = {one.document["run"] for one in entries if one.document["type"] in ("run-committed", "run-aborted")}
    opened = [one.document["run"] for one in entries if one.document["type"] == "run-started"]
    for name in [name for name in head if name.startswith(b"run:")]:
        del head[name]
    still = [run for run in opened if run not in ended]
    head.update({f"run:{run}".encode(): b"" for run in still})
    head[b"open"] = str(len(still)).encode()


def test_an_acknowledgement_that_named_another_place_is_caught(plot: Plot) -> None:
    line = next(line for line in plot.each("told") if line["first"] > 3)
    line["first"] -= 1
    assert plot.properties() == {"acknowledged"}


def test_an_acknowledgement_that_named_another_stamp_is_caught(plot: Plot) -> None:
    plot.each("told")[5]["stamp"] += 1
    assert plot.properties() == {"acknowledged"}


def test_content_that_is_not_what_was_given_is_caught(plot: Plot) -> None:
    plot.each("told")[5]["marks"][0] = "something else"
    assert plot.properties() == {"acknowledged"}


def test_an_operation_that_was_refused_and_is_there_is_caught(plot: Plot) -> None:
    line = posted(plot)
    operation = line["op"]
    life = plot.life_of(line)
    plot.remove(lambda one: one.get("op") == operation and one["do"] in ("acked", "told"))
    for _ in range(len([one for one in plot.each("sent") if one["op"] == operation])):
        life.lines.append({"do": "refused", "op": operation, "error": "VersionConflict"})
    assert plot.properties() == {"refused"}


def test_an_operation_that_nobody_sent_is_caught(plot: Plot) -> None:
    operation = posted(plot)["op"]
    plot.remove(lambda one: one.get("op") == operation)
    assert plot.properties() == {"unasked"}


def posted(plot: Plot) -> Line:
    """What was told of a post that is there."""
    logs = plot.state.logs
    return next(line for line in plot.each("told") if "/post" in line["op"] and line["path"] in logs)


def test_operations_that_stand_in_another_order_than_their_callers_are_caught(plot: Plot) -> None:
    """The later one is said to have been acknowledged before the earlier one was sent."""
    life, one, other = two_of_one_process(plot)
    lines = [line for line in life.lines if line.get("op") == other["op"]]
    life.lines[:] = lines + [line for line in life.lines if line.get("op") != other["op"]]
    assert one["first"] < other["first"]
    assert plot.properties() == {"order"}


def two_of_one_process(plot: Plot) -> tuple[Any, Line, Line]:
    for life in plot.lives:
        acked = [line for line in life.lines if line["do"] == "acked" and not line["duplicate"]]
        for one in acked:
            for other in acked:
                if other["path"] == one["path"] and other["first"] > one["first"]:
                    return life, one, other
    raise AssertionError("no process wrote twice to one conversation")


# Runs


def test_a_former_holder_whose_event_follows_the_take_over_is_caught(plot: Plot) -> None:
    """As of a store that forgot to compare fences: what stands behind a run-resumed was sent under the fence before."""
    resumed = plot.taken_over()
    assert resumed is not None
    for line in plot.each("sent"):
        if line["op"] == resumed.operation:
            before = line["fence"]
            fence = "0123456789abcdef"
            line["fence"] = fence
            path = line["path"]
            plot.change(path, resumed.version, lambda document, fence=fence: document["data"].update(fence=fence))
            assert before != fence
    assert plot.properties() == {"fences"}


def test_two_exclusive_runs_that_are_open_together_are_caught(plot: Plot) -> None:
    """As of a store that forgot to count the runs that are open: what ended the first one is taken away."""
    path, end = next(
        (path, entry.version)
        for path, entries in sorted(plot.state.logs.items())
        for entry in entries
        if entry.document["type"] == "run-committed"
        and any(later.document["type"] == "run-started" for later in entries[entry.version :])
    )
    for line in plot.each("sent"):
        if line["step"] == "start":
            line["exclusive"] = True
    plot.change(path, end, lambda document: document.update(type="service-call-failed"))
    assert "alone" in plot.properties()


# Histories


def test_a_history_that_lacks_a_message_is_caught(plot: Plot) -> None:
    line = next(line for line in plot.each("view") if line["source"] == "load" and len(line["messages"]) > 2)
    del line["messages"][1]
    assert plot.properties() == {"reads"}


def test_a_history_in_another_order_is_caught(plot: Plot) -> None:
    line = next(line for line in plot.each("view") if line["source"] == "at" and len(line["messages"]) > 2)
    line["messages"].reverse()
    assert plot.properties() == {"reads"}


def test_a_history_that_says_other_words_is_caught(plot: Plot) -> None:
    line = next(line for line in plot.each("view") if line["messages"])
    line["messages"][0][2][0]["content"] = "other"
    assert plot.properties() == {"reads"}


def test_a_history_that_tells_other_open_calls_is_caught(plot: Plot) -> None:
    next(line for line in plot.each("view") if line["version"])["open"].append(1)
    assert plot.properties() == {"reads"}


def test_a_request_that_lacks_what_stands_in_the_view_is_caught(plot: Plot) -> None:
    line = next(line for line in plot.each("request") if len(line["messages"]) > 2 and not line["continues"])
    del line["messages"][0]
    assert plot.properties() == {"requests"}


@pytest.mark.parametrize("harm", ["dropped", "doubled", "reordered"])
def test_a_history_view_with_a_row_dropped_doubled_or_reordered_is_caught(plot: Plot, harm: str) -> None:
    _, _, rows = plot.history()
    if harm == "dropped":
        del rows[1]
    elif harm == "doubled":
        rows.insert(1, rows[1])
    else:
        rows[1], rows[2] = rows[2], rows[1]
    assert plot.properties() == {"kept"}


def test_usage_that_was_counted_twice_is_caught(plot: Plot) -> None:
    """As when a step of a projector is done twice."""
    key = next(key for key in sorted(plot.raw) if f":{plot.view('usage')}:totals:" in key)
    name = min(plot.raw[key][1])
    plot.raw[key][1][name] = b"%d" % (2 * int(plot.raw[key][1][name]))
    assert plot.properties() == {"counted"}


def test_a_run_that_a_view_tells_to_be_in_another_state_is_caught(plot: Plot) -> None:
    key = next(key for key in sorted(plot.raw) if f":{plot.view('runs')}:entries:" in key)
    name = min(plot.raw[key][1])
    under, _, document = plot.raw[key][1][name].partition(b"\0")
    wrong = json.loads(document) | {"resumed": 9}
    plot.raw[key][1][name] = under + b"\0" + json.dumps(wrong).encode()
    assert plot.properties() == {"counted"}


def test_what_the_products_own_verification_found_is_told(plot: Plot) -> None:
    plot.lives[0].lines.append({"do": "differs", "told": "runs: a row"})
    assert plot.properties() == {"verified"}


# Followers, the group, the ends


@pytest.mark.parametrize("harm", ["skipped", "doubled", "reordered", "stopped"])
def test_a_follower_that_skipped_doubled_reordered_or_stopped_is_caught(plot: Plot, harm: str) -> None:
    line = next(line for line in plot.each("saw") if line["v"] > 3)
    lines = plot.life_of(line).lines
    of_it = [n for n, one in enumerate(lines) if one.get("who") == line["who"] and one.get("path") == line["path"]]
    of_it = [n for n in of_it if lines[n]["do"] == "saw"]
    if harm == "skipped":
        del lines[of_it[2]]
    elif harm == "doubled":
        lines.insert(of_it[2], lines[of_it[2]])
    elif harm == "stopped":
        del lines[of_it[-1]]
    else:
        lines[of_it[1]], lines[of_it[2]] = lines[of_it[2]], lines[of_it[1]]
    assert plot.properties() == {"followed"}


def test_a_follower_of_a_tenant_that_never_heard_of_a_conversation_is_caught(plot: Plot) -> None:
    who, path = next(
        (line["who"], line["path"]) for line in plot.each("saw") if " tenant " in line["who"] and line["v"] == 1
    )
    plot.remove(lambda line: line["do"] == "saw" and line["who"] == who and line["path"] == path)
    assert plot.properties() == {"followed"}


def test_an_event_that_no_member_handled_is_caught(plot: Plot) -> None:
    path, last = plot.longest(), len(plot.stream(plot.longest()))
    plot.remove(lambda line: line["do"] in ("begin", "end") and (line["path"], line["v"]) == (path, last))
    assert plot.properties() == {"handled"}


def test_an_event_that_was_handed_over_and_is_another_is_caught(plot: Plot) -> None:
    plot.each("begin")[3]["s"] += 1
    assert plot.properties() == {"handled"}


def test_events_that_were_handled_out_of_order_are_caught(plot: Plot) -> None:
    line = next(line for line in plot.each("end") if line["v"] == 2)
    later = [one for one in plot.each("begin") if (one["path"], one["v"]) == (line["path"], 3)]
    later[0]["t"] = line["t"] - 1
    assert plot.properties() == {"in-order"}


def test_a_reader_that_is_not_at_the_end_is_caught(plot: Plot) -> None:
    mark = plot.mark()
    seq, _, stamp = mark[b"mark"].partition(b"-")
    mark[b"mark"] = b"%d-%b" % (int(seq) - 1, stamp)
    assert plot.properties() == {"lag"}


@pytest.mark.parametrize("what", ["waiting", "parked"])
def test_what_waits_or_is_parked_in_the_end_is_caught(plot: Plot, what: str) -> None:
    plot.raw[f"{{chaos:0}}:reader:workers:{what}"] = "hash", {b"blue/one": b"1|1-1|0|0|0|0"}
    assert plot.properties() == {"lag"}


def test_a_view_that_is_not_at_a_logs_end_is_caught(plot: Plot) -> None:
    path = plot.longest()
    kept = plot.kept("usage", plot.state.places[path])
    kept[path.encode()] = b"1-1|" + kept[path.encode()].partition(b"|")[2]
    assert plot.properties() == {"lag"}


def test_what_should_not_happen_at_all_is_told(plot: Plot) -> None:
    plot.lives[0].lines.append({"do": "strange", "error": "LogLost"})
    assert plot.properties() == {"strange"}
