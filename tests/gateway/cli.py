"""The command as a test uses it: on one server, in a namespace of its own."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anyio
from typer.testing import CliRunner, Result

from eventlog import Conversation, EventLog
from gateway.command import app

AIRLINE = Path(__file__).parents[3] / "shared" / "data" / "airline-trajectories.jsonl.gz"


@dataclass(frozen=True)
class Cli:
    url: str
    namespace: str

    @property
    def env(self) -> dict[str, str]:
        return {"EVENTLOG_URL": self.url, "EVENTLOG_NAMESPACE": self.namespace}

    def run(self, *arguments: str | Path, stdin: str | bytes | None = None) -> Result:
        """The command with these arguments; an exception that is no ending of a command is raised."""
        result = CliRunner().invoke(app, [str(argument) for argument in arguments], input=stdin, env=self.env)
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        return result

    def out(self, *arguments: str | Path, stdin: str | bytes | None = None) -> str:
        """What a command that must succeed writes."""
        result = self.run(*arguments, stdin=stdin)
        assert result.exit_code == 0, result.output
        return result.stdout

    def json(self, *arguments: str | Path, stdin: str | bytes | None = None) -> Any:
        """The JSON that a command writes."""
        return json.loads(self.out(*arguments, "--json", stdin=stdin))

    def import_lines(self, *lines: str | bytes | dict[str, Any], mode: str = "per-service-call") -> Result:
        """Import these lines from stdin."""
        content = b"".join(_line(line) + b"\n" for line in lines)
        return self.run("import", "-", "--format", "openai-chat", "--mode", mode, stdin=content)

    def exported(self, *arguments: str) -> list[dict[str, Any]]:
        """The conversations that an export writes."""
        return [json.loads(line) for line in self.out("export", *arguments).split("\n") if line]

    def record(self, conversation: str, work: Callable[[Conversation], Awaitable[object]]) -> None:
        """Record something in a conversation of the tenant ``default``."""

        async def recording() -> None:
            async with EventLog.open(self.url, namespace=self.namespace) as log:
                await work(log.tenant("default").conversation(conversation))

        anyio.run(recording)


def _line(line: str | bytes | dict[str, Any]) -> bytes:
    if isinstance(line, bytes):
        return line
    return (line if isinstance(line, str) else json.dumps(line)).encode()
