"""How long an entity waits after a failure, by what its own record says."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from runtime.node.systems import load_system
from runtime.stores.layouts.s3 import KeptInS3
from runtime.stores.semantics.creation import created
from runtime.stores.semantics.edges import take_edge
from runtime.stores.semantics.rules import prepare_rules
from tests.runtime.stores.s3.conftest import Make
from tests.runtime.stores.s3.kit import TestWorld


class Waiting:
    """Failures without a bucket."""

    def __init__(self) -> None:
        self.lifecycle = load_system("objectqueue").lifecycles["task"]
        assert self.lifecycle.record is not None
        self.kept = self.lifecycle.require_storage(KeptInS3)
        self.world = TestWorld()
        self.rules = prepare_rules(self.lifecycle, self.lifecycle.record, {})

    def create(self, **fields: Any) -> Any:
        assert self.lifecycle.record is not None
        record = self.lifecycle.record(id="", task_type="t", input="1", **fields)
        return created(self.rules, record, self.world.now_ms() * 1000)

    def fail(self, record: Any, edge: Any) -> Any:
        now = self.world.now_ms() * 1000
        return take_edge(self.rules, edge, record, {"error": "x"}, now, self.world)

    def after(self, failures: int, **policy: Any) -> float:
        """Seconds from a failure until the next try."""
        usual = {
            "initial_interval_ms": 1000,
            "max_interval_ms": 60000,
            "multiplier": 2.0,
            "jitter_percent": 0.25,
        }
        made = self.kept.messages["RetryPolicy"].made(**{**usual, **policy})
        record = self.create(retry_policy=made)
        record = replace(record, retry_count=failures, max_retries=10**6, status=self.lifecycle.lease.state)  # type: ignore[union-attr]
        back, (edge,) = self.fail(record, self.lifecycle.transition("retry"))
        assert (edge.name, back.retry_count) == ("retry", failures + 1)
        wait: float = (back.available_at - back.updated_at).total_seconds()
        return wait


@pytest.mark.req("OQ-079", "OQ-077", "OQ-261")
def test_waits_grow_to_a_bound() -> None:
    waiting = Waiting()
    waits = [waiting.after(number, jitter_percent=0) for number in range(8)]
    assert waits == [1, 2, 4, 8, 16, 32, 60, 60]
    assert waiting.after(2, initial_interval_ms=10, multiplier=3.0, jitter_percent=0) == 0.09


@pytest.mark.req("OQ-080")
def test_chance_spreads_waits_by_a_fraction() -> None:
    waiting = Waiting()
    waits = [waiting.after(0) for _ in range(2000)]
    assert all(0.75 <= wait <= 1.25 for wait in waits)
    assert abs(sum(waits) / len(waits) - 1) < 0.02
    assert min(waits) < 0.8 and max(waits) > 1.2


@pytest.mark.req("OQ-080", "OQ-081")
def test_no_wait_is_negative_or_beyond_the_bound() -> None:
    waiting = Waiting()
    for failures in (0, 7, 10_000):
        for chance in (0.0, 1.0):
            waiting.world.chance = chance
            for policy in ({}, {"jitter_percent": 1.0}, {"multiplier": 1.0}, {"initial_interval_ms": 0}):
                assert 0 <= waiting.after(failures, **policy) <= 60
    waiting.world.chance = 1.0
    assert waiting.after(9) == 60


@pytest.mark.req("OQ-082", "OQ-078", "OQ-077", "OQ-118")
async def test_each_entity_has_its_own_policy(process: Make) -> None:
    one = process()
    slow = await one.submit(retry_policy=one.policy(initial_interval_ms=30_000, jitter_percent=0.0))
    fast = await one.submit(retry_policy=one.policy(initial_interval_ms=1, jitter_percent=0.0))
    for each in await one.take(free=2) + await one.take(free=2):
        assert await one.settle(each, "retry", error="no") == one.states["PENDING"]
    waits = {}
    for task in (slow, fast):
        found = await one.tasks.get(task.id)
        assert found is not None
        assert (found.retry_count, found.last_error, found.worker_id) == (1, "no", None)
        assert (found.lease_id, found.lease_expires_at) == (None, None)
        waits[task.id] = (found.available_at - found.updated_at).total_seconds()
        assert one.raw_task(task)["retry_policy"].keys() == {
            "initial_interval_ms", "max_interval_ms", "multiplier", "jitter_percent",
        }  # fmt: skip
    assert waits == {slow.id: 30, fast.id: 0.001}


@pytest.mark.req("OQ-120", "OQ-038", "OQ-124", "OQ-121", "OQ-246")
async def test_what_has_failed_too_often_or_for_good_has_ended(process: Make) -> None:
    one = process()
    task = await one.submit(max_retries=3, retry_policy=one.policy(initial_interval_ms=0))
    counts = []
    for _ in range(4):
        [taken] = await one.take()
        counts.append(taken.retry_count)
        outcome = await one.settle(taken, "retry", error="no")
    assert (counts, outcome) == ([0, 1, 2, 3], one.states["FAILED"])
    ended = one.raw_task(task)
    assert (ended["retry_count"], ended["attempt"], ended["last_error"]) == (3, 4, "no")
    assert ended["completed_at"] and one.keys("ready/") == one.keys("leases/") == []
    final = await one.submit()
    [taken] = await one.take()
    assert await one.settle(taken, "retry", error="never", final=True) == one.states["FAILED"]
    assert (one.raw_task(final)["retry_count"], one.raw_task(final)["attempt"]) == (0, 1)
    failed = (await one.tasks.find(states=[one.states["FAILED"]])).records
    assert [each.id for each in failed] == [final.id, task.id]


def test_what_was_no_failure_is_subtracted_before_the_limit() -> None:
    """Where an edge names a second count, the difference of the two is compared with the limit."""
    waiting = Waiting()
    assert waiting.lifecycle.lease is not None
    retry = waiting.lifecycle.transition("retry")
    assert retry.dead_letter is not None
    lenient = replace(retry, dead_letter=replace(retry.dead_letter, less="attempt"))
    policy = waiting.kept.messages["RetryPolicy"].made()
    record = replace(
        waiting.create(),
        status=waiting.lifecycle.lease.state,
        retry_policy=policy,
        retry_count=5,
        attempt=4,
        max_retries=2,
    )
    for edge, taken in ((retry, "fail"), (lenient, "retry")):
        assert waiting.fail(record, edge).edges[0].name == taken
    assert waiting.fail(replace(record, attempt=3), lenient).edges[0].name == "fail"
