"""What is drawn from the seed is the same each time, and what it is drawn for."""

from __future__ import annotations

from collections import Counter

from chaos.chance import chance
from chaos.schedule import PROCESSES, clock_of, cluster_schedule, schedule


def test_the_same_seed_gives_the_same_faults_and_another_one_others() -> None:
    assert schedule(1, 60) == schedule(1, 60)
    assert schedule(1, 60) != schedule(2, 60)


def test_a_longer_run_begins_with_the_faults_of_a_shorter_one() -> None:
    short = schedule(3, 60)
    assert schedule(3, 300)[: len(short)] == short


def test_a_short_run_already_meets_faults_of_every_kind_and_kills_every_kind_of_process() -> None:
    kinds: Counter[str] = Counter()
    killed: set[str] = set()
    for seed in range(20):
        faults = schedule(seed, 60)
        assert all(0 < fault.at < 60 for fault in faults)
        kinds.update(fault.kind for fault in faults)
        killed.update(fault.target.partition("-")[0] for fault in faults if fault.kind == "kill")
        assert Counter(fault.kind for fault in faults)["kill"] >= 10
    assert set(kinds) == {"kill", "freeze", "server", "cut", "lose", "drop", "hold", "refuse", "blackout"}
    assert killed == set(PROCESSES)


def test_on_a_cluster_a_primary_falls_and_slots_move_in_any_run_of_some_seconds() -> None:
    for seed in range(20):
        kinds = Counter(fault.kind for fault in cluster_schedule(seed, 15))
        assert (kinds["promote"], kinds["move"]) == (1, 2)
        assert set(kinds) <= {"kill", "freeze", "cut", "hold", "promote", "move"}
    long = cluster_schedule(3, 300)
    assert long[: len(cluster_schedule(3, 60))] == cluster_schedule(3, 60)
    assert Counter(fault.kind for fault in long)["promote"] == 8


def test_clocks_are_wrong_by_the_seed() -> None:
    assert clock_of(5, "agent-1", 2) == clock_of(5, "agent-1", 2)
    shifts = {clock_of(5, "agent-1", life)[0] for life in range(50)}
    assert min(shifts) < 0 < max(shifts)


def test_an_agents_script_is_its_own() -> None:
    one, other = chance(1, "script", "agent-0.0.1"), chance(1, "script", "agent-0.1.0")
    assert [one.random() for _ in range(5)] != [other.random() for _ in range(5)]
    assert chance(1, "a").random() == chance(1, "a").random()
