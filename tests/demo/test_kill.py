"""A process is really killed between its tool's result and the next service call."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from uuid import uuid4

import anyio
import anyio.to_thread
import pytest

from eventlog import EventLog
from gateway.demo.child import Order
from gateway.demo.kill import kill_midway
from gateway.demo.script import BUS
from projections import history
from tests.demo.conftest import ROOT, processes

pytestmark = pytest.mark.anyio


def _order(url: str, question: str = BUS) -> Order:
    return {
        "url": url,
        "data": None,
        "durability": "everysec",
        "tenant": "demo",
        "conversation": f"kill-{uuid4().hex}",
        "mode": "per-service-call",
        "question": question,
    }


async def test_the_process_ends_by_sigkill_with_its_result_appended_and_its_run_open(server: str) -> None:
    order = _order(server)
    killed = await kill_midway(order)
    assert killed.signal == signal.SIGKILL
    with pytest.raises(ProcessLookupError):
        os.kill(killed.pid, 0)
    async with EventLog.open(server) as log:
        chat = log.tenant("demo").conversation(order["conversation"])
        events = [event async for event in chat.read()]
        assert (events[-1].version, events[-1].type) == (killed.appended, "function-result")
        (run,) = (await chat.head()).runs
        assert run.holder.endswith(f":{killed.pid}")
        assert (await history.load(chat)).open_calls[0].run_open
        await chat.abort_run(run.run, force=True)


async def test_a_process_that_ends_without_its_word_is_an_error(server: str, capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(ChildProcessError, match="ended before its tool's result was appended"):
        await kill_midway(_order(server, "What is on the moon?"))
    assert "the script knows no answer" in capfd.readouterr().err


async def test_cancelling_leaves_no_process_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mark = f"demo-test-{uuid4().hex}"
    monkeypatch.setenv("EVENTLOG_TEST_MARK", mark)
    async with anyio.create_task_group() as killing:
        # No server is there, so the process never gives its word.
        killing.start_soon(kill_midway, _order(f"unix://{tmp_path / 'nobody.sock'}"))
        with anyio.fail_after(20):
            while "gateway.demo.child" not in await anyio.to_thread.run_sync(processes, mark):
                await anyio.sleep(0.01)
        killing.cancel_scope.cancel()
    assert await anyio.to_thread.run_sync(processes, mark) == ""


async def test_a_process_that_nobody_kills_finishes_its_turn_when_its_input_ends(server: str) -> None:
    order = _order(server)
    child = await anyio.to_thread.run_sync(_run_and_close, order)
    assert child == 0
    async with EventLog.open(server) as log:
        chat = log.tenant("demo").conversation(order["conversation"])
        view = await history.load(chat)
        assert view.messages[-1].text == "The 07:15 bus."
        assert (await chat.head()).runs == ()


def _run_and_close(order: Order) -> int:
    with subprocess.Popen(
        [sys.executable, "-m", "gateway.demo.child"], cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as child:
        assert child.stdin is not None
        assert child.stdout is not None
        child.stdin.write(json.dumps(order).encode() + b"\n")
        child.stdin.flush()
        assert json.loads(child.stdout.readline())["pid"] == child.pid
        child.stdin.close()
        return child.wait(timeout=30)
