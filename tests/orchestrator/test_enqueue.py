"""Jobs that are submitted by the transaction they belong to."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import asyncpg
import pytest

from handlers.orchestrator.enqueue import Intent, enqueue, enqueue_all
from tests.orchestrator.stack import Stack, new_key, wait_until


def connected(stack: Stack, use: Callable[[asyncpg.Connection[Any]], Awaitable[Any]]) -> Any:
    """Does something with a connection of a producer's own."""

    async def run() -> Any:
        connection = await asyncpg.connect(stack.sql.url)
        try:
            return await use(connection)
        finally:
            await connection.close()

    return asyncio.run(run())


def test_a_job_is_there_with_its_transaction_and_is_run(stack: Stack) -> None:
    """Nobody sees it before the commit; after it a worker runs it and the API shows it."""
    key = new_key()

    async def submit(connection: asyncpg.Connection[Any]) -> str:
        async with connection.transaction():
            job_id = await enqueue(connection, "echo", {"n": 1}, key)
            onlooker = await asyncpg.connect(stack.sql.url)
            seen = await onlooker.fetchval("SELECT count(*) FROM jobs WHERE idempotency_key = $1", key)
            await onlooker.close()
            assert seen == 0
            return job_id

    job_id = connected(stack, submit)
    wait_until(lambda: stack.sql.job(job_id)["state"], "it has run", lambda state: state == "SUCCESS")
    assert [row["job_id"] for row in stack.sql.jobs(key)] == [stack.sql.job(job_id)["job_id"]]


def test_a_job_never_was_if_its_transaction_is_rolled_back(stack: Stack) -> None:
    """The key is free again."""
    key = new_key()

    async def submit(connection: asyncpg.Connection[Any]) -> None:
        with pytest.raises(ZeroDivisionError):
            async with connection.transaction():
                await enqueue(connection, "echo", {}, key)
                raise ZeroDivisionError

    connected(stack, submit)
    assert stack.sql.jobs(key) == []


def test_known_keys_give_the_jobs_that_they_have(stack: Stack) -> None:
    """Also within one batch, and in the order of the request."""
    keys = [new_key("a"), new_key("b")]
    wanted = [Intent("echo", {"n": number}, keys[number % 2]) for number in range(4)]

    async def submit(connection: asyncpg.Connection[Any]) -> list[str]:
        first = await enqueue(connection, "echo", {}, keys[0])
        found = await enqueue_all(connection, wanted)
        assert found[0] == found[2] == first
        return found

    found = connected(stack, submit)
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
def test_what_the_api_would_refuse_is_refused(stack: Stack, intent: Intent, problem: str) -> None:
    """The error names the field and the rule, and nothing is stored."""

    async def submit(connection: asyncpg.Connection[Any]) -> None:
        with pytest.raises(ValueError, match=problem):
            await enqueue_all(connection, [intent])

    connected(stack, submit)


def test_the_rest_of_the_transaction_is_the_producers_own(stack: Stack) -> None:
    """What it does after an enqueue is not taken for the service's work, and edges are checked."""
    key = new_key()

    async def submit(connection: asyncpg.Connection[Any]) -> None:
        async with connection.transaction():
            await enqueue(connection, "sleep", {"seconds": 0}, key)
            assert await connection.fetchval("SELECT current_setting('app.actor', true)") == ""
            with pytest.raises(asyncpg.PostgresError, match="ILLEGAL_TRANSITION"):
                async with connection.transaction():
                    await connection.execute("UPDATE jobs SET state = 'DEAD' WHERE idempotency_key = $1", key)

    connected(stack, submit)
