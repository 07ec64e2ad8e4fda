"""Taking a lease: who gets one, which entity it is of, and that nobody else gets the same."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest

from generated.orchestrator.lifecycle import JOB_REQUEUE
from generated.orchestrator.messages import CREATED, DEAD, QUEUED, RETRY, RUNNING, SUCCESS
from tests.runtime.stores.postgres.claims.leasing import settle, shift, take
from tests.runtime.stores.postgres.conftest import MakeKit
from tests.runtime.stores.postgres.kit import Kit


@pytest.mark.req("ORC-022", "ORC-039", "ORC-040", "ORC-116", "ORC-117")
async def test_taking_sets_owner_end_and_fence_at_once(kit: Kit) -> None:
    made = await kit.add(QUEUED)
    taken = await take(kit)
    assert (taken.job_id, taken.state, taken.lease_owner, taken.attempt) == (made.job_id, RUNNING, "w", 1)
    row = await kit.row(made.job_id)
    assert row["lease_expiry"] - row["updated_at"] == timedelta(seconds=30)
    assert row["updated_at"] > made.updated_at


@pytest.mark.req("ORC-012", "ORC-014", "ORC-018", "ORC-019", "ORC-020", "ORC-109")
@pytest.mark.parametrize("state", [CREATED, RUNNING, SUCCESS, RETRY, DEAD])
async def test_only_what_waits_is_taken(kit: Kit, state: int) -> None:
    """Whatever its lease says, an entity in another state is not eligible."""
    made = await kit.add(state)
    if state == RUNNING:
        await shift(kit, made.job_id, -60)
    assert await kit.claim("w", kit.call("worker")) is None
    assert (await kit.row(made.job_id))["attempt"] == made.attempt


@pytest.mark.req("ORC-109")
@pytest.mark.parametrize(("lease", "eligible"), [(None, True), (-1.0, True), (60.0, False)])
async def test_what_waits_is_taken_unless_somebody_has_a_lease_of_it(
    kit: Kit, lease: float | None, eligible: bool
) -> None:
    made = await kit.add(QUEUED)
    if lease is not None:
        await shift(kit, made.job_id, lease)
    assert (await kit.claim("w", kit.call("worker")) is not None) == eligible


@pytest.mark.req("ORC-115", "ORC-125")
async def test_one_attempt_takes_one_and_the_oldest(kit: Kit) -> None:
    made = [await kit.add(QUEUED) for _ in range(5)]
    for each in made:
        assert (await take(kit)).job_id == each.job_id
    assert await kit.claim("w", kit.call("worker")) is None


async def test_an_older_one_that_comes_back_is_found_too(kit: Kit) -> None:
    """ClaimCursor on from where the last was taken does not mean never looking back."""
    made = [await kit.add(QUEUED) for _ in range(3)]
    first = await take(kit)
    await settle(kit, first, RETRY)
    await take(kit)
    await kit.sql.execute("UPDATE jobs SET next_attempt_at = '2001-01-01Z' WHERE state = 'RETRY'")
    assert await kit.store.run_due(JOB_REQUEUE.name, kit.call("scheduler")) == 1
    assert {(await take(kit)).job_id for _ in range(2)} == {made[0].job_id, made[2].job_id}


@pytest.mark.req("ORC-115")
async def test_attempts_that_share_a_statement_get_one_each(kit: Kit) -> None:
    """Ten ask at once and there are four; each name gets no more than it asked for."""
    for _ in range(4):
        await kit.add(QUEUED)
    asked = [kit.claim(f"w{number}", kit.call("worker")) for number in range(10)]
    taken = [each for each in await asyncio.gather(*asked) if each is not None]
    assert len({each.job_id for each in taken}) == len({each.lease_owner for each in taken}) == 4
    assert await kit.sql.fetchval("SELECT count(*) FROM jobs WHERE state = 'RUNNING'") == 4


@pytest.mark.req("ORC-112", "ORC-113", "ORC-114")
async def test_what_is_locked_elsewhere_is_passed_by(kit: Kit) -> None:
    """Nobody waits: the next one is taken, or nothing at once."""
    made = [await kit.add(QUEUED) for _ in range(2)]
    other = await kit.connect()
    async with other.transaction():
        await other.execute("SELECT FROM jobs WHERE job_id = $1 FOR UPDATE", made[0].job_id)
        async with asyncio.timeout(60):
            assert (await take(kit)).job_id == made[1].job_id
            assert await kit.claim("w", kit.call("worker")) is None
    assert (await take(kit)).job_id == made[0].job_id


@pytest.mark.req("ORC-118")
async def test_of_many_that_compete_exactly_one_gets_it(make_kit: MakeKit) -> None:
    """Four processes with five slots each, one entity at a time, again and again."""
    kits = [await make_kit() for _ in range(4)]
    for _ in range(25):
        made = await kits[0].add(QUEUED)
        asked = [each.claim("w", each.call("worker")) for each in kits for _ in range(5)]
        taken = [each for each in await asyncio.gather(*asked) if each is not None]
        assert [each.job_id for each in taken] == [made.job_id]
        assert (await kits[0].row(made.job_id))["attempt"] == 1


@pytest.mark.req("ORC-119", "ORC-144")
async def test_without_failures_each_is_taken_once(make_kit: MakeKit) -> None:
    kits = [await make_kit() for _ in range(4)]
    intents = [kits[0].intent() for _ in range(400)]
    await kits[0].create_or_find_all(intents, kits[0].call("api"))
    await kits[0].move_all([each.job_id for each in intents], CREATED, QUEUED, kits[0].call("api"))

    async def work(kit: Kit, owner: str) -> list[str]:
        done = []
        while (job := await kit.claim(owner, kit.call("worker"))) is not None:
            await settle(kit, job)
            done.append(job.job_id)
        return done

    done = await asyncio.gather(
        *(work(kit, f"{number}.{slot}") for number, kit in enumerate(kits) for slot in range(5))
    )
    assert sorted(key for each in done for key in each) == sorted(each.job_id for each in intents)
    rows = await kits[0].sql.fetch("SELECT state, attempt, count(*) FROM jobs GROUP BY 1, 2")
    assert [tuple(row) for row in rows] == [("SUCCESS", 1, 400)]


@pytest.mark.req("ORC-111")
async def test_a_taking_that_is_cut_off_leaves_nothing(kit: Kit) -> None:
    """Selection and lease are one statement: a failure in between leaves the entity as it was."""
    made = await kit.add(QUEUED)
    await kit.sql.execute(
        "CREATE FUNCTION fails() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE 'cut off'; END $$;"
        "CREATE TRIGGER zz_fails BEFORE UPDATE ON jobs FOR EACH ROW EXECUTE FUNCTION fails()"
    )
    try:
        with pytest.raises(Exception, match="cut off"):
            await kit.claim("w", kit.call("worker"))
        row = await kit.row(made.job_id)
        assert (row["state"], row["lease_owner"], row["attempt"]) == ("QUEUED", None, 0)
    finally:
        await kit.sql.execute("DROP TRIGGER zz_fails ON jobs; DROP FUNCTION fails()")
