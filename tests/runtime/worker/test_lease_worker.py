"""A worker on a real store: its runs, its leases, their losses and releases."""

from __future__ import annotations

import asyncio
from contextlib import suppress

import pytest

from generated.orchestrator.lifecycle import JOB, JOB_COMPLETE
from generated.orchestrator.messages import QUEUED, RETRY, RUNNING, SUCCESS
from generated.orchestrator.records import JobRecord
from runtime.stores.contract import LeaseProof
from runtime.stores.store import Busy
from runtime.worker.config import Outcome, WorkerConfig
from tests.runtime.stores.postgres.conftest import MakeKit, folder, kit, make_kit, server, url
from tests.runtime.stores.postgres.kit import Kit
from tests.runtime.worker.working import (
    CONFIG,
    DONE,
    EAGER,
    LEASE_S,
    OWNER,
    Works,
    at_once,
    for_ever,
    run_worker,
)
from tests.support.eventually import eventually

__all__ = ["folder", "kit", "make_kit", "server", "url"]


@pytest.mark.req("ORC-127", "ORC-134", "ORC-130")
async def test_each_slot_runs_one_at_a_time(kit: Kit) -> None:
    """Ten entities in two slots: all are run once, with the lease of their taking, never three at a time."""

    async def perform(_record: JobRecord, _held: LeaseProof) -> Outcome:
        await asyncio.sleep(0.01)
        return DONE

    jobs = [(await kit.add(QUEUED)).job_id for _ in range(10)]
    async with run_worker(kit, perform) as works:
        for job in jobs:
            await works.wait_for_state(job, SUCCESS)
    assert sorted(works.runs) == sorted((job, LeaseProof(OWNER, 1)) for job in jobs)
    assert works.most == 2
    (started,) = kit.lines.read_back("started")
    assert (started["worker_id"], started["message"]) == (OWNER, "2 slots")


@pytest.mark.req("ORC-129", "ORC-127")
async def test_a_run_that_waits_for_nothing_is_a_run(kit: Kit) -> None:
    """It is run and written like any other."""
    job = (await kit.add(QUEUED)).job_id
    async with run_worker(kit, at_once) as works:
        assert (await works.wait_for_state(job, SUCCESS)).result == "1"


@pytest.mark.req("ORC-121")
async def test_a_lease_is_renewed_while_a_run_goes_on(make_kit: MakeKit) -> None:
    """After more than the whole lease it is still owned, with the same fence, and then the run succeeds."""
    kit = await make_kit(LEASE_SECONDS=LEASE_S)
    job, ends = (await kit.add(QUEUED)).job_id, asyncio.Event()

    async def perform(_record: JobRecord, _held: LeaseProof) -> Outcome:
        await ends.wait()
        return DONE

    async with run_worker(kit, perform, EAGER) as works:
        await works.wait_for_runs()
        await works.pass_lease(job)
        assert (await kit.job(job)).state == RUNNING
        ends.set()
        assert (await works.wait_for_state(job, SUCCESS)).attempt == 1
    assert works.losses() == []


@pytest.mark.req("ORC-136", "ORC-010")
async def test_a_run_whose_lease_is_lost_is_stopped(make_kit: MakeKit) -> None:
    """It is cancelled, nothing is written, and the loss is logged with key, fence and owner."""
    kit, canceled = await make_kit(LEASE_SECONDS=LEASE_S), asyncio.Event()

    async def perform(_record: JobRecord, _held: LeaseProof) -> Outcome:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            canceled.set()
            raise
        return DONE

    job = (await kit.add(QUEUED)).job_id
    async with run_worker(kit, perform, EAGER) as works:
        await works.wait_for_runs()
        await kit.sql.execute("UPDATE jobs SET lease_expiry = clock_timestamp() - interval '1 s'")
        await canceled.wait()
    assert (await kit.job(job)).state == RUNNING
    (lost,) = works.losses()
    assert (lost["job_id"], lost["attempt"], lost["worker_id"]) == (job, 1, OWNER)


@pytest.mark.req("ORC-136", "ORC-124")
async def test_a_run_that_cannot_be_stopped_blocks_no_other(make_kit: MakeKit) -> None:
    """The same worker takes the entity again meanwhile, keeps the new lease, and only that run counts."""
    kit, ends = await make_kit(LEASE_SECONDS=LEASE_S), {1: asyncio.Event(), 2: asyncio.Event()}

    async def perform(_record: JobRecord, held: LeaseProof) -> Outcome:
        while not ends[held.fence].is_set():
            with suppress(asyncio.CancelledError):
                await ends[held.fence].wait()
        return Outcome(JOB_COMPLETE, {"result": str(held.fence)})

    job = (await kit.add(QUEUED)).job_id
    async with run_worker(kit, perform, EAGER) as works:
        await works.wait_for_runs()
        for step in (
            "lease_expiry = clock_timestamp() - interval '1 s'",
            "state = 'RETRY', lease_owner = NULL, lease_expiry = NULL",
            "state = 'QUEUED'",
        ):
            await kit.sql.execute(f"UPDATE jobs SET {step}")
        await works.wait_for_runs(2)
        ends[1].set()
        await eventually(works.losses)
        await works.pass_lease(job)
        ends[2].set()
        assert (await works.wait_for_state(job, SUCCESS)).result == "2"
    assert [lost["attempt"] for lost in works.losses()] == [1]


@pytest.mark.req("ORC-X06", "ORC-133")
async def test_a_worker_that_waits_stops_at_once(kit: Kit) -> None:
    """Its next poll would be in an hour, and it is stopped now."""
    async with run_worker(kit, at_once, WorkerConfig(3, 3600, 30, 10, 5)) as works:
        await eventually(lambda: works.store.tried)
        works.stopping.set()


@pytest.mark.req("ORC-121", "ORC-016")
async def test_a_row_that_is_locked_for_a_while_stops_no_run(make_kit: MakeKit) -> None:
    """Renewals that find it locked are tried again; the run goes on and succeeds."""
    kit, ends = await make_kit(LEASE_SECONDS=LEASE_S), asyncio.Event()

    async def perform(_record: JobRecord, _held: LeaseProof) -> Outcome:
        await ends.wait()
        return DONE

    job = (await kit.add(QUEUED)).job_id
    async with run_worker(kit, perform, EAGER) as works:
        await works.wait_for_runs()
        async with kit.sql.transaction():
            await kit.sql.execute("SELECT FROM jobs WHERE job_id = $1 FOR UPDATE", job)
            await eventually(lambda: sum(isinstance(each, Busy) for each in works.store.renewed) >= 2)
        ends.set()
        await works.wait_for_state(job, SUCCESS)
    assert works.losses() == []


@pytest.mark.req("ORC-146")
async def test_an_outcome_is_written_again_and_again(kit: Kit) -> None:
    """A store that cannot be reached three times is asked a fourth time, and the outcome is written once."""
    job = (await kit.add(QUEUED)).job_id

    async def perform(_record: JobRecord, _held: LeaseProof) -> Outcome:
        works.store.failing = 3
        return DONE

    async with run_worker(kit, perform) as works:
        await works.wait_for_state(job, SUCCESS)
    assert len(works.runs) == 1
    assert works.losses() == []


@pytest.mark.req("ORC-146", "ORC-010")
async def test_an_outcome_is_dropped_at_the_end_of_the_lease(make_kit: MakeKit) -> None:
    """A store that stays down is asked until then; the loss is logged and the worker goes on."""
    kit = await make_kit(LEASE_SECONDS=LEASE_S)
    job = (await kit.add(QUEUED)).job_id

    async def perform(record: JobRecord, _held: LeaseProof) -> Outcome:
        works.store.failing = 1000 if record.job_id == job else 0
        return DONE

    async with run_worker(kit, perform, EAGER) as works:
        await works.wait_for_runs()
        before = works.store.tried
        await eventually(lambda: works.store.tried > before + 3)
        assert works.losses() == []
        works.world.seconds += LEASE_S
        await eventually(works.losses)
        works.store.failing = 0
        other = (await kit.add(QUEUED)).job_id
        await works.wait_for_state(other, SUCCESS)
    assert (await kit.job(job)).state == RUNNING


@pytest.mark.req("ORC-152")
@pytest.mark.parametrize("result", [r'"\u0000"', r'"\ud800"', "1e999999", "no json"])
async def test_an_unstorable_outcome_is_replaced(kit: Kit, result: str) -> None:
    """The entity gets the outcome for such a case, and others in the same exchange are not affected."""
    odd, good = (await kit.add(QUEUED)).job_id, (await kit.add(QUEUED)).job_id

    async def perform(record: JobRecord, _held: LeaseProof) -> Outcome:
        return Outcome(JOB_COMPLETE, {"result": result}) if record.job_id == odd else DONE

    async with run_worker(kit, perform) as works:
        await works.wait_for_state(good, SUCCESS)
        ended = await works.wait_for_state(odd, *JOB.terminal)
    assert JOB.states[ended.state] == "DEAD"
    assert ended.last_error == "cannot be stored"


@pytest.mark.req("ORC-010", "ORC-145")
async def test_a_store_that_cannot_be_reached_is_waited_for(kit: Kit) -> None:
    """A worker that can take nothing pauses and asks again, however often it takes."""
    job = (await kit.add(QUEUED)).job_id
    works = Works(kit, at_once, CONFIG)
    works.store.failing = 6
    task = asyncio.create_task(works.work())
    await works.wait_for_state(job, SUCCESS)
    works.stopping.set()
    await task


@pytest.mark.req("ORC-X06")
async def test_a_worker_that_stops_lets_runs_end_within_the_grace(kit: Kit) -> None:
    """The run in flight succeeds; an entity that is queued meanwhile stays queued."""
    ends = asyncio.Event()

    async def perform(_record: JobRecord, _held: LeaseProof) -> Outcome:
        await ends.wait()
        return DONE

    jobs = [(await kit.add(QUEUED)).job_id for _ in range(2)]
    async with run_worker(kit, perform) as works:
        await works.wait_for_runs(2)
        later = (await kit.add(QUEUED)).job_id
        works.stopping.set()
        ends.set()
    assert [(await kit.job(job)).state for job in jobs] == [SUCCESS, SUCCESS]
    assert (await kit.job(later)).state == QUEUED


@pytest.mark.req("ORC-X06")
async def test_after_the_grace_a_run_is_released(kit: Kit) -> None:
    """It is stopped, and waits to be tried again, with the reason."""
    job = (await kit.add(QUEUED)).job_id
    async with run_worker(kit, for_ever, WorkerConfig(1, 0.02, 30, 10, 0.05)) as works:
        await works.wait_for_runs()
    ended = await kit.job(job)
    assert (ended.state, ended.last_error, ended.retry_count) == (RETRY, "released", 1)
    assert works.losses() == []


@pytest.mark.req("ORC-X06")
async def test_a_claim_that_arrives_after_the_grace_is_released(kit: Kit) -> None:
    """The store was asked before the stop and answers after it: nothing is begun any more."""
    job = (await kit.add(QUEUED)).job_id
    async with run_worker(kit, for_ever, WorkerConfig(1, 0.02, 30, 10, 0)) as works:
        works.store.may_answer.clear()
        await works.wait_for_state(job, RUNNING)
        works.stopping.set()
        await eventually(lambda: works.worker._is_grace_over)
        works.store.may_answer.set()
    assert works.runs == []
    assert ((await kit.job(job)).state, (await kit.job(job)).last_error) == (RETRY, "released")


async def test_a_worker_that_is_cut_off_leaves_no_run_behind(kit: Kit) -> None:
    """When the work itself is canceled, so are its runs; nothing is written."""
    job, works = (await kit.add(QUEUED)).job_id, Works(kit, for_ever, CONFIG)
    task = asyncio.create_task(works.work())
    await works.wait_for_runs()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    while works.at_once:
        await asyncio.sleep(0)
    assert (await kit.job(job)).state == RUNNING
