"""Programs that take part: those that submit, those that work, and the services that they need."""

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

from bench.peers.install import ROOT

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
        """Run it in the background; what it says goes to a file."""
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


@contextmanager
def serviced(producing: Producing, log: Path) -> Iterator[list[int]]:
    """Run the service of a producer, if it has one; the ids of its processes."""
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
    """Raise, with the end of its log, if a process has ended or took too long."""
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


def run_once(program: Program) -> None:
    """Run a program that ends by itself; raise with what it said if that was no good end."""
    done = subprocess.run(
        program.command, env=program.variables(), capture_output=True, text=True, check=False, cwd=ROOT
    )
    if done.returncode:
        said = (done.stderr or done.stdout).strip().splitlines()[-3:]
        raise RuntimeError(f"{Path(program.command[0]).name} failed: {' '.join(said)}")
