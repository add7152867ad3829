"""Starts the processes of a run, again when one has ended, and ends them all by their ids."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path

from chaos.order import Order
from chaos.schedule import PROCESSES, clock_of
from chaos.stage import Stage

MODULES = {"agent": "agents", "follower": "followers", "group": "group", "projector": "projector", "reader": "reader"}
"""What each kind of process runs."""
_STRANGE = 4
ROOT = Path(__file__).parents[1]


class Supervisor:
    """All processes, by name."""

    def __init__(self, seed: int, stage: Stage, home: Path) -> None:
        self.kills: Counter[str] = Counter()
        self.left: Counter[str] = Counter()
        """Lives that ended because the server was away for too long."""
        self._seed = seed
        self._stage = stage
        self._home = home
        self._lives: Counter[str] = Counter()
        self._running: dict[str, subprocess.Popen[bytes]] = {}
        self._paused: set[str] = set()
        self._over: set[str] = set()
        """Kinds that are not started again."""

    def start_all(self) -> None:
        """Each process begins its first life."""
        for kind, count in PROCESSES.items():
            for number in range(count):
                self.start(f"{kind}-{number}")

    def start(self, name: str) -> subprocess.Popen[bytes]:
        """Begin the next life of a process."""
        life = self._lives[name]
        self._lives[name] += 1
        shift, jump = clock_of(self._seed, name, life)
        url, durability = self._stage.url(_kind(name)), self._stage.durability
        order = Order(name, life, self._seed, url, str(self._home), os.getpid(), durability, shift, jump)
        with (self._home / f"{name}.{life}.err").open("wb") as err:
            process = subprocess.Popen(
                [sys.executable, "-m", f"chaos.{MODULES[_kind(name)]}", order.write()],
                cwd=ROOT,
                stdin=subprocess.DEVNULL,
                stdout=err,
                stderr=err,
                env={**os.environ, "PYTHONWARNINGS": "default"},
            )
        self._running[name] = process
        return process

    async def kill(self, name: str, downtime: float) -> None:
        """Kill it by SIGKILL; after ``downtime`` seconds it begins another life."""
        process = self._running.get(name)
        if process is None or name in self._paused:
            return
        del self._running[name]
        process.send_signal(signal.SIGKILL)
        await asyncio.to_thread(process.wait)
        self.kills[_kind(name)] += 1
        await asyncio.sleep(downtime)
        if _kind(name) not in self._over:
            self.start(name)

    async def freeze(self, name: str, seconds: float) -> None:
        """Stop it in mid-step, and let it go on as if nothing had been."""
        process = self._running.get(name)
        if process is None or process.poll() is not None or name in self._paused:
            return
        self._paused.add(name)
        try:
            process.send_signal(signal.SIGSTOP)
            await asyncio.sleep(seconds)
        finally:
            process.send_signal(signal.SIGCONT)
            self._paused.discard(name)

    async def watch(self) -> None:
        """Start again what ended by itself, until cancelled."""
        while True:
            for name, process in list(self._running.items()):
                if process.poll() is not None and _kind(name) not in self._over:
                    self.left[_kind(name)] += process.returncode != _STRANGE
                    self.start(name)
            await asyncio.sleep(0.1)

    async def stop_agents(self, seconds: float) -> list[str]:
        """Let agents finish what they do; the names of those that did not end in time."""
        self._over.add("agent")
        (self._home / "stop").touch()
        late = []
        for name, process in list(self._running.items()):
            if _kind(name) == "agent":
                try:
                    await asyncio.to_thread(process.wait, seconds)
                except subprocess.TimeoutExpired:
                    late.append(name)
                    self._end(name)
        return late

    async def read_all(self, seconds: float) -> int | None:
        """Run the reader; its exit code, None when it did not end in time."""
        self._over.add("reader")
        process = self.start("reader-0")
        try:
            return await asyncio.to_thread(process.wait, seconds)
        except subprocess.TimeoutExpired:
            return None
        finally:
            self._end("reader-0")

    def end_all(self) -> None:
        """Nothing that was started here is there afterwards."""
        self._over.update(MODULES)
        for name in list(self._running):
            self._end(name)

    @property
    def lives(self) -> int:
        """How many lives there were."""
        return self._lives.total()

    def _end(self, name: str) -> None:
        process = self._running.pop(name)
        process.kill()
        process.wait()


def _kind(name: str) -> str:
    return name.partition("-")[0]
