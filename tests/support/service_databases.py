"""Databases with the schema of a system, as the role of its service has them: each a copy of the first."""

from __future__ import annotations

import asyncio
import uuid

import asyncpg

from runtime.embedded.postgres import EmbeddedPostgres
from runtime.stores.postgres.schema.roles import prepare


class ServiceDatabases:
    """Makes databases on a server for a series of migrations."""

    def __init__(self, server: EmbeddedPostgres, series: str) -> None:
        self._server = server
        self._series = series
        self._first = ""

    def make(self) -> str:
        """Make an empty one; return its address for the role of the service."""
        return asyncio.run(self._make())

    async def _make(self) -> str:
        server = self._server
        if not self._first:
            self._first = await self._create()
            await prepare(server.url_of(self._first), server.service_url_of(self._first), self._series)
        return server.service_url_of(await self._create(f"TEMPLATE {self._first}"))

    async def _create(self, how: str = "") -> str:
        name = f"test_{uuid.uuid4().hex}"
        connection = await asyncpg.connect(self._server.url)
        try:
            await connection.execute(f"CREATE DATABASE {name} {how}")
        finally:
            await connection.close()
        return name
