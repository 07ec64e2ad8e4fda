"""What tests of leases do again and again: take one, settle it, lose it, and let it end sooner or later."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Any

import pytest

from generated.orchestrator.messages import SUCCESS
from generated.orchestrator.records import JobRecord
from runtime.call.conditions import Condition
from runtime.stores.contract import LeaseProof
from tests.runtime.stores.postgres.kit import Kit


async def take(kit: Kit, owner: str = "w") -> JobRecord:
    taken = await kit.claim(owner, kit.call("worker"))
    assert taken is not None
    return taken


async def settle(
    kit: Kit, job: JobRecord, target: int = SUCCESS, *, is_final: bool = False, edge: str = "", **given: Any
) -> int:
    held = LeaseProof(job.lease_owner or "", job.attempt)
    return await kit.settle(
        job.job_id, target, held, kit.call("worker"), is_final=is_final, edge=edge, **given
    )


async def lost(kit: Kit, job: JobRecord, held: LeaseProof | None = None, target: int = SUCCESS) -> None:
    """Neither a result nor a renewal is taken, and the row stays as it is."""
    held = held or LeaseProof(job.lease_owner or "", job.attempt)
    before = await kit.row(job.job_id)
    with pytest.raises(Condition) as caught:
        await kit.settle(job.job_id, target, held, kit.call("worker"))
    assert caught.value.code == "lease_lost"
    assert not await kit.renew(job.job_id, held)
    assert await kit.row(job.job_id) == before


async def waits(kit: Kit, writing: asyncio.Task[int]) -> bool:
    """Whether a write has come to wait for somebody else's lock; not if it has ended without."""
    locked = (
        "SELECT count(*) FROM pg_stat_activity"
        " WHERE wait_event_type = 'Lock' AND datname = current_database()"
    )
    while not writing.done():
        if await kit.sql.fetchval(locked):
            return True
        await asyncio.sleep(0.01)
    return False


async def shift(kit: Kit, key: str, seconds: float) -> None:
    """Lets the lease end so many seconds from now."""
    await kit.sql.execute(
        "UPDATE jobs SET lease_expiry = clock_timestamp() + $2 WHERE job_id = $1",
        key,
        timedelta(seconds=seconds),
    )
