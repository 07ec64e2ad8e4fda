"""Who takes part: queues, with the programs that submit to them and the programs that work for them."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from bench.peers.install import ROOT, Environment
from bench.peers.server import Database, Server

PATIENCE_S = 30.0


class Stuck(Exception):
    """A process did not do its part; the message says which, and the end of its log."""


@dataclass(frozen=True, slots=True)
class Program:
    """A command with its variables."""

    command: tuple[str, ...]
    environ: Mapping[str, str] = field(default_factory=dict)

    def variables(self, **more: str) -> dict[str, str]:
        """Ours, so that it finds the project, and its own."""
        return {**os.environ, "PYTHONPATH": str(ROOT), **self.environ, **more}

    @contextmanager
    def running(self, log: Path, **more: str) -> Iterator[subprocess.Popen[bytes]]:
        """Runs it in the background; what it says goes to a file."""
        with log.open("ab") as told:
            process = subprocess.Popen(
                self.command, env=self.variables(**more), stdout=told, stderr=told, cwd=ROOT
            )
        try:
            yield process
        finally:
            process.terminate()
            try:
                process.wait(PATIENCE_S)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


@dataclass(frozen=True, slots=True)
class Producing:
    """A way to submit: a program, where it submits to, and the service that has to run for that, if any."""

    program: Program
    address: str
    service: Program | None = None
    ready_port: int = 0


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
        """Leaves no job, or none but the finished ones of the past."""
        self.database.run("clear" if aged else "empty")


PROCRASTINATE = "procrastinate"
PGQUEUER = "pgqueuer"
PGQUEUER_100 = "pgqueuer, batch 100"


def procrastinate(server: Server, peers: Environment) -> Queue:
    """procrastinate at its defaults: one job at a time."""
    database = server.database("procrastinate", "procrastinate")
    environ = {"DATABASE_URL": database.url}
    app = "bench.peers.apps.procrastinate_app"
    call = (peers.program("procrastinate"), f"--app={app}.app")
    _run(Program((*call, "schema", "--apply"), environ))
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
    app = "bench.peers.apps.pgqueuer_app"
    pgq = peers.program("pgq")
    for command in ("install", "autovac"):
        _run(Program((pgq, "--pg-dsn", database.url, command), environ))
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


@contextmanager
def serviced(producing: Producing, log: Path) -> Iterator[list[int]]:
    """Runs the service of a producer, if it has one; the ids of its processes."""
    with ExitStack() as running:
        if producing.service is None:
            yield []
            return
        process = running.enter_context(producing.service.running(log))
        until = time.monotonic() + PATIENCE_S
        while not _listens(producing.ready_port):
            require(process, until, log, "The service of a producer does not listen")
            time.sleep(0.05)
        yield [process.pid]


def require(process: subprocess.Popen[bytes], until: float, log: Path, problem: str) -> None:
    """Raises, with the end of its log, if a process has ended or took too long."""
    if process.poll() is None and time.monotonic() < until:
        return
    said = log.read_text(errors="replace").strip().splitlines()[-8:]
    raise Stuck("\n".join((f"{problem}:", *said)))


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def python(module: str) -> tuple[str, ...]:
    """A module of the project as a command."""
    return (sys.executable, "-m", module)


def _run(program: Program) -> None:
    done = subprocess.run(
        program.command, env=program.variables(), capture_output=True, text=True, check=False, cwd=ROOT
    )
    if done.returncode:
        said = (done.stderr or done.stdout).strip().splitlines()[-3:]
        raise RuntimeError(f"{Path(program.command[0]).name} failed: {' '.join(said)}")
