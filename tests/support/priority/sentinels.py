"""Several Redis of which one is the master, and sentinels that choose another one when it is lost."""

from __future__ import annotations

import os
import secrets
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from redis import Redis, RedisError

from runtime.launch.embedded.ports import LOOPBACK
from runtime.launch.embedded.redis import EmbeddedRedis, server_program
from runtime.launch.embedded.server import EmbeddedServer
from tests.support.priority.stack import wait_until

NAME = "queue"


class SentinelProcess(EmbeddedServer):
    """One sentinel. It writes to its settings which server it considers the master."""

    title = "Sentinel"

    def __init__(self, folder: Path, master: int, password: str) -> None:
        super().__init__(folder)
        self._master = master
        self._password = password

    @property
    def url(self) -> str:
        """Its address, password included."""
        return f"redis://:{self._password}@{LOOPBACK}:{self.port}"

    def prepare(self) -> None:
        """Write its settings, unless it has them."""
        self._make_folder()
        self._allocate_port()
        settings = (
            f"bind {LOOPBACK}",
            f"port {self.port}",
            f'dir "{self.folder}"',
            f"requirepass {self._password}",
            f"sentinel monitor {NAME} {LOOPBACK} {self._master} 2",
            f"sentinel auth-pass {NAME} {self._password}",
            f"sentinel sentinel-pass {self._password}",
            # A busy machine must not look like a dead server.
            f"sentinel down-after-milliseconds {NAME} 3000",
            f"sentinel failover-timeout {NAME} 3000",
        )
        path = self.folder / "sentinel.conf"
        if not path.exists():
            path.write_text("\n".join(settings) + "\n")

    def spawn(self) -> None:
        command = [str(server_program()), str(self.folder / "sentinel.conf"), "--sentinel"]
        self._spawn(command, os.environ)

    def _is_ready(self) -> bool:
        with Redis.from_url(self.url) as there:
            try:
                return bool(there.ping())
            except RedisError:
                return False


class Group:
    """One master, the servers that follow it, and three sentinels."""

    def __init__(self, folder: Path, *, followers: int = 1, settings: dict[str, str] | None = None) -> None:
        self.password = secrets.token_hex(8)
        self.servers = [
            EmbeddedRedis(folder / f"redis-{place}", settings=settings, password=self.password)
            for place in range(followers + 1)
        ]
        self._folder = folder
        self.sentinels: list[SentinelProcess] = []

    def __enter__(self) -> Self:
        first, *others = self.servers
        first.start()
        for each in others:
            each.configure(replicaof=f"{LOOPBACK} {first.port}")
            each.start()
        self.sentinels = [
            SentinelProcess(self._folder / f"sentinel-{place}", first.port, self.password)
            for place in range(3)
        ]
        for sentinel in self.sentinels:
            sentinel.start()
        try:
            wait_until(self._is_complete, "the sentinels know each other and all servers")
        except BaseException:
            self.kill()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.kill()

    def kill(self) -> None:
        """Kill them all."""
        running: Sequence[EmbeddedServer] = [*self.sentinels, *self.servers]
        for each in running:
            each.kill()

    @property
    def url(self) -> str:
        """The address of the sentinels."""
        hosts = ",".join(f"{LOOPBACK}:{each.port}" for each in self.sentinels)
        return f"redis+sentinel://:{self.password}@{hosts}/{NAME}?sentinel_password={self.password}"

    def master(self) -> EmbeddedRedis:
        """The server that the sentinels consider the master."""
        with Redis.from_url(self.sentinels[0].url) as there:
            _, port = there.sentinel_get_master_addr_by_name(NAME)
        return next(each for each in self.servers if each.port == int(port))

    def lose_master(self) -> EmbeddedRedis:
        """Kill the master, and return the next one once it is elected."""
        lost = self.master()
        lost.kill()
        wait_until(self.master, "another server is the master", lambda found: found is not lost)
        return self.master()

    def client(self, server: EmbeddedRedis) -> Redis:
        """A connection to one of the servers."""
        return Redis.from_url(server.url, decode_responses=True)

    def _is_complete(self) -> bool:
        wanted = (len(self.servers) - 1, len(self.sentinels) - 1)
        for each in self.sentinels:
            with Redis.from_url(each.url) as there:
                info = there.sentinel_master(NAME)
            if (info["num-slaves"], info["num-other-sentinels"]) != wanted:
                return False
        with self.client(self.servers[0]) as there:
            info = there.info("replication")
        states = [info.get(f"slave{place}", {}).get("state") for place in range(wanted[0])]
        return all(state == "online" for state in states)
