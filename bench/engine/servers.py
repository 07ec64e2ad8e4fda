"""Server processes of a comparison: the baseline's and the engine's."""

from __future__ import annotations

import hashlib
import json
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

from bench.machine import allocate_port
from runtime.transport.grpc.carrier import DEFAULT, VARIABLE

DEPLOYMENT = "taskqueue.microservices"


@dataclass(frozen=True, slots=True)
class Side:
    """One side of a comparison: its processes, and the address that clients call."""

    processes: list[psutil.Process]
    address: str

    def cpu(self) -> float:
        """Read the CPU seconds of all its processes so far."""
        return sum(sum(each.cpu_times()[:2]) for each in self.processes)


@contextmanager
def start_bare(method: str, certificates: Path | None) -> Iterator[Side]:
    """Start hand-written services: a single one, or a chain of three."""
    ports = {role: allocate_port() for role in ("gateway", "job", "queue")}
    roles = ["queue"] if method == "enqueue" else ["job", "queue", "gateway"]
    upstreams = {"gateway": [f"127.0.0.1:{ports['job']}", f"127.0.0.1:{ports['queue']}"]}
    commands = {
        role: (
            ["bench.engine.bare_services", role, str(ports[role]), *upstreams.get(role, [])],
            credential_variables(role, certificates),
        )
        for role in roles
    }
    with start_processes(commands, ports) as started:
        yield Side(started, f"127.0.0.1:{ports[roles[-1]]}")


@contextmanager
def start_engine(method: str, certificates: Path | None, carrier: str = DEFAULT) -> Iterator[Side]:
    """Start the same services with the engine and one of its carriers."""
    ports = {role: allocate_port() for role in ("gateway", "job", "queue")}
    roles = ["queue"] if method == "enqueue" else ["job", "queue", "gateway"]
    wiring = {f"{role.upper()}_PORT": str(port) for role, port in ports.items()}
    wiring |= {f"{role.upper()}_SERVICE_ADDR": f"127.0.0.1:{port}" for role, port in ports.items()}
    wiring["RESULT_SERVICE_ADDR"] = f"127.0.0.1:{allocate_port()}"
    commands = {
        role: (
            ["runtime.serve", f"{DEPLOYMENT}.{role}"],
            {**wiring, **credential_variables(role, certificates), VARIABLE: carrier},
        )
        for role in roles
    }
    with start_processes(commands, ports) as started:
        yield Side(started, f"127.0.0.1:{ports[roles[-1]]}")


def measure_calls(
    side: Side,
    method: str,
    certificates: Path | None,
    calls: int,
    in_flight: int,
    *,
    typed: bool = False,
) -> dict[str, float]:
    """Run a client that makes that many calls, and measure the CPU time of both ends."""
    caller = "gateway" if method == "enqueue" else ""
    variables = credential_variables(caller, certificates)
    bearer = create_token(caller) if caller and certificates is None else ""
    command = [
        sys.executable,
        "-m",
        "bench.engine.load",
        side.address,
        method,
        str(calls),
        str(in_flight),
        bearer,
    ]
    command += ["typed"] if typed else []
    before = side.cpu()
    done = subprocess.run(
        command, env={**os.environ, **variables}, capture_output=True, text=True, check=True
    )
    report: dict[str, float] = json.loads(done.stdout)
    return {
        "calls_per_s": report["calls_per_s"],
        "cpu_us_per_call": (side.cpu() - before) / report["calls"] * 1e6,
        "client_cpu_us_per_call": report["client_cpu_us_per_call"],
        "client_cpu_share": report["client_cpu_share"],
    }


@contextmanager
def use_carrier(carrier: str) -> Iterator[None]:
    """Set the carrier of all processes that are started within the context."""
    before = os.environ.get(VARIABLE)
    os.environ[VARIABLE] = carrier
    try:
        yield
    finally:
        if before is None:
            del os.environ[VARIABLE]
        else:
            os.environ[VARIABLE] = before


@contextmanager
def start_crowd(certificates: Path | None, count: int) -> Iterator[Side]:
    """Start that many independent queue nodes."""
    ports = {f"queue-{number}": allocate_port() for number in range(count)}
    commands = {
        name: (
            ["runtime.serve", f"{DEPLOYMENT}.queue"],
            {"QUEUE_PORT": str(port), **credential_variables("queue", certificates)},
        )
        for name, port in ports.items()
    }
    with start_processes(commands, ports) as started:
        yield Side(started, ",".join(f"127.0.0.1:{port}" for port in ports.values()))


@contextmanager
def start_processes(
    commands: Mapping[str, tuple[list[str], dict[str, str]]], ports: Mapping[str, int]
) -> Iterator[list[psutil.Process]]:
    """Start a module for each role, with its arguments and variables, and wait until all of them listen."""
    started = []
    try:
        for arguments, variables in commands.values():
            command = [sys.executable, "-m", *arguments]
            started.append(
                subprocess.Popen(command, env={**os.environ, **variables}, stdout=subprocess.DEVNULL)
            )
        for role in commands:
            _wait_for_port(ports[role])
        yield [psutil.Process(each.pid) for each in started]
    finally:
        for each in started:
            each.terminate()
        for each in started:
            each.wait()


def _wait_for_port(port: int) -> None:
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.05)
    raise TimeoutError(f"nothing listens on port {port}")


def credential_variables(role: str, certificates: Path | None) -> dict[str, str]:
    """Make the variables of a principal's credentials: a certificate of the folder, or a token without one.

    An empty role trusts the authority and has no certificate of its own.
    """
    if certificates is None:
        digests = ",".join(
            f"{name}={hashlib.sha256(create_token(name).encode()).hexdigest()}"
            for name in ("gateway", "coordinator")
        )
        return {"CALLER_TOKEN": create_token(role), "ACCEPTED_TOKENS": digests}
    trusted = {"TLS_CA_FILE": str(certificates / "ca.crt")}
    if not role:
        return trusted
    own = {"TLS_CERT_FILE": f"{role}.crt", "TLS_KEY_FILE": f"{role}.key"}
    return trusted | {name: str(certificates / file) for name, file in own.items()}


def create_token(role: str) -> str:
    """Create the token of a role, its credential without TLS."""
    return f"bench-token-of-{role}"
