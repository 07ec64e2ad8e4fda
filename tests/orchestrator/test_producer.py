"""A producer that writes to the database itself, through connections of its own."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

import asyncpg
import pytest

from handlers.orchestrator.enqueue import Intent, enqueue
from handlers.orchestrator.producer import Producer
from runtime.stores.postgres.database import PostgresUnavailable
from tests.support.orchestrator.stack import Stack, new_key, wait_until


def run_with_producer(stack: Stack, use: Callable[[Producer], Awaitable[Any]]) -> Any:
    """Run a function with a producer."""

    async def run() -> Any:
        async with Producer(stack.sql.url) as jobs:
            return await use(jobs)

    return asyncio.run(run())


def test_concurrent_jobs_are_batched_and_run(stack: Stack) -> None:
    """The first is sent at once, and the others in one transaction after it."""

    async def submit(jobs: Producer) -> list[str]:
        return await asyncio.gather(*(jobs.enqueue("echo", {"n": number}) for number in range(40)))

    found = run_with_producer(stack, submit)
    assert len({*found}) == 40
    transactions = {
        row["txid"]
        for job_id in found
        for row in stack.sql.rows(
            "SELECT txid::text FROM job_transitions WHERE job_id = $1 AND from_state IS NULL", job_id
        )
    }
    assert len(transactions) == 2
    for job_id in (found[0], found[-1]):
        wait_until(partial(stack.sql.job, job_id), "it has run", lambda job: bool(job["state"] == "SUCCESS"))


def test_a_refused_job_does_not_fail_others_of_its_batch(stack: Stack) -> None:
    """The error names the field and the rule."""

    async def submit(jobs: Producer) -> list[Any]:
        wanted = ["echo", "no spaces", "echo"]
        return await asyncio.gather(*(jobs.enqueue(each, {}) for each in wanted), return_exceptions=True)

    first, refused, last = run_with_producer(stack, submit)
    assert isinstance(refused, ValueError)
    assert "job_type: must match" in str(refused)
    assert [stack.sql.job(each)["job_type"] for each in (first, last)] == ["echo", "echo"]


@pytest.mark.req("ORC-070")
def test_the_same_key_gives_the_same_job(stack: Stack) -> None:
    """At the same moment, later, and among many."""
    key = new_key()

    async def submit(jobs: Producer) -> list[str]:
        found = await asyncio.gather(*(jobs.enqueue("echo", {"n": 1}, key) for _ in range(10)))
        later = await jobs.enqueue_all([Intent("echo", {}, key), Intent("echo", {})])
        return [*found, later[0]]

    assert len({*run_with_producer(stack, submit)}) == 1
    assert len(stack.sql.jobs(key)) == 1


def test_a_key_locked_by_a_transaction_delays_no_other_submit(stack: Stack) -> None:
    """A submit without a key is answered meanwhile; one with that key, when the transaction has ended."""
    key = new_key()

    async def submit(jobs: Producer) -> tuple[str, str]:
        holder = await asyncpg.connect(stack.sql.url)
        try:
            locking = holder.transaction()
            await locking.start()
            mine = await enqueue(holder, "sleep", {"seconds": 0}, key)
            waiting = asyncio.create_task(jobs.enqueue("sleep", {"seconds": 0}, key))
            await jobs.enqueue("sleep", {"seconds": 0})
            assert not waiting.done()
            await locking.commit()
            return mine, await waiting
        finally:
            await holder.close()

    mine, found = run_with_producer(stack, submit)
    assert mine == found


def test_broken_connections_are_replaced(stack: Stack) -> None:
    """Submits do not fail, and no job is there twice."""
    cut = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'producer'"

    async def submit(jobs: Producer) -> list[str]:
        found = []
        onlooker = await asyncpg.connect(stack.sql.url)
        for number in range(5):
            found += [await jobs.enqueue("sleep", {"seconds": 0, "n": number})]
            submits = [asyncio.create_task(jobs.enqueue("sleep", {"seconds": 0})) for _ in range(20)]
            await asyncio.sleep(0)
            await onlooker.execute(cut)
            found += await asyncio.gather(*submits)
        await onlooker.close()
        return found

    found = run_with_producer(stack, submit)
    assert len({*found}) == 105
    assert [len(stack.sql.jobs(job_id)) for job_id in found] == [1] * 105


def test_an_unreachable_database_is_an_error(stack: Stack) -> None:
    async def submit() -> None:
        async with Producer("postgresql://nobody@127.0.0.1:9/none") as jobs:
            with pytest.raises(PostgresUnavailable):
                await jobs.enqueue("echo", {})

    asyncio.run(submit())
