"""Lines that are no conversation of the chat-completions form."""

from __future__ import annotations

from typing import Any

import pytest

from tests.gateway.cli import Cli


def line(message: str) -> str:
    """A line with one message."""
    return f'{{"id": "x", "messages": [{message}]}}'


def calling(call: str) -> str:
    """A line with one message that makes one call."""
    return line(f'{{"role": "assistant", "tool_calls": [{call}]}}')


def valued(value: str) -> str:
    """A line with one message that has a field of this value."""
    return line(f'{{"role": "user", "content": "a", "n": {value}}}')


FINE: dict[str, Any] = {"id": "c1", "messages": [{"role": "assistant", "content": "Hello."}]}
MALFORMED = {
    "{": "not JSON at column 2",
    "[]": "the line: must be an object",
    '{"messages": []}': "id: is missing",
    '{"id": 7, "messages": []}': "id must be text, not int",
    '{"id": "", "messages": []}': "id '' has 0 bytes",
    '{"id": "x"}': "messages: is missing",
    '{"id": "x", "messages": {}}': "messages: must be a list, not an object",
    '{"id": "x", "messages": [], "tools": []}': "tools: would be lost",
    '{"id": "\\udfff", "messages": []}': "has a lone surrogate",
    line("1"): "messages[0]: must be an object, not a number",
    line('{"role": "robot", "content": "a"}'): "messages[0].role: 'robot' is not one of",
    line('{"content": "a"}'): "messages[0].role: None is not one of",
    line('{"role": ["user"], "content": "a"}'): "messages[0].role: ['user'] is not one of",
    line('{"role": "user", "content": 1}'): "messages[0].content: must be a string",
    line('{"role": "user", "content": ["a"]}'): "messages[0].content[0]: must be an object",
    line('{"role": "user", "content": [{"text": "a"}]}'): "messages[0].content[0].type: is missing",
    line('{"role": "user", "content": [{"type": "text"}]}'): "messages[0].content[0].text: must be a string",
    line('{"role": "user", "content": "\\ud800"}'): "messages[0].content: '\\ud800' has a lone surrogate",
    line('{"role": "user", "content": "a", "\\ud800": 1}'): "messages[0]: the key '\\ud800' is not well-formed",
    line('{"role": "assistant", "tool_calls": {}}'): "messages[0].tool_calls: must be a list",
    line('{"role": "tool", "content": "a"}'): "messages[0].tool_call_id: is missing",
    line('{"role": "tool", "tool_call_id": 1, "content": "a"}'): "messages[0].tool_call_id: must be a string",
    line('{"role": "tool", "tool_call_id": "t"}'): "messages[0].content: must be a string or a list",
    calling("7"): "messages[0].tool_calls[0]: must be an object",
    calling('{"id": "t"}'): "messages[0].tool_calls[0].function: is missing",
    calling('{"function": {"name": "f"}}'): "messages[0].tool_calls[0].id: is missing",
    calling('{"id": "t", "function": {"name": 1}}'): "messages[0].tool_calls[0].function.name: must be a string",
    calling('{"id": "t", "type": "x"}'): "messages[0].tool_calls[0].type: 'x' is not function or custom",
    valued("NaN"): "NaN is not a JSON number",
    valued("-Infinity"): "-Infinity is not a JSON number",
    valued("1e999"): "messages[0].n: inf is not a finite number",
    valued("18446744073709551616"): "messages[0].n: the integer 18446744073709551616 does not fit in 64 bits",
    valued("9" * 5000): "not JSON",
    valued("[" * 250 + "]" * 250): "nested deeper",
    "[" * 100_000: "nested too deep",
    '{"id": "a", "id": "b", "messages": []}': " id: the key stands twice",
    '{"id": "x", "messages": [], "messages": [{}, {}]}': " messages: the key stands twice",
    line('{"role": "user", "content": "x", "content": "x"}'): " messages[0].content: the key stands twice",
    line('{"role": "user", "content": "x", "\\u0063ontent": "y"}'): " messages[0].content: the key stands twice",
    calling('{"id": "t", "function": {"name": "f", "name": "g"}}'): "messages[0].tool_calls[0].function.name: the key",
    line('{"a": {"b": 1, "b": 2}, "a": 3}'): " messages[0].a: the key stands twice",
    valued('[{"k": 1}, {"a\\n\\u009b": 1, "a\\n\\u009b": 2}]'): "messages[0].n[1].a\\n\\x9b: the key stands twice",
    valued('{"x": ' * 240 + '{"k": 1, "k": 2}' + "}" * 240): "the key stands twice",
}


def test_malformed_lines_are_refused_with_their_number_and_path_and_the_rest_imported(
    cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gateway.command.exchange.SHOWN", len(MALFORMED) + 1)
    lines: list[str | bytes | dict[str, Any]] = []
    for malformed in MALFORMED:
        lines += [malformed, ""]
    result = cli.import_lines(FINE, *lines, b'{"id": "\xff"}', {**FINE, "id": "last"})
    assert result.exit_code == 3
    told = result.stderr.splitlines()
    assert len(told) == len(MALFORMED) + 1
    for number, (said, problem) in enumerate(zip(told, MALFORMED.values(), strict=False)):
        assert said.startswith(f"stdin:{2 + 2 * number}: ")
        assert problem in said
    assert "not UTF-8 at byte 9" in told[-1]
    assert "2 conversations: 2 added" in result.stdout
    assert f"{len(MALFORMED) + 1} lines refused" in result.stdout
    assert [conversation["id"] for conversation in cli.exported()] == ["c1", "last"]
