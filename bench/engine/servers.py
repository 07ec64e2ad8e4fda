"""What is compared: processes that serve, the same way for a baseline and for the engine."""

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
    """One of the two sides of a comparison: processes, and the address that is called."""

    processes: list[psutil.Process]
    address: str

    def cpu(self) -> float:
        """Processor seconds of all its processes so far."""
        return sum(sum(each.cpu_times()[:2]) for each in self.processes)


@contextmanager
def bare(method: str, certificates: Path | None) -> Iterator[Side]:
    """Hand-written services: one that is called, or a chain of three."""
    ports = {role: allocate_port() for role in ("gateway", "job", "queue")}
    roles = ["queue"] if method == "enqueue" else ["job", "queue", "gateway"]
    upstreams = {"gateway": [f"127.0.0.1:{ports['job']}", f"127.0.0.1:{ports['queue']}"]}
    commands = {
        role: (
            ["bench.engine.bare_services", role, str(ports[role]), *upstreams.get(role, [])],
            environ(role, certificates),
        )
        for role in roles
    }
    with processes(commands, ports) as started:
        yield Side(started, f"127.0.0.1:{ports[roles[-1]]}")


@contextmanager
def engine(method: str, certificates: Path | None, carrier: str = DEFAULT) -> Iterator[Side]:
    """The same services under the engine, with one of its carriers."""
    ports = {role: allocate_port() for role in ("gateway", "job", "queue")}
    roles = ["queue"] if method == "enqueue" else ["job", "queue", "gateway"]
    wiring = {f"{role.upper()}_PORT": str(port) for role, port in ports.items()}
    wiring |= {f"{role.upper()}_SERVICE_ADDR": f"127.0.0.1:{port}" for role, port in ports.items()}
    wiring["RESULT_SERVICE_ADDR"] = f"127.0.0.1:{allocate_port()}"
    commands = {
        role: (
            ["runtime.serve", f"{DEPLOYMENT}.{role}"],
            {**wiring, **environ(role, certificates), VARIABLE: carrier},
        )
        for role in roles
    }
    with processes(commands, ports) as started:
        yield Side(started, f"127.0.0.1:{ports[roles[-1]]}")


def measured(
    side: Side,
    method: str,
    certificates: Path | None,
    calls: int,
    in_flight: int,
    *,
    typed: bool = False,
) -> dict[str, float]:
    """Has a client make so many calls, and looks what that costs on either end."""
    caller = "gateway" if method == "enqueue" else ""
    variables = environ(caller, certificates)
    proof = token(caller) if caller and certificates is None else ""
    command = [
        sys.executable,
        "-m",
        "bench.engine.load",
        side.address,
        method,
        str(calls),
        str(in_flight),
        proof,
    ]
    command += ["typed"] if typed else []
    before = side.cpu()
    done = subprocess.run(
        command, env={**os.environ, **variables}, capture_output=True, text=True, check=True
    )
    told: dict[str, float] = json.loads(done.stdout)
    return {
        "calls_per_s": told["calls_per_s"],
        "cpu_us_per_call": (side.cpu() - before) / told["calls"] * 1e6,
        "client_cpu_us_per_call": told["client_cpu_us_per_call"],
        "client_cpu_share": told["client_cpu_share"],
    }


@contextmanager
def carried_by(carrier: str) -> Iterator[None]:
    """Has all processes that are started meanwhile use one carrier."""
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
def crowd(certificates: Path | None, count: int) -> Iterator[Side]:
    """So many queues under the engine, which have nothing to do with each other."""
    ports = {f"queue-{number}": allocate_port() for number in range(count)}
    commands = {
        name: (
            ["runtime.serve", f"{DEPLOYMENT}.queue"],
            {"QUEUE_PORT": str(port), **environ("queue", certificates)},
        )
        for name, port in ports.items()
    }
    with processes(commands, ports) as started:
        yield Side(started, ",".join(f"127.0.0.1:{port}" for port in ports.values()))


@contextmanager
def processes(
    commands: Mapping[str, tuple[list[str], dict[str, str]]], ports: Mapping[str, int]
) -> Iterator[list[psutil.Process]]:
    """Start modules, by role, each with its arguments and variables, and waits until all of them listen."""
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
    """How a node proves itself: by a certificate of the folder, or by a token where there is none.

    Nobody in particular trusts the authority and shows nothing.
    """
    if certificates is None:
        digests = ",".join(
            f"{name}={hashlib.sha256(token(name).encode()).hexdigest()}"
            for name in ("gateway", "coordinator")
        )
        return {"CALLER_TOKEN": token(role), "ACCEPTED_TOKENS": digests}
    trusted = {"TLS_CA_FILE": str(certificates / "ca.crt")}
    if not role:
        return trusted
    own = {"TLS_CERT_FILE": f"{role}.crt", "TLS_KEY_FILE": f"{role}.key"}
    return trusted | {name: str(certificates / file) for name, file in own.items()}


def token(role: str) -> str:
    """What proves a role where there is no TLS."""
    return f"bench-token-of-{role}"
