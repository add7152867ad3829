"""A script on the server: run by its digest, sent whole when the server does not know it."""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import sha1
from importlib.resources import files
from typing import Any

from eventlog.store.redis.wire import ReplyError, Way, pack


@dataclass(frozen=True, slots=True)
class Script:
    """The text of a script and its SHA-1, by which servers know scripts."""

    text: str
    sha: str

    @classmethod
    def load(cls, name: str) -> Script:
        """Read the script that lies beside this file."""
        text = files(__package__).joinpath(name).read_text()
        return cls(text, sha1(text.encode(), usedforsecurity=False).hexdigest())

    async def run(self, wire: Way, *arguments: str | bytes | int) -> Any:
        """Run it with the number of keys, the keys, and the arguments; return its reply."""
        reply = await wire.execute(pack("EVALSHA", self.sha, *arguments))
        if isinstance(reply, ReplyError) and str(reply).startswith("NOSCRIPT"):
            reply = await wire.execute(pack("EVAL", self.text, *arguments))
        return reply
