"""The ceiling: the least that scripts can do for a queue, called by bytes that are made beforehand.

The wheel has no redis-benchmark; a socket that is written and read in bulk costs its client about as little.
"""

from __future__ import annotations

import socket
import time
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import urlsplit

from bench.peers.findings import Rate
from bench.peers.on_redis.server import Database, Server
from bench.peers.run import BULK

EVALSHA = "EVALSHA"
EVALSHA_1 = "EVALSHA, 1 at a time"
EVALSHA_100 = "EVALSHA, 100 at a time"
DRAINS = {EVALSHA_1: 1, EVALSHA_100: 100}
_LUA = Path(__file__).parent / "lua"
_WAITING = "bare:waiting"
_OTHERS = "bare:others"


class Bare:
    """A sorted set and hashes, and scripts that submit to it and drain it."""

    name = EVALSHA
    drains = tuple(DRAINS)

    def __init__(self, server: Server, number: int) -> None:
        self._server = server
        self._database: Database = server.database(number)
        with self._database.opened() as there:
            self._submit = str(there.script_load((_LUA / "submit.lua").read_text()))
            self._take = str(there.script_load((_LUA / "take.lua").read_text()))

    def prepare(self, aged: bool) -> None:
        """Leave nothing, or nothing but the entries that nobody takes."""
        if aged:
            self._database.forget(_OTHERS)
        else:
            self._database.empty()

    def age(self, jobs: int) -> str:
        """Give it entries that nobody takes; what to tell of it."""
        self._database.empty()
        return f"{self.name}: {self._database.run('fill', (_OTHERS,), jobs):,} entries wait besides"

    def submits(self, _kind: str, count: int, width: int) -> Rate:
        """As a producer does that has so many in flight."""
        return self._timed([self._submitting(number) for number in range(count)], min(width, BULK))

    def drain(self, name: str, jobs: int) -> Rate:
        """Take every entry."""
        with self._connected() as connection:
            _converse(connection, [self._submitting(number) for number in range(jobs)], BULK)
        taking = _command("EVALSHA", self._take, "1", _WAITING)
        return self._timed([taking] * jobs, DRAINS[name])

    def _submitting(self, number: int) -> bytes:
        payload = f'{{"n": {number}}}'
        return _command("EVALSHA", self._submit, "2", f"bare:{number}", _WAITING, str(number), payload)

    def _timed(self, commands: Sequence[bytes], width: int) -> Rate:
        self._server.settle_down()
        with self._connected() as connection:
            before, started = self._server.cpu_s() + time.process_time(), time.perf_counter()
            _converse(connection, commands, width)
            seconds = time.perf_counter() - started
            spent = self._server.cpu_s() + time.process_time() - before
        count = len(commands)
        return Rate(per_s=round(count / seconds, 1), cpu_us=round(spent / count * 1e6, 1), count=count)

    def _connected(self) -> socket.socket:
        place = urlsplit(self._database.url)
        connection = socket.create_connection((place.hostname or "", place.port or 0), timeout=60)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        opening = (_command("AUTH", place.password or ""), _command("SELECT", place.path[1:] or "0"))
        _converse(connection, opening, 1)
        return connection


def _command(*words: str) -> bytes:
    encoded = [word.encode() for word in words]
    parts = [b"*%d\r\n" % len(encoded), *(b"$%d\r\n%s\r\n" % (len(each), each) for each in encoded)]
    return b"".join(parts)


def _converse(connection: socket.socket, commands: Sequence[bytes], width: int) -> None:
    """Send so many at a time and read their answers, which are a line each."""
    for first in range(0, len(commands), width):
        some = commands[first : first + width]
        connection.sendall(b"".join(some))
        said, wanted = b"", len(some)
        while said.count(b"\r\n") < wanted:
            said += connection.recv(65536)
        if b"-" in {line[:1] for line in said.split(b"\r\n")}:
            raise RuntimeError(f"Redis refused a command: {said[:200].decode(errors='replace')}")
