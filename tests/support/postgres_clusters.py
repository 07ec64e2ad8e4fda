"""PostgreSQL servers for tests. An empty cluster is created once; each server starts as its copy."""

from __future__ import annotations

import asyncio
import subprocess
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path

import asyncpg

from runtime.embedded.postgres import EmbeddedPostgres
from runtime.stores.postgres.schema.roles import prepare

SHARED = {"fsync": "off", "max_connections": "300", "shared_buffers": "64MB"}
"""Settings of a server whose data need not survive a crash of the machine."""


class Clusters:
    """Servers in one folder, which the user that PostgreSQL runs as can traverse."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._numbers = count()
        self._template = EmbeddedPostgres(folder / "template")

    @contextmanager
    def started(self, **settings: str) -> Iterator[EmbeddedPostgres]:
        """Start a server, and remove it at the end. It syncs to the disk by default."""
        self._template.prepare()
        folder = self._folder / f"server-{next(self._numbers)}"
        subprocess.run(["cp", "-a", str(self._template.folder), str(folder)], check=True)
        server = EmbeddedPostgres(folder, settings={"max_connections": "300", **settings})
        server.start()
        try:
            yield server
        finally:
            server.remove()


class ServiceDatabases:
    """Databases with the schema of a series, as the role of its service has them: copies of the first."""

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
