"""Contestants on PostgreSQL: queues, with their producer and worker programs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from bench.peers.install import Environment
from bench.peers.programs import ProducerCommand, Program, run_once
from bench.peers.server import PostgresDatabase, PostgresServer


@dataclass(frozen=True, slots=True)
class PostgresQueue:
    """A queue in a database of its own."""

    name: str
    database: PostgresDatabase
    producers: Mapping[str, ProducerCommand]
    workers: Mapping[str, Program]
    pickups: Mapping[str, tuple[str, Program]]
    """Producer and worker of each pickup measurement."""
    filler: str
    """The producer that fills it before a drain."""

    def prepare(self, aged: bool) -> None:
        """Delete all jobs, or all but those of `age`."""
        self.database.run_script("clear" if aged else "empty")

    def age(self, jobs: int) -> str:
        """Insert that many finished jobs, with their history; return a line for the log."""
        return age_database(self.database, jobs)


PROCRASTINATE = "procrastinate"
PGQUEUER = "pgqueuer"
PGQUEUER_100 = "pgqueuer, batch 100"


def create_procrastinate(server: PostgresServer, peers: Environment) -> PostgresQueue:
    """Create procrastinate with its defaults: one job at a time."""
    database = server.database("procrastinate", "procrastinate")
    environ = {"DATABASE_URL": database.url}
    app = "bench.peers.apps.on_postgres.procrastinate_app"
    call = (peers.program("procrastinate"), f"--app={app}.app")
    run_once(Program((*call, "schema", "--apply"), environ))
    worker = Program((*call, "worker"), environ)
    produce = Program((peers.program("python"), "-m", app), environ)
    return PostgresQueue(
        name=PROCRASTINATE,
        database=database,
        producers={PROCRASTINATE: ProducerCommand(produce, database.url)},
        workers={PROCRASTINATE: worker},
        pickups={PROCRASTINATE: (PROCRASTINATE, worker)},
        filler=PROCRASTINATE,
    )


def create_pgqueuer(server: PostgresServer, peers: Environment) -> PostgresQueue:
    """Create pgqueuer with its defaults, and with a batch of 100; with the settings of its checklist."""
    database = server.database("pgqueuer", "pgqueuer")
    environ = {"DATABASE_URL": database.url}
    app = "bench.peers.apps.on_postgres.pgqueuer_app"
    pgq = peers.program("pgq")
    for command in ("install", "autovac"):
        run_once(Program((pgq, "--pg-dsn", database.url, command), environ))
    worker = Program((pgq, "run", f"{app}:worker"), environ)
    produce = Program((peers.program("python"), "-m", app), environ)
    return PostgresQueue(
        name=PGQUEUER,
        database=database,
        producers={PGQUEUER: ProducerCommand(produce, database.url)},
        workers={
            PGQUEUER: worker,
            PGQUEUER_100: Program((*worker.command, "--batch-size", "100"), environ),
        },
        pickups={PGQUEUER: (PGQUEUER, worker)},
        filler=PGQUEUER,
    )


def age_database(database: PostgresDatabase, jobs: int) -> str:
    """Insert that many finished jobs into an empty table; return a line for the log."""
    database.run_script("empty")
    database.run_script("age", jobs=jobs)
    return f"{database.kind}: {jobs:,} finished jobs are in the table"
