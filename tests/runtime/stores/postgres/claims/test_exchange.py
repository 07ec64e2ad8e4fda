"""Settling and taking in one step: what goes together, and that nobody suffers for another."""

from __future__ import annotations

import asyncio

import pytest

from generated.orchestrator.messages import DEAD, QUEUED, RETRY, SUCCESS
from generated.orchestrator.records import JobRecord
from runtime.call.conditions import Condition, Failure
from runtime.stores.contract import LeaseProof, LeaseSettlement
from runtime.stores.store import Busy, GuardBreach, Unstorable
from tests.runtime.stores.postgres.claims.leasing import shift
from tests.runtime.stores.postgres.conftest import MakeKit
from tests.runtime.stores.postgres.kit import Kit, settlement
from tests.runtime.stores.postgres.test_store import blocked


async def taken(kit: Kit, count: int) -> list[JobRecord]:
    """So many that are held by `w`."""
    for _ in range(count):
        await kit.add(QUEUED)
    found, _ = await kit.store.exchange("w", (), count, kit.call("worker"))
    assert len(found) == count
    return [*found]


def done(job: JobRecord, target: int = SUCCESS, *, is_final: bool = False, **given: str) -> LeaseSettlement:
    return settlement(
        job.job_id, LeaseProof(job.lease_owner or "", job.attempt), target, given, is_final=is_final
    )


@pytest.mark.req("ORC-129", "ORC-116", "ORC-111", "ORC-130")
async def test_what_is_settled_and_what_is_taken_for_it_is_one_commit(kit: Kit) -> None:
    """As many are taken as were settled and some more, the oldest first; the outcome is written before."""
    jobs = await taken(kit, 3)
    waiting = [await kit.add(QUEUED) for _ in range(6)]
    found, outcomes = await kit.store.exchange(
        "w", [done(job, result="1") for job in jobs], 2, kit.call("worker")
    )
    assert outcomes == [SUCCESS] * 3
    assert [each.job_id for each in found] == [each.job_id for each in waiting[:5]]
    assert {(each.lease_owner, each.attempt) for each in found} == {("w", 1)}
    steps = await kit.sql.fetch(
        "SELECT to_state, count(*) FROM job_transitions WHERE txid = (SELECT max(txid) FROM job_transitions)"
        " GROUP BY to_state ORDER BY to_state"
    )
    assert [tuple(row) for row in steps] == [("RUNNING", 5), ("SUCCESS", 3)]
    assert (await kit.row(jobs[0].job_id))["result"] == "1"


@pytest.mark.req("ORC-030", "ORC-131")
async def test_outcomes_of_all_kinds_go_into_one_exchange(kit: Kit) -> None:
    jobs = await taken(kit, 4)
    await kit.add(QUEUED)
    asked = [
        done(jobs[0]),
        done(jobs[1], RETRY, error="once"),
        done(jobs[2], RETRY, is_final=True, error="for good"),
        done(jobs[3], RETRY, is_final=False),
    ]
    found, outcomes = await kit.store.exchange("w", asked, 0, kit.call("worker"))
    assert outcomes == [SUCCESS, RETRY, DEAD, RETRY]
    assert len(found) == 1


@pytest.mark.req("ORC-115", "ORC-111")
async def test_attempts_that_share_a_transaction_take_one_each(kit: Kit) -> None:
    """Four free slots take four leases in one transaction; a settled job makes room for one, and no more."""
    for _ in range(8):
        await kit.add(QUEUED)
    found, _ = await kit.store.exchange("w", [], 4, kit.call("worker"))
    assert len({job.job_id for job in found}) == 4
    assert [(job.lease_owner, job.attempt) for job in found] == [("w", 1)] * 4
    assert all(job.lease_expiry is not None for job in found)
    rows = await kit.sql.fetch("SELECT xmin::text, count(*) FROM jobs WHERE state = 'RUNNING' GROUP BY 1")
    assert [count for _, count in rows] == [4]
    more, outcomes = await kit.store.exchange("w", [done(found[0])], 0, kit.call("worker"))
    assert (outcomes, len(more)) == ([SUCCESS], 1)
    more, _ = await kit.store.exchange("w", [], 0, kit.call("worker"))
    assert more == []
    assert await kit.sql.fetchval("SELECT count(*) FROM jobs WHERE state = 'RUNNING'") == 4
    assert await kit.sql.fetchval("SELECT count(*) FROM jobs WHERE state = 'QUEUED'") == 3


@pytest.mark.req("ORC-123", "ORC-010", "ORC-115")
async def test_nothing_is_taken_for_what_was_not_settled(kit: Kit) -> None:
    """A lease that is over or another's writes nothing, and makes no room."""
    jobs = await taken(kit, 3)
    for _ in range(3):
        await kit.add(QUEUED)
    await shift(kit, jobs[1].job_id, -1)
    asked = [done(jobs[0]), done(jobs[1]), done(jobs[2])._replace(lease=LeaseProof("w", 7))]
    found, outcomes = await kit.store.exchange("w", asked, 0, kit.call("worker"))
    assert outcomes[0] == SUCCESS
    for outcome in outcomes[1:]:
        assert isinstance(outcome, Condition) and outcome.code == "lease_lost"
    assert len(found) == 1


async def test_a_result_that_cannot_be_stored_spoils_no_exchange(kit: Kit) -> None:
    jobs = await taken(kit, 3)
    for _ in range(5):
        await kit.add(QUEUED)
    asked = [done(job, result=text) for job, text in zip(jobs, ['"fine"', '"\\u0000"', "1"], strict=True)]
    found, outcomes = await kit.store.exchange("w", asked, 1, kit.call("worker"))
    assert (outcomes[0], outcomes[2]) == (SUCCESS, SUCCESS)
    assert isinstance(outcomes[1], Unstorable)
    assert len(found) == 3


@pytest.mark.parametrize("changes", [True, False])
async def test_a_row_that_somebody_has_is_left_and_the_others_go_on(kit: Kit, changes: bool) -> None:
    """It is told apart from a lost lease; settling it alone waits for whoever has it."""
    jobs = await taken(kit, 3)
    for _ in range(3):
        await kit.add(QUEUED)
    other = await kit.connect()
    begun = other.transaction()
    await begun.start()
    lock = "UPDATE jobs SET payload = payload" if changes else "SELECT FROM jobs"
    await other.execute(f"{lock} WHERE job_id = $1{'' if changes else ' FOR UPDATE'}", jobs[1].job_id)
    async with asyncio.timeout(60):
        found, outcomes = await kit.store.exchange("w", [*map(done, jobs)], 0, kit.call("worker"))
    assert (outcomes[0], outcomes[2]) == (SUCCESS, SUCCESS)
    assert isinstance(outcomes[1], Busy)
    assert len(found) == 2
    writing = asyncio.create_task(kit.store.settle(done(jobs[1]), kit.call("worker")))
    await blocked(kit)
    assert not writing.done()
    await begun.commit()
    assert await writing == SUCCESS


async def test_settling_alone_takes_nothing(kit: Kit) -> None:
    jobs = await taken(kit, 2)
    await kit.add(QUEUED)
    outcomes = await kit.store.settle_many([done(jobs[0]), done(jobs[1], RETRY)], kit.call("worker"))
    assert outcomes == [SUCCESS, RETRY]
    assert await kit.sql.fetchval("SELECT count(*) FROM jobs WHERE state = 'QUEUED'") == 1


@pytest.mark.req("ORC-145", "ORC-146")
async def test_a_database_that_is_away_is_told_of_each(make_kit: MakeKit) -> None:
    """What was to be settled has a failure each; with nothing to settle the exchange itself fails."""
    kit = await make_kit()
    jobs = await taken(kit, 2)
    await kit.database.close()
    kit.database._url = "postgresql://127.0.0.1:1/nowhere"
    found, outcomes = await kit.store.exchange("w", [*map(done, jobs)], 1, kit.call("worker"))
    assert found == []
    for outcome in outcomes:
        assert isinstance(outcome, Failure) and outcome.grpc == "UNAVAILABLE"
    with pytest.raises(Failure):
        await kit.store.exchange("w", (), 1, kit.call("worker"))


async def test_only_who_may_take_and_settle_does(kit: Kit) -> None:
    (job,) = await taken(kit, 1)
    with pytest.raises(Condition) as caught:
        await kit.store.exchange("w", [done(job)], 1, kit.call("api"))
    assert caught.value.code == "actor_not_allowed"
    _, (outcome,) = await kit.store.exchange("w", [done(job, is_final=True)], 1, kit.call("worker"))
    assert isinstance(outcome, GuardBreach)


async def test_leases_are_renewed_together(kit: Kit) -> None:
    """Each is told on its own: renewed, lost, or locked for a moment."""
    jobs = await taken(kit, 3)
    await shift(kit, jobs[1].job_id, -1)
    other = await kit.connect()
    async with other.transaction():
        await other.execute("SELECT FROM jobs WHERE job_id = $1 FOR UPDATE", jobs[2].job_id)
        renewed = await kit.store.renew([(job.job_id, LeaseProof("w", 1)) for job in jobs])
    assert (renewed[0].job_id, renewed[1]) == (jobs[0].job_id, None)
    assert isinstance(renewed[2], Busy)
    assert kit.metrics.registry.get_sample_value("charter_leases_lost_total", {"entity": "job"}) == 1
