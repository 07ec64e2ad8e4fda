"""Dead letters: their fields, replay, purge and expiry."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.support.chaos import Chaos
from tests.support.priority.metrics_scrape import scrape
from tests.support.priority.probes import UNKNOWN_ID
from tests.support.priority.stack import Queue, Stack, expect_refusal, expect_success, wait_until


@pytest.mark.req("PQ-208", "PQ-209", "PQ-210", "PQ-211", "PQ-213", "PQ-048")
def test_a_dead_letter_has_all_fields_of_its_task(queue: Queue) -> None:
    """It is in a queue of its own, by its time of death, with all fields of the task."""
    worker = queue.register()
    task = queue.make_dead_letter(worker, priority="low", parameters={"n": 1})
    assert queue.redis.type("queue:dlq") == "zset"
    assert queue.list_queues(task) == ["dlq"]
    score, stored = queue.redis.zscore("queue:dlq", task), queue.read_hash(task)
    assert score is not None and int(score) == int(stored["completed_at"]) > int(stored["created_at"])
    assert abs(score / 1_000_000 - time.time()) < 60
    task_view = queue.get(task)
    assert (task_view["status"], task_view["dead_reason"]) == ("dead_letter", "max_retries_exceeded")
    assert (task_view["payload"]["parameters"], task_view["error"]["message"]) == ({"n": 1}, "no")
    assert queue.poll(worker, 5) == []


@pytest.mark.req("PQ-120", "PQ-214", "PQ-215", "PQ-085", "PQ-046")
def test_a_replay_resets_the_retries(queue: Queue) -> None:
    """The time limit is the first one, and its position that of a new task."""
    worker = queue.register()
    task = queue.submit(priority="high", max_retries=1, timeout_seconds=100)
    for _ in range(2):
        queue.fail(worker, queue.claim(worker))
    before = queue.get(task)
    assert (before["status"], before["timeout_seconds"]) == ("dead_letter", 150)
    younger = queue.submit(priority="high")
    assert expect_success(replay(queue, task)) == {"task_id": task, "status": "queued"}
    task_view = queue.get(task)
    assert (task_view["status"], task_view["retry_count"], task_view["timeout_seconds"]) == ("queued", 0, 100)
    purged = ("error", "assigned_worker_id", "started_at", "completed_at", "dead_reason")
    assert all(task_view[name] is None for name in purged)
    assert task_view["created_at"] == before["created_at"]
    assert queue.list_waiting("high") == [younger, task]
    assert queue.redis.zcard("queue:dlq") == 0
    assert [each["task_id"] for each in queue.poll(worker, 2)] == [younger, task]
    again = queue.get(task)
    assert again["attempt"] == 3


@pytest.mark.req("PQ-216", "PQ-087")
def test_only_dead_letters_are_replayed(queue: Queue) -> None:
    """Nor purged."""
    worker = queue.register()
    executing = queue.submit()
    queue.claim(worker)
    queued, cancelled = queue.submit(), queue.submit()
    queue.cancel(cancelled)
    for task, status in ((queued, "queued"), (executing, "executing"), (cancelled, "cancelled")):
        before = queue.read_hash(task)
        error = expect_refusal(replay(queue, task), 409, "TASK_NOT_DEAD")
        assert error["details"] == {"task_id": task, "status": status}
        expect_refusal(queue.admin.delete(f"/api/v1/admin/dlq/{task}"), 409, "TASK_NOT_DEAD")
        assert queue.read_hash(task) == before
    expect_refusal(replay(queue, UNKNOWN_ID), 404, "TASK_NOT_FOUND")
    expect_refusal(queue.admin.delete(f"/api/v1/admin/dlq/{UNKNOWN_ID}"), 404, "TASK_NOT_FOUND")


@pytest.mark.chaos
@pytest.mark.req("PQ-217")
def test_of_two_concurrent_replays_one_succeeds(queue: Queue, chaos: Chaos) -> None:
    """One of them requeues it, the other finds that it is no dead letter any more."""
    worker = queue.register(capacity=100)
    with ThreadPoolExecutor(2) as pool:
        for _ in chaos.rounds(10):
            task = queue.make_dead_letter(worker)
            answers = list(pool.map(lambda _, task=task: replay(queue, task).status_code, range(2)))
            assert sorted(answers) == [200, 409]
            assert queue.list_waiting("medium") == [task]
            queue.complete(worker, queue.claim(worker))


@pytest.mark.req("PQ-X12")
def test_many_dead_letters_are_listed_replayed_and_purged(queue: Queue) -> None:
    """They are listed in pages, replayed by type and number, and purged by age."""
    worker = queue.register()
    first = [queue.make_dead_letter(worker, task_type="a") for _ in range(3)]
    others = [queue.make_dead_letter(worker, task_type="b") for _ in range(4)]
    page = expect_success(queue.admin.get("/api/v1/admin/dlq", params={"page_size": 5}))
    assert [each["task_id"] for each in page["tasks"]] == [*reversed(others), first[-1]]
    rest = expect_success(
        queue.admin.get("/api/v1/admin/dlq", params={"page_size": 5, "page_token": page["next_page_token"]})
    )
    assert [each["task_id"] for each in rest["tasks"]] == [first[1], first[0]]
    assert expect_success(
        queue.admin.post("/api/v1/admin/dlq/replay", json={"task_type": "a", "most": 2})
    ) == {"replayed": 2}
    assert expect_success(queue.admin.post("/api/v1/admin/dlq/purge", json={"older_than_seconds": 3600})) == {
        "purged": 0
    }
    assert expect_success(queue.admin.delete(f"/api/v1/admin/dlq/{others[0]}")) == {"purged": 1}
    expect_refusal(queue.client.get(f"/api/v1/tasks/{others[0]}"), 404, "TASK_NOT_FOUND")
    assert expect_success(queue.admin.post("/api/v1/admin/dlq/purge", json={"all": True})) == {"purged": 4}
    assert queue.redis.zcard("queue:dlq") == 0
    assert queue.stats()["queues"]["medium"]["depth"] == 2


@pytest.mark.req("PQ-X12")
def test_a_field_with_a_default_may_be_omitted(queue: Queue) -> None:
    """An empty body replays as many as the default allows, and 0 stands for the default as well."""
    worker = queue.register()
    tasks = [queue.make_dead_letter(worker) for _ in range(2)]
    assert expect_success(queue.admin.post("/api/v1/admin/dlq/replay", json={})) == {"replayed": 2}
    assert sorted(queue.list_waiting("medium")) == sorted(tasks)
    assert expect_success(queue.admin.post("/api/v1/admin/dlq/replay", json={"most": 0})) == {"replayed": 0}
    expect_refusal(
        queue.admin.post("/api/v1/admin/dlq/replay", json={"most": 10_001}), 400, "VALIDATION_ERROR"
    )


@pytest.mark.req("PQ-X12")
@pytest.mark.parametrize("body", [{}, {"all": False}, {"older_than_seconds": 0}], ids=str)
def test_a_purge_needs_a_filter_or_all(queue: Queue, body: dict[str, object]) -> None:
    """A purge without a filter has to say that it means all; beside a filter that changes nothing."""
    worker = queue.register()
    task = queue.make_dead_letter(worker)
    error = expect_refusal(queue.admin.post("/api/v1/admin/dlq/purge", json=body), 400, "VALIDATION_ERROR")
    assert error["message"] == "all: must be true unless older_than_seconds is given"
    assert expect_success(
        queue.admin.post("/api/v1/admin/dlq/purge", json={"older_than_seconds": 3600, "all": True})
    ) == {"purged": 0}
    assert queue.status(task) == "dead_letter"
    assert expect_success(queue.admin.post("/api/v1/admin/dlq/purge", json={"all": True})) == {"purged": 1}


@pytest.mark.req("PQ-212")
def test_old_dead_letters_expire(fresh: Stack) -> None:
    """After 30 days with all their fields; a day earlier they stay."""
    fresh.add("api", DLQ_SWEEP_INTERVAL_SECONDS="0.1")
    queue = fresh.queue()
    worker = queue.register()
    old, recent = queue.make_dead_letter(worker), queue.make_dead_letter(worker)
    for task, days in ((old, 30.01), (recent, 29)):
        moment = queue.redis.time()
        then = int((moment[0] - days * 86400) * 1_000_000)
        queue.redis.hset(f"tasks:{task}", "completed_at", then)
        queue.redis.zadd("queue:dlq", {task: then})
    wait_until(lambda: queue.read_hash(old), "it is gone", lambda seen: not seen)
    assert queue.list_queues(old) == []
    assert queue.read_hash(recent)["status"] == "dead_letter"
    assert queue.list_queues(recent) == ["dlq"]


@pytest.mark.req("PQ-218", "PQ-229")
def test_dead_letters_are_counted(queue: Queue) -> None:
    """One more for each."""

    def count() -> float:
        return scrape(queue.client).value("tasks_dlq_total")

    worker = queue.register()
    before = count()
    queue.make_dead_letter(worker)
    queue.make_dead_letter(worker)
    wait_until(count, "both are counted", lambda seen: seen == before + 2)


def replay(queue: Queue, task: str):  # type: ignore[no-untyped-def]
    return queue.admin.post(f"/api/v1/admin/dlq/{task}/replay")
