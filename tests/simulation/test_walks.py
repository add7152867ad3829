"""The append protocol holds in random walks over losses; and it needs each of its rules."""

from __future__ import annotations

import os
from dataclasses import fields, replace

import pytest

from tests.simulation.protocol import Rules
from tests.simulation.walk import Violation, Walk

STEPS = 160
WALKS = int(os.environ.get("EVENTLOG_WALKS", "4000"))
"""Walks with all rules; set the environment variable for more."""
WALKS_WITHOUT_A_RULE = 20_000
BREAKS = {
    "record": "an operation was appended twice",
    "following": "an exact append was not recognised after the window",
    "recognised_first": "an append was refused that stands in the log",
    "cursor": "a writer beyond the loss appended and was not told",
    "cursor_of_retries": "a writer beyond the loss appended and was not told",
    "evicted": "an operation was appended twice",
    "fence": "a former holder appended after a take-over",
    "random_fence": "a former holder appended after a take-over",
    "exact_cursor": "an exact append does not follow the event it expects",
    "checks_first": "the head and the log do not agree",
    "fresh_stamp": "a reader beyond the loss read on and was not told",
    "opened_cursor": "an outcome within the window was called unknown",
    "moving_cursor": "a writer beyond the loss appended and was not told",
    "every_cursor": "a writer beyond the loss appended and was not told",
    "remembered": "an operation was appended twice",
    "read_cursor": "a reader beyond the loss read on and was not told",
    "read_at_once": "a reader beyond the loss read on and was not told",
}
"""What goes wrong without each rule."""


def test_no_walk_breaks_an_invariant() -> None:
    outcomes: set[str] = set()
    for seed in range(WALKS):
        walk = Walk(seed, Rules())
        try:
            walk.run(STEPS)
        except Violation as violation:
            pytest.fail(f"seed {seed}: {violation}")
        outcomes |= walk.outcomes
    assert outcomes == {
        "done", "duplicate done", "lost", "unknown", "closed", "fenced", "busy", "conflict", "error"
    }  # fmt: skip


@pytest.mark.parametrize("rule", [rule.name for rule in fields(Rules)])
def test_each_rule_left_out_breaks_an_invariant(rule: str) -> None:
    without = replace(Rules(), **{rule: False})
    assert seed_that_breaks(without, BREAKS[rule]) is not None, f"no walk missed the rule {rule!r}"


def test_the_same_seed_walks_the_same_way() -> None:
    without = replace(Rules(), evicted=False)
    seeds = {seed_that_breaks(without, BREAKS["evicted"]) for _ in range(2)}
    assert len(seeds) == 1


def seed_that_breaks(rules: Rules, invariant: str) -> int | None:
    for seed in range(WALKS_WITHOUT_A_RULE):
        try:
            Walk(seed, rules).run(STEPS)
        except Violation as violation:
            if str(violation) == invariant:
                return seed
    return None
