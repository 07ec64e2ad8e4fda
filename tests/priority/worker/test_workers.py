"""Workers: how they register, are heard of, drain and leave, and which tasks fit them."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from tests.priority.api.test_submit import UUID4
from tests.support.priority.metrics_scrape import scrape
from tests.support.priority.stack import Queue, Stack, refused, told, wait_until

NOBODY = "00000000-0000-4000-8000-000000000000"


@pytest.mark.req("PQ-059", "PQ-124", "PQ-125", "PQ-130", "PQ-128", "PQ-060", "PQ-065")
def test_registering(queue: Queue) -> None:
    """Each time it is a new worker, with all that it said."""
    body = {"capabilities": ["gpu"], "capacity": 7, "version": "1.2.3"}
    answer = told(queue.worker.post("/internal/workers/register", json=body))
    assert UUID4.fullmatch(answer["worker_id"])
    assert (answer["poll_interval_ms"], answer["heartbeat_interval_seconds"]) == (1000, 30)
    again = told(queue.worker.post("/internal/workers/register", json=body))
    assert again["worker_id"] != answer["worker_id"]
    (shown,) = [each for each in workers(queue) if each["worker_id"] == answer["worker_id"]]
    assert shown == {
        "worker_id": answer["worker_id"],
        "status": "active",
        "current_tasks": [],
        "last_heartbeat": shown["registered_at"],
        "capacity": 7,
        "current_load": 0,
        "reported_load": None,
        "capabilities": ["gpu"],
        "version": "1.2.3",
        "registered_at": shown["registered_at"],
    }
    told(queue.beat(answer["worker_id"], 2))
    (later,) = [each for each in workers(queue) if each["worker_id"] == answer["worker_id"]]
    assert later["last_heartbeat"] >= shown["last_heartbeat"]
    assert (later["reported_load"], later["current_load"]) == (2, 0)


@pytest.mark.req("PQ-061")
def test_the_usual_capacity(queue: Queue) -> None:
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
def test_bad_registrations(queue: Queue, body: dict[str, Any]) -> None:
    """They are refused, and nobody is registered."""
    refused(queue.worker.post("/internal/workers/register", json=body), 400, "VALIDATION_ERROR")
    assert queue.stored() == []


@pytest.mark.req("PQ-062", "PQ-063", "PQ-064")
def test_a_worker_never_holds_more_than_its_capacity(queue: Queue) -> None:
    """Whatever it says of itself; its load is what is booked on it."""
    worker = queue.register(capacity=3)
    for _ in range(9):
        queue.submit()
    taken = queue.poll(worker, 100)
    assert len(taken) == 3
    assert queue.poll(worker, 100) == []
    (shown,) = workers(queue)
    assert shown["current_tasks"] == sorted(each["task_id"] for each in taken)
    assert shown["current_load"] == 3
    queue.complete(worker, taken[0])
    queue.fail(worker, taken[1])
    queue.cancel(taken[2]["task_id"])
    (shown,) = workers(queue)
    assert (shown["current_tasks"], shown["current_load"]) == ([], 0)
    assert len(queue.poll(worker, 100)) == 3


@pytest.mark.req("PQ-068", "PQ-069", "PQ-136", "PQ-147")
def test_a_draining_worker(queue: Queue) -> None:
    """It is given nothing, ends what it has, and may come back."""
    worker = queue.register()
    held, _ = queue.submit(), queue.submit()
    given = queue.claim(worker)
    told(queue.beat(worker, 1, "draining"))
    assert queue.poll(worker, 5) == []
    queue.complete(worker, given)
    assert queue.status(held) == "completed"
    told(queue.beat(worker, 0, "active"))
    assert len(queue.poll(worker, 5)) == 1


@pytest.mark.req("PQ-076")
def test_leaving(queue: Queue) -> None:
    """A worker that holds nothing may go, and is gone; it is no dead worker."""
    worker = queue.register()
    queue.submit()
    given = queue.claim(worker)
    told(queue.beat(worker, 1, "draining"))
    busy = refused(queue.worker.delete(f"/internal/workers/{worker}"), 409, "WORKER_BUSY")
    assert worker in busy["message"]
    queue.complete(worker, given)
    assert told(queue.worker.delete(f"/internal/workers/{worker}")) == {"worker_id": worker}
    refused(queue.worker.delete(f"/internal/workers/{worker}"), 404, "WORKER_NOT_FOUND")
    refused(queue.beat(worker), 404, "WORKER_NOT_FOUND")
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
    given = queue.claim(worker)
    queue.silence(worker, 3601)
    wait_until(lambda: queue.get(task), "it is queued again", lambda seen: seen["status"] == "queued")
    error = refused(queue.beat(worker), 410, "WORKER_DEAD")
    assert error["details"] == {"worker_id": worker}
    refused(queue.ask(worker, "poll", available_capacity=1), 410, "WORKER_DEAD")
    refused(queue.ask(worker, "exchange", available_capacity=1), 410, "WORKER_DEAD")
    refused(queue.worker.delete(f"/internal/workers/{worker}"), 410, "WORKER_DEAD")
    refused(queue.report(worker, given), 409, "STALE_ATTEMPT")
    refused(queue.beat(worker, status="dead"), 400, "VALIDATION_ERROR")
    assert queue.get(task)["retry_count"] == 1
    other = queue.register()
    assert other != worker
    assert queue.claim(other)["task_id"] == task


@pytest.mark.req("PQ-072", "PQ-073", "PQ-074", "PQ-157")
def test_only_what_fits_is_handed_out(queue: Queue) -> None:
    """Every set of needs against every set of capabilities, compared exactly."""
    tags = ("gpu", "GPU", "a b")
    sets = [set(each) for size in range(4) for each in itertools.combinations(tags, size)]
    for offered in sets:
        queue.redis.flushdb()
        worker = queue.register(*offered, capacity=100)
        needs = {queue.submit(required_capabilities=sorted(each)): each for each in sets}
        taken = {each["task_id"] for each in queue.poll(worker, 100, capabilities=sorted(offered))}
        assert taken == {task for task, needed in needs.items() if needed <= offered}
        left = set(needs) - taken
        assert all(queue.status(each) == "queued" for each in left)


@pytest.mark.req("PQ-131")
def test_a_poll_may_narrow_what_a_worker_is_able_to_do(queue: Queue) -> None:
    """It never widens it."""
    worker = queue.register("gpu", "disk", capacity=10)
    gpu = queue.submit(required_capabilities=["gpu"])
    disk = queue.submit(required_capabilities=["disk"])
    queue.submit(required_capabilities=["tape"])
    assert [each["task_id"] for each in queue.poll(worker, 10, capabilities=["disk", "tape"])] == [disk]
    assert [each["task_id"] for each in queue.poll(worker, 10, capabilities=[])] == [gpu]


@pytest.mark.req("PQ-146", "PQ-149", "PQ-151")
def test_heartbeats(queue: Queue) -> None:
    """The load that a worker reports is kept and not believed."""
    worker = queue.register()
    for _ in range(3):
        queue.submit()
    queue.poll(worker, 3)
    answer = told(queue.beat(worker, 0))
    assert queue.stats()["workers"]["used_capacity"] == 3
    (shown,) = workers(queue)
    assert answer == {"acknowledged": True, "stop": [], "at": shown["last_heartbeat"]}
    assert (shown["reported_load"], shown["current_load"]) == (0, 3)
    refused(queue.beat(NOBODY), 404, "WORKER_NOT_FOUND")
    refused(queue.beat("x"), 400, "VALIDATION_ERROR")
    for odd in ("dead", "lost", ""):
        refused(queue.beat(worker, 3, odd), 400, "VALIDATION_ERROR")


@pytest.mark.req("PQ-148")
def test_a_worker_cannot_declare_itself_dead(queue: Queue) -> None:
    """It stays what it was."""
    worker = queue.register()
    refused(queue.beat(worker, status="dead"), 400, "VALIDATION_ERROR")
    assert queue.stats()["workers"]["active"] == 1


@pytest.mark.req("PQ-150")
def test_a_worker_that_names_its_tasks_learns_which_are_not_its_own(queue: Queue) -> None:
    """Those of others and those that are over, and none that it holds."""
    one, other = queue.register(), queue.register()
    queue.submit(), queue.submit()
    mine, theirs = queue.claim(one), queue.claim(other)
    running = [mine["task_id"], theirs["task_id"], NOBODY]
    assert told(queue.beat(one, 3, running=running))["stop"] == sorted([theirs["task_id"], NOBODY])


@pytest.mark.req("PQ-127")
def test_registering_is_the_first_heartbeat(fresh: Stack) -> None:
    """A detector that looks right after it finds nothing amiss."""
    fresh.add("api", WORKER_DEAD_SECONDS="3600", WORKER_CHECK_INTERVAL_SECONDS="0.05")
    queue = fresh.queue()
    queue.register()
    runs = wait_until(lambda: queue.stats()["workers"], "it was looked at", lambda seen: seen["active"] == 1)
    assert runs["dead"] == 0


@pytest.mark.req("PQ-071", "PQ-163")
def test_nobody_connects_to_a_worker(queue: Queue) -> None:
    """A worker says nothing of where it could be reached, so nobody could."""
    worker = queue.register()
    kept = queue.redis.hgetall(f"workers:{worker}")
    assert set(kept) <= {
        *("worker_id", "status", "capacity", "capabilities", "version", "reported_load"),
        *("registered_at", "last_heartbeat", "updated_at", "changes"),
    }
    assert not any(":" in value or "127.0.0.1" in value for value in kept.values())


def workers(queue: Queue) -> list[dict[str, Any]]:
    """What administrators see of them."""
    return list(told(queue.admin.get("/api/v1/admin/workers"))["workers"])
