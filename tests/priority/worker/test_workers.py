"""Workers: registration, heartbeats, draining, deregistration, and capabilities."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from tests.support.priority.metrics_scrape import scrape
from tests.support.priority.probes import UNKNOWN_ID, UUID4
from tests.support.priority.stack import Queue, Stack, expect_refusal, expect_success, wait_until


@pytest.mark.req("PQ-059", "PQ-124", "PQ-125", "PQ-130", "PQ-128", "PQ-060", "PQ-065")
def test_a_registration_is_a_new_worker(queue: Queue) -> None:
    """Each time it is a new worker, with all fields of the request."""
    body = {"capabilities": ["gpu"], "capacity": 7, "version": "1.2.3"}
    answer = expect_success(queue.worker.post("/internal/workers/register", json=body))
    assert UUID4.fullmatch(answer["worker_id"])
    assert (answer["poll_interval_ms"], answer["heartbeat_interval_seconds"]) == (1000, 30)
    again = expect_success(queue.worker.post("/internal/workers/register", json=body))
    assert again["worker_id"] != answer["worker_id"]
    (view,) = [each for each in list_workers(queue) if each["worker_id"] == answer["worker_id"]]
    assert view == {
        "worker_id": answer["worker_id"],
        "status": "active",
        "current_tasks": [],
        "last_heartbeat": view["registered_at"],
        "capacity": 7,
        "current_load": 0,
        "reported_load": None,
        "capabilities": ["gpu"],
        "version": "1.2.3",
        "registered_at": view["registered_at"],
    }
    expect_success(queue.beat(answer["worker_id"], 2))
    (later,) = [each for each in list_workers(queue) if each["worker_id"] == answer["worker_id"]]
    assert later["last_heartbeat"] >= view["last_heartbeat"]
    assert (later["reported_load"], later["current_load"]) == (2, 0)


@pytest.mark.req("PQ-061")
def test_the_default_capacity(queue: Queue) -> None:
    """Five, if the worker does not say."""
    worker = queue.register()
    for _ in range(10):
        queue.submit()
    assert len(queue.poll(worker, 10)) == 5


@pytest.mark.req("PQ-129")
@pytest.mark.parametrize(
    "body",
    [
        {"capabilities": [], "capacity": 0},
        {"capabilities": [], "capacity": -1},
        {"capabilities": [], "capacity": "5"},
        {"capabilities": "gpu"},
        {"capabilities": {"gpu": True}},
        {"capabilities": [7]},
    ],
)
def test_invalid_registrations_are_refused(queue: Queue, body: dict[str, Any]) -> None:
    """They are refused, and no worker is registered."""
    expect_refusal(queue.worker.post("/internal/workers/register", json=body), 400, "VALIDATION_ERROR")
    assert queue.list_keys() == []


@pytest.mark.req("PQ-062", "PQ-063", "PQ-064")
def test_a_worker_never_has_more_leases_than_its_capacity(queue: Queue) -> None:
    """Whatever load it reports; its load is the number of its leases."""
    worker = queue.register(capacity=3)
    for _ in range(9):
        queue.submit()
    claimed = queue.poll(worker, 100)
    assert len(claimed) == 3
    assert queue.poll(worker, 100) == []
    (view,) = list_workers(queue)
    assert view["current_tasks"] == sorted(each["task_id"] for each in claimed)
    assert view["current_load"] == 3
    queue.complete(worker, claimed[0])
    queue.fail(worker, claimed[1])
    queue.cancel(claimed[2]["task_id"])
    (view,) = list_workers(queue)
    assert (view["current_tasks"], view["current_load"]) == ([], 0)
    assert len(queue.poll(worker, 100)) == 3


@pytest.mark.req("PQ-068", "PQ-069", "PQ-136", "PQ-147")
def test_a_draining_worker_claims_nothing(queue: Queue) -> None:
    """It gets no task, ends its own, and may be active again."""
    worker = queue.register()
    running, _ = queue.submit(), queue.submit()
    claimed = queue.claim(worker)
    expect_success(queue.beat(worker, 1, "draining"))
    assert queue.poll(worker, 5) == []
    queue.complete(worker, claimed)
    assert queue.status(running) == "completed"
    expect_success(queue.beat(worker, 0, "active"))
    assert len(queue.poll(worker, 5)) == 1


@pytest.mark.req("PQ-076")
def test_a_worker_without_leases_may_deregister(queue: Queue) -> None:
    """It is deleted then, and does not count as dead."""
    worker = queue.register()
    queue.submit()
    claimed = queue.claim(worker)
    expect_success(queue.beat(worker, 1, "draining"))
    busy = expect_refusal(queue.worker.delete(f"/internal/workers/{worker}"), 409, "WORKER_BUSY")
    assert worker in busy["message"]
    queue.complete(worker, claimed)
    assert expect_success(queue.worker.delete(f"/internal/workers/{worker}")) == {"worker_id": worker}
    expect_refusal(queue.worker.delete(f"/internal/workers/{worker}"), 404, "WORKER_NOT_FOUND")
    expect_refusal(queue.beat(worker), 404, "WORKER_NOT_FOUND")
    found = queue.stats()["workers"]
    assert (found["active"], found["draining"], found["dead"]) == (0, 0, 0)
    assert scrape(queue.client).value("worker_heartbeat_failures_total") == 0


@pytest.mark.req("PQ-075", "PQ-136", "PQ-148", "PQ-070")
def test_a_dead_worker_has_to_register_anew(fresh: Stack) -> None:
    """Its id is refused for ever; its tasks are others' by then."""
    fresh.add("api", WORKER_DEAD_SECONDS="3600", WORKER_CHECK_INTERVAL_SECONDS="0.1")
    queue = fresh.queue()
    worker = queue.register()
    task = queue.submit()
    claimed = queue.claim(worker)
    queue.silence(worker, 3601)
    wait_until(lambda: queue.get(task), "it is queued again", lambda seen: seen["status"] == "queued")
    error = expect_refusal(queue.beat(worker), 410, "WORKER_DEAD")
    assert error["details"] == {"worker_id": worker}
    expect_refusal(queue.ask(worker, "poll", available_capacity=1), 410, "WORKER_DEAD")
    expect_refusal(queue.ask(worker, "exchange", available_capacity=1), 410, "WORKER_DEAD")
    expect_refusal(queue.worker.delete(f"/internal/workers/{worker}"), 410, "WORKER_DEAD")
    expect_refusal(queue.report(worker, claimed), 409, "STALE_ATTEMPT")
    expect_refusal(queue.beat(worker, status="dead"), 400, "VALIDATION_ERROR")
    assert queue.get(task)["retry_count"] == 1
    other = queue.register()
    assert other != worker
    assert queue.claim(other)["task_id"] == task


@pytest.mark.req("PQ-072", "PQ-073", "PQ-074", "PQ-157")
def test_capabilities_decide_which_tasks_are_claimed(queue: Queue) -> None:
    """Every set of needs against every set of capabilities, compared exactly."""
    tags = ("gpu", "GPU", "a b")
    sets = [set(each) for size in range(4) for each in itertools.combinations(tags, size)]
    for capabilities in sets:
        queue.redis.flushdb()
        worker = queue.register(*capabilities, capacity=100)
        needs = {queue.submit(required_capabilities=sorted(each)): each for each in sets}
        claimed = {each["task_id"] for each in queue.poll(worker, 100, capabilities=sorted(capabilities))}
        assert claimed == {task for task, needed in needs.items() if needed <= capabilities}
        unclaimed = set(needs) - claimed
        assert all(queue.status(each) == "queued" for each in unclaimed)


@pytest.mark.req("PQ-131")
def test_a_poll_may_narrow_the_capabilities(queue: Queue) -> None:
    """It never widens them."""
    worker = queue.register("gpu", "disk", capacity=10)
    gpu = queue.submit(required_capabilities=["gpu"])
    disk = queue.submit(required_capabilities=["disk"])
    queue.submit(required_capabilities=["tape"])
    assert [each["task_id"] for each in queue.poll(worker, 10, capabilities=["disk", "tape"])] == [disk]
    assert [each["task_id"] for each in queue.poll(worker, 10, capabilities=[])] == [gpu]


@pytest.mark.req("PQ-146", "PQ-149", "PQ-151")
def test_a_heartbeat_stores_the_reported_load(queue: Queue) -> None:
    """The load that a worker reports is stored and not used."""
    worker = queue.register()
    for _ in range(3):
        queue.submit()
    queue.poll(worker, 3)
    answer = expect_success(queue.beat(worker, 0))
    assert queue.stats()["workers"]["used_capacity"] == 3
    (view,) = list_workers(queue)
    assert answer == {"acknowledged": True, "stop": [], "at": view["last_heartbeat"]}
    assert (view["reported_load"], view["current_load"]) == (0, 3)
    expect_refusal(queue.beat(UNKNOWN_ID), 404, "WORKER_NOT_FOUND")
    expect_refusal(queue.beat("x"), 400, "VALIDATION_ERROR")
    for odd in ("dead", "lost", ""):
        expect_refusal(queue.beat(worker, 3, odd), 400, "VALIDATION_ERROR")


@pytest.mark.req("PQ-148")
def test_a_worker_cannot_declare_itself_dead(queue: Queue) -> None:
    """Its status stays."""
    worker = queue.register()
    expect_refusal(queue.beat(worker, status="dead"), 400, "VALIDATION_ERROR")
    assert queue.stats()["workers"]["active"] == 1


@pytest.mark.req("PQ-150")
def test_a_heartbeat_answers_with_the_tasks_to_stop(queue: Queue) -> None:
    """Tasks of other workers and terminal ones, and none that it has the lease of."""
    one, other = queue.register(), queue.register()
    queue.submit(), queue.submit()
    mine, theirs = queue.claim(one), queue.claim(other)
    running = [mine["task_id"], theirs["task_id"], UNKNOWN_ID]
    assert expect_success(queue.beat(one, 3, running=running))["stop"] == sorted(
        [theirs["task_id"], UNKNOWN_ID]
    )


@pytest.mark.req("PQ-127")
def test_a_registration_counts_as_a_heartbeat(fresh: Stack) -> None:
    """A detector that runs right after it finds no dead worker."""
    fresh.add("api", WORKER_DEAD_SECONDS="3600", WORKER_CHECK_INTERVAL_SECONDS="0.05")
    queue = fresh.queue()
    queue.register()
    runs = wait_until(lambda: queue.stats()["workers"], "it was looked at", lambda seen: seen["active"] == 1)
    assert runs["dead"] == 0


@pytest.mark.req("PQ-071", "PQ-163")
def test_a_worker_has_no_address(queue: Queue) -> None:
    """A worker registers no address, so that no component could connect to it."""
    worker = queue.register()
    stored = queue.redis.hgetall(f"workers:{worker}")
    assert set(stored) <= {
        *("worker_id", "status", "capacity", "capabilities", "version", "reported_load"),
        *("registered_at", "last_heartbeat", "updated_at", "changes"),
    }
    assert not any(":" in value or "127.0.0.1" in value for value in stored.values())


def list_workers(queue: Queue) -> list[dict[str, Any]]:
    """The workers as administrators see them."""
    return list(expect_success(queue.admin.get("/api/v1/admin/workers"))["workers"])
