"""The keys of a view's part in one partition, and how what they hold is packed. Pure.

``RedisViews`` lists them. Names are percent-encoded like ids.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple
from urllib.parse import quote, unquote

import orjson

from eventlog.errors import Unreadable
from eventlog.identity import LogId
from eventlog.store.redis import replies
from eventlog.store.view_checks import check_text
from eventlog.store.views import Filed, Found, Kept, ViewId


class ViewKeys(NamedTuple):
    """The keys of one view in one partition."""

    base: str
    about: str
    kept: str
    indexes: str
    totalled: str
    trial: str
    """Where a commit tries what it may do, before it does any of it; empty otherwise."""

    def rows(self, path: str) -> str:
        return f"{self.base}rows:{path}"

    def entries(self, path: str) -> str:
        return f"{self.base}entries:{path}"

    def sums(self, path: str) -> str:
        return f"{self.base}sums:{path}"

    def totals(self, tenant: str) -> str:
        """By the tenant's encoded name."""
        return f"{self.base}totals:{tenant}"

    def lines(self, name: str) -> str:
        """The lines of an index, by what ``index_name`` gives."""
        return f"{self.base}index:{name}"


@lru_cache(maxsize=1024)
def view_keys(namespace: str, view: ViewId, partition: int) -> ViewKeys:
    """The keys of the view there. Raises ``InvalidInput`` for a projection whose name is not text."""
    base = f"{{{namespace}:{partition}}}:view:{encoded(view.projection, 'projection')}:{view.generation}:"
    return ViewKeys(base, f"{base}about", f"{base}kept", f"{base}indexes", f"{base}totalled", f"{base}trial")


def encoded(name: str, what: str) -> str:
    """A name as it stands in keys. Raises ``InvalidInput``."""
    return quote(check_text(name, what), safe="")


def index_name(tenant: str, index: str) -> str:
    """``<tenant>/<index>``: the end of the index's key."""
    return f"{encoded(tenant, 'tenant')}/{encoded(index, 'index')}"


def index_of(name: bytes) -> tuple[str, str]:
    """The inverse of ``index_name``."""
    tenant, _, index = name.decode().partition("/")
    return unquote(tenant), unquote(index)


def pack_kept(kept: Kept) -> bytes:
    """``<version>-<stamp>|<state>``."""
    return b"%d-%d|%b" % (kept.cursor.version, kept.cursor.stamp, kept.state)


def unpack_kept(log: LogId, packed: bytes) -> Kept:
    """The inverse of ``pack_kept``. Raises ``Unreadable``."""
    place, _, state = packed.partition(b"|")
    try:
        return Kept(replies.cursor(log, place), state)
    except ValueError as error:
        raise Unreadable(f"what a view keeps of {log.path} is no place and state: {packed!r:.80}") from error


def pack_filed(filed: Filed) -> bytes:
    """``under`` as JSON, a NUL, the document."""
    return orjson.dumps(filed.under, option=orjson.OPT_SORT_KEYS) + b"\0" + filed.document


def unpack_filed(packed: bytes) -> Filed:
    """The inverse of ``pack_filed``. Raises ``Unreadable``."""
    under, _, document = packed.partition(b"\0")
    try:
        return Filed(document, orjson.loads(under))
    except ValueError as error:
        raise Unreadable(f"an entry of a view does not hold what it should: {packed!r:.80}") from error


def member(sort: str, path: str, key: str) -> str:
    """A line of an index, which is sorted by it. No two entries of a view share one."""
    return f"{sort}\0{path}\0{quote(key, safe='')}"


def found(line: bytes) -> Found:
    """What a line names, its document still missing. Raises ``Unreadable``."""
    try:
        text = line.decode()
        _, path, key = text.split("\0")
    except ValueError as error:
        raise Unreadable(f"an index holds {line!r:.80}, which is no line of one") from error
    return Found(text, LogId.of_path(path), unquote(key), None)
