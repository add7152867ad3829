"""Servers as a test wants them, and the command."""

from __future__ import annotations

import json
import shutil
import socket
import socketserver
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest
import redis
import typer
from typer.testing import CliRunner, Result

from eventlog.server.binary import find
from gateway.command import health


def command(*arguments: str) -> Result:
    """Run ``doctor`` or ``verify``; an exception that is no ending of a command is raised."""
    app = typer.Typer()
    app.command()(health.doctor)
    app.command()(health.verify)
    result = CliRunner().invoke(app, list(arguments))
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


def diagnosis(url: str, *arguments: str, code: int = 0) -> dict[str, Any]:
    """What doctor says as JSON, with the exit code that is due."""
    result = command("doctor", "--url", url, "--json", *arguments)
    assert result.exit_code == code, result.output
    told: dict[str, Any] = json.loads(result.stdout)
    return told


def free_port() -> int:
    """A port that a server may listen on; low enough for that of a cluster's bus, 10,000 above it."""
    for _ in range(100):
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port: int = probe.getsockname()[1]
        if port < 55_000:
            return port
    raise AssertionError("no free port below 55,000")


Start = Callable[..., int]


@pytest.fixture(params=["valkey", "redis"])
def executable(request: pytest.FixtureRequest) -> str:
    if request.param == "valkey":
        return str(find().path)
    found = shutil.which("redis-server")
    if found is None:
        pytest.skip("no redis-server on this machine")
    return found


@contextmanager
def running(executable: str, *options: str, ready: Callable[[int], bool]) -> Iterator[int]:
    """A server on a TCP port; ends with the block."""
    home = tempfile.mkdtemp(prefix="doctor")
    port = free_port()
    process = subprocess.Popen(
        [executable, "--dir", home, "--save", "", "--bind", "127.0.0.1", "--port", str(port), *options],
        stdout=subprocess.DEVNULL,
    )
    try:
        deadline = time.monotonic() + 20
        while not ready(port):
            assert process.poll() is None, f"{executable} ended"
            assert time.monotonic() < deadline, f"{executable} did not start"
            time.sleep(0.01)
        yield port
    finally:
        process.terminate()
        process.wait()
        shutil.rmtree(home, ignore_errors=True)


def answers(port: int) -> bool:
    try:
        with redis.Redis(port=port) as client:
            client.ping()
    except redis.AuthenticationError:
        return True
    except redis.ConnectionError:
        return False
    return True


@pytest.fixture
def start(executable: str) -> Iterator[Start]:
    """Starts servers with these options, and tells their ports."""
    with ExitStack() as stack:
        yield lambda *options: stack.enter_context(running(executable, *options, ready=answers))


@contextmanager
def speaking(reply: Callable[[bytes], bytes]) -> Iterator[int]:
    """A server that answers each request, as bytes, with what ``reply`` makes of it."""

    class Handler(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            while request := self.request.recv(65_536):
                self.request.sendall(reply(request))

    class Server(socketserver.ThreadingTCPServer):
        allow_reuse_address = True
        daemon_threads = True

    with Server(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield server.server_address[1]
        finally:
            server.shutdown()
            thread.join()


@pytest.fixture(scope="session")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A self-signed certificate for localhost, and its key."""
    openssl = shutil.which("openssl")
    assert openssl, "openssl is not on PATH: install it"
    home = tmp_path_factory.mktemp("tls")
    cert, key = home / "cert.pem", home / "key.pem"
    names = "subjectAltName=DNS:localhost,IP:127.0.0.1"
    made = f"req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=localhost -addext {names}".split()
    subprocess.run(
        [openssl, *made, "-keyout", str(key), "-out", str(cert)],
        check=True,
        capture_output=True,
    )
    return cert, key
