"""Ceiling of PostgreSQL: pgbench, a program in C, against a table that is a queue and nothing more."""

from __future__ import annotations

import re
import subprocess

from bench.peers.contestants import age_database
from bench.peers.findings import JobRate
from bench.peers.rounds import BULK
from bench.peers.server import PostgresDatabase, PostgresServer
from runtime.launch.embedded.programs import program

PGBENCH = "pgbench"
PGBENCH_1 = "pgbench, 1 connection"
PGBENCH_10 = "pgbench, 10 connections"
PGBENCH_100 = "pgbench, batch 100"
DRAINS = {PGBENCH_1: ("drain-1", 1, 1), PGBENCH_10: ("drain-1", 10, 1), PGBENCH_100: ("drain-100", 1, 100)}
"""Script, connections, and jobs of a run of the script."""
_SPARE = 200


class PgbenchCeiling:
    """A table, and scripts that submit to it and drain it."""

    name = PGBENCH
    drains = tuple(DRAINS)

    def __init__(self, server: PostgresServer) -> None:
        self._server = server
        self.database: PostgresDatabase = server.database("bare", "bare")
        self.database.run_script("install")

    def prepare(self, aged: bool) -> None:
        """Delete all jobs, or all but those of `age`."""
        self.database.run_script("clear" if aged else "empty")

    def age(self, jobs: int) -> str:
        """Insert that many finished jobs; return a line for the log."""
        return age_database(self.database, jobs)

    def measure_submits(self, kind: str, count: int, width: int) -> JobRate:
        """Measure submits: `single` with that many calls in flight, or `bulk`."""
        self._server.flush()
        if kind == "single":
            return self._run_pgbench("single", width, count // width, 1)
        return self._run_pgbench("bulk", 1, count // BULK, BULK)

    def drain(self, name: str, jobs: int) -> JobRate:
        """Claim and finish every job, in two transactions; a quarter of the jobs for one at a time."""
        script, connections, size = DRAINS[name]
        jobs = jobs // 4 if connections == size == 1 else jobs
        self.database.run_script("fill", jobs=jobs + _SPARE)
        self.database.execute("ANALYZE")
        self._server.flush()
        return self._run_pgbench(script, connections, jobs // connections // size, size)

    def _run_pgbench(self, script: str, connections: int, runs: int, size: int) -> JobRate:
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
        return JobRate(
            per_s=round(float(found[1]) * size, 1),
            cpu_us=round((self._server.cpu_s() - before) / count * 1e6, 1),
            count=count,
        )
