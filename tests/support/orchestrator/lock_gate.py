"""A gate of an advisory lock in front of a step of the API, so that a test can stop sessions there."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from tests.support.orchestrator.sql_session import Sql
from tests.support.orchestrator.stack import Stack

GATE = 4711
"""The advisory lock in front of a step of the API."""


@contextmanager
def close_gate(stack: Stack, moment: str, condition: str) -> Iterator[Sql]:
    """Block every session that reaches a moment of a row, until the block ends; then remove the gate."""
    with Sql(stack.database) as keeper:
        keeper.run(
            f"CREATE FUNCTION wait_at_gate() RETURNS trigger LANGUAGE plpgsql AS"
            f" $$ BEGIN PERFORM pg_advisory_xact_lock_shared({GATE}); RETURN NEW; END $$;"
            f" CREATE TRIGGER a_gate {moment} ON jobs FOR EACH ROW WHEN ({condition})"
            f" EXECUTE FUNCTION wait_at_gate()"
        )
        keeper.value("SELECT pg_advisory_lock($1)::text", GATE)
        try:
            yield keeper
        finally:
            keeper.value("SELECT pg_advisory_unlock($1)", GATE)
            keeper.run("DROP FUNCTION wait_at_gate CASCADE")


def count_at_the_gate(sql: Sql) -> int:
    """How many sessions wait at the gate."""
    text = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND objid = $1 AND NOT granted"
    return int(sql.value(text, GATE))
