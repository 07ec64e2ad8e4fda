"""PostgreSQL servers for tests. An empty cluster is created once; each server starts as its copy."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path

from runtime.embedded.postgres import EmbeddedPostgres

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
