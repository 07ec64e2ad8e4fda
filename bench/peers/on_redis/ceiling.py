"""Ceiling of Redis: minimal queue scripts, called with commands that are encoded beforehand.

The wheel has no redis-benchmark; a socket that is written and read in bulk costs its client about as little.
"""

from __future__ import annotations

import socket
import time
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import urlsplit

from bench.peers.findings import JobRate
from bench.peers.on_redis.server import RedisDatabase, RedisServer
from bench.peers.rounds import BULK

EVALSHA = "EVALSHA"
EVALSHA_1 = "EVALSHA, 1 at a time"
EVALSHA_100 = "EVALSHA, 100 at a time"
DRAINS = {EVALSHA_1: 1, EVALSHA_100: 100}
_LUA = Path(__file__).parent / "lua"
_WAITING = "bare:waiting"
_OTHERS = "bare:others"


class ScriptCeiling:
    """A sorted set and hashes, and scripts that submit to it and drain it."""

    name = EVALSHA
    drains = tuple(DRAINS)

    def __init__(self, server: RedisServer, number: int) -> None:
        self._server = server
        self._database: RedisDatabase = server.database(number)
        with self._database.open() as client:
            self._submit = str(client.script_load((_LUA / "submit.lua").read_text()))
            self._claim = str(client.script_load((_LUA / "claim.lua").read_text()))

    def prepare(self, aged: bool) -> None:
        """Delete all entries, or all but those of `age`."""
        if aged:
            self._database.delete_except(_OTHERS)
        else:
            self._database.empty()

    def age(self, jobs: int) -> str:
        """Insert that many entries that are never claimed; return a line for the log."""
        self._database.empty()
        return f"{self.name}: {self._database.run_script('fill', (_OTHERS,), jobs):,} entries wait besides"

    def measure_submits(self, _kind: str, count: int, width: int) -> JobRate:
        """Measure submits with `width` commands in flight."""
        return self._time_commands([self._encode_submit(number) for number in range(count)], min(width, BULK))

    def drain(self, name: str, jobs: int) -> JobRate:
        """Claim every entry."""
        with self._connect() as connection:
            _send_and_receive(connection, [self._encode_submit(number) for number in range(jobs)], BULK)
        claim = _encode_command("EVALSHA", self._claim, "1", _WAITING)
        return self._time_commands([claim] * jobs, DRAINS[name])

    def _encode_submit(self, number: int) -> bytes:
        payload = f'{{"n": {number}}}'
        return _encode_command("EVALSHA", self._submit, "2", f"bare:{number}", _WAITING, str(number), payload)

    def _time_commands(self, commands: Sequence[bytes], width: int) -> JobRate:
        self._server.flush()
        with self._connect() as connection:
            before, started = self._server.cpu_s() + time.process_time(), time.perf_counter()
            _send_and_receive(connection, commands, width)
            seconds = time.perf_counter() - started
            spent = self._server.cpu_s() + time.process_time() - before
        count = len(commands)
        return JobRate(per_s=round(count / seconds, 1), cpu_us=round(spent / count * 1e6, 1), count=count)

    def _connect(self) -> socket.socket:
        url = urlsplit(self._database.url)
        connection = socket.create_connection((url.hostname or "", url.port or 0), timeout=60)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        opening = (
            _encode_command("AUTH", url.password or ""),
            _encode_command("SELECT", url.path[1:] or "0"),
        )
        _send_and_receive(connection, opening, 1)
        return connection


def _encode_command(*words: str) -> bytes:
    encoded = [word.encode() for word in words]
    parts = [b"*%d\r\n" % len(encoded), *(b"$%d\r\n%s\r\n" % (len(each), each) for each in encoded)]
    return b"".join(parts)


def _send_and_receive(connection: socket.socket, commands: Sequence[bytes], width: int) -> None:
    """Send `width` commands at a time and read their answers, which are a line each."""
    for first in range(0, len(commands), width):
        some = commands[first : first + width]
        connection.sendall(b"".join(some))
        answers, expected = b"", len(some)
        while answers.count(b"\r\n") < expected:
            answers += connection.recv(65536)
        if b"-" in {line[:1] for line in answers.split(b"\r\n")}:
            raise RuntimeError(f"Redis refused a command: {answers[:200].decode(errors='replace')}")
