"""A real cluster of three primaries and three replicas on this machine."""

from __future__ import annotations

import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import redis
from redis.exceptions import ConnectionError, ResponseError

from eventlog.store.redis.routing import SLOTS, slot_of

PATIENCE = 60.0
PRIMARIES = 3
NODE_TIMEOUT_MS = 1_500


def until(condition: Callable[[], object], what: str) -> None:
    """Wait until it holds."""
    end = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < end, f"in {PATIENCE:g} s not: {what}"
        time.sleep(0.02)


_given: set[int] = set()
"""Ports that this process gave out: one that is free may be that of a node about to start."""


def free_port() -> int:
    """A port that is free together with that of the cluster's bus, 10,000 above it; never the same twice."""
    while True:
        with socket.socket() as probe, socket.socket() as bus:
            probe.bind(("127.0.0.1", 0))
            port = int(probe.getsockname()[1])
            if port > 55_000 or {port, port + 10_000} & _given:
                continue
            with suppress(OSError):
                bus.bind(("127.0.0.1", port + 10_000))
                _given.update((port, port + 10_000))
                return port


_DIE_WITH_US = """
import ctypes, os, signal, sys
ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG: it outlives the change of the program
os.execv(sys.argv[1], sys.argv[1:])
"""
"""Becomes the program that its arguments name, which ends with the thread that started it."""


class Node:
    """One server of the cluster."""

    OURS = "nodes"
    """The name of the connections that ``client`` makes."""

    def __init__(self, executable: str, home: Path, *, dies_with_us: bool = False) -> None:
        self.port = free_port()
        self.url = f"redis://127.0.0.1:{self.port}"
        self.client = redis.Redis("127.0.0.1", self.port, decode_responses=True, client_name=self.OURS)
        bound = dies_with_us and sys.platform == "linux"
        self._program = [sys.executable, "-c", _DIE_WITH_US, executable] if bound else [executable]
        self._files = home / str(self.port)
        self._files.mkdir()
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        options = {
            "port": str(self.port),
            "bind": "127.0.0.1",
            "dir": str(self._files),
            "appendonly": "yes",
            "save": "",
            "repl-diskless-sync": "yes",
            "repl-diskless-sync-delay": "0",
            "cluster-enabled": "yes",
            "cluster-node-timeout": str(NODE_TIMEOUT_MS),
            "cluster-require-full-coverage": "no",
            "cluster-allow-replica-migration": "no",
            "cluster-replica-validity-factor": "0",
        }
        words = [word for name, value in options.items() for word in (f"--{name}", value)]
        with (self._files / "log").open("ab") as log:
            self._process = subprocess.Popen([*self._program, *words], stdout=log, stderr=log)
        until(self._answers, f"{self.url} answers")

    def _answers(self) -> bool:
        assert self._process is not None
        assert self._process.poll() is None, (self._files / "log").read_text(errors="replace")[-2_000:]
        with suppress(ConnectionError):
            return bool(self.client.ping())
        return False

    @property
    def id(self) -> str:
        return str(self.ask("CLUSTER", "MYID"))

    def ask(self, *words: str | int) -> Any:
        """A command's reply as it comes."""
        return self.client.execute_command(" ".join(map(str, words[:1])), *words[1:])

    def is_primary(self) -> bool:
        with suppress(ConnectionError):
            return bool(self.client.info("replication")["role"] == "master")
        return False

    def kill(self) -> None:
        assert self._process is not None
        self._process.kill()
        self._process.wait()

    def stall(self) -> None:
        """It says and does nothing until it goes on."""
        assert self._process is not None
        self._process.send_signal(signal.SIGSTOP)

    def go_on(self) -> None:
        assert self._process is not None
        self._process.send_signal(signal.SIGCONT)

    def end(self) -> None:
        self.client.close()
        if self._process is not None:
            self.go_on()
            self.kill()


class Nodes:
    """The cluster: ``primaries[i]`` is at first replicated by ``replicas[i]``."""

    def __init__(self, executable: str, *, die_with_us: bool = False) -> None:
        """With ``die_with_us`` (on Linux) nodes end with the thread that started them, also when that is killed."""
        self.home = Path(tempfile.mkdtemp(prefix="cluster"))
        self.all = [Node(executable, self.home, dies_with_us=die_with_us) for _ in range(2 * PRIMARIES)]
        self.primaries, self.replicas = self.all[:PRIMARIES], self.all[PRIMARIES:]

    @property
    def url(self) -> str:
        return self.primaries[0].url

    def __enter__(self) -> Self:
        try:
            self._start()
        except BaseException:
            self._end()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._end()

    def _start(self) -> None:
        for node in self.all:
            node.start()
        for number, node in enumerate(self.primaries):
            first, last = number * SLOTS // PRIMARIES, (number + 1) * SLOTS // PRIMARIES - 1
            node.ask("CLUSTER", "ADDSLOTSRANGE", first, last)
        for number, node in enumerate(self.all, 1):
            node.ask("CLUSTER", "SET-CONFIG-EPOCH", number)
            if node is not self.all[0]:
                self.all[0].ask("CLUSTER", "MEET", "127.0.0.1", node.port)
        until(lambda: all(self._known_by(node) == len(self.all) for node in self.all), "all nodes have met")
        for primary, replica in zip(self.primaries, self.replicas, strict=True):
            replica.ask("CLUSTER", "REPLICATE", primary.id)
        self.settle()

    def settle(self) -> None:
        """Wait until all nodes agree, and each primary has its replica in step."""
        until(lambda: all(self._is_whole(node) for node in self.all), "the cluster is whole")

    def _known_by(self, node: Node) -> int:
        return int(_fields(node.ask("CLUSTER", "INFO"))["cluster_known_nodes"])

    def _is_whole(self, node: Node) -> bool:
        with suppress(ConnectionError, ResponseError):
            told = _fields(node.ask("CLUSTER", "INFO"))
            role = node.client.info("replication")
            linked = role.get("connected_slaves") == 1 or role.get("master_link_status") == "up"
            return told["cluster_state"] == "ok" and told["cluster_slots_ok"] == str(SLOTS) and linked
        return False

    def primary_of(self, key: str) -> Node:
        """Who serves it now, as itself says."""
        slot = slot_of(key.encode())
        for node in self.all:
            if node.is_primary():
                for first, last, *_ in (found for found in self._slots(node) if found[2] == node.port):
                    if first <= slot <= last:
                        return node
        raise AssertionError(f"nobody serves {key}")

    @staticmethod
    def _slots(node: Node) -> list[tuple[int, int, int]]:
        return [(first, last, int(owner[1])) for first, last, owner, *_ in node.ask("CLUSTER", "SLOTS")]

    def _end(self) -> None:
        for node in self.all:
            node.end()
        shutil.rmtree(self.home, ignore_errors=True)


def _fields(told: object) -> dict[str, str]:
    if isinstance(told, dict):
        return {str(name): str(value) for name, value in told.items()}
    return dict(line.split(":", 1) for line in str(told).split() if ":" in line)
