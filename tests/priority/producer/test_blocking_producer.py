"""A producer without an event loop: whatever comes of a submit is what comes of it with one."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from redis import Redis

from generated.priority import errors
from generated.priority.messages import HIGH, SubmitTaskRequest
from handlers.priority.producer import BlockingProducer, Producer, task
from runtime.call.conditions import Condition
from runtime.embedded.redis import EmbeddedRedis
from runtime.stores.redis.connection.blocking import BlockingLine
from runtime.stores.redis.given import unpacked
from tests.support.orchestrator.sql_session import Sql
from tests.support.priority.stack import Queue, Servers, Stack, told, wait_until

OWN = ("_id", "_at")
"""How the names end of what no two tasks share."""
OUTBOX = "history:outbox"


def environ(servers: Servers, **settings: str) -> dict[str, str]:
    return {"REDIS_URL": servers.redis_url, "DATABASE_URL": servers.database_url, **settings}


@pytest.fixture
def tasks(shared: Stack) -> Iterator[BlockingProducer]:
    """A producer that shares the Redis of the API."""
    with BlockingProducer(environ(shared.servers)) as made:
        yield made


@pytest.fixture
def own_server(tmp_path: Path) -> Iterator[EmbeddedRedis]:
    """A Redis that a test may do anything to; what it acknowledges is on disk."""
    made = EmbeddedRedis(tmp_path / "own", settings={"appendfsync": "always"})
    made.start()
    yield made
    made.remove()


@pytest.fixture
def alone(own_server: EmbeddedRedis) -> Iterator[BlockingProducer]:
    """A producer at that server; no history is ever asked for."""
    with BlockingProducer(environ(Servers(own_server.url, "postgresql://nobody@127.0.0.1:9/none"))) as made:
        yield made


def waiting(server: EmbeddedRedis) -> set[str]:
    """The tasks that wait there."""
    with Redis.from_url(server.url, decode_responses=True) as there:
        return {*there.zrange("queue:medium", 0, -1)}


def requests() -> list[SubmitTaskRequest]:
    """What is accepted, found again and refused: by its key, by the guard, and for want of room."""
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


def test_every_outcome_is_that_of_the_other_producer(queue: Queue, shared: Stack) -> None:
    """What is stored, what is found, and which fields are named when something is refused."""
    settings = environ(shared.servers, MAX_QUEUE_DEPTH="3")

    def stored(key: str) -> dict[str, str]:
        return {name: value for name, value in queue.hash(key).items() if not name.endswith(OWN)}

    def outcomes(submit: Callable[[SubmitTaskRequest], str]) -> list[Any]:
        queue.redis.flushdb()
        found, known = list[Any](), list[str]()
        for each in requests():
            try:
                key = submit(each)
            except Condition as refused:
                found.append((type(refused), str(refused)))
            else:
                found.append((known.index(key) if key in known else None, stored(key)))
                known.append(key)
        return found

    async def with_loop() -> list[Any]:
        async with Producer(settings) as producer:
            loop = asyncio.get_running_loop()

            def submit(request: SubmitTaskRequest) -> str:
                return asyncio.run_coroutine_threadsafe(producer.submit(request), loop).result()

            return await asyncio.to_thread(outcomes, submit)

    with BlockingProducer(settings) as blocking:
        without = outcomes(blocking.submit)
    assert without == asyncio.run(with_loop())
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


def test_many_are_answered_each_by_itself(queue: Queue, shared: Stack) -> None:
    """More than one script takes; in their order, and those that there is no room for are told so."""
    with BlockingProducer(environ(shared.servers, MAX_QUEUE_DEPTH="700")) as limited:
        answers = limited.submit_all([task("t", {"n": n}) for n in range(800)])
    assert [each.HasField("refused") for each in answers] == [False] * 700 + [True] * 100
    assert [each.queue_position for each in answers[:700]] == [*range(1, 701)]
    assert queue.redis.zrange("queue:medium", 0, -1) == [each.task_id for each in answers[:700]]


def test_it_works_where_an_event_loop_runs(queue: Queue, tasks: BlockingProducer) -> None:
    """It holds that loop up, as any call does that blocks, and asks nothing of it."""

    async def submit() -> list[str]:
        return [tasks.submit(task("t")) for _ in range(3)]

    assert asyncio.run(submit()) == queue.redis.zrange("queue:medium", 0, -1)


def test_threads_take_turns(queue: Queue, tasks: BlockingProducer) -> None:
    """Each is told of its own task."""
    with ThreadPoolExecutor(4) as threads:
        found = [*threads.map(lambda n: (n, tasks.submit(task(f"t{n}"))), range(60))]
    assert len({key for _, key in found}) == 60
    assert all(queue.hash(key)["task_type"] == f"t{n}" for n, key in found)


def test_a_task_that_redis_has_forgotten_is_found_in_the_history(
    queue: Queue, shared: Stack, tasks: BlockingProducer
) -> None:
    """Its key outlives it, so it is looked up where ended tasks are kept."""
    key = tasks.submit(task("t", idempotency_key="kept"))
    told(queue.cancel(key))
    wait_until(lambda: queue.redis.xlen(OUTBOX), "the history has it", lambda left: not left)
    with Sql(shared.servers.database_url) as sql:
        count = "SELECT count(*) FROM task_changes WHERE task_id = $1"
        wait_until(lambda: sql.value(count, key), "both changes are there", lambda seen: seen == 2)
    queue.redis.delete(f"tasks:{key}")
    assert tasks.submit(task("t", idempotency_key="kept")) == key
    with pytest.raises(errors.IdempotencyMismatch):
        tasks.submit(task("other", idempotency_key="kept"))


def test_scripts_that_the_server_forgot_are_brought_along(own_server: EmbeddedRedis, alone: Any) -> None:
    first = alone.submit(task("t"))
    with Redis.from_url(own_server.url) as there:
        there.script_flush()
    second = alone.submit(task("t"))
    assert waiting(own_server) == {first, second}


def test_a_server_that_was_restarted_is_connected_to_again(own_server: EmbeddedRedis, alone: Any) -> None:
    """Between two submits, of which neither is lost and neither is there twice."""
    first = alone.submit(task("t"))
    own_server.kill()
    own_server.start()
    second = alone.submit(task("t"))
    assert waiting(own_server) == {first, second}


def test_a_server_that_is_away_is_told_of(own_server: EmbeddedRedis, alone: Any) -> None:
    """By the condition of the API; once it is back all goes on."""
    own_server.kill()
    for _ in range(2):
        with pytest.raises(errors.ServiceUnavailable):
            alone.submit(task("t"))
    own_server.start()
    found = alone.submit(task("t"))
    assert waiting(own_server) == {found}


def test_a_submit_whose_answer_was_lost_is_sent_again(
    own_server: EmbeddedRedis, alone: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The script has run when the connection breaks: the caller learns of its task, and there is one."""
    alone.submit(task("first"))
    losing(monkeypatch, ConnectionResetError("reset"))
    second = alone.submit(task("second"))
    assert len(waiting(own_server)) == 2 and second in waiting(own_server)


def test_whoever_is_interrupted_leaves_no_answer_to_the_next(
    own_server: EmbeddedRedis, alone: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    alone.submit(task("first"))
    losing(monkeypatch, KeyboardInterrupt())
    with pytest.raises(KeyboardInterrupt):
        alone.submit(task("second"))
    third = alone.submit(task("third"))
    with Redis.from_url(own_server.url, decode_responses=True) as there:
        assert unpacked(there.hgetall(f"tasks:{third}"))["task_type"] == "third"
    assert len(waiting(own_server)) == 3


def test_a_fork_has_a_connection_of_its_own(
    own_server: EmbeddedRedis, alone: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever finds itself to be another process leaves the socket of the first one alone."""
    alone.submit(task("parent"))
    before = alone._tasks._channel._stores._servers[own_server.url]._lines["main"]
    monkeypatch.setattr("runtime.stores.redis.connection.blocking.os.getpid", lambda: -1)
    alone.submit(task("child"))
    assert alone._tasks._channel._stores._servers[own_server.url]._lines["main"] is not before
    assert len(waiting(own_server)) == 2


def losing(monkeypatch: pytest.MonkeyPatch, error: BaseException) -> None:
    """Has the next exchange fail after the server has answered, and none after it."""
    answers = BlockingLine._answers

    def lose(self: BlockingLine, wanted: int) -> list[Any]:
        monkeypatch.setattr(BlockingLine, "_answers", answers)
        self._socket.recv(1)
        raise error

    monkeypatch.setattr(BlockingLine, "_answers", lose)
