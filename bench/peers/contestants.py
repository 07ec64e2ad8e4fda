"""Who takes part: queues, with the programs that submit to them and the programs that work for them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from bench.peers.install import Environment
from bench.peers.programs import Producing, Program, run_once
from bench.peers.server import Database, Server


@dataclass(frozen=True, slots=True)
class Queue:
    """A queue in a database of its own."""

    name: str
    database: Database
    producers: Mapping[str, Producing]
    workers: Mapping[str, Program]
    pickups: Mapping[str, tuple[str, Program]]
    """Producer and worker of each way to have a job picked up."""
    filler: str
    """The producer that fills it before a drain."""

    def prepare(self, aged: bool) -> None:
        """Leave no job, or none but the finished ones of the past."""
        self.database.run("clear" if aged else "empty")

    def age(self, jobs: int) -> str:
        """Give it a past of so many finished jobs, with all that they leave behind; what to tell of it."""
        return aged(self.database, jobs)


PROCRASTINATE = "procrastinate"
PGQUEUER = "pgqueuer"
PGQUEUER_100 = "pgqueuer, batch 100"


def procrastinate(server: Server, peers: Environment) -> Queue:
    """procrastinate at its defaults: one job at a time."""
    database = server.database("procrastinate", "procrastinate")
    environ = {"DATABASE_URL": database.url}
    app = "bench.peers.apps.on_postgres.procrastinate_app"
    call = (peers.program("procrastinate"), f"--app={app}.app")
    run_once(Program((*call, "schema", "--apply"), environ))
    worker = Program((*call, "worker"), environ)
    produce = Program((peers.program("python"), "-m", app), environ)
    return Queue(
        name=PROCRASTINATE,
        database=database,
        producers={PROCRASTINATE: Producing(produce, database.url)},
        workers={PROCRASTINATE: worker},
        pickups={PROCRASTINATE: (PROCRASTINATE, worker)},
        filler=PROCRASTINATE,
    )


def pgqueuer(server: Server, peers: Environment) -> Queue:
    """pgqueuer at its defaults, and with a batch of 100; with the settings that its checklist asks for."""
    database = server.database("pgqueuer", "pgqueuer")
    environ = {"DATABASE_URL": database.url}
    app = "bench.peers.apps.on_postgres.pgqueuer_app"
    pgq = peers.program("pgq")
    for command in ("install", "autovac"):
        run_once(Program((pgq, "--pg-dsn", database.url, command), environ))
    worker = Program((pgq, "run", f"{app}:worker"), environ)
    produce = Program((peers.program("python"), "-m", app), environ)
    return Queue(
        name=PGQUEUER,
        database=database,
        producers={PGQUEUER: Producing(produce, database.url)},
        workers={
            PGQUEUER: worker,
            PGQUEUER_100: Program((*worker.command, "--batch-size", "100"), environ),
        },
        pickups={PGQUEUER: (PGQUEUER, worker)},
        filler=PGQUEUER,
    )


def aged(database: Database, jobs: int) -> str:
    """A database with so many finished jobs in its table; what to tell of it."""
    database.run("empty")
    database.run("age", jobs=jobs)
    return f"{database.kind}: {jobs:,} finished jobs are in the table"
