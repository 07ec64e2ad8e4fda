"""What is compared: processes that serve, the same way for a baseline and for the engine."""

from __future__ import annotations

import hashlib
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import psutil


@dataclass(frozen=True, slots=True)
class Side:
    """One of the two sides of a comparison: processes, and the address that is called."""

    processes: list[psutil.Process]
    address: str

    def cpu(self) -> float:
        """Processor seconds of all its processes so far."""
        return sum(sum(each.cpu_times()[:2]) for each in self.processes)


@contextmanager
def processes(
    commands: Mapping[str, tuple[list[str], dict[str, str]]], ports: Mapping[str, int]
) -> Iterator[list[psutil.Process]]:
    """Starts modules, by role, each with its arguments and variables, and waits until all of them listen."""
    started = []
    try:
        for arguments, variables in commands.values():
            command = [sys.executable, "-m", *arguments]
            started.append(
                subprocess.Popen(command, env={**os.environ, **variables}, stdout=subprocess.DEVNULL)
            )
        for role in commands:
            _wait_for(ports[role])
        yield [psutil.Process(each.pid) for each in started]
    finally:
        for each in started:
            each.terminate()
        for each in started:
            each.wait()


def _wait_for(port: int) -> None:
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.05)
    raise TimeoutError(f"nothing listens on port {port}")


def environ(role: str, certificates: Path | None) -> dict[str, str]:
    """How a node proves itself: by a certificate of the folder, or by a token where there is none."""
    if certificates is None:
        digests = ",".join(
            f"{name}={hashlib.sha256(token(name).encode()).hexdigest()}"
            for name in ("gateway", "coordinator")
        )
        return {"CALLER_TOKEN": token(role), "ACCEPTED_TOKENS": digests}
    return {
        "TLS_CERT_FILE": str(certificates / f"{role}.crt"),
        "TLS_KEY_FILE": str(certificates / f"{role}.key"),
        "TLS_CA_FILE": str(certificates / "ca.crt"),
    }


def token(role: str) -> str:
    """What proves a role where there is no TLS."""
    return f"bench-token-of-{role}"
