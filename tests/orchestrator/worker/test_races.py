"""Races between stores on one database, each with connections of its own like a process."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack

import asyncpg
import pytest

from generated.orchestrator.errors import LeaseLost
from generated.orchestrator.lifecycle import JOB, JOB_FAIL
from generated.orchestrator.messages import RETRY, RUNNING, SUCCESS
from generated.orchestrator.records import JobRecord
from runtime.stores.contract import LeaseProof, LeaseSettlement
from runtime.stores.postgres import PostgresStore
from runtime.stores.store import Busy
from tests.support.chaos import Chaos
from tests.support.orchestrator.worker_processes import Crew, make_call, open_store

WORKER, REAPER = make_call("worker"), make_call("reaper")
JobStore = PostgresStore[JobRecord]
ENDED = "SELECT lease_expiry <= clock_timestamp() FROM jobs"


async def claim_one(store: JobStore, owner: str) -> JobRecord | None:
    """Claim a job if there is one."""
    claimed = await store.claim(owner, 1, WORKER)
    return claimed[0] if claimed else None


def settlement(job_id: str, target: int, lease: LeaseProof) -> LeaseSettlement:
    """The end of a run."""
    return LeaseSettlement(job_id, lease, JOB.edges[RUNNING, target].name, {"result": "1"})


async def is_renewed(store: JobStore, job_id: str, lease: LeaseProof) -> bool:
    """Renew a lease; whether it goes on."""
    return await store.renew([(job_id, lease)]) != [None]


async def claim(store: JobStore, owner: str = "a") -> tuple[str, LeaseProof]:
    """Claim a job."""
    record = await claim_one(store, owner)
    assert record is not None
    return record.job_id, LeaseProof(owner, record.attempt)


@pytest.mark.chaos
@pytest.mark.req("ORC-118", "ORC-144", "ORC-033")
def test_of_twenty_claims_of_one_job_one_succeeds(crew: Crew, chaos: Chaos) -> None:
    """Twenty stores claim at once, round after round: one gets it, nineteen get nothing, none fails."""

    async def race() -> None:
        async with AsyncExitStack() as stack:
            stores = [await stack.enter_async_context(open_store(crew.database)) for _ in range(20)]
            await asyncio.gather(*(claim_one(store, "warm") for store in stores))
            for number, _ in enumerate(chaos.rounds(15)):
                (job,) = await asyncio.to_thread(crew.insert_jobs)
                claims = (claim_one(store, f"{number}-{n}") for n, store in enumerate(stores))
                got = [record for record in await asyncio.gather(*claims) if record is not None]
                assert [record.job_id for record in got] == [job]
                lease = LeaseProof(str(got[0].lease_owner), got[0].attempt)
                assert await stores[0].settle(settlement(job, SUCCESS, lease), WORKER) == SUCCESS

    asyncio.run(race())


@pytest.mark.req("ORC-113", "ORC-114", "ORC-115")
def test_locked_rows_are_skipped(crew: Crew) -> None:
    """While the oldest row is locked, the next is claimed; while all are, nothing is."""
    oldest, newer = crew.insert_jobs(count=2)

    async def play() -> None:
        other = await asyncpg.connect(crew.database)
        async with open_store(crew.database) as store:
            async with other.transaction():
                await other.execute(f"SELECT FROM jobs WHERE job_id = '{oldest}' FOR UPDATE")
                key, lease = await claim(store)
                assert key == newer
                assert await claim_one(store, "a") is None
            key, lease = await claim(store)
            assert key == oldest
            for each in (oldest, newer):
                await store.settle(settlement(each, SUCCESS, lease), WORKER)
        await other.close()

    asyncio.run(play())


@pytest.mark.req("ORC-115")
def test_one_claim_is_one_job(crew: Crew) -> None:
    """Of ten queued jobs one call claims one; four calls in one batch claim one each."""
    jobs = crew.insert_jobs(count=10)

    async def play() -> None:
        async with open_store(crew.database) as store:
            await claim(store)
            assert await asyncio.to_thread(crew.states, jobs) == {"RUNNING": 1, "QUEUED": 9}
            several = await asyncio.gather(*(claim(store, owner) for owner in "bcde"))
            assert len({key for key, _ in several}) == 4
            assert await asyncio.to_thread(crew.states, jobs) == {"RUNNING": 5, "QUEUED": 5}

    asyncio.run(play())
    crew.sql.force("TRUNCATE jobs")


@pytest.mark.req("ORC-015", "ORC-016", "ORC-106", "ORC-122", "ORC-124", "ORC-005")
def test_only_the_lease_owner_may_write(crew: Crew) -> None:
    """Another owner, an older attempt and an expired lease change nothing, by no renewal and no outcome."""
    job = crew.insert_job()

    async def expect_refusal(store: JobStore, lease: LeaseProof) -> None:
        before = await asyncio.to_thread(crew.sql.job, job)
        assert not await is_renewed(store, job, lease)
        for target in (SUCCESS, RETRY):
            with pytest.raises(LeaseLost):
                await store.settle(settlement(job, target, lease), WORKER)
        assert await asyncio.to_thread(crew.sql.job, job) == before

    async def play() -> None:
        async with open_store(crew.database, LEASE_SECONDS="60") as store:
            _, lease = await claim(store)
            assert await store.run_due(JOB_FAIL.name, REAPER) == 0, (
                "a lease that goes on is none of the reaper's business"
            )
            wrong_fences = (LeaseProof(lease.owner, lease.fence + 1), LeaseProof(lease.owner, 9))
            for wrong in (LeaseProof("b", lease.fence), *wrong_fences):
                await expect_refusal(store, wrong)
            assert await is_renewed(store, job, lease)
            await asyncio.to_thread(crew.expire, job)
            await expect_refusal(store, lease)
            assert await store.run_due(JOB_FAIL.name, REAPER) == 1
            await expect_refusal(store, lease)
            await asyncio.to_thread(crew.transition, job, "QUEUED")
            _, again = await claim(store)
            await expect_refusal(store, lease)
            assert await store.settle(settlement(job, SUCCESS, again), WORKER) == SUCCESS
            for late in (lease, again):
                await expect_refusal(store, late)

    asyncio.run(play())


@pytest.mark.req("ORC-107", "ORC-106")
@pytest.mark.parametrize("target", [SUCCESS, RETRY])
def test_a_write_that_waits_for_a_lock_beyond_the_lease_is_refused(crew: Crew, target: int) -> None:
    """An outcome that was sent in time and had to wait for the row is as late as one that was sent late."""
    job = crew.insert_job()

    async def play() -> None:
        other = await asyncpg.connect(crew.database)
        async with open_store(crew.database) as store:
            _, lease = await claim(store)
            lease_s, has_waited = 0.25, False
            while not has_waited:  # A busy machine may not have sent it before the lease was over.
                lease_s *= 2
                ends = f"clock_timestamp() + interval '{lease_s} s' WHERE job_id = '{job}'"
                await asyncio.to_thread(crew.sql.run, f"UPDATE jobs SET lease_expiry = {ends}")
                async with other.transaction():
                    await other.execute(f"SELECT FROM jobs WHERE job_id = '{job}' FOR UPDATE")
                    writing = asyncio.create_task(store.settle(settlement(job, target, lease), WORKER))
                    has_waited = await _is_blocked(crew, writing)
                    while not await other.fetchval(f"{ENDED} WHERE job_id = '{job}'"):
                        await asyncio.sleep(0.05)
                    assert not (has_waited and writing.done())
                with pytest.raises(LeaseLost):
                    await writing
            assert (await asyncio.to_thread(crew.sql.job, job))["state"] == "RUNNING"
            assert await store.run_due(JOB_FAIL.name, REAPER) == 1
        await other.close()

    asyncio.run(play())


@pytest.mark.req("ORC-121", "ORC-122")
def test_a_locked_row_does_not_end_a_lease(crew: Crew) -> None:
    """A renewal that finds its row locked is retried, and does not count as a lost lease."""
    job = crew.insert_job()

    async def play() -> None:
        other = await asyncpg.connect(crew.database)
        async with open_store(crew.database, LEASE_SECONDS="60") as store:
            _, lease = await claim(store)
            async with other.transaction():
                await other.execute(f"SELECT FROM jobs WHERE job_id = '{job}' FOR UPDATE")
                (outcome,) = await store.renew([(job, lease)])
                assert isinstance(outcome, Busy)
            assert await is_renewed(store, job, lease)
            await store.settle(settlement(job, SUCCESS, lease), WORKER)
        await other.close()

    asyncio.run(play())


@pytest.mark.req("ORC-142", "ORC-140")
def test_five_reapers_count_an_expiry_once(crew: Crew) -> None:
    """All of them find the same expired leases; each is counted once, its lease cleared and its wait set."""
    jobs = crew.insert_jobs(count=3)

    async def play() -> None:
        async with AsyncExitStack() as stack:
            stores = [await stack.enter_async_context(open_store(crew.database)) for _ in range(5)]
            for _ in jobs:
                key, _ = await claim(stores[0])
                await asyncio.to_thread(crew.expire, key)
            swept = await asyncio.gather(*(store.run_due(JOB_FAIL.name, REAPER) for store in stores))
            assert sum(swept) == 3

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

    async def write(store: JobStore, job: str, lease: LeaseProof) -> bool:
        try:
            await store.settle(settlement(job, SUCCESS, lease), WORKER)
        except LeaseLost:
            return False
        return True

    async def play() -> None:
        async with open_store(crew.database) as one, open_store(crew.database) as other:
            for number, _ in enumerate(chaos.rounds(15)):
                (job,) = await asyncio.to_thread(crew.insert_jobs)
                _, lease = await claim(one)
                nearly = "UPDATE jobs SET lease_expiry = clock_timestamp() + interval '10 ms' WHERE job_id ="
                await asyncio.to_thread(crew.sql.run, f"{nearly} '{job}'")
                await asyncio.sleep(number % 5 * 0.003)
                written, reaped = await asyncio.gather(write(one, job, lease), _sweep(other))
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


async def _is_blocked(crew: Crew, writing: asyncio.Task[int]) -> bool:
    """Whether a write waits for a lock; not if it has ended without."""
    locked = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()"
    while not writing.done():
        if await asyncio.to_thread(crew.sql.value, f"{locked} AND wait_event_type = 'Lock'"):
            return True
        await asyncio.sleep(0.01)
    return False


async def _sweep(store: JobStore) -> int:
    return await store.run_due(JOB_FAIL.name, REAPER)
