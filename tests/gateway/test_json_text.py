"""JSON as it is written for programs, by way of a terminal."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eventlog.errors import InvalidInput
from gateway.formats.json_text import parse, write
from tests.gateway.cli import Cli

OBEYED = "".join(
    map(
        chr,
        (*range(0x20), *range(0x7F, 0xA0), 0x061C, 0x200E, 0x200F, *range(0x2028, 0x202F), *range(0x2066, 0x206A)),
    )
)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(1 << 63), (1 << 64) - 1) | st.text() | st.text(OBEYED + '\\"u0a'),
    lambda values: st.lists(values) | st.dictionaries(st.text() | st.text(OBEYED), values),
    max_leaves=10,
)


@given(VALUES)
def test_what_is_written_is_the_same_value_and_nothing_that_a_terminal_obeys(value: Any) -> None:
    written = write(value).decode()
    assert parse(written.encode()) == value
    assert not set(OBEYED) & set(written)


def test_what_a_terminal_only_shows_is_written_as_it_is() -> None:
    text = "café 漢字\u3000🌍 👩\u200d🚀 \u00a0ÿ\u0100\u2027\u202f"
    assert write([text]).decode() == f'["{text}"]'


@pytest.mark.parametrize("arguments", ["log -c c --json", "history -c c --json", "explain -c c --json", "export"])
def test_no_command_writes_in_json_what_a_terminal_obeys(cli: Cli, arguments: str) -> None:
    cli.out("append", "-c", "c", "--role", "user", "--message", f"a{OBEYED[1:]}z")
    shown = cli.out(*arguments.split())
    assert not set(OBEYED) - {"\n"} & set(shown)
    assert "\\u009b" in shown
    assert "\\u202e" in shown


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ('{"a": 1, "a": 1}', "a"),
        ('[{"x": {}}, {"b": 1, "c": 2, "c": 3}]', "[1].c"),
        ('{"a": [{"b": 1, "b": 2}], "d": 1, "d": 2}', "d"),
        ('{"": 1, "": 2}', ""),
    ],
)
def test_a_key_that_stands_twice_is_refused_with_its_path(text: str, path: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        parse(text.encode())
    assert str(refused.value) == f"{path}: the key stands twice in its object; keep one"


def test_the_same_key_in_different_objects_is_fine() -> None:
    text = '[{"a": {"a": 1}}, {"a": 1}]'
    assert parse(text.encode()) == json.loads(text)
