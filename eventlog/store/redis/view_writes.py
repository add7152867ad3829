"""What a commit writes of each conversation, as reader_advance.lua takes it. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import chain

from eventlog.store.redis.view_keys import ViewKeys, index_name, member, pack_filed, pack_kept
from eventlog.store.views import Filed, Writing

_FIRST = 6
"""The number of the first key that is not the reader's."""


def is_fresh(writing: Writing) -> bool:
    """Whether everything that was there before goes."""
    return writing.fresh or writing.kept is None


def lines(writing_path: str, tenant: str, entries: Mapping[str, Filed | None]) -> dict[str, set[str]]:
    """The lines of these entries in each index, by its name. ``tenant`` is not encoded."""
    found: dict[str, set[str]] = {}
    for key, filed in entries.items():
        for index, sort in filed.under.items() if filed is not None else ():
            found.setdefault(index_name(tenant, index), set()).add(member(sort, writing_path, key))
    return found


class Writes:
    """Collects the keys and the arguments of one commit to one view."""

    def __init__(self, view: ViewKeys) -> None:
        self._view = view
        self._types: dict[str, str] = {view.about: "hash"}
        self._numbers: dict[str, int] = {view.about: _FIRST}
        self._commands: list[str | bytes | int] = []
        self._listed: dict[str, tuple[str, str]] = {}

    @property
    def keys(self) -> tuple[str, ...]:
        """The view's own, which must be there, and those that are written."""
        return tuple(self._types)

    def scanned(self, text: str) -> None:
        """Keep how far a scan is."""
        self._add("HSET", self._view.about, "hash", ("scanned", text))

    def write(self, writing: Writing, before: Mapping[str, Filed]) -> None:
        """``before`` is what is filed of the keys that change; all that is filed for a fresh writing."""
        view, path, tenant = self._view, writing.log.path, writing.log.tenant
        own, totals = path.partition("/")[0], view.totals(path.partition("/")[0])
        gone, come = lines(path, tenant, before), {}
        if is_fresh(writing):
            self._add("SUBTRACT", view.sums(path), "hash", (), totals)
            self._listed[totals] = (view.totalled, own)
            self._add("DEL", view.rows(path), "list", ())
            self._add("DEL", view.entries(path), "hash", ())
        if writing.kept is None:
            self._add("HDEL", view.kept, "hash", (path,))
        else:
            come = lines(path, tenant, writing.entries)
            self._add_all("RPUSH", view.rows(path), "list", writing.rows)
            put: list[str | bytes] = []
            for key, filed in writing.entries.items():
                put += [key, pack_filed(filed)] if filed is not None else []
            self._add_all("HSET", view.entries(path), "hash", put)
            if not writing.fresh:
                out = [key for key, filed in writing.entries.items() if filed is None]
                self._add_all("HDEL", view.entries(path), "hash", out)
            if writing.sums:
                amounts = chain.from_iterable((name, str(amount)) for name, amount in writing.sums.items())
                self._add("ADD", view.sums(path), "hash", amounts, totals)
                self._listed[totals] = (view.totalled, own)
            self._add("HSET", view.kept, "hash", (path, pack_kept(writing.kept)))
        for name in {**gone, **come}:
            key, stay = view.lines(name), come.get(name, set())
            self._add_all("ZREM", key, "zset", sorted(gone.get(name, set()) - stay))
            self._add_all("ZADD", key, "zset", list(chain.from_iterable(("0", line) for line in sorted(stay))))
            self._listed[key] = (view.indexes, name)

    def arguments(self) -> list[str | bytes | int]:
        """The types of the keys and the writes. Nothing may be written to it afterwards."""
        for key, (names, name) in self._listed.items():
            self._add("LIST", key, "hash" if names == self._view.totalled else "zset", (name,), names)
        types = self._types.values()
        return [len(types), *types, *self._commands]

    def _add_all(self, command: str, key: str, kind: str, items: Sequence[str | bytes]) -> None:
        if items:
            self._add(command, key, kind, items)

    def _add(self, command: str, key: str, kind: str, items: Iterable[str | bytes], other: str | None = None) -> None:
        number = self._number(key, kind)
        # The other is a hash of totals, or the set that names the key.
        second = 0 if other is None else self._number(other, "set" if command == "LIST" else "hash")
        listed = list(items)
        self._commands += [command, number, second, len(listed), *listed]

    def _number(self, key: str, kind: str) -> int:
        self._types.setdefault(key, kind)
        return self._numbers.setdefault(key, _FIRST + len(self._numbers))
