"""Redis server of a comparison, from the wheel with its default durability; a database for each queue."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import psutil
import redis

from runtime.launch.embedded.postgres import EmbeddedPostgres
from runtime.launch.embedded.redis import EmbeddedRedis

_SETTLING_S = 0.3
_LUA = Path(__file__).parent / "lua"
SETTINGS = {"auto-aof-rewrite-percentage": "0"}
"""No rewrite of the append-only file, which would slow down the measurement at that time."""


@dataclass(frozen=True, slots=True)
class RedisServer:
    """The server, whose CPU time counts like that of its clients."""

    redis: EmbeddedRedis
    history: EmbeddedPostgres
    """The history of our manager, for tasks that Redis has deleted."""

    def url(self, number: int) -> str:
        """Format the URL of one of its databases."""
        return f"{self.redis.url.rpartition('/')[0]}/{number}"

    def database(self, number: int) -> RedisDatabase:
        """Empty one of its databases, and return it."""
        result = RedisDatabase(self.url(number))
        result.empty()
        return result

    def flush(self) -> None:
        """Wait for the sync of the append-only file, so that no measurement pays for earlier writes."""
        time.sleep(_SETTLING_S)

    def cpu_s(self) -> float:
        """Read the CPU seconds of the server so far."""
        assert self.redis.pid is not None
        return float(sum(psutil.Process(self.redis.pid).cpu_times()[:4]))

    def version(self) -> str:
        with redis.Redis.from_url(self.redis.url, decode_responses=True) as client:
            return str(client.info("server")["redis_version"])


@dataclass(frozen=True, slots=True)
class RedisDatabase:
    """One database of the server."""

    url: str

    @contextmanager
    def open(self) -> Iterator[redis.Redis]:
        """Open a connection."""
        with redis.Redis.from_url(self.url, decode_responses=True, socket_timeout=300) as client:
            yield client

    def run_script(self, script: str, keys: tuple[str, ...] = (), *arguments: str | int) -> int:
        """Run a script of the folder."""
        text = (_LUA / f"{script}.lua").read_text()
        with self.open() as client:
            result = client.eval(text, len(keys), *keys, *map(str, arguments))
        assert isinstance(result, int)
        return result

    def empty(self) -> None:
        with self.open() as client:
            client.flushdb()

    def delete_except(self, key: str) -> None:
        """Delete all keys but one."""
        with self.open() as client:
            names = [name for name in client.scan_iter(count=5000) if name != key]
            for first in range(0, len(names), 5000):
                client.unlink(*names[first : first + 5000])


@contextmanager
def start_server() -> Iterator[RedisServer]:
    """Start the servers for a run; their temporary folder needs room for several gigabytes."""
    with tempfile.TemporaryDirectory(prefix="charter-peers-", ignore_cleanup_errors=True) as folder:
        Path(folder).chmod(0o711)
        server = EmbeddedRedis(Path(folder, "redis"), settings=SETTINGS)
        history = EmbeddedPostgres(Path(folder, "postgres"))
        try:
            server.start()
            history.start()
            yield RedisServer(server, history)
        finally:
            server.remove()
            history.remove()
