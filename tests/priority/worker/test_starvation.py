"""Starvation: no task of low priority waits for ever, however many of high priority come."""

from __future__ import annotations

import pytest
from rich.console import Console

from bench.starvation import MEDIUM_S, format_table, run_flood


@pytest.mark.req("PQ-031")
def test_low_tasks_are_started_within_the_bound() -> None:
    """Nine of ten tasks are urgent and workers are overloaded: the others wait, and not for too long."""
    outcome = run_flood(seconds=6.0, per_s=400)
    Console().print(format_table(outcome))
    assert outcome.promoted, "without promotion it would prove nothing"
    assert max(outcome.waited["low"]) > MEDIUM_S, "they did wait"
    assert outcome.longest <= outcome.bound
