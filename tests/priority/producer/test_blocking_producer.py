"""The blocking producer, without an event loop: every outcome equals that of the asynchronous one."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from redis import Redis

from generated.priority import errors
from generated.priority.messages import HIGH, SubmitTaskRequest
from handlers.priority.producer import BlockingProducer, Producer, task
from runtime.call.conditions import Condition
from runtime.launch.embedded.redis import EmbeddedRedis
from runtime.stores.redis.codec import unpack_fields
from runtime.stores.redis.connection.blocking import BlockingLine
from tests.support.orchestrator.sql_session import Sql
from tests.support.priority.stack import Queue, Servers, Stack, expect_success, wait_until

OWN = ("_id", "_at")
"""Suffixes of the field names in which any two tasks differ."""
OUTBOX = "history:outbox"


def environ(servers: Servers, **settings: str) -> dict[str, str]:
    return {"REDIS_URL": servers.redis_url, "DATABASE_URL": servers.database_url, **settings}


@pytest.fixture
def tasks(shared_stack: Stack) -> Iterator[BlockingProducer]:
    """A producer on the Redis of the API."""
    with BlockingProducer(environ(shared_stack.servers)) as producer:
        yield producer


@pytest.fixture
def own_producer(own_redis: EmbeddedRedis) -> Iterator[BlockingProducer]:
    """A producer on that server; it never reads the history."""
    with BlockingProducer(
        environ(Servers(own_redis.url, "postgresql://nobody@127.0.0.1:9/none"))
    ) as producer:
        yield producer


def list_waiting(server: EmbeddedRedis) -> set[str]:
    """The tasks in its queues."""
    with Redis.from_url(server.url, decode_responses=True) as there:
        return {*there.zrange("queue:medium", 0, -1)}


def make_requests() -> list[SubmitTaskRequest]:
    """Requests that are accepted, found again and refused: by their key, by the guard, and when full."""
    return [
        task("plain"),
        task("full", {"ü": [1, None]}, priority=HIGH, required_capabilities=["gpu"], max_retries=7),
        task("keyed", {"n": 1}, idempotency_key="one"),
        task("keyed", {"n": 1}, idempotency_key="one"),
        task("other", {"n": 1}, idempotency_key="one"),
        task(""),
        task("t", max_retries=1_000_000),
        task("more than there is room for"),
    ]


def test_every_outcome_equals_that_of_the_other_producer(queue: Queue, shared_stack: Stack) -> None:
    """The stored task, the task of a known key, and the fields that a refusal names."""
    settings = environ(shared_stack.servers, MAX_QUEUE_DEPTH="3")

    def read_stored(key: str) -> dict[str, str]:
        return {name: value for name, value in queue.read_hash(key).items() if not name.endswith(OWN)}

    def list_outcomes(submit: Callable[[SubmitTaskRequest], str]) -> list[Any]:
        queue.redis.flushdb()
        found, known_ids = list[Any](), list[str]()
        for each in make_requests():
            try:
                key = submit(each)
            except Condition as refused:
                found.append((type(refused), str(refused)))
            else:
                found.append((known_ids.index(key) if key in known_ids else None, read_stored(key)))
                known_ids.append(key)
        return found

    async def submit_with_loop() -> list[Any]:
        async with Producer(settings) as producer:
            loop = asyncio.get_running_loop()

            def submit(request: SubmitTaskRequest) -> str:
                return asyncio.run_coroutine_threadsafe(producer.submit(request), loop).result()

            return await asyncio.to_thread(list_outcomes, submit)

    with BlockingProducer(settings) as blocking:
        without = list_outcomes(blocking.submit)
    assert without == asyncio.run(submit_with_loop())
    assert [each[0] for each in without] == [
        None,
        None,
        None,
        2,
        errors.IdempotencyMismatch,
        errors.ValidationError,
        errors.ValidationError,
        errors.QueueFull,
    ]
    assert "task_type" in without[5][1] and "max_retries" in without[6][1]
    assert queue.redis.zcard("queue:medium") == 2


def test_many_are_answered_one_by_one(queue: Queue, shared_stack: Stack) -> None:
    """More than one script accepts; in their order, and those beyond the limit are refused."""
    with BlockingProducer(environ(shared_stack.servers, MAX_QUEUE_DEPTH="700")) as limited:
        answers = limited.submit_all([task("t", {"n": n}) for n in range(800)])
    assert [each.HasField("refused") for each in answers] == [False] * 700 + [True] * 100
    assert [each.queue_position for each in answers[:700]] == [*range(1, 701)]
    assert queue.redis.zrange("queue:medium", 0, -1) == [each.task_id for each in answers[:700]]


def test_it_works_within_a_running_event_loop(queue: Queue, tasks: BlockingProducer) -> None:
    """It blocks that loop, as any blocking call does, and does not use it."""

    async def submit() -> list[str]:
        return [tasks.submit(task("t")) for _ in range(3)]

    assert asyncio.run(submit()) == queue.redis.zrange("queue:medium", 0, -1)


def test_threads_are_serialised(queue: Queue, tasks: BlockingProducer) -> None:
    """Each gets the id of its own task."""
    with ThreadPoolExecutor(4) as threads:
        found = [*threads.map(lambda n: (n, tasks.submit(task(f"t{n}"))), range(60))]
    assert len({key for _, key in found}) == 60
    assert all(queue.read_hash(key)["task_type"] == f"t{n}" for n, key in found)


def test_a_task_that_expired_in_redis_is_found_in_the_history(
    queue: Queue, shared_stack: Stack, tasks: BlockingProducer
) -> None:
    """Its key outlives it, so it is looked up in the history."""
    key = tasks.submit(task("t", idempotency_key="kept"))
    expect_success(queue.cancel(key))
    wait_until(lambda: queue.redis.xlen(OUTBOX), "the history has it", lambda rows: not rows)
    with Sql(shared_stack.servers.database_url) as sql:
        count = "SELECT count(*) FROM task_changes WHERE task_id = $1"
        wait_until(lambda: sql.value(count, key), "both changes are there", lambda seen: seen == 2)
    queue.redis.delete(f"tasks:{key}")
    assert tasks.submit(task("t", idempotency_key="kept")) == key
    with pytest.raises(errors.IdempotencyMismatch):
        tasks.submit(task("other", idempotency_key="kept"))


def test_scripts_that_the_server_lost_are_sent_again(own_redis: EmbeddedRedis, own_producer: Any) -> None:
    first = own_producer.submit(task("t"))
    with Redis.from_url(own_redis.url) as there:
        there.script_flush()
    second = own_producer.submit(task("t"))
    assert list_waiting(own_redis) == {first, second}


def test_a_restarted_server_is_reconnected(own_redis: EmbeddedRedis, own_producer: Any) -> None:
    """Between two submits, of which neither is lost and neither is stored twice."""
    first = own_producer.submit(task("t"))
    own_redis.kill()
    own_redis.start()
    second = own_producer.submit(task("t"))
    assert list_waiting(own_redis) == {first, second}


def test_an_unreachable_server_is_an_error(own_redis: EmbeddedRedis, own_producer: Any) -> None:
    """By the condition of the API; once it is back submits succeed."""
    own_redis.kill()
    for _ in range(2):
        with pytest.raises(errors.ServiceUnavailable):
            own_producer.submit(task("t"))
    own_redis.start()
    found = own_producer.submit(task("t"))
    assert list_waiting(own_redis) == {found}


def test_a_submit_whose_answer_was_lost_is_repeated(
    own_redis: EmbeddedRedis, own_producer: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The script has run when the connection breaks: the caller gets its task, and there is one."""
    own_producer.submit(task("first"))
    lose_next_answer(monkeypatch, ConnectionResetError("reset"))
    second = own_producer.submit(task("second"))
    assert len(list_waiting(own_redis)) == 2 and second in list_waiting(own_redis)


def test_an_interrupted_submit_does_not_affect_the_next(
    own_redis: EmbeddedRedis, own_producer: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    own_producer.submit(task("first"))
    lose_next_answer(monkeypatch, KeyboardInterrupt())
    with pytest.raises(KeyboardInterrupt):
        own_producer.submit(task("second"))
    third = own_producer.submit(task("third"))
    with Redis.from_url(own_redis.url, decode_responses=True) as there:
        assert unpack_fields(there.hgetall(f"tasks:{third}"))["task_type"] == "third"
    assert len(list_waiting(own_redis)) == 3


def test_a_fork_has_a_connection_of_its_own(
    own_redis: EmbeddedRedis, own_producer: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In another process the producer does not use the socket of the first one."""
    own_producer.submit(task("parent"))
    before = list_connections(own_redis)
    monkeypatch.setattr("runtime.stores.redis.connection.blocking.os.getpid", lambda: -1)
    own_producer.submit(task("child"))
    assert list_connections(own_redis) - before
    assert len(list_waiting(own_redis)) == 2


def list_connections(server: EmbeddedRedis) -> set[int]:
    """The connections that others have to a server."""
    with Redis.from_url(server.url, decode_responses=True) as there:
        own = there.client_id()
        return {int(each["id"]) for each in there.client_list()} - {own}


def lose_next_answer(monkeypatch: pytest.MonkeyPatch, error: BaseException) -> None:
    """Make the next exchange fail after the server has answered, and none after it."""
    answers = BlockingLine._answers

    def lose(self: BlockingLine, wanted: int) -> list[Any]:
        monkeypatch.setattr(BlockingLine, "_answers", answers)
        self._socket.recv(1)
        raise error

    monkeypatch.setattr(BlockingLine, "_answers", lose)
