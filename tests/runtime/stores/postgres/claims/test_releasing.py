"""Leases that are given back without a failure, by an edge between the same states as that of failures."""

from __future__ import annotations

from datetime import UTC, datetime

import asyncpg
import pytest

from generated.orchestrator.lifecycle import JOB_RELEASE, JOB_REQUEUE
from generated.orchestrator.messages import QUEUED, RETRY, RUNNING
from runtime.call.conditions import Condition
from runtime.stores.contract import LeaseProof
from tests.runtime.stores.postgres.claims.leasing import lost, settle, take
from tests.runtime.stores.postgres.kit import Kit, settlement


@pytest.mark.req("ORC-X06", "ORC-038", "ORC-046", "ORC-155")
async def test_a_release_counts_nothing_and_fences(kit: Kit) -> None:
    """The count of failures stays, the wait is over at once, and an old lease settles nothing any more."""
    job = await kit.add(QUEUED)
    stale = LeaseProof("nobody", 1)
    for attempt in range(1, kit.values["MAX_RETRIES"] + 3):
        held = await take(kit)
        assert (held.job_id, held.attempt) == (job.job_id, attempt)
        if attempt > 1:
            await lost(kit, held, stale)
        assert await settle(kit, held, RETRY, edge=JOB_RELEASE.name) == RETRY
        stale = LeaseProof("w", attempt)
        await lost(kit, held, stale)
        row = await kit.row(job.job_id)
        assert (row["retry_count"], row["lease_owner"], row["last_error"]) == (0, None, "GIVEN_BACK")
        assert row["next_attempt_at"] == row["updated_at"] <= datetime.now(UTC)
        assert await kit.store.run_due(JOB_REQUEUE.name, kit.call("scheduler")) == 1
    edges = [each.edge for each in await kit.store.history(job.job_id)]
    assert edges == ["create", "accept", *["acquire", "release", "requeue"] * (kit.values["MAX_RETRIES"] + 2)]


async def test_a_release_goes_along_with_failures_and_takings(kit: Kit) -> None:
    """In one exchange each takes its own edge, also where the same exchange takes others."""
    jobs = [await kit.add(QUEUED) for _ in range(4)]
    held = [await take(kit) for _ in range(3)]
    settling = [
        settlement(each.job_id, LeaseProof("w", 1), RETRY, edge=edge)
        for each, edge in zip(held, ("release", "fail", ""), strict=True)
    ]
    taken, outcomes = await kit.store.exchange("w", settling, 1, kit.call("worker"))
    assert outcomes == [RETRY] * 3
    assert [each.job_id for each in taken] == [jobs[3].job_id]
    counts = [(await kit.row(each.job_id))["retry_count"] for each in held]
    assert counts == [0, 1, 1]
    last = [(await kit.store.history(each.job_id))[-1].edge for each in [*held, *taken]]
    assert last == ["release", "fail", "fail", "acquire"]


async def test_only_those_whom_the_edge_names_may_release(kit: Kit) -> None:
    """The store refuses it, and so does the database in whatever session it is tried."""
    job = await kit.add(RUNNING)
    for actor in ("scheduler", "reaper"):
        with pytest.raises(Condition) as caught:
            await kit.settle(job.job_id, RETRY, LeaseProof("w", 1), kit.call(actor), edge="release")
        assert caught.value.code == "actor_not_allowed"
    await kit.sql.execute("UPDATE jobs SET lease_expiry = clock_timestamp() WHERE job_id = $1", job.job_id)
    reaper = await kit.connect("reaper")
    await reaper.execute("SELECT set_config('app.edge', 'release', false)")
    statement = "UPDATE jobs SET state = 'RETRY', lease_owner = NULL, lease_expiry = NULL WHERE job_id = $1"
    with pytest.raises(asyncpg.PostgresError, match="ACTOR_NOT_ALLOWED: reaper"):
        await reaper.execute(statement, job.job_id)
    await reaper.execute("SELECT set_config('app.edge', '', false)")
    await reaper.execute(statement, job.job_id)
    assert [each.edge for each in await kit.store.history(job.job_id)][-1] == "fail"
