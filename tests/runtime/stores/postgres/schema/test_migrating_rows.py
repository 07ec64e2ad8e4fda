"""A database with entities in every state goes through the later migrations as it is."""

from __future__ import annotations

from typing import Any

import pytest

from generated.orchestrator.messages import CREATED, DEAD, QUEUED, RETRY, RUNNING, SUCCESS
from runtime.stores.contract import LeaseProof
from runtime.stores.postgres import Database
from runtime.stores.postgres.schema import migrations
from runtime.stores.postgres.schema.migrations import migrate
from runtime.stores.postgres.statements import load_statements
from tests.runtime.stores.postgres.kit import STATES, WORLD, Kit

SYSTEM = "orchestrator"
LIFE = {
    "CREATED": (),
    "QUEUED": ("QUEUED",),
    "RUNNING": ("QUEUED", "RUNNING"),
    "SUCCESS": ("QUEUED", "RUNNING", "SUCCESS"),
    "RETRY": ("QUEUED", "RUNNING", "RETRY"),
    "DEAD": ("QUEUED", "RUNNING", "RETRY", "DEAD"),
}
"""The way into each state."""
STEP = """
UPDATE jobs SET
    state = $2, attempt = attempt + ($2 = 'RUNNING')::int, retry_count = retry_count + ($2 = 'RETRY')::int,
    lease_owner = CASE WHEN $2 = 'RUNNING' THEN 'w' END,
    lease_expiry = CASE WHEN $2 = 'RUNNING' THEN clock_timestamp() + interval '1 hour' END
WHERE idempotency_key = $1
"""
ROWS = "SELECT * FROM jobs ORDER BY job_id"
LINES = "SELECT * FROM job_transitions ORDER BY number"


async def filled(url: str) -> None:
    """Three jobs in each state, by hand: no statement of today is asked to know a schema of the past."""
    database = Database(url)
    async with database.connection() as connection:
        for state, steps in LIFE.items():
            for number in range(3):
                key = f"{state} {number}"
                insert = "INSERT INTO jobs (job_type, payload, idempotency_key) VALUES ('echo', '{}', $1)"
                await connection.execute(insert, key)
                for step in steps:
                    await connection.execute(STEP, key, step)
    await database.close()


async def shown(url: str, like: tuple[list[Any], list[Any]] | None = None) -> tuple[list[Any], list[Any]]:
    """All rows and their history; only the columns that others have, where there are others."""
    database = Database(url)
    found = (
        [dict(row) for row in await database.fetch(ROWS)],
        [dict(row) for row in await database.fetch(LINES)],
    )
    await database.close()
    if like is None:
        return found
    rows, lines = (
        [{name: row[name] for name in old[0]} for row in new] for new, old in zip(found, like, strict=True)
    )
    return rows, lines


@pytest.mark.req("ORC-002", "ORC-051")
@pytest.mark.parametrize("number", range(1, len(migrations.list_migrations(SYSTEM))))
async def test_rows_outlive_every_later_migration(
    fresh_url: str, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    """They and their history are as they were, guarded as before, and go on in every way there is."""
    every = migrations.list_migrations(SYSTEM)
    with monkeypatch.context() as past:
        past.setattr(migrations, "list_migrations", lambda _: every[:number])
        database = Database(fresh_url)
        assert await migrate(database, SYSTEM) == [each.name for each in every[:number]]
        await database.close()
    await filled(fresh_url)
    before = await shown(fresh_url)
    kit = await Kit(fresh_url).open()
    try:
        assert await shown(fresh_url, before) == before
        found = {state: (await kit.store.find(states=[state])).records for state in STATES.values()}
        assert {state: len(each) for state, each in found.items()} == dict.fromkeys(STATES.values(), 3)
        with pytest.raises(Exception, match="never goes from SUCCESS to QUEUED"):
            await kit.sql.execute("UPDATE jobs SET state = 'QUEUED' WHERE state = 'SUCCESS'")
        await go_on(kit, {state: [each.job_id for each in rows] for state, rows in found.items()})
    finally:
        await kit.close()


async def go_on(kit: Kit, keys: dict[int, list[str]]) -> None:
    """Each state's entities as the system would go on with them."""
    taken = await kit.claim("w", kit.call("worker"))
    assert taken is not None
    assert taken.job_id in keys[QUEUED]
    assert await kit.move_all(keys[CREATED], CREATED, QUEUED, kit.call("api")) == 3
    held = LeaseProof("w", 1)
    assert await kit.settle(keys[RUNNING][0], SUCCESS, held, kit.call("worker")) == SUCCESS
    assert await kit.settle(keys[RUNNING][1], RETRY, held, kit.call("worker"), is_final=True) == DEAD
    assert await kit.move_all(keys[RETRY], RETRY, QUEUED, kit.call("scheduler")) == 3
    known = ["DEAD 0", "SUCCESS 2", "new"]
    submit = load_statements(SYSTEM, "job")["create_accept"].text
    ids = WORLD.new_keys(3)
    said = await kit.sql.fetchval(submit, "api", ids, ["echo"] * 3, ["{}"] * 3, known)
    assert str(said[2]) == ids[2]
    assert str(said[0]) in keys[DEAD]
    assert str(said[1]) in keys[SUCCESS]
