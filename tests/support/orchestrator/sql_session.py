"""One session of the database of an orchestrator, to read and to change rows."""

from __future__ import annotations

import asyncio
import json
import uuid
from collections.abc import Awaitable, Callable
from types import TracebackType
from typing import Any, Self

import asyncpg


class Sql:
    """It has no actor, unless a test sets one: the database then checks the edges api_only."""

    def __init__(self, url: str) -> None:
        self.url = url
        self._runner = asyncio.Runner()
        self._connection: asyncpg.Connection[Any] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def rows(self, text: str, *arguments: object) -> list[dict[str, Any]]:
        """The rows of a statement."""
        return [dict(row) for row in self._run(text, *arguments)]

    def row(self, text: str, *arguments: object) -> dict[str, Any]:
        """The only row that a statement gives."""
        (found,) = self.rows(text, *arguments)
        return found

    def value(self, text: str, *arguments: object) -> Any:
        """The only value that a statement gives."""
        (found,) = self.row(text, *arguments).values()
        return found

    def run(self, text: str) -> None:
        """Run any number of statements in one transaction."""
        self._runner.run(self._execute(text))

    def force(self, text: str) -> None:
        """The same as the owner of the tables, with their guards switched off."""
        self.run(f"SET session_replication_role = replica; {text}; RESET session_replication_role")

    def job(self, job_id: str) -> dict[str, Any]:
        """The row of a job."""
        return self.row("SELECT *, xmin::text, ctid::text FROM jobs WHERE job_id = $1", uuid.UUID(job_id))

    def jobs(self, key: str) -> list[dict[str, Any]]:
        """All rows under an idempotency key, of which there should never be two."""
        return self.rows("SELECT * FROM jobs WHERE idempotency_key = $1", key)

    def count(self) -> int:
        """How many jobs there are."""
        return int(self.value("SELECT count(*) FROM jobs"))

    def history(self, job_id: str) -> list[dict[str, Any]]:
        """Every state change of a job, oldest first."""
        text = "SELECT * FROM job_transitions WHERE job_id = $1 ORDER BY number"
        return self.rows(text, uuid.UUID(job_id))

    def transition(self, job_id: str, *states: str) -> None:
        """Bring a job through states by legal edges, as an operator with psql would."""
        for state in states:
            leased = "'a-worker', clock_timestamp() + interval '1 hour'"
            lease = leased if state == "RUNNING" else "NULL, NULL"
            self.run(
                f"UPDATE jobs SET state = '{state}', (lease_owner, lease_expiry) = ROW({lease}),"
                f" retry_count = retry_count + {int(state == 'RETRY')},"
                f" attempt = attempt + {int(state == 'RUNNING')} WHERE job_id = '{job_id}'"
            )

    def close(self) -> None:
        if self._connection is not None:
            self._connection.terminate()
            self._connection = None
        self._runner.close()

    def _run(self, text: str, *arguments: object) -> list[Any]:
        return self._runner.run(self._fetch(text, *arguments))

    async def _fetch(self, text: str, *arguments: object) -> list[Any]:
        return list(await self._retry_if_lost(lambda connection: connection.fetch(text, *arguments)))

    async def _execute(self, text: str) -> None:
        await self._retry_if_lost(lambda connection: connection.execute(text))

    async def _retry_if_lost(self, work: Callable[[asyncpg.Connection[Any]], Awaitable[Any]]) -> Any:
        """Repeat a call once where the server was restarted since the last time."""
        connection = await self._connect()
        in_transaction = connection.is_in_transaction()
        try:
            return await work(connection)
        except (asyncpg.PostgresConnectionError, asyncpg.InterfaceError, OSError):
            if in_transaction or not connection.is_closed():
                raise
            return await work(await self._connect())

    async def _connect(self) -> asyncpg.Connection[Any]:
        if self._connection is None or self._connection.is_closed():
            self._connection = await asyncpg.connect(self.url)
            await self._connection.set_type_codec(
                "jsonb", schema="pg_catalog", encoder=json.dumps, decoder=json.loads
            )
        return self._connection
