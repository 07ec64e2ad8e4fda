"""POST /api/v1/tasks: accepted bodies, their stored form, and refusals."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.support.deep import DEEP
from tests.support.priority.probes import UUID4
from tests.support.priority.stack import Queue, Stack, expect_refusal, expect_success

FULL: dict[str, Any] = {
    "task_type": "process_video",
    "priority": "high",
    "parameters": {"source": "ü", "sizes": [1, 2.5, None], "deep": {"a": {"b": True}}},
    "required_capabilities": ["gpu", "cpu-intensive"],
    "timeout_seconds": 42,
    "idempotency_key": "one",
}


@pytest.mark.req("PQ-033", "PQ-091", "PQ-092", "PQ-053", "PQ-044")
def test_all_fields_are_stored(queue: Queue) -> None:
    """The hash has all of them; the answer has the position of the task."""
    answer = queue.post(**FULL)
    assert answer.status_code == 201
    body = answer.json()
    assert (body["status"], body["queue_position"], body["repeated"]) == ("queued", 1, False)
    assert queue.redis.type(f"tasks:{body['task_id']}") == "hash"
    stored = queue.read_hash(body["task_id"])
    assert json.loads(stored["parameters"]) == FULL["parameters"]
    assert json.loads(stored["required_capabilities"]) == FULL["required_capabilities"]
    assert (stored["task_type"], stored["priority"], stored["timeout_seconds"]) == (
        "process_video",
        "high",
        "42",
    )
    assert stored["idempotency_key"] == "one"
    task_view = queue.get(body["task_id"])
    assert task_view["payload"] == {
        name: FULL[name] for name in ("task_type", "parameters", "required_capabilities")
    }
    assert (task_view["idempotency_key"], task_view["timeout_seconds"]) == ("one", 42)


@pytest.mark.req("PQ-034")
def test_ids_are_generated_by_the_service(queue: Queue) -> None:
    """Each is a version 4 UUID, and no two are the same, whatever a client sends."""
    tasks = [{"task_type": "t", "task_id": "00000000-0000-4000-8000-000000000000"} for _ in range(1000)]
    answer = expect_success(queue.client.post("/api/v1/tasks/batch", json={"tasks": tasks}))
    ids = {each["task_id"] for each in answer["tasks"]}
    assert len(ids) == 1000
    assert all(UUID4.fullmatch(each) for each in ids)
    assert "00000000-0000-4000-8000-000000000000" not in ids


@pytest.mark.req("PQ-001", "PQ-002", "PQ-003", "PQ-005", "PQ-036", "PQ-041", "PQ-042", "PQ-043")
@pytest.mark.parametrize(
    ("priority", "retries", "seconds"), [("high", 5, 300), ("medium", 3, 600), ("low", 2, 900)]
)
def test_the_priority_sets_queue_retries_and_time_limit(
    queue: Queue, priority: str, retries: int, seconds: int
) -> None:
    """The queue, the retries and the time limit."""
    task = queue.submit(priority=priority)
    task_view = queue.get(task)
    assert (task_view["priority"], task_view["effective_priority"]) == (priority, priority)
    assert (task_view["retry_count"], task_view["max_retries"], task_view["timeout_seconds"]) == (
        0,
        retries,
        seconds,
    )
    assert queue.redis.type(f"queue:{priority}") == "zset"
    assert queue.list_waiting(priority) == [task]
    assert queue.list_queues(task) == [priority]
    score = queue.redis.zscore(f"queue:{priority}", task)
    assert score is not None and int(score) == int(queue.read_hash(task)["created_at"])


@pytest.mark.req("PQ-045", "PQ-061", "PQ-125", "PQ-X08")
def test_limits_are_settings(fresh: Stack) -> None:
    """Retries and time limits, the capacity and intervals of workers, and the depth of the queue."""
    fresh.add(
        "api",
        HIGH_MAX_RETRIES="9",
        HIGH_TIMEOUT_SECONDS="7",
        DEFAULT_CAPACITY="2",
        POLL_INTERVAL_MS="50",
        MAX_QUEUE_DEPTH="3",
    )
    queue = fresh.queue()
    task_view = queue.get(queue.submit(priority="high"))
    assert (task_view["max_retries"], task_view["timeout_seconds"]) == (9, 7)
    answer = expect_success(queue.worker.post("/internal/workers/register", json={"capabilities": []}))
    assert answer["poll_interval_ms"] == 50
    for _ in range(2):
        queue.submit(priority="high")
    full = queue.post(task_type="t", priority="high")
    expect_refusal(full, 429, "QUEUE_FULL")
    assert int(full.headers["retry-after"]) > 0
    assert queue.redis.zcard("queue:high") == 3
    assert len(queue.poll(answer["worker_id"], 10)) == 2
    assert queue.post(task_type="t", priority="high").status_code == 201


@pytest.mark.req("PQ-037", "PQ-096", "PQ-035", "PQ-123")
@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({}, "task_type"),
        ({"task_type": ""}, "task_type"),
        ({"task_type": None}, "task_type"),
        ({"task_type": 3}, "task_type"),
        ({"task_type": "a\0b"}, "task_type"),
        ({"task_type": "t", "priority": "urgent"}, "priority"),
        ({"task_type": "t", "priority": "HIGH"}, "priority"),
        ({"task_type": "t", "priority": 1}, "priority"),
        ({"task_type": "t", "parameters": []}, "parameters"),
        ({"task_type": "t", "parameters": "x"}, "parameters"),
        ({"task_type": "t", "required_capabilities": "gpu"}, "required_capabilities"),
        ({"task_type": "t", "required_capabilities": [1]}, "required_capabilities[0]"),
        ({"task_type": "t", "required_capabilities": [""]}, "required_capabilities[0]"),
        ({"task_type": "t", "timeout_seconds": 0}, "timeout_seconds"),
        ({"task_type": "t", "timeout_seconds": -1}, "timeout_seconds"),
        ({"task_type": "t", "timeout_seconds": 1.5}, "timeout_seconds"),
        ({"task_type": "t", "timeout_seconds": 86401}, "timeout_seconds"),
        ({"task_type": "t", "max_retries": 101}, "max_retries"),
        ({"task_type": "t", "idempotency_key": ""}, "idempotency_key"),
        ({"task_type": "t", "idempotency_key": 7}, "idempotency_key"),
        ({"task_type": "t", "run_at": "soon"}, "run_at"),
    ],
)
def test_invalid_bodies_store_nothing(queue: Queue, body: dict[str, Any], field: str) -> None:
    """Each is refused by a code and the field that is wrong."""
    error = expect_refusal(queue.client.post("/api/v1/tasks", json=body), 400, "VALIDATION_ERROR")
    assert error["details"]["field"] == field
    assert queue.list_keys() == []


@pytest.mark.req("PQ-096")
@pytest.mark.parametrize("text", [b"{", b"", b"task_type=t", b'{"task_type": "t"} x', b"\xff"])
def test_a_body_that_is_not_json_is_refused(queue: Queue, text: bytes) -> None:
    """And stores nothing, too."""
    headers = {"content-type": "application/json"}
    expect_refusal(queue.client.post("/api/v1/tasks", content=text, headers=headers), 400, "MALFORMED_JSON")
    expect_refusal(
        queue.client.post("/api/v1/tasks", content=b"{}", headers={"content-type": "text/plain"}),
        415,
        "UNSUPPORTED_MEDIA_TYPE",
    )
    assert queue.list_keys() == []


@pytest.mark.req("PQ-098")
def test_a_body_may_not_be_too_large(queue: Queue) -> None:
    """The limit is 256 KiB."""
    over = queue.post(task_type="t", parameters={"text": "x" * 2 * 262_144})
    expect_refusal(over, 413, "PAYLOAD_TOO_LARGE")
    assert queue.list_keys() == []
    assert queue.post(task_type="t", parameters={"text": "x" * 200_000}).status_code == 201


@pytest.mark.req("PQ-039", "PQ-097")
def test_defaults_of_omitted_fields(queue: Queue) -> None:
    """Medium, no needs, no parameters."""
    task_view = queue.get(queue.submit())
    assert (task_view["priority"], task_view["payload"]["required_capabilities"]) == ("medium", [])
    assert task_view["payload"]["parameters"] == {}
    assert queue.read_hash(task_view["task_id"])["required_capabilities"] == "[]"


@pytest.mark.req("PQ-093")
def test_the_position_counts_from_one_in_each_queue(queue: Queue) -> None:
    """It counts from 1 and for each queue by itself."""
    assert [queue.post(task_type="t").json()["queue_position"] for _ in range(5)] == [1, 2, 3, 4, 5]
    assert queue.post(task_type="t", priority="high").json()["queue_position"] == 1


@pytest.mark.req("PQ-094", "PQ-077")
def test_a_submitted_task_can_be_claimed_at_once(queue: Queue) -> None:
    """It is queued as soon as it is visible."""
    worker = queue.register()
    task = queue.submit()
    assert queue.status(task) == "queued"
    assert queue.claim(worker)["task_id"] == task


@pytest.mark.req("PQ-007", "PQ-006")
def test_tasks_are_claimed_in_the_order_of_submission(queue: Queue) -> None:
    """Also those of one batch, which came at the same time."""
    answer = expect_success(
        queue.client.post("/api/v1/tasks/batch", json={"tasks": [{"task_type": "t"} for _ in range(300)]})
    )
    ids = [each["task_id"] for each in answer["tasks"]]
    ids += [queue.submit() for _ in range(50)]
    worker = queue.register(capacity=350)
    claimed = [each["task_id"] for _ in range(50) for each in queue.poll(worker, 7)]
    assert claimed == ids


_JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53), 2**53)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=20),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=9),
            inner,
            max_size=3,
        )
    ),
    max_leaves=12,
)


@pytest.mark.req("PQ-038")
@settings(
    max_examples=200 if DEEP else 15,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(
    parameters=st.dictionaries(
        st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=9),
        _JSON,
        max_size=4,
    )
)
def test_parameters_reach_the_worker_unchanged(queue: Queue, parameters: dict[str, Any]) -> None:
    """Nesting, Unicode, numbers and null."""
    queue.redis.flushdb()
    worker = queue.register()
    task = queue.submit(parameters=parameters)
    assert queue.claim(worker)["parameters"] == parameters
    assert queue.get(task)["payload"]["parameters"] == parameters


@pytest.mark.req("PQ-054", "PQ-244")
def test_the_trace_is_adopted_or_generated(queue: Queue) -> None:
    """W3C, a plain id, or a generated one; no two of those are the same."""
    own = {queue.post(task_type="t").json()["trace_id"] for _ in range(3)}
    assert len(own) == 3
    assert all(re.fullmatch("[0-9a-f]{32}", each) for each in own)
    trace = "0af7651916cd43dd8448eb211c80319c"
    w3c = queue.post({"traceparent": f"00-{trace}-b7ad6b7169203331-01"}, task_type="t").json()
    assert w3c["trace_id"] == trace
    plain = queue.post({"x-trace-id": "order-17"}, task_type="t").json()
    assert queue.get(plain["task_id"])["trace_id"] == "order-17"
    odd = queue.post({"x-trace-id": "a b\tc"}, task_type="t").json()
    assert re.fullmatch("[0-9a-f]{32}", odd["trace_id"])


@pytest.mark.req("PQ-099", "PQ-123")
def test_without_redis_nothing_is_accepted(fresh: Stack, tmp_path_factory: pytest.TempPathFactory) -> None:
    """The answer is 503, and the queue works again when Redis is back."""
    from runtime.launch.embedded.redis import EmbeddedRedis
    from tests.support.priority.stack import Servers, wait_until

    server = EmbeddedRedis(tmp_path_factory.mktemp("own") / "redis")
    server.start()
    try:
        fresh.servers = Servers(server.url, fresh.servers.database_url)
        fresh.redis = fresh.servers.redis
        fresh.add("api")
        queue = fresh.queue()
        queue.submit()
        server.kill()
        expect_refusal(queue.post(task_type="t"), 503, "SERVICE_UNAVAILABLE")
        assert queue.post(task_type="t").headers["retry-after"] == "1"
        server.restart()
        wait_until(lambda: queue.post(task_type="t").status_code, "it goes on", lambda seen: seen == 201)
    finally:
        server.stop()
