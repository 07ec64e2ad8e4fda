"""Idempotency keys: one task for each, for a day, however often and wherever it is submitted."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.support.chaos import Chaos
from tests.support.priority.stack import Queue, Stack, expect_refusal, wait_until


@pytest.mark.req("PQ-198", "PQ-199", "PQ-200", "PQ-202")
def test_the_same_key_is_the_same_task(queue: Queue) -> None:
    """The repeat is 200, creates nothing, and does not extend the life of the key."""
    first = queue.post(task_type="t", idempotency_key="k1")
    assert (first.status_code, first.json()["repeated"]) == (201, False)
    task = first.json()["task_id"]
    assert queue.redis.get("idempotent:k1") == task
    assert 86340 <= queue.redis.ttl("idempotent:k1") <= 86400
    queue.redis.expire("idempotent:k1", 1000)
    again = queue.post(task_type="t", idempotency_key="k1")
    assert (again.status_code, again.json()["task_id"], again.json()["repeated"]) == (200, task, True)
    assert queue.redis.ttl("idempotent:k1") <= 1000
    assert queue.list_waiting("medium") == [task]
    assert len(list(queue.redis.scan_iter("tasks:????????-*"))) == 1


@pytest.mark.req("PQ-206")
def test_a_repeat_has_the_current_status(queue: Queue) -> None:
    """Also when the task is finished; it has no position then."""
    worker = queue.register()
    queue.post(task_type="t", idempotency_key="k")
    claimed = queue.claim(worker)
    assert queue.post(task_type="t", idempotency_key="k").json()["status"] == "executing"
    queue.complete(worker, claimed)
    again = queue.post(task_type="t", idempotency_key="k")
    assert (again.status_code, again.json()["status"], again.json()["queue_position"]) == (
        200,
        "completed",
        None,
    )


@pytest.mark.req("PQ-207")
def test_the_same_key_with_another_body_is_refused(queue: Queue) -> None:
    """It is refused whatever differs; the order of names in the parameters is no difference."""
    body = {"task_type": "t", "parameters": {"a": 1, "b": 2}, "required_capabilities": ["x", "y"]}
    task = queue.post(idempotency_key="k", **body).json()["task_id"]
    same = {**body, "parameters": {"b": 2, "a": 1}, "required_capabilities": ["y", "x"]}
    assert queue.post(idempotency_key="k", **same).json()["task_id"] == task
    for other in (
        {"task_type": "u"},
        {"priority": "low"},
        {"parameters": {"a": 1, "b": 3}},
        {"required_capabilities": ["x"]},
        {"timeout_seconds": 3},
        {"max_retries": 1},
        {"run_at": "2999-01-01T00:00:00Z"},
    ):
        expect_refusal(queue.post(idempotency_key="k", **{**body, **other}), 409, "IDEMPOTENCY_MISMATCH")
    assert queue.list_waiting("medium") == [task]


@pytest.mark.req("PQ-203")
def test_without_a_key_every_submit_is_a_task(queue: Queue) -> None:
    assert queue.submit() != queue.submit()
    assert not list(queue.redis.scan_iter("idempotent:*"))


@pytest.mark.req("PQ-201")
def test_a_key_expires(fresh: Stack) -> None:
    """After its time it creates a new task."""
    fresh.add("api", IDEMPOTENCY_TTL_SECONDS="1")
    queue = fresh.queue()
    first = queue.post(task_type="t", idempotency_key="k").json()["task_id"]
    again = wait_until(
        lambda: queue.post(task_type="t", idempotency_key="k").json(),
        "the key is forgotten",
        lambda seen: seen["task_id"] != first,
    )
    assert not again["repeated"]


@pytest.mark.chaos
@pytest.mark.req("PQ-204", "PQ-095")
def test_concurrent_submits_of_one_key_create_one_task(fresh: Stack, chaos: Chaos) -> None:
    """Over two APIs, and all of them get its id."""
    queues = [fresh.queue(fresh.add("api")) for _ in range(2)]
    with ThreadPoolExecutor(25) as pool:
        for number, _ in enumerate(chaos.rounds(2)):
            answers = list(
                pool.map(
                    lambda n, number=number: queues[n % 2].post(
                        task_type="t", idempotency_key=f"key {number}"
                    ),
                    range(50),
                )
            )
            assert sorted({each.status_code for each in answers}) == [200, 201]
            assert [each.status_code for each in answers].count(201) == 1
            assert len({each.json()["task_id"] for each in answers}) == 1
    assert fresh.redis.zcard("queue:medium") == chaos.counted["rounds"]


@pytest.mark.req("PQ-198", "PQ-X01")
def test_keys_within_a_batch(queue: Queue) -> None:
    """Equal ones are one task; one that conflicts is refused by itself."""
    tasks = [
        {"task_type": "t", "idempotency_key": "a"},
        {"task_type": "t", "idempotency_key": "a"},
        {"task_type": "u", "idempotency_key": "a"},
        {"task_type": "t"},
    ]
    answer = queue.client.post("/api/v1/tasks/batch", json={"tasks": tasks})
    assert answer.status_code == 200
    first, second, third, fourth = answer.json()["tasks"]
    assert first["task_id"] == second["task_id"]
    assert (first["repeated"], second["repeated"]) == (False, True)
    assert (third["task_id"], third["refused"]["code"]) == (None, "IDEMPOTENCY_MISMATCH")
    assert fourth["task_id"] not in (None, first["task_id"])
    assert queue.redis.zcard("queue:medium") == 2
    wrong = queue.client.post("/api/v1/tasks/batch", json={"tasks": [{"task_type": "t"}, {"task_type": ""}]})
    assert expect_refusal(wrong, 400, "VALIDATION_ERROR")["details"]["field"] == "tasks[1].task_type"
    assert queue.redis.zcard("queue:medium") == 2


@pytest.mark.parametrize("key", ["a:b", "{pq}:x", "*", "k\n1", "ключ", "'); return 1 --", "\r\nSET x 1"])
@pytest.mark.req("PQ-199", "PQ-053")
def test_keys_are_any_text(queue: Queue, key: str) -> None:
    """Any text is one key and nothing else."""
    task = queue.submit(idempotency_key=key)
    assert queue.redis.get(f"idempotent:{key}") == task
    assert queue.get(task)["idempotency_key"] == key
    assert queue.post(task_type="echo", idempotency_key=key).json()["task_id"] == task
