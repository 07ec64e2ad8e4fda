"""PostgreSQL servers for tests. A session creates an empty cluster once; each server starts as its copy."""

from __future__ import annotations

import asyncio
import fcntl
import os
import subprocess
import tempfile
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path

import asyncpg

from runtime.launch.embedded.postgres import EmbeddedPostgres
from runtime.stores.postgres.schema.roles import prepare

SHARED = {"fsync": "off", "max_connections": "300", "shared_buffers": "64MB"}
"""Settings of a server whose data need not survive a crash of the machine."""
QUICKLY = "STRATEGY FILE_COPY"
"""How a database is created for a third of the processor time, as no replica and no backup follows it."""
FOLDER = "CHARTER_EMPTY_CLUSTER"
"""The variable with the folder of the session, for all of its processes."""


def open_session() -> str | None:
    """Make the folder of the empty cluster; return it, if it is not another process's."""
    if FOLDER in os.environ:
        return None
    os.environ[FOLDER] = tempfile.mkdtemp(prefix="charter-cluster-")
    Path(os.environ[FOLDER]).chmod(0o711)
    return os.environ[FOLDER]


def prepare_template() -> Path:
    """Return the folder of the empty cluster, which the first process that asks creates."""
    root = Path(os.environ[FOLDER])
    with (root / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        template = EmbeddedPostgres(root / "template")
        template.prepare()
    return template.folder


class Clusters:
    """Servers in one folder, which the user that PostgreSQL runs as can traverse."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._numbers = count()

    @contextmanager
    def started(self, **settings: str) -> Iterator[EmbeddedPostgres]:
        """Start a server, and remove it at the end. It syncs to the disk by default."""
        template = prepare_template()
        folder = self._folder / f"server-{next(self._numbers)}"
        subprocess.run(["cp", "-a", str(template), str(folder)], check=True)
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
            await connection.execute(f"CREATE DATABASE {name} {how} {QUICKLY}")
        finally:
            await connection.close()
        return name
