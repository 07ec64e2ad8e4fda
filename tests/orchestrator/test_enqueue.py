"""Jobs that are enqueued within the transaction of their producer."""

from __future__ import annotations

import asyncio
import json
import uuid
from collections.abc import Awaitable, Callable
from enum import Enum
from functools import partial
from typing import Any

import asyncpg
import pytest

from handlers.orchestrator.enqueue import Intent, enqueue, enqueue_all
from tests.support.orchestrator.stack import Stack, new_key, wait_until


def run_with_connection(stack: Stack, use: Callable[[asyncpg.Connection[Any]], Awaitable[Any]]) -> Any:
    """Run a function with a connection of a producer's own."""

    async def run() -> Any:
        connection = await asyncpg.connect(stack.sql.url)
        try:
            return await use(connection)
        finally:
            await connection.close()

    return asyncio.run(run())


def test_a_committed_job_is_visible_and_run(stack: Stack) -> None:
    """It is invisible before the commit; after it a worker runs it and the API returns it."""
    key = new_key()

    async def submit(connection: asyncpg.Connection[Any]) -> str:
        async with connection.transaction():
            job_id = await enqueue(connection, "echo", {"n": 1}, key)
            onlooker = await asyncpg.connect(stack.sql.url)
            seen = await onlooker.fetchval("SELECT count(*) FROM jobs WHERE idempotency_key = $1", key)
            await onlooker.close()
            assert seen == 0
            return job_id

    job_id = run_with_connection(stack, submit)
    wait_until(lambda: stack.sql.job(job_id)["state"], "it has run", lambda state: state == "SUCCESS")
    assert [row["job_id"] for row in stack.sql.jobs(key)] == [stack.sql.job(job_id)["job_id"]]


def test_a_rolled_back_job_does_not_exist(stack: Stack) -> None:
    """The key is free again."""
    key = new_key()

    async def submit(connection: asyncpg.Connection[Any]) -> None:
        with pytest.raises(ZeroDivisionError):
            async with connection.transaction():
                await enqueue(connection, "echo", {}, key)
                raise ZeroDivisionError

    run_with_connection(stack, submit)
    assert stack.sql.jobs(key) == []


def test_known_keys_return_their_jobs(stack: Stack) -> None:
    """Also within one batch, and in the order of the request."""
    keys = [new_key("a"), new_key("b")]
    wanted = [Intent("echo", {"n": number}, keys[number % 2]) for number in range(4)]

    async def submit(connection: asyncpg.Connection[Any]) -> list[str]:
        first = await enqueue(connection, "echo", {}, keys[0])
        found = await enqueue_all(connection, wanted)
        assert found[0] == found[2] == first
        return found

    found = run_with_connection(stack, submit)
    assert found[1] == found[3] != found[0]
    assert [len(stack.sql.jobs(key)) for key in keys] == [1, 1]


@pytest.mark.parametrize(
    ("intent", "problem"),
    [
        (Intent("", {}, "k"), "job 0: job_type: must not be empty"),
        (Intent("no spaces", {}, "k"), "job_type: must match"),
        (Intent("echo", {}, ""), "idempotency_key: must not be empty"),
        (Intent("echo", {"text": "\0"}, "k"), "payload: "),
        (Intent("echo", {}, "x" * 256), "idempotency_key: must have at most 255"),
    ],
)
def test_jobs_that_the_api_would_refuse_are_refused(stack: Stack, intent: Intent, problem: str) -> None:
    """The error names the field and the rule, and nothing is stored."""

    async def submit(connection: asyncpg.Connection[Any]) -> None:
        with pytest.raises(ValueError, match=problem):
            await enqueue_all(connection, [intent])

    run_with_connection(stack, submit)


def test_the_rest_of_the_transaction_is_the_producers_own(stack: Stack) -> None:
    """Its changes after an enqueue do not count as the service's, and edges are checked."""
    key = new_key()

    async def submit(connection: asyncpg.Connection[Any]) -> None:
        async with connection.transaction():
            await enqueue(connection, "sleep", {"seconds": 0}, key)
            assert not await connection.fetchval("SELECT current_setting('app.actor', true)")
            assert not await connection.fetchval("SELECT current_setting('app.at_once', true)")
            with pytest.raises(asyncpg.PostgresError, match="ILLEGAL_TRANSITION"):
                async with connection.transaction():
                    await connection.execute("UPDATE jobs SET state = 'DEAD' WHERE idempotency_key = $1", key)

    run_with_connection(stack, submit)


def test_the_actor_of_the_producers_session_stays(stack: Stack) -> None:
    """The actor of its session is neither used nor changed; the history has the accepting component."""

    async def submit(connection: asyncpg.Connection[Any]) -> str:
        async with connection.transaction():
            await connection.execute("SELECT set_config('app.actor', 'reaper', true)")
            job_id = await enqueue(connection, "sleep", {"seconds": 0})
            assert await connection.fetchval("SELECT current_setting('app.actor', true)") == "reaper"
            lines = await connection.fetch(
                "SELECT from_state, to_state, actor FROM job_transitions WHERE job_id = $1 ORDER BY number",
                job_id,
            )
            assert [tuple(line) for line in lines] == [
                (None, "CREATED", "api"),
                ("CREATED", "QUEUED", "api"),
            ]
            return job_id

    run_with_connection(stack, submit)


def test_a_submit_is_one_round_trip_and_one_version_of_the_row(stack: Stack) -> None:
    """However many jobs it has."""

    async def submit(connection: asyncpg.Connection[Any]) -> None:
        sent: list[str] = []
        written = "SELECT n_tup_ins, n_tup_upd FROM pg_stat_xact_user_tables WHERE relname = 'jobs'"
        await enqueue(connection, "echo", {})  # The first on a connection reads the types of the database.
        async with connection.transaction():
            added, changed = await connection.fetchrow(written) or (0, 0)
            connection.add_query_logger(lambda query: sent.append(query.query))
            await enqueue_all(connection, [Intent("sleep", {"seconds": 0}) for _ in range(20)])
            await asyncio.sleep(0)
            assert len(sent) == 1
            assert await connection.fetchrow(written) == (added + 20, changed)

    run_with_connection(stack, submit)


def test_a_pool_can_be_used(stack: Stack) -> None:
    """It lends a connection for each submit, or a whole one for a transaction."""

    async def submit(_: asyncpg.Connection[Any]) -> list[str]:
        async with asyncpg.create_pool(stack.sql.url, min_size=1, max_size=2) as pool:
            alone = await enqueue(pool, "echo", {"n": 1})
            async with pool.acquire() as lent, lent.transaction():
                return [alone, await enqueue(lent, "echo", {"n": 2})]

    for job_id in run_with_connection(stack, submit):
        wait_until(partial(stack.sql.job, job_id), "it has run", lambda job: bool(job["state"] == "SUCCESS"))


def test_every_submit_without_a_key_is_a_new_job(stack: Stack) -> None:
    """Its key is its id; the ids of later ones are greater."""

    async def submit(connection: asyncpg.Connection[Any]) -> list[str]:
        assert await enqueue_all(connection, []) == []
        same = [Intent("echo", {"n": 1})] * 3
        return [*await enqueue_all(connection, same), await enqueue(connection, "echo", {"n": 1})]

    found = run_with_connection(stack, submit)
    assert found == sorted({*found})
    for job_id in found:
        assert stack.sql.job(job_id)["idempotency_key"] == job_id
        assert uuid.UUID(job_id).version == 7


@pytest.mark.req("ORC-070")
def test_producers_that_race_for_the_same_keys_get_the_same_jobs(stack: Stack) -> None:
    """In whatever order each has them, and whether its transaction lasts for a while or not."""
    keys = [new_key(str(number)) for number in range(30)]

    async def race(_: asyncpg.Connection[Any]) -> list[dict[str, str]]:
        async def submit(number: int) -> dict[str, str]:
            mine = keys[number:] + keys[:number]
            connection = await asyncpg.connect(stack.sql.url)
            try:
                async with connection.transaction():
                    intents = [Intent("sleep", {"seconds": 0}, each) for each in mine]
                    found = await enqueue_all(connection, intents[::-1] if number % 2 else intents)
                    await asyncio.sleep(0.01)
            finally:
                await connection.close()
            return dict(zip(mine[::-1] if number % 2 else mine, found, strict=True))

        return await asyncio.gather(*(submit(number) for number in range(12)))

    first, *others = run_with_connection(stack, race)
    assert all(each == first for each in others)
    assert len({*first.values()}) == len(keys)
    assert [len(stack.sql.jobs(key)) for key in keys] == [1] * len(keys)


class Size(Enum):
    SMALL = "s"


@pytest.mark.parametrize(
    "payload",
    [
        {"none": None, "size": Size.SMALL},
        {"id": uuid.UUID(int=7), "large": 2**70, "small": 1e-7, "text": "null é \U0001f600"},
        {"keys": {1: "one"}, "nested": [{"a": (1, 2)}, True]},
    ],
)
def test_payloads_are_stored_unchanged(stack: Stack, payload: dict[str, Any]) -> None:
    """In any notation."""

    async def submit(connection: asyncpg.Connection[Any]) -> str:
        async with connection.transaction():
            job_id = await enqueue(connection, "sleep", payload)
            return str(await connection.fetchval("SELECT payload FROM jobs WHERE job_id = $1", job_id))

    wanted = json.dumps(payload, default=lambda value: value.value if isinstance(value, Size) else str(value))
    assert json.loads(run_with_connection(stack, submit)) == json.loads(wanted)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), {1, 2}, b"bytes", object()])
def test_payloads_that_are_no_json_are_refused(stack: Stack, value: object) -> None:
    async def submit(connection: asyncpg.Connection[Any]) -> None:
        with pytest.raises((ValueError, TypeError)):
            await enqueue(connection, "echo", {"value": value})

    run_with_connection(stack, submit)
