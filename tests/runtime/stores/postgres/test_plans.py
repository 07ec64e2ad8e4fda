"""With many finished entities every statement still goes by an index, and by the right one."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import asyncpg
import pytest

from generated.orchestrator.messages import CREATED, QUEUED, RETRY, RUNNING
from runtime.stores.postgres.database import SESSION
from runtime.stores.postgres.statements import load_statements
from tests.runtime.stores.postgres.kit import Kit, arguments

FINISHED = 100_000
NOBODY = "00000000-0000-4000-8000-000000000000"
EVER = datetime(1, 1, 1, tzinfo=UTC)
GIVEN: dict[str, Any] = {
    "actor": "worker",
    "owner": "w",
    "free": 1,
    "owners": ["w"],
    "fences": [1],
    "keys": [NOBODY],
    "key": NOBODY,
    "skip": [],
    "most": 100,
    "from": EVER,
    "rows": "[]",
    "edge": "",
    "absent": [],
    "offset": 0,
    "given_last_error": [None],
    "given_result": [None],
    "states": ["QUEUED", "RUNNING", "RETRY"],
    "size": 50,
}
WANTED = {
    "claim": "jobs_acquirable",
    "due_accept": "jobs_listed",
    "due_fail": "jobs_due_fail",
    "due_requeue": "jobs_due_requeue",
    "get": "jobs_pkey",
    "lock": "jobs_pkey",
    "lock_free": "jobs_pkey",
    "write": "jobs_pkey",
    "holds": "jobs_pkey",
    "renew": "jobs_pkey",
    "settle_complete": "jobs_pkey",
    "settle_release": "jobs_pkey",
    "exchange_complete": "jobs_pkey",
    "find_unique": "jobs_unique",
    "find_newest": "jobs_listed jobs_acquirable jobs_due_fail",
    "find_oldest": "jobs_listed jobs_acquirable jobs_due_fail",
    "census": "jobs_listed jobs_acquirable",
    "history": "job_transitions_pkey",
}


@pytest.mark.req("ORC-052")
@pytest.mark.parametrize("analyzed", [False, True])
async def test_every_statement_goes_by_its_index(kit: Kit, analyzed: bool) -> None:
    """Whether the server knows how large the table has become or not."""
    for state in (CREATED, QUEUED, RUNNING, RETRY):
        await kit.add(state)
    await kit.sql.execute("SET session_replication_role = replica")
    await kit.sql.execute(
        "INSERT INTO jobs (job_type, payload, idempotency_key, state, created_at, updated_at)"
        " SELECT 'a', '{}', 'old ' || i, 'SUCCESS', clock_timestamp(), clock_timestamp()"
        f" FROM generate_series(1, {FINISHED}) AS i"
    )
    if analyzed:
        await kit.sql.execute("ANALYZE jobs")
    connection: asyncpg.Connection[Any] = await asyncpg.connect(kit.url, server_settings=SESSION)
    try:
        for name, indexes in WANTED.items():
            scans = [*_scans(await plan(connection, name))]
            assert not [each for each in scans if each["Node Type"] == "Seq Scan"], name
            used = {each["Index Name"] for each in scans if "Index Name" in each}
            assert used >= {*indexes.split()}, (name, used)
    finally:
        await connection.close()


@pytest.mark.req("ORC-052")
async def test_what_is_not_due_is_not_read(kit: Kit) -> None:
    """The clock is part of the index search: rows that wait cost nothing until their time."""
    await kit.sql.execute("SET session_replication_role = replica")
    await kit.sql.execute(
        "INSERT INTO jobs (job_type, payload, idempotency_key, state, next_attempt_at)"
        " SELECT 'a', '{}', 'wait ' || i, 'RETRY', clock_timestamp() + interval '1 hour'"
        " FROM generate_series(1, 10000) AS i"
    )
    connection: asyncpg.Connection[Any] = await asyncpg.connect(kit.url, server_settings=SESSION)
    try:
        (scan,) = [
            each
            for each in _scans(await plan(connection, "due_requeue", "ANALYZE, BUFFERS,"))
            if each.get("Index Name") == "jobs_due_requeue"
        ]
        assert "next_attempt_at" in scan["Index Cond"]
        assert scan["Shared Hit Blocks"] + scan["Shared Read Blocks"] < 10
    finally:
        await connection.close()


async def test_traces_of_what_was_taken_do_not_slow_the_next_look(kit: Kit) -> None:
    """A forgotten transaction keeps dead versions alive; looking on from the last one passes them by."""
    forgotten = await kit.connect()
    begun = forgotten.transaction(isolation="repeatable_read")
    await begun.start()
    await forgotten.fetch("SELECT FROM jobs")
    intents = [kit.intent() for _ in range(3000)]
    await kit.create_or_find_all(intents, kit.call("api"))
    await kit.move_all([each.job_id for each in intents], CREATED, QUEUED, kit.call("api"))
    await kit.sql.execute(
        "UPDATE jobs SET state = 'RUNNING', lease_owner = 'w',"
        " lease_expiry = clock_timestamp() + interval '1 h'"
    )
    last = await kit.add(QUEUED)
    connection: asyncpg.Connection[Any] = await asyncpg.connect(kit.url, server_settings=SESSION)
    try:
        read = {}
        for start in (EVER, last.created_at):
            async with connection.transaction():
                (scan,) = [
                    each
                    for each in _scans(
                        await plan(connection, "claim", "ANALYZE, BUFFERS,", **{"from": start})
                    )
                    if each.get("Index Name") == "jobs_acquirable"
                ]
                read[start] = scan["Shared Hit Blocks"] + scan["Shared Read Blocks"]
                await connection.execute("ROLLBACK; BEGIN")
        assert read[last.created_at] < 20 < read[EVER]
    finally:
        await connection.close()
        await begun.rollback()


async def test_a_first_small_statement_does_not_slow_the_history_of_the_next(kit: Kit) -> None:
    """A session keeps the plan that it made for its first rows; that must not be a loop in a loop."""
    await kit.add(QUEUED)
    connection: asyncpg.Connection[Any] = await asyncpg.connect(kit.url, server_settings=SESSION)
    try:
        plans: list[str] = []
        connection.add_log_listener(lambda _, message: plans.append(message.message or ""))
        await connection.execute(
            "LOAD 'auto_explain'; SET auto_explain.log_min_duration = 0;"
            " SET auto_explain.log_nested_statements = on; SET client_min_messages = log"
        )
        claim = load_statements("orchestrator", "job")["claim"]
        await connection.fetch(claim.text, *arguments(claim, GIVEN))
        (history,) = [each for each in plans if "Insert on job_transitions" in each]
        assert "Hash Join" in history
        assert "Nested Loop" not in history
    finally:
        await connection.close()


async def plan(
    connection: asyncpg.Connection[Any], name: str, options: str = "", **given: Any
) -> dict[str, Any]:
    """How the server would run a statement, or did."""
    statement = load_statements("orchestrator", "job")[name]
    values = {**dict.fromkeys(statement.takes), **GIVEN, **given}
    text = f"EXPLAIN ({options} FORMAT JSON) {statement.text}"
    found = await connection.fetchval(text, *arguments(statement, values))
    tree: dict[str, Any] = json.loads(found)[0]["Plan"]
    return tree


def _scans(node: dict[str, Any]) -> Iterator[dict[str, Any]]:
    if node["Node Type"].endswith("Scan"):
        yield node
    for child in node.get("Plans", ()):
        yield from _scans(child)
