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
from runtime.stores.postgres.database import Unavailable
from tests.support.orchestrator.stack import Stack, new_key, wait_until


def producing(stack: Stack, use: Callable[[Producer], Awaitable[Any]]) -> Any:
    """Does something with a producer."""

    async def run() -> Any:
        async with Producer(stack.sql.url) as jobs:
            return await use(jobs)

    return asyncio.run(run())


def test_jobs_of_the_same_moment_go_together_and_are_run(stack: Stack) -> None:
    """The first goes at once, and the others in one transaction after it."""

    async def submit(jobs: Producer) -> list[str]:
        return await asyncio.gather(*(jobs.enqueue("echo", {"n": number}) for number in range(40)))

    found = producing(stack, submit)
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


def test_a_job_that_is_refused_takes_no_other_along(stack: Stack) -> None:
    """The error names the field and the rule."""

    async def submit(jobs: Producer) -> list[Any]:
        wanted = ["echo", "no spaces", "echo"]
        return await asyncio.gather(*(jobs.enqueue(each, {}) for each in wanted), return_exceptions=True)

    first, refused, last = producing(stack, submit)
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

    assert len({*producing(stack, submit)}) == 1
    assert len(stack.sql.jobs(key)) == 1


def test_a_key_that_a_transaction_holds_keeps_nobody_else_waiting(stack: Stack) -> None:
    """Who has no key is answered meanwhile; who has that one, when the transaction has ended."""
    key = new_key()

    async def submit(jobs: Producer) -> tuple[str, str]:
        holder = await asyncpg.connect(stack.sql.url)
        try:
            held = holder.transaction()
            await held.start()
            mine = await enqueue(holder, "sleep", {"seconds": 0}, key)
            waiting = asyncio.create_task(jobs.enqueue("sleep", {"seconds": 0}, key))
            await jobs.enqueue("sleep", {"seconds": 0})
            assert not waiting.done()
            await held.commit()
            return mine, await waiting
        finally:
            await holder.close()

    mine, found = producing(stack, submit)
    assert mine == found


def test_connections_that_the_server_has_cut_are_made_anew(stack: Stack) -> None:
    """Whoever submits does not see it, and no job is there twice."""
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

    found = producing(stack, submit)
    assert len({*found}) == 105
    assert [len(stack.sql.jobs(job_id)) for job_id in found] == [1] * 105


def test_a_database_that_is_not_there_is_told(stack: Stack) -> None:
    async def submit() -> None:
        async with Producer("postgresql://nobody@127.0.0.1:9/none") as jobs:
            with pytest.raises(Unavailable):
                await jobs.enqueue("echo", {})

    asyncio.run(submit())
