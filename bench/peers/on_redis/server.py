"""One Redis for all, from the wheel and with its log as durable as it is by default; a database for each."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import psutil
import redis

from runtime.embedded.postgres import EmbeddedPostgres
from runtime.embedded.redis import EmbeddedRedis

_SETTLING_S = 0.3
_LUA = Path(__file__).parent / "lua"
SETTINGS = {"auto-aof-rewrite-percentage": "0"}
"""A log that is rewritten in the middle of a measurement would be paid for by whoever is measured then."""


@dataclass(frozen=True, slots=True)
class Server:
    """The server, whose processor time counts as much as that of its clients."""

    redis: EmbeddedRedis
    history: EmbeddedPostgres
    """Where our own manager reads what became of tasks that Redis has forgotten."""

    def url(self, number: int) -> str:
        """Where one of its databases is."""
        return f"{self.redis.url.rpartition('/')[0]}/{number}"

    def database(self, number: int) -> Database:
        """One of its databases, which is emptied."""
        found = Database(self.url(number))
        found.empty()
        return found

    def settle_down(self) -> None:
        """Let the log be synced, so that no measurement pays for what came before it."""
        time.sleep(_SETTLING_S)

    def cpu_s(self) -> float:
        """Processor seconds of the server so far."""
        assert self.redis.pid is not None
        return float(sum(psutil.Process(self.redis.pid).cpu_times()[:4]))

    def version(self) -> str:
        with redis.Redis.from_url(self.redis.url, decode_responses=True) as there:
            return str(there.info("server")["redis_version"])


@dataclass(frozen=True, slots=True)
class Database:
    """One database of the server."""

    url: str

    @contextmanager
    def opened(self) -> Iterator[redis.Redis]:
        """A connection to it."""
        with redis.Redis.from_url(self.url, decode_responses=True, socket_timeout=300) as there:
            yield there

    def run(self, script: str, keys: tuple[str, ...] = (), *arguments: str | int) -> int:
        """Run a script of the folder."""
        text = (_LUA / f"{script}.lua").read_text()
        with self.opened() as there:
            found = there.eval(text, len(keys), *keys, *map(str, arguments))
        assert isinstance(found, int)
        return found

    def empty(self) -> None:
        with self.opened() as there:
            there.flushdb()

    def forget(self, kept: str) -> None:
        """Remove all keys but one."""
        with self.opened() as there:
            names = [name for name in there.scan_iter(count=5000) if name != kept]
            for first in range(0, len(names), 5000):
                there.unlink(*names[first : first + 5000])


@contextmanager
def serving() -> Iterator[Server]:
    """Servers for the time of a run. Where their data are, there must be room for several gigabytes."""
    with tempfile.TemporaryDirectory(prefix="charter-peers-", ignore_cleanup_errors=True) as folder:
        Path(folder).chmod(0o711)
        server = EmbeddedRedis(Path(folder, "redis"), settings=SETTINGS)
        history = EmbeddedPostgres(Path(folder, "postgres"))
        try:
            server.start()
            history.start()
            yield Server(server, history)
        finally:
            server.remove()
            history.remove()
