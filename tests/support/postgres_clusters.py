"""Real PostgreSQL servers for tests. An empty cluster is made once; each server begins as its copy."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path

from runtime.embedded.postgres import EmbeddedPostgres

SHARED = {"fsync": "off", "max_connections": "300", "shared_buffers": "64MB"}
"""Settings of a server whose data nobody wants when the machine has crashed."""


class Clusters:
    """Servers in one folder, which another user can pass through: the one whom PostgreSQL runs as."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._numbers = count()
        self._template = EmbeddedPostgres(folder / "template")

    @contextmanager
    def started(self, **settings: str) -> Iterator[EmbeddedPostgres]:
        """A server that is removed afterwards. It writes to the disk for real unless it is told otherwise."""
        self._template.prepare()
        place = self._folder / f"server-{next(self._numbers)}"
        subprocess.run(["cp", "-a", str(self._template.folder), str(place)], check=True)
        made = EmbeddedPostgres(place, settings={"max_connections": "300", **settings})
        made.start()
        try:
            yield made
        finally:
            made.remove()
