"""The ceiling: pgbench, a program in C, against a table that is a queue and nothing more."""

from __future__ import annotations

import re
import subprocess

from bench.peers.contestants import aged
from bench.peers.findings import Rate
from bench.peers.run import BULK
from bench.peers.server import Database, Server
from runtime.embedded.programs import program

PGBENCH = "pgbench"
PGBENCH_1 = "pgbench, 1 connection"
PGBENCH_10 = "pgbench, 10 connections"
PGBENCH_100 = "pgbench, batch 100"
DRAINS = {PGBENCH_1: ("drain-1", 1, 1), PGBENCH_10: ("drain-1", 10, 1), PGBENCH_100: ("drain-100", 1, 100)}
"""Script, connections, and jobs of a run of the script."""
_SPARE = 200


class Bare:
    """A table, and scripts that submit to it and drain it."""

    name = PGBENCH
    drains = tuple(DRAINS)

    def __init__(self, server: Server) -> None:
        self._server = server
        self.database: Database = server.database("bare", "bare")
        self.database.run("install")

    def prepare(self, aged: bool) -> None:
        """Leave no job, or none but the finished ones of the past."""
        self.database.run("clear" if aged else "empty")

    def age(self, jobs: int) -> str:
        """Give it a past of so many finished jobs; what to tell of it."""
        return aged(self.database, jobs)

    def submits(self, kind: str, count: int, width: int) -> Rate:
        """As a producer does: `single` with so many calls in flight, or `bulk`."""
        self._server.settle_down()
        if kind == "single":
            return self._pgbench("single", width, count // width, 1)
        return self._pgbench("bulk", 1, count // BULK, BULK)

    def drain(self, name: str, jobs: int) -> Rate:
        """Take every job and finishes it, in two transactions. One at a time a quarter of them is enough."""
        script, connections, size = DRAINS[name]
        jobs = jobs // 4 if connections == size == 1 else jobs
        self.database.run("fill", jobs=jobs + _SPARE)
        self.database.say("ANALYZE")
        self._server.settle_down()
        return self._pgbench(script, connections, jobs // connections // size, size)

    def _pgbench(self, script: str, connections: int, runs: int, size: int) -> Rate:
        before = self._server.cpu_s()
        options = ["-n", "-M", "prepared", "-c", str(connections), "-j", "1", "-t", str(runs)]
        path = str(self.database.path(f"{script}.pgbench"))
        done = subprocess.run(
            [str(program("pgbench")), *options, "-f", path, "-d", self.database.url],
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            raise RuntimeError(f"pgbench failed: {done.stderr.strip()}")
        found = re.search(r"tps = ([\d.]+) \(without initial connection time\)", done.stdout)
        assert found is not None, done.stdout
        count = connections * runs * size
        return Rate(
            per_s=round(float(found[1]) * size, 1),
            cpu_us=round((self._server.cpu_s() - before) / count * 1e6, 1),
            count=count,
        )
