"""Where a cluster keeps a key: slots, the key of a packed command, and the addresses of nodes. Pure."""

from __future__ import annotations

from binascii import crc_hqx
from collections.abc import Iterator
from typing import Any, NamedTuple
from urllib.parse import urlsplit, urlunsplit

SLOTS = 16_384
_SCRIPTS = {b"EVALSHA", b"EVAL", b"EVALSHA_RO", b"EVAL_RO"}
_KEYLESS = {b"TIME", b"PING", b"INFO"}


class Stretch(NamedTuple):
    """Slots ``first`` to ``last``, both included, and the URLs of the nodes that hold them."""

    first: int
    last: int
    primary: str
    replicas: tuple[str, ...]


class Redirect(NamedTuple):
    """Where a node sends us, and whether for this one command only (ASK)."""

    node: str
    asking: bool


def slot_of(key: bytes) -> int:
    """The slot of a key: the checksum of what stands between its first ``{`` and the next ``}``, if anything does."""
    begin = key.find(b"{") + 1
    end = key.find(b"}", begin) if begin else -1
    return crc_hqx(key[begin:end] if end > begin else key, 0) % SLOTS


def key_of(packed: bytes) -> bytes | None:
    """The first key of a command in the wire's form; None for a command that has none.

    It knows the commands that this package sends: scripts, MEMORY USAGE, and those whose key comes first.
    """
    words = _words(packed)
    name = next(words).upper()
    if name in _KEYLESS:
        return None
    if name in _SCRIPTS:
        next(words)
        return next(words, None) if next(words) != b"0" else None
    if name == b"MEMORY":
        next(words)
    return next(words, None)


def _words(packed: bytes) -> Iterator[bytes]:
    position = packed.index(b"\r\n") + 2
    while position < len(packed):
        begin = packed.index(b"\r\n", position) + 2
        end = begin + int(packed[position + 1 : begin - 2])
        yield packed[begin:end]
        position = end + 2


def node_url(url: str, host: str, port: int) -> str:
    """The URL of a node, with the scheme, user, password and options of ``url``, the URL of another."""
    parts = urlsplit(url)
    login, at, _ = parts.netloc.rpartition("@")
    shown = f"[{host}]" if ":" in host else host
    if parts.scheme == "unix":  # whose path is the socket's
        return urlunsplit(("redis", f"{login}{at}{shown}:{port}", "", parts.query, ""))
    return urlunsplit((parts.scheme, f"{login}{at}{shown}:{port}", parts.path, parts.query, ""))


def redirect(error: str, asked: str) -> Redirect | None:
    """What ``MOVED <slot> <host>:<port>`` or ``ASK …`` says; None for any other error of the node ``asked``."""
    word, _, rest = error.partition(" ")
    if word not in ("MOVED", "ASK"):
        return None
    host, _, port = rest.partition(" ")[2].rpartition(":")
    return Redirect(node_url(asked, host or _host(asked), int(port)), word == "ASK")


def stretches(reply: Any, asked: str) -> list[Stretch]:
    """What CLUSTER SLOTS of the node ``asked`` says. Raises ``ValueError`` for what is no such reply."""
    try:
        return [
            Stretch(int(first), int(last), *_split([_node(node, asked) for node in nodes]))
            for first, last, *nodes in reply
        ]
    except (TypeError, IndexError, AttributeError) as error:
        raise ValueError(f"{reply!r:.80} does not tell the slots of a cluster") from error


def uncovered(found: list[Stretch]) -> int:
    """How many slots no node serves."""
    return SLOTS - sum(stretch.last - stretch.first + 1 for stretch in found)


def _node(node: Any, asked: str) -> str:
    host, port = node[0], int(node[1])
    name = host.decode() if isinstance(host, bytes) else host
    # Empty: it does not know its address. "?": it knows none by which we could reach it.
    return node_url(asked, name if name and name != "?" else _host(asked), port)


def _split(nodes: list[str]) -> tuple[str, tuple[str, ...]]:
    return nodes[0], tuple(nodes[1:])


def _host(url: str) -> str:
    return urlsplit(url).hostname or "127.0.0.1"
