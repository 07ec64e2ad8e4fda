"""Containers of a generated compose file: start, inspect, kill and remove them."""

from __future__ import annotations

import json
import os
import secrets
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from rich.console import Console

from codegen.emit.deploy.servers import SERVERS
from runtime.model.system import Deployment, System

COMPOSE = "compose.yaml"
TIMEOUT_S = 120

_KILL = (
    "import os, pathlib\n"
    "for each in pathlib.Path('/proc').glob('[0-9]*'):\n"
    "    words = (each / 'cmdline').read_bytes().split(b'\\0')\n"
    "    if b'runtime.serve' in words and int(each.name) != 1: os.kill(int(each.name), 9)\n"
)
"""Runs inside a container, which lacks this project's scripts."""


class CommandResult(NamedTuple):
    """Exit code and output of a command."""

    code: int
    out: str
    err: str


class Stack:
    """One deployment of a system in containers."""

    def __init__(
        self,
        system: System,
        deployment: Deployment,
        console: Console,
        certificates: Path,
        files: Sequence[str] = (COMPOSE,),
    ) -> None:
        self.system = system
        self.deployment = deployment
        self.console = console
        self.certificates = certificates
        used = [SERVERS[each] for each in deployment.servers]
        self.server_secrets = {
            name: secrets.token_hex(16) for each in used for name in (each.user, *each.passwords) if name
        }
        """Random user names and passwords of the servers in the compose file."""
        folder = Path("generated", system.name, "deploy", deployment.name)
        self._compose = [
            "docker",
            "compose",
            *(part for each in files for part in ("-f", str(folder / each))),
        ]

    def up(self) -> None:
        """Start everything and wait for every healthcheck."""
        self.print_line("building and starting; waiting for every healthcheck")
        self.run("up", "--detach", "--build", "--wait")
        for each in self.list_containers():
            self.print_line(f"  {each['Service']}: {each['Health'] or each['State']}")

    def down(self) -> None:
        """Remove everything."""
        self.run("down", "--volumes", "--timeout", "10", check=False)
        self.print_line("all down")

    def kill(self, service: str) -> None:
        """Kill the process of a node within its container, and wait for its restart."""
        before = self.read_start_time(service)
        self.print_line(f"kill -9 of {service}")
        self.run("exec", "-T", service, "python", "-c", _KILL, check=False)
        self.wait_until(
            lambda: self.read_start_time(service) != before and self.read_health(service) == "healthy",
            lambda: f"{service} did not come back: {self.read_health(service)}",
        )
        self.print_line(f"{service} is back and healthy")

    def wait_until(self, is_true: Callable[[], bool], describe_failure: Callable[[], str]) -> None:
        """Wait for a condition; exit with a message if it does not become true in time."""
        deadline = time.monotonic() + TIMEOUT_S
        while not is_true():
            if time.monotonic() > deadline:
                raise SystemExit(describe_failure())
            time.sleep(1)

    def list_services(self, node: str) -> list[str]:
        """List the containers of a node."""
        count = self.deployment.nodes[node].replicas
        return [node] if count == 1 else [f"{node}-{index}" for index in range(count)]

    def list_published_ports(self, container_port: str, service: str | None = None) -> list[int]:
        """List the published ports of a container port, of all containers or of one service."""
        ports = [
            (each["Service"], publisher["PublishedPort"])
            for each in self.list_containers()
            for publisher in each["Publishers"] or ()
            if publisher["PublishedPort"] and str(publisher["TargetPort"]) == container_port
        ]
        return [port for name, port in sorted(set(ports)) if service in (None, name)]

    def read_health(self, service: str) -> str:
        return next(
            (str(each["Health"]) for each in self.list_containers() if each["Service"] == service), "gone"
        )

    def read_start_time(self, service: str) -> str:
        identifier = self.run("ps", "--all", "--quiet", service).strip()
        command = ["docker", "inspect", "--format", "{{.State.StartedAt}}", identifier]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout

    def list_containers(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.run("ps", "--all", "--format", "json").splitlines()]

    def run(self, *arguments: str, check: bool = True) -> str:
        """Run a command of compose; return its output, or exit if it fails."""
        done = self.try_run(*arguments)
        if check and done.code != 0:
            logs = self.run("logs", "--tail", "20", check=False) if arguments[0] == "up" else ""
            raise SystemExit(
                f"docker compose {arguments[0]} failed:\n{done.out[-2000:]}{done.err[-4000:]}{logs}"
            )
        return done.out

    def try_run(self, *arguments: str, changes: Mapping[str, str] | None = None) -> CommandResult:
        """Run a command of compose that may fail, with some changed variables."""
        done = subprocess.run(
            [*self._compose, *arguments],
            env={**self.environ, **(changes or {})},
            capture_output=True,
            text=True,
            check=False,
        )
        return CommandResult(done.returncode, done.stdout, done.stderr)

    @property
    def environ(self) -> dict[str, str]:
        """The variables of compose: those of this process, with random passwords for the servers."""
        return {**os.environ, **self.server_secrets, "CERTS_DIR": str(self.certificates)}

    def print_line(self, text: str) -> None:
        self.console.print(text, markup=False, highlight=False)
