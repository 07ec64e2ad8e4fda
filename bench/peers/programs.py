"""Programs of a comparison: producers, workers, and the services that they need."""

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

TIMEOUT_S = 30.0


class ProgramFailed(Exception):
    """A process ended or did not do its work in time; the message has its name and the end of its log."""


@dataclass(frozen=True, slots=True)
class Program:
    """A command with its variables."""

    command: tuple[str, ...]
    environ: Mapping[str, str] = field(default_factory=dict)

    def make_variables(self, **more: str) -> dict[str, str]:
        """Make the environment: ours, the path of the project, and its own variables."""
        return {**os.environ, "PYTHONPATH": str(ROOT), **self.environ, **more}

    @contextmanager
    def start(self, log: Path, **more: str) -> Iterator[subprocess.Popen[bytes]]:
        """Start it in the background with its output in a log file, and end it with the context."""
        with log.open("ab") as output:
            process = subprocess.Popen(
                self.command, env=self.make_variables(**more), stdout=output, stderr=output, cwd=ROOT
            )
        try:
            yield process
        finally:
            process.terminate()
            try:
                process.wait(TIMEOUT_S)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


@dataclass(frozen=True, slots=True)
class ProducerCommand:
    """A producer program, the address that it submits to, and the service that it needs, if any."""

    program: Program
    address: str
    service: Program | None = None
    ready_port: int = 0


@contextmanager
def start_service(producing: ProducerCommand, log: Path) -> Iterator[list[int]]:
    """Start the service of a producer, if it has one; yield its process ids."""
    with ExitStack() as running:
        if producing.service is None:
            yield []
            return
        process = running.enter_context(producing.service.start(log))
        until = time.monotonic() + TIMEOUT_S
        while not _is_listening(producing.ready_port):
            require_running(process, until, log, "The service of a producer does not listen")
            time.sleep(0.05)
        yield [process.pid]


def require_running(process: subprocess.Popen[bytes], until: float, log: Path, problem: str) -> None:
    """Raise, with the end of its log, if a process has ended or the time is over."""
    if process.poll() is None and time.monotonic() < until:
        return
    lines = log.read_text(errors="replace").strip().splitlines()[-8:]
    raise ProgramFailed("\n".join((f"{problem}:", *lines)))


def _is_listening(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def make_python_command(module: str) -> tuple[str, ...]:
    """Make the command that runs a module of the project."""
    return (sys.executable, "-m", module)


def run_once(program: Program) -> None:
    """Run a program to its end; raise with its last output if it fails."""
    done = subprocess.run(
        program.command, env=program.make_variables(), capture_output=True, text=True, check=False, cwd=ROOT
    )
    if done.returncode:
        lines = (done.stderr or done.stdout).strip().splitlines()[-3:]
        raise RuntimeError(f"{Path(program.command[0]).name} failed: {' '.join(lines)}")
