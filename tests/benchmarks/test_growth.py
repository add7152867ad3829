from __future__ import annotations

import io

from rich.console import Console

from benchmarks.growth import COSTS, Point, shown


def cells(*points: Point) -> list[list[str]]:
    console = Console(file=io.StringIO(), width=200)
    console.print(shown(points))
    assert isinstance(console.file, io.StringIO)
    lines = [line for line in console.file.getvalue().splitlines() if line.startswith("│")]
    return [[cell.strip() for cell in line.strip("│").split("│")] for line in lines]


def point(dimension: str, size: int, cost: float, log: float | None = None, view: float | None = None) -> Point:
    return Point(dimension, size, dict.fromkeys(COSTS, cost), log, view)


def test_each_cost_has_its_ratio_to_the_smallest_size_of_its_dimension() -> None:
    found = cells(point("history", 10, 100), point("history", 100, 150), point("tenants", 1, 300))
    assert [row[:3] for row in found] == [
        ["history", "10", "100 (1.00×)"],
        ["history", "100", "150 (1.50×)"],
        ["tenants", "1", "300 (1.00×)"],
    ]


def test_memory_is_told_for_each_event_or_conversation() -> None:
    found = cells(point("history", 1_000, 1, 1_123.4, 9.6), point("conversations", 1_000, 1, 4_857, 201))
    assert [row[-2:] for row in found] == [
        ["1,123 an event", "10 an event"],
        ["4,857 a conversation", "201 a conversation"],
    ]


def test_where_memory_was_not_measured_nothing_is_told() -> None:
    [row] = cells(point("followers", 10, 1))
    assert row[-2:] == ["", ""]
