"""Many who want the same: competing stores on one database, each as a process of its own would have it."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack

import asyncpg
import pytest

from generated.orchestrator.errors import LeaseLost
from generated.orchestrator.lifecycle import JOB_FAIL
from generated.orchestrator.messages import RETRY, SUCCESS
from generated.orchestrator.records import JobRecord
from runtime.stores.postgres import PostgresStore
from runtime.stores.store import Held
from tests.support.chaos import Chaos
from tests.support.orchestrator.worker_processes import Crew, call_of, opened

WORKER, REAPER = call_of("worker"), call_of("reaper")
Kept = PostgresStore[JobRecord]
ENDED = "SELECT lease_expiry <= clock_timestamp() FROM jobs"


async def taken(store: Kept, owner: str = "a") -> tuple[str, Held]:
    """A job that somebody has taken."""
    record = await store.acquire(owner, WORKER)
    assert record is not None
    return record.job_id, Held(owner, record.attempt)


@pytest.mark.chaos
@pytest.mark.req("ORC-118", "ORC-144", "ORC-033")
def test_of_twenty_that_want_one_job_one_gets_it(crew: Crew, chaos: Chaos) -> None:
    """Twenty stores ask at once, round after round: one has it, nineteen have nothing, none fails."""

    async def race() -> None:
        async with AsyncExitStack() as stack:
            stores = [await stack.enter_async_context(opened(crew.database)) for _ in range(20)]
            await asyncio.gather(*(store.acquire("warm", WORKER) for store in stores))
            for number, _ in enumerate(chaos.rounds(15)):
                (job,) = await asyncio.to_thread(crew.put)
                asked = (store.acquire(f"{number}-{n}", WORKER) for n, store in enumerate(stores))
                got = [record for record in await asyncio.gather(*asked) if record is not None]
                assert [record.job_id for record in got] == [job]
                held = Held(str(got[0].lease_owner), got[0].attempt)
                assert await stores[0].settle(job, SUCCESS, held, WORKER, result="1") == SUCCESS

    asyncio.run(race())


@pytest.mark.req("ORC-113", "ORC-114", "ORC-115")
def test_locked_rows_are_passed_over(crew: Crew) -> None:
    """While somebody holds the oldest, the next is taken; while all are held, there is nothing to take."""
    oldest, newer = crew.put(count=2)

    async def take() -> None:
        other = await asyncpg.connect(crew.database)
        async with opened(crew.database) as store:
            async with other.transaction():
                await other.execute(f"SELECT FROM jobs WHERE job_id = '{oldest}' FOR UPDATE")
                key, held = await taken(store)
                assert key == newer
                assert await store.acquire("a", WORKER) is None
            key, held = await taken(store)
            assert key == oldest
            for each in (oldest, newer):
                await store.settle(each, SUCCESS, held, WORKER, result="1")
        await other.close()

    asyncio.run(take())


@pytest.mark.req("ORC-115")
def test_one_attempt_takes_one_job(crew: Crew) -> None:
    """Of ten that are queued one call takes one; four calls that share a statement take one each."""
    jobs = crew.put(count=10)

    async def take() -> None:
        async with opened(crew.database) as store:
            await taken(store)
            assert await asyncio.to_thread(crew.states, jobs) == {"RUNNING": 1, "QUEUED": 9}
            several = await asyncio.gather(*(taken(store, owner) for owner in "bcde"))
            assert len({key for key, _ in several}) == 4
            assert await asyncio.to_thread(crew.states, jobs) == {"RUNNING": 5, "QUEUED": 5}

    asyncio.run(take())
    crew.sql.force("TRUNCATE jobs")


@pytest.mark.req("ORC-015", "ORC-016", "ORC-106", "ORC-122", "ORC-124", "ORC-005")
def test_only_the_lease_lets_write(crew: Crew) -> None:
    """Another owner, an older attempt and an ended lease change nothing, by no renewal and no outcome."""
    job = crew.one()

    async def refused(store: Kept, held: Held) -> None:
        before = await asyncio.to_thread(crew.sql.job, job)
        assert not await store.renew(job, held)
        for target in (SUCCESS, RETRY):
            with pytest.raises(LeaseLost):
                await store.settle(job, target, held, WORKER)
        assert await asyncio.to_thread(crew.sql.job, job) == before

    async def play() -> None:
        async with opened(crew.database, LEASE_SECONDS="60") as store:
            _, held = await taken(store)
            assert await store.sweep(JOB_FAIL, REAPER) == 0, (
                "a lease that goes on is none of the reaper's business"
            )
            for wrong in (Held("b", held.fence), Held(held.owner, held.fence - 1), Held(held.owner, 9)):
                await refused(store, wrong)
            assert await store.renew(job, held)
            await asyncio.to_thread(crew.expire, job)
            await refused(store, held)
            assert await store.sweep(JOB_FAIL, REAPER) == 1
            await refused(store, held)
            await asyncio.to_thread(crew.bring, job, "QUEUED")
            _, again = await taken(store)
            await refused(store, held)
            assert await store.settle(job, SUCCESS, again, WORKER, result="1") == SUCCESS
            for late in (held, again):
                await refused(store, late)

    asyncio.run(play())


@pytest.mark.req("ORC-107", "ORC-106")
@pytest.mark.parametrize("target", [SUCCESS, RETRY])
def test_who_waits_for_a_lock_beyond_the_lease_writes_nothing(crew: Crew, target: int) -> None:
    """An outcome that was sent in time and had to wait for the row is as late as one that was sent late."""
    job = crew.one()

    async def play() -> None:
        other = await asyncpg.connect(crew.database)
        async with opened(crew.database) as store:
            _, held = await taken(store)
            lease_s, has_waited = 0.25, False
            while not has_waited:  # A busy machine may not have sent it before the lease was over.
                lease_s *= 2
                ends = f"clock_timestamp() + interval '{lease_s} s' WHERE job_id = '{job}'"
                await asyncio.to_thread(crew.sql.run, f"UPDATE jobs SET lease_expiry = {ends}")
                async with other.transaction():
                    await other.execute(f"SELECT FROM jobs WHERE job_id = '{job}' FOR UPDATE")
                    writing = asyncio.create_task(store.settle(job, target, held, WORKER))
                    has_waited = await _waits(crew, writing)
                    while not await other.fetchval(f"{ENDED} WHERE job_id = '{job}'"):
                        await asyncio.sleep(0.05)
                    assert not (has_waited and writing.done())
                with pytest.raises(LeaseLost):
                    await writing
            assert (await asyncio.to_thread(crew.sql.job, job))["state"] == "RUNNING"
            assert await store.sweep(JOB_FAIL, REAPER) == 1
        await other.close()

    asyncio.run(play())


@pytest.mark.req("ORC-121", "ORC-122")
def test_a_locked_row_takes_the_lease_from_nobody(crew: Crew) -> None:
    """A renewal that finds its row locked is told to try again, not that the lease is lost."""
    job = crew.one()

    async def play() -> None:
        other = await asyncpg.connect(crew.database)
        async with opened(crew.database, LEASE_SECONDS="60") as store:
            _, held = await taken(store)
            async with other.transaction():
                await other.execute(f"SELECT FROM jobs WHERE job_id = '{job}' FOR UPDATE")
                with pytest.raises(Exception, match="cannot reach its database now"):
                    await store.renew(job, held)
            assert await store.renew(job, held)
            await store.settle(job, SUCCESS, held, WORKER, result="1")
        await other.close()

    asyncio.run(play())


@pytest.mark.req("ORC-142", "ORC-140")
def test_five_reapers_count_an_expiry_once(crew: Crew) -> None:
    """All of them find the same ended leases; each is counted once, its lease is cleared and its wait set."""
    jobs = crew.put(count=3)

    async def play() -> None:
        async with AsyncExitStack() as stack:
            stores = [await stack.enter_async_context(opened(crew.database)) for _ in range(5)]
            for _ in jobs:
                key, _ = await taken(stores[0])
                await asyncio.to_thread(crew.expire, key)
            moved = await asyncio.gather(*(store.sweep(JOB_FAIL, REAPER) for store in stores))
            assert sum(moved) == 3

    asyncio.run(play())
    for job in jobs:
        row = crew.sql.job(job)
        assert (row["state"], row["retry_count"], row["last_error"]) == ("RETRY", 1, "LEASE_EXPIRED")
        assert (row["lease_owner"], row["lease_expiry"]) == (None, None)
        assert (row["next_attempt_at"] - row["updated_at"]).total_seconds() == 0.05


@pytest.mark.chaos
@pytest.mark.req("ORC-143")
def test_reaper_and_late_outcome_never_both_win(crew: Crew, chaos: Chaos) -> None:
    """At the very end of a lease either the outcome is written or the expiry is counted."""
    won = {"worker": 0, "reaper": 0}

    async def write(store: Kept, job: str, held: Held) -> bool:
        try:
            await store.settle(job, SUCCESS, held, WORKER, result="1")
        except LeaseLost:
            return False
        return True

    async def play() -> None:
        async with opened(crew.database) as one, opened(crew.database) as other:
            for number, _ in enumerate(chaos.rounds(15)):
                (job,) = await asyncio.to_thread(crew.put)
                _, held = await taken(one)
                nearly = "UPDATE jobs SET lease_expiry = clock_timestamp() + interval '10 ms' WHERE job_id ="
                await asyncio.to_thread(crew.sql.run, f"{nearly} '{job}'")
                await asyncio.sleep(number % 5 * 0.003)
                written, reaped = await asyncio.gather(write(one, job, held), _sweep(other))
                row = await asyncio.to_thread(crew.sql.job, job)
                assert row["state"] == ("SUCCESS" if written else "RETRY" if reaped else "RUNNING")
                assert row["retry_count"] == reaped
                assert not (written and reaped)
                won["worker"] += written
                won["reaper"] += reaped
                while row["state"] == "RUNNING" and not await _sweep(other):
                    await asyncio.sleep(0.002)

    asyncio.run(play())
    chaos.count(won_by_worker=won["worker"], won_by_reaper=won["reaper"], won_by_both=0)
    assert sum(won.values()) <= chaos.counted["rounds"]


async def _waits(crew: Crew, writing: asyncio.Task[int]) -> bool:
    """Whether a write has come to wait for a lock; not if it has ended without."""
    locked = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()"
    while not writing.done():
        if await asyncio.to_thread(crew.sql.value, f"{locked} AND wait_event_type = 'Lock'"):
            return True
        await asyncio.sleep(0.01)
    return False


async def _sweep(store: Kept) -> int:
    return await store.sweep(JOB_FAIL, REAPER)
