from __future__ import annotations

import io
import json

from rich.console import Console

from benchmarks.ratio import Ratio
from benchmarks.table import About, from_json, markdown, summary, table, to_json

ABOUT = About("2026-01-02", "2 cores x86_64", "valkey 9.1.2", {"Python": "3.11.7", "redis": "8.1.0"}, 7, 301.0, 0.2)
MET = Ratio("append, µs", 1.1449, "≤ 1.15", True, "whole", "bare XADD", 216.4, (1.1, 1.2))
MISSED = Ratio("append, appends/s", 0.86, "≥ 1", False, "whole", "bare XADD", 19_389.7, (0.61, 0.96))
TOLD = Ratio("memory, bytes", 0.0078, "", None, "view", "the log", 40_064.0, (0.0078, 0.0078))
ROWS = [MET, MISSED, TOLD]


def printed() -> list[str]:
    console = Console(file=io.StringIO(), width=200)
    console.print(table(ROWS, ABOUT.title()))
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue().splitlines()


def line_of(name: str) -> str:
    [line] = [line for line in printed() if name in line]
    return line


def test_the_table_has_the_target_beside_the_ratio_and_marks_what_was_missed() -> None:
    cells = [cell.strip() for cell in line_of(MISSED.name).strip("│").split("│")]
    assert cells == [
        "append, appends/s",
        "whole",
        "bare XADD",
        "0.86×",
        "≥ 1",
        "MISSED",
        "19,390",
        "0.61×–0.96×",
    ]
    assert "yes" in line_of(MET.name)
    assert "MISSED" not in line_of(MET.name)


def test_a_ratio_for_information_is_neither_met_nor_missed() -> None:
    assert "yes" not in line_of(TOLD.name)
    assert "MISSED" not in line_of(TOLD.name)


def test_a_small_ratio_keeps_three_places() -> None:
    assert "0.008×" in line_of(TOLD.name)


def test_the_title_says_when_and_where() -> None:
    assert "2026-01-02, 2 cores x86_64, valkey 9.1.2" in printed()[0]


def test_json_is_a_list_of_rows_with_these_fields() -> None:
    document = json.loads(to_json(ROWS))
    assert [list(row) for row in document] == [
        ["name", "ratio", "target", "met", "contender", "against", "median", "spread"]
    ] * len(ROWS)
    assert document[1] == {
        "name": "append, appends/s",
        "ratio": 0.86,
        "target": "≥ 1",
        "met": False,
        "contender": "whole",
        "against": "bare XADD",
        "median": 19_389.7,
        "spread": [0.61, 0.96],
    }


def test_rows_are_read_back_as_they_were() -> None:
    assert from_json(to_json(ROWS)) == ROWS


def test_markdown_is_a_dated_section_with_machine_versions_and_one_line_a_row() -> None:
    lines = markdown(ROWS, ABOUT).splitlines()
    assert lines[0] == "## 2026-01-02, 2 cores x86_64, valkey 9.1.2"
    assert lines[2] == "Python 3.11.7, redis 8.1.0; 7 rounds in 5 min; load at the start 0.2."
    assert lines[6] == "| append, µs | whole | bare XADD | 1.14× | ≤ 1.15 | yes | 216 | 1.10×–1.20× |"
    assert "| 0.86× | ≥ 1 | **missed** |" in lines[7]
    assert all(line.count("|") == lines[4].count("|") for line in lines[5:9])


def test_a_bar_in_a_name_does_not_break_the_table() -> None:
    [_, line] = [line for line in markdown([MET._replace(name="a|b")], ABOUT).splitlines() if "|" in line][1:]
    assert line.startswith("| a&#124;b | whole |")


def test_the_summary_counts_targets_and_names_what_was_missed() -> None:
    assert summary(ROWS) == "1 of 2 targets met. Missed: append, appends/s, whole 0.86× (≥ 1)."
    assert summary([MET, TOLD]) == "1 of 1 targets met."
