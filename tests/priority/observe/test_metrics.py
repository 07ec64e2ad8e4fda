"""Metrics of the queue: sums over all processes, the same from each."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from codegen.rules.metrics.promql import parse_selectors
from tests.priority.conftest import NewServers
from tests.support import quick_yaml
from tests.support.priority.metrics_scrape import scrape
from tests.support.priority.rule_tests import find_firing
from tests.support.priority.stack import BRISK, Queue, Stack, expect_success, wait_until

ROOT = Path(__file__).parents[3]
PRIORITIES = ("high", "medium", "low")
REASONS = ("timeout", "worker_lost", "reported")
STATES = ("queued", "executing", "completed", "failed", "cancelled", "dead_letter")
ENDS = ("completed", "failed", "cancelled", "dead_letter")
MICROSECONDS = 1_000_000
DEAD_AFTER_S = 3600
"""So long that no worker counts as dead that a test has not silenced."""
EXPECTED = {
    "queue_depth": "gauge",
    "queue_age_seconds": "gauge",
    "queue_oldest_seconds": "gauge",
    "tasks_promoted": "counter",
    "task_duration_seconds": "histogram",
    "task_retries": "counter",
    "task_state_total": "gauge",
    "workers_total": "gauge",
    "worker_capacity_used_ratio": "gauge",
    "worker_heartbeat_failures": "counter",
    "tasks_failed": "counter",
    "tasks_dlq": "counter",
}
"""Names as the parser knows them, which has counters without their ending, and types."""


@pytest.mark.req("PQ-121", "PQ-230", "PQ-232")
def test_a_new_queue_exports_every_series_as_zero(queue: Queue) -> None:
    """Names, types and all values of all labels, before anything has happened."""
    found = scrape(queue.client)
    assert {name: found.families[name].type for name in EXPECTED} == EXPECTED
    for priority in PRIORITIES:
        assert found.value("queue_depth", priority=priority) == 0
        assert found.value("queue_oldest_seconds", priority=priority) == 0
        for percentile in ("p50", "p95", "p99"):
            assert found.value("queue_age_seconds", priority=priority, percentile=percentile) == 0
        for reason in REASONS:
            assert found.value("task_retries_total", priority=priority, reason=reason) == 0
        for status in ENDS:
            assert found.value("task_duration_seconds_count", priority=priority, status=status) == 0
            assert found.value("task_duration_seconds_sum", priority=priority, status=status) == 0
            assert (
                found.value("task_duration_seconds_bucket", priority=priority, status=status, le="+Inf") == 0
            )
    for step in (("low", "medium"), ("medium", "high")):
        assert found.value("tasks_promoted_total", **dict(zip(("from", "to"), step, strict=True))) == 0
    assert [found.value("task_state_total", status=each) for each in STATES] == [0] * 6
    assert [found.value("workers_total", status=each) for each in ("active", "draining", "dead")] == [0] * 3
    for reason in (*REASONS, "non_retriable", "max_retries_exceeded"):
        assert found.value("tasks_failed_total", reason=reason) == 0
    for name in ("worker_capacity_used_ratio", "worker_heartbeat_failures_total", "tasks_dlq_total"):
        assert found.value(name) == 0


@pytest.mark.req("PQ-219")
def test_depth_of_each_queue(queue: Queue) -> None:
    """Equal to the queues themselves."""
    for number, priority in enumerate(PRIORITIES, 1):
        for _ in range(number):
            queue.submit(priority=priority)
    found = scrape(queue.client)
    depths = [found.value("queue_depth", priority=each) for each in PRIORITIES]
    assert depths == [1, 2, 3] == [queue.redis.zcard(f"queue:{each}") for each in PRIORITIES]


@pytest.mark.req("PQ-220")
def test_ages_of_waiting_tasks(queue: Queue) -> None:
    """A hundred with known ages: half are not older than 50 seconds, 95 not older than 95."""
    began = time.monotonic()
    now = int(queue.redis.time()[0])
    queue.redis.zadd("queue:medium", {f"t{age}": (now - age) * MICROSECONDS for age in range(1, 101)})
    found = scrape(queue.client)
    # They grow older until the scrape, however long that takes; and the moment above is a whole second.
    later = time.monotonic() - began + 1
    ages = {"p50": 50, "p95": 95, "p99": 99}
    for percentile, age in ages.items():
        exported = found.value("queue_age_seconds", priority="medium", percentile=percentile)
        assert age - 1 <= exported <= age + 1 + later
    assert 100 <= found.value("queue_oldest_seconds", priority="medium") <= 100 + later
    assert found.value("queue_age_seconds", priority="low", percentile="p99") == 0


@pytest.mark.req("PQ-221")
def test_promotions_are_counted_by_step(brisk_queue: Queue) -> None:
    """A task of low priority that is over-aged makes both steps and counts once for each."""
    queue = brisk_queue
    task = queue.submit(priority="low")
    _backdate(queue, task, "low", int(queue.read_hash(task)["queued_at"]) - 1_300 * MICROSECONDS)
    wait_until(lambda: queue.list_queues(task), "it is high", lambda seen: seen == ["high"])
    found = scrape(queue.client)
    assert found.value("tasks_promoted_total", **{"from": "low", "to": "medium"}) == 1
    assert found.value("tasks_promoted_total", **{"from": "medium", "to": "high"}) == 1


@pytest.mark.req("PQ-222")
def test_durations_are_measured_from_submission_to_end(queue: Queue) -> None:
    """A task that was submitted 100 seconds ago has a duration of 100 seconds, in the bucket up to 300."""
    began = time.monotonic()
    worker = queue.register()
    task = queue.submit(priority="high")
    created = int(queue.read_hash(task)["created_at"])
    queue.redis.hset(f"tasks:{task}", "created_at", created - 100 * MICROSECONDS)
    queue.complete(worker, queue.claim(worker))
    labels = {"priority": "high", "status": "completed"}
    found = scrape(queue.client)
    assert found.value("task_duration_seconds_count", **labels) == 1
    assert 100 <= found.value("task_duration_seconds_sum", **labels) <= 100 + time.monotonic() - began
    buckets = [
        found.value("task_duration_seconds_bucket", **labels, le=each) for each in ("60", "300", "+Inf")
    ]
    assert buckets == [0, 1, 1]


@pytest.mark.req("PQ-223", "PQ-228", "PQ-229", "PQ-197", "PQ-218", "PQ-227")
def test_failures_are_counted_by_cause(brisk_queue: Queue) -> None:
    """One retry for each cause, one task that is not retried, and one dead letter."""
    queue = brisk_queue
    worker, silent = queue.register(), queue.register()
    late = queue.submit(priority="high")
    queue.claim(worker)
    lost = queue.submit(priority="medium")
    assert queue.claim(silent)["task_id"] == lost
    reported = queue.submit(priority="low")
    assert queue.fail(worker, queue.claim(worker)) == "queued"
    queue.run_out_of_time(late)
    queue.silence(silent, DEAD_AFTER_S + 1)
    wait_until(
        lambda: [queue.read_hash(each)["retry_count"] for each in (late, lost, reported)],
        "each was requeued once",
        lambda seen: seen == ["1", "1", "1"],
    )
    for task in (late, lost, reported):
        queue.cancel(task)
    queue.submit(priority="low")
    assert queue.fail(worker, queue.claim(worker), retriable=False) == "failed"
    queue.make_dead_letter(worker, priority="low")
    found = scrape(queue.client)
    retries = {labels: value for labels, value in found.series("task_retries_total").items() if value}
    assert {(dict(each)["priority"], dict(each)["reason"]): value for each, value in retries.items()} == {
        ("high", "timeout"): 1,
        ("medium", "worker_lost"): 1,
        ("low", "reported"): 1,
    }
    failed = {dict(each)["reason"]: value for each, value in found.series("tasks_failed_total").items()}
    assert failed == dict.fromkeys((*REASONS, "non_retriable", "max_retries_exceeded"), 1)
    assert found.value("tasks_dlq_total") == 1
    assert found.value("worker_heartbeat_failures_total") == 1


@pytest.mark.req("PQ-224")
def test_states_are_those_of_the_hashes(queue: Queue) -> None:
    """After a mixed run, the metrics equal a count over all tasks."""
    worker = queue.register(capacity=10)
    for _ in range(3):
        queue.submit()
    queue.complete(worker, queue.claim(worker))
    queue.fail(worker, queue.claim(worker), retriable=False)
    queue.claim(worker)
    queue.make_dead_letter(worker)
    queue.cancel(queue.submit())
    for _ in range(4):
        queue.submit()
    hashes = [key for key in queue.redis.scan_iter("tasks:*") if re.fullmatch(r"tasks:[0-9a-f-]{36}", key)]
    states = [str(queue.redis.hget(key, "status")) for key in hashes]
    found = scrape(queue.client)
    assert {each: found.value("task_state_total", status=each) for each in STATES} == {
        each: states.count(each) for each in STATES
    }
    assert sorted(set(states)) == sorted(STATES)


@pytest.mark.req("PQ-225", "PQ-226")
def test_workers_and_their_load(queue: Queue) -> None:
    """Three of five slots are in use; draining workers count, and without any there is no capacity."""
    worker = queue.register(capacity=5)
    for _ in range(3):
        queue.submit()
    assert len(queue.poll(worker, 5)) == 3
    found = scrape(queue.client)
    assert found.value("worker_capacity_used_ratio") == pytest.approx(0.6)
    expect_success(queue.beat(queue.register(capacity=1), status="draining"))
    found = scrape(queue.client)
    assert [found.value("workers_total", status=each) for each in ("active", "draining", "dead")] == [1, 1, 0]
    assert found.value("worker_capacity_used_ratio") == pytest.approx(0.5)


@pytest.mark.req("PQ-231")
def test_two_processes_export_the_same(shared_stack: Stack, queue: Queue) -> None:
    """Whatever each of them did: the maximum over both is the truth, and nothing counts twice."""
    one, other = queue, shared_stack.queue(shared_stack.add("api"))
    worker = one.register(capacity=10)
    for number in range(6):
        (one, other)[number % 2].submit(priority="low")
    for each in (one, other):
        each.complete(worker, each.claim(worker))
    one.make_dead_letter(worker, priority="high")
    found = [scrape(each.client) for each in (one, other)]
    for name in ("queue_depth", "task_state_total", "task_duration_seconds_count", "tasks_dlq", "workers"):
        assert found[0].series(name) == found[1].series(name)
    greatest = max(
        each.value("task_duration_seconds_count", priority="low", status="completed") for each in found
    )
    assert (greatest, found[0].value("queue_depth", priority="low")) == (2, 4)
    assert found[1].value("tasks_dlq_total") == 1


@pytest.mark.req("PQ-240")
def test_every_metric_of_an_alert_is_in_the_scrape(queue: Queue) -> None:
    """With the very names that Prometheus stores."""
    rules = quick_yaml.read((ROOT / "generated/priority/deploy/alerts.yaml").read_text())["groups"][0][
        "rules"
    ]
    named = {each.metric for rule in rules for each in parse_selectors(rule["expr"])}
    assert named <= scrape(queue.client).names()


@pytest.mark.req("PQ-238")
@pytest.mark.parametrize(("age", "fires"), [(1501, True), (1400, False)])
def test_a_stuck_promoter_is_detected(queue: Queue, age: int, fires: bool) -> None:
    """A task of low priority is still in its own queue after 25 minutes: the alert sees it in the scrape."""
    task = queue.submit(priority="low")
    _backdate(queue, task, "low", (int(queue.redis.time()[0]) - age) * MICROSECONDS)
    rules = quick_yaml.read((ROOT / "generated/priority/deploy/alerts.yaml").read_text())["groups"][0][
        "rules"
    ]
    rule = next(each for each in rules if each["alert"] == "PromotionStuck")
    samples = {labels: [(0.0, value)] for labels, value in scrape(queue.client).samples.items()}
    assert bool(find_firing(rule, samples, 0.0)) is fires


@pytest.mark.req("PQ-246")
def test_the_four_areas_have_metrics_and_rows() -> None:
    """Queues, durations, workers and errors each have metrics; the dashboard has a row for each."""
    metrics = quick_yaml.read((ROOT / "spec/priority/metrics.yaml").read_text())["metrics"]
    areas = {row.get("area") for row in metrics.values()}
    assert {"queues", "durations", "workers", "errors"} <= areas


@pytest.fixture(scope="module")
def brisk(new_servers: NewServers, logs: Path) -> Iterator[Stack]:
    """An API where all due transitions happen soon."""
    with Stack(new_servers(), logs) as stack:
        stack.add("api", intervals=BRISK, WORKER_DEAD_SECONDS=str(DEAD_AFTER_S))
        yield stack


@pytest.fixture
def brisk_queue(brisk: Stack) -> Queue:
    """The same with nothing in it."""
    brisk.redis.flushdb()
    return brisk.queue()


def _backdate(queue: Queue, task: str, priority: str, then: int) -> None:
    """Make a task as old as it should be: in its record, its queue and the part of the queue."""
    queue.redis.hset(f"tasks:{task}", mapping={"created_at": then, "queued_at": then})
    queue.redis.zadd(f"queue:{priority}", {task: then})
    for key in queue.redis.scan_iter(f"queue:{priority}:cap:*"):
        if queue.redis.zscore(key, task) is not None:
            queue.redis.zadd(key, {task: then})
