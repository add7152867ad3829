"""The keys of a server as they lie there, read with redis-py alone."""

from __future__ import annotations

import pickle
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import redis

Raw = dict[str, tuple[str, Any]]
"""Key -> type and value: a stream as [(id, fields)], a hash and a sorted set as dicts, a set, a list."""


def read(client: Any) -> Raw:
    """Every key. Bytes stay bytes but for the names of keys."""
    found: Raw = {}
    for key in client.scan_iter(count=1000):
        kind = client.type(key).decode()
        name = key.decode()
        if kind == "stream":
            found[name] = kind, client.xrange(key)
        elif kind == "hash":
            found[name] = kind, client.hgetall(key)
        elif kind == "zset":
            found[name] = kind, dict(client.zrange(key, 0, -1, withscores=True))
        elif kind == "set":
            found[name] = kind, set(client.smembers(key))
        elif kind == "list":
            found[name] = kind, client.lrange(key, 0, -1)
        else:
            found[name] = kind, client.get(key)
    return found


def of_socket(socket: Path) -> Raw:
    """Every key of the server that listens there."""
    with redis.Redis(unix_socket_path=str(socket)) as client:
        return read(client)


def of_ports(ports: Iterable[int]) -> Raw:
    """Every key of the nodes of a cluster that listen there. One that two nodes have is said to be nothing at all."""
    found: Raw = {}
    for port in ports:
        with redis.Redis("127.0.0.1", port, single_connection_client=True) as client:
            client.execute_command("READONLY")
            for key, value in read(client).items():
                found[key] = ("on two nodes", None) if key in found else value
    return found


def keep(raw: Raw, path: Path) -> None:
    """Write it to a file, to be looked at later with ``kept``."""
    path.write_bytes(pickle.dumps(raw))


def kept(path: Path) -> Raw:
    """The inverse of ``keep``, for files of one's own."""
    found: Raw = pickle.loads(path.read_bytes())  # noqa: S301  written by ``keep``
    return found
