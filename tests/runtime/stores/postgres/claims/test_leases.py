"""Leases once they are held: how long they last and what they protect, by the clock of the database alone."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest

from generated.orchestrator.lifecycle import JOB_ACCEPT, JOB_ACQUIRE, JOB_COMPLETE, JOB_FAIL, JOB_REQUEUE
from generated.orchestrator.messages import DEAD, QUEUED, RETRY, RUNNING, SUCCESS
from runtime.call.conditions import Condition
from runtime.stores.contract import LeaseProof
from runtime.stores.store import GuardBreach, Unstorable
from tests.runtime.stores.postgres.claims.leasing import lost, settle, shift, take, waits
from tests.runtime.stores.postgres.conftest import MakeKit
from tests.runtime.stores.postgres.kit import Kit
from tests.runtime.stores.postgres.test_store import blocked
from tests.support.eventually import eventually


@pytest.mark.req("ORC-023", "ORC-130", "ORC-137")
async def test_success_keeps_the_result_and_gives_the_lease_back(kit: Kit) -> None:
    await kit.add(QUEUED)
    job = await take(kit)
    assert await settle(kit, job, result='{"sum": 3}') == SUCCESS
    row = await kit.row(job.job_id)
    assert (row["state"], row["lease_owner"], row["lease_expiry"]) == ("SUCCESS", None, None)
    assert (row["result"], row["retry_count"], row["attempt"]) == ('{"sum": 3}', 0, 1)


@pytest.mark.req("ORC-024", "ORC-131", "ORC-147", "ORC-148", "ORC-154")
async def test_failures_wait_twice_as_long_each_time(kit: Kit) -> None:
    """2, 4 and 8 seconds from the failure, and the same again for another one."""
    for _ in range(2):
        made = await kit.add(QUEUED)
        for failures, seconds in ((1, 2), (2, 4), (3, 8)):
            job = await take(kit)
            assert await settle(kit, job, RETRY, error=f"failure {failures}") == RETRY
            row = await kit.row(made.job_id)
            assert row["next_attempt_at"] - row["updated_at"] == timedelta(seconds=seconds)
            assert (row["retry_count"], row["lease_owner"]) == (failures, None)
            assert (row["lease_expiry"], row["last_error"]) == (None, f"failure {failures}")
            await due_now(kit)
            await kit.store.run_due(JOB_REQUEUE.name, kit.call("scheduler"))
        assert await settle(kit, await take(kit), RETRY) == DEAD


async def test_the_longest_wait_is_bounded(make_kit: MakeKit) -> None:
    """Also for a count whose power of two no number can hold."""
    kit = await make_kit(MAX_RETRIES=10_000)
    made = await kit.add(RUNNING)
    await kit.sql.execute("UPDATE jobs SET retry_count = 5000")
    await kit.settle(made.job_id, RETRY, LeaseProof("w", 1), kit.call("worker"))
    row = await kit.row(made.job_id)
    assert row["next_attempt_at"] - row["updated_at"] == timedelta(seconds=300)


@pytest.mark.req("ORC-026", "ORC-031", "ORC-149", "ORC-150")
@pytest.mark.parametrize("limit", [0, 1, 3])
async def test_one_failure_more_than_the_limit_is_the_last(make_kit: MakeKit, limit: int) -> None:
    kit = await make_kit(MAX_RETRIES=limit)
    made = await kit.add(QUEUED)
    ends: list[int] = []
    while not ends or ends[-1] == RETRY:
        ends.append(await settle(kit, await take(kit), RETRY, error="always"))
        await due_now(kit)
        await kit.store.run_due(JOB_REQUEUE.name, kit.call("scheduler"))
    assert ends == [RETRY] * limit + [DEAD]
    row = await kit.row(made.job_id)
    assert (row["retry_count"], row["next_attempt_at"]) == (limit + 1, None)


@pytest.mark.req("ORC-030", "ORC-152")
async def test_a_failure_for_good_ends_it_in_one_transaction(kit: Kit) -> None:
    """Nobody ever sees the state in between, and the history has both edges."""
    made = await kit.add(QUEUED)
    job = await take(kit)
    assert await settle(kit, job, RETRY, is_final=True, error="no use") == DEAD
    assert (await kit.row(made.job_id))["retry_count"] == 1
    rows = await kit.sql.fetch(
        "SELECT to_state, txid::text FROM job_transitions WHERE job_id = $1 ORDER BY number", made.job_id
    )
    assert [row[0] for row in rows][-2:] == ["RETRY", "DEAD"]
    assert rows[-1][1] == rows[-2][1] != rows[-3][1]
    with pytest.raises(GuardBreach, match="never the last try"):
        await settle(kit, job, SUCCESS, is_final=True)


@pytest.mark.req("ORC-154")
async def test_an_error_text_is_cut_at_a_character_and_made_storable(kit: Kit) -> None:
    await kit.add(QUEUED)
    job = await take(kit)
    await settle(kit, job, RETRY, error="\0\ud800" + "ě" * 5000)
    text = (await kit.row(job.job_id))["last_error"]
    assert text.startswith("\N{REPLACEMENT CHARACTER}?ě")
    assert 1998 <= len(text.encode()) <= 2000


async def test_a_result_that_cannot_be_stored_spoils_no_other(kit: Kit) -> None:
    """Results share a statement; the refused one alone is told, and its entity is still held."""
    for _ in range(3):
        await kit.add(QUEUED)
    jobs = [await take(kit) for _ in range(3)]
    texts = ['"fine"', '"\\u0000"', "1"]
    ended = await asyncio.gather(
        *(settle(kit, job, result=text) for job, text in zip(jobs, texts, strict=True)),
        return_exceptions=True,
    )
    assert ended[0] == ended[2] == SUCCESS
    assert isinstance(ended[1], Unstorable)
    assert await settle(kit, jobs[1], RETRY, error="no result") == RETRY


@pytest.mark.req("ORC-005", "ORC-015", "ORC-016", "ORC-122", "ORC-123", "ORC-124")
async def test_nothing_is_written_without_the_lease(kit: Kit) -> None:
    """Another's name, an older fence, an entity that has moved on: nothing changes."""
    await kit.add(QUEUED)
    job = await take(kit)
    await lost(kit, job, LeaseProof("other", 1))
    await lost(kit, job, LeaseProof("w", 2))
    await settle(kit, job)
    await lost(kit, job)
    assert kit.metrics.registry.get_sample_value("charter_leases_lost_total", {"entity": "job"}) == 6


@pytest.mark.req("ORC-124")
async def test_the_fence_holds_for_the_same_owner(kit: Kit) -> None:
    made = await kit.add(QUEUED)
    first = await take(kit)
    await shift(kit, made.job_id, -1)
    await kit.store.run_due(JOB_FAIL.name, kit.call("reaper"))
    await due_now(kit)
    await kit.store.run_due(JOB_REQUEUE.name, kit.call("scheduler"))
    second = await take(kit)
    assert (first.attempt, second.attempt) == (1, 2)
    await lost(kit, first)
    assert await settle(kit, second) == SUCCESS


@pytest.mark.req("ORC-010", "ORC-106", "ORC-122")
async def test_a_lease_that_has_ended_cannot_be_used_or_revived(kit: Kit) -> None:
    """Before its end it holds; one second after it does not, though nobody has taken it yet."""
    await kit.add(QUEUED)
    job = await take(kit)
    await shift(kit, job.job_id, -1)
    await lost(kit, job)
    await lost(kit, job, target=RETRY)
    await shift(kit, job.job_id, 60)
    assert await settle(kit, job) == SUCCESS


@pytest.mark.req("ORC-034", "ORC-121")
async def test_a_renewal_moves_the_end_and_nothing_else(kit: Kit) -> None:
    await kit.add(QUEUED)
    job = await take(kit)
    before = await kit.row(job.job_id)
    for _ in range(5):
        assert await kit.renew(job.job_id, LeaseProof("w", 1))
    after = await kit.row(job.job_id)
    assert after.pop("lease_expiry") > before.pop("lease_expiry")
    assert after == before
    assert len(await kit.edges(job.job_id)) == 3


@pytest.mark.req("ORC-107", "ORC-110")
@pytest.mark.parametrize("changes", [True, False])
@pytest.mark.parametrize("target", [SUCCESS, RETRY])
async def test_a_writer_that_waited_past_the_end_writes_nothing(kit: Kit, changes: bool, target: int) -> None:
    """Someone holds the row until the lease is over. now() would still say that it is not."""
    await kit.add(QUEUED)
    job = await take(kit)
    other = await kit.connect()
    lock = "UPDATE jobs SET payload = payload" if changes else "SELECT FROM jobs"
    lease_s, has_waited = 0.2, False
    while not has_waited:  # A busy machine may not have sent it before the lease was over.
        lease_s *= 2
        await shift(kit, job.job_id, lease_s)
        async with other.transaction():
            await other.execute(f"{lock} WHERE job_id = $1{'' if changes else ' FOR UPDATE'}", job.job_id)
            writing = asyncio.create_task(settle(kit, job, target))
            has_waited = await waits(kit, writing)
            await eventually(lambda: kit.sql.fetchval("SELECT lease_expiry < clock_timestamp() FROM jobs"))
        with pytest.raises(Condition) as caught:
            await writing
        assert caught.value.code == "lease_lost"
    assert (await kit.row(job.job_id))["state"] == "RUNNING"


async def test_a_locked_row_keeps_no_other_result_waiting(kit: Kit) -> None:
    """Results beside one that is locked are written at once."""
    for _ in range(3):
        await kit.add(QUEUED)
    jobs = [await take(kit) for _ in range(3)]
    other = await kit.connect()
    begun = other.transaction()
    await begun.start()
    await other.execute("SELECT FROM jobs WHERE job_id = $1 FOR UPDATE", jobs[1].job_id)
    writing = [asyncio.create_task(settle(kit, job)) for job in jobs]
    await blocked(kit)
    async with asyncio.timeout(60):
        await asyncio.gather(writing[0], writing[2])
    states = await kit.sql.fetch("SELECT state FROM jobs ORDER BY created_at")
    assert [row[0] for row in states] == ["SUCCESS", "RUNNING", "SUCCESS"]
    await begun.commit()
    assert await asyncio.gather(*writing) == [SUCCESS] * 3


async def test_only_holders_of_the_edge_take_and_settle(kit: Kit) -> None:
    await kit.add(QUEUED)
    for actor in ("api", "reaper", "scheduler"):
        with pytest.raises(Condition) as caught:
            await kit.claim("w", kit.call(actor))
        assert caught.value.code == "actor_not_allowed"
    job = await take(kit)
    with pytest.raises(Condition):
        await kit.settle(job.job_id, SUCCESS, LeaseProof("w", 1), kit.call("reaper"))
    with pytest.raises(Condition) as caught:
        await kit.settle("no key", SUCCESS, LeaseProof("w", 1), kit.call("worker"))
    assert caught.value.code == "lease_lost"
    assert not await kit.renew("no key", LeaseProof("w", 1))


async def test_words_of_the_lease_are_for_edges_that_have_them(kit: Kit) -> None:
    await kit.add(RUNNING)
    for edge in (JOB_ACQUIRE, JOB_COMPLETE):
        with pytest.raises(GuardBreach, match="not driven by the clock"):
            await kit.store.run_due(edge.name, kit.call("worker"))
    with pytest.raises(Condition):
        await kit.store.run_due(JOB_FAIL.name, kit.call("worker"))
    with pytest.raises(Condition):
        await kit.store.run_due(JOB_ACCEPT.name, kit.call("scheduler"))


async def due_now(kit: Kit) -> None:
    """Ends every wait."""
    await kit.sql.execute("UPDATE jobs SET next_attempt_at = '2001-01-01Z' WHERE state = 'RETRY'")


@pytest.mark.parametrize("target", [SUCCESS, RETRY])
async def test_a_result_that_waited_for_a_renewal_is_written(kit: Kit, target: int) -> None:
    """Whoever had the row wrote a new version of it; the lease goes on, and so the result counts."""
    await kit.add(QUEUED)
    job = await take(kit)
    other = await kit.connect()
    begun = other.transaction()
    await begun.start()
    await other.execute("UPDATE jobs SET lease_expiry = lease_expiry + interval '1 min'")
    writing = asyncio.create_task(settle(kit, job, target))
    await blocked(kit)
    await begun.commit()
    assert await writing == target


async def test_renewals_and_results_at_the_same_moment_do_not_disturb_each_other(kit: Kit) -> None:
    for _ in range(30):
        await kit.add(QUEUED)
    jobs = [await take(kit) for _ in range(30)]
    renewing = [kit.renew(job.job_id, LeaseProof("w", 1)) for job in jobs]
    settling = [settle(kit, job) for job in jobs]
    _, ended = await asyncio.gather(
        asyncio.gather(*renewing, return_exceptions=True), asyncio.gather(*settling)
    )
    assert ended == [SUCCESS] * 30
