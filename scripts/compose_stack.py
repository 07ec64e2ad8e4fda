"""The containers of a generated compose file: started, looked at, killed and taken away."""

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
PATIENCE_S = 120

_KILL = (
    "import os, pathlib\n"
    "for each in pathlib.Path('/proc').glob('[0-9]*'):\n"
    "    words = (each / 'cmdline').read_bytes().split(b'\\0')\n"
    "    if b'runtime.serve' in words and int(each.name) != 1: os.kill(int(each.name), 9)\n"
)
"""Runs inside a container, where this project's scripts are not."""


class Done(NamedTuple):
    """How a command ended and what it said."""

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
        self.made_up = {
            name: secrets.token_hex(16) for each in used for name in (each.user, *each.passwords) if name
        }
        """Names and passwords of the servers that come along."""
        folder = Path("generated", system.name, "deploy", deployment.name)
        self._compose = [
            "docker",
            "compose",
            *(part for each in files for part in ("-f", str(folder / each))),
        ]

    def up(self) -> None:
        """Start everything and wait for every healthcheck."""
        self.say("building and starting; waiting for every healthcheck")
        self.run("up", "--detach", "--build", "--wait")
        for each in self.containers():
            self.say(f"  {each['Service']}: {each['Health'] or each['State']}")

    def down(self) -> None:
        """Take everything away."""
        self.run("down", "--volumes", "--timeout", "10", check=False)
        self.say("all down")

    def kill(self, service: str) -> None:
        """Kill the process of a node within its container, and sees it come back."""
        before = self.started(service)
        self.say(f"kill -9 of {service}")
        self.run("exec", "-T", service, "python", "-c", _KILL, check=False)
        self.wait_until(
            lambda: self.started(service) != before and self.health(service) == "healthy",
            lambda: f"{service} did not come back: {self.health(service)}",
        )
        self.say(f"{service} is back and healthy")

    def wait_until(self, holds: Callable[[], bool], otherwise: Callable[[], str]) -> None:
        """Wait for something, and ends all with a reason where it does not happen."""
        deadline = time.monotonic() + PATIENCE_S
        while not holds():
            if time.monotonic() > deadline:
                raise SystemExit(otherwise())
            time.sleep(1)

    def services(self, node: str) -> list[str]:
        """The containers of a node."""
        count = self.deployment.nodes[node].replicas
        return [node] if count == 1 else [f"{node}-{place}" for place in range(count)]

    def published(self, inside: str, service: str | None = None) -> list[int]:
        """The ports outside behind which containers, or one of them, listen on a port inside."""
        ports = [
            (each["Service"], published["PublishedPort"])
            for each in self.containers()
            for published in each["Publishers"] or ()
            if published["PublishedPort"] and str(published["TargetPort"]) == inside
        ]
        return [port for name, port in sorted(set(ports)) if service in (None, name)]

    def health(self, service: str) -> str:
        return next((str(each["Health"]) for each in self.containers() if each["Service"] == service), "gone")

    def started(self, service: str) -> str:
        identifier = self.run("ps", "--all", "--quiet", service).strip()
        command = ["docker", "inspect", "--format", "{{.State.StartedAt}}", identifier]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout

    def containers(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.run("ps", "--all", "--format", "json").splitlines()]

    def run(self, *arguments: str, check: bool = True) -> str:
        """What a command of compose printed."""
        done = self.tried(*arguments)
        if check and done.code != 0:
            logs = self.run("logs", "--tail", "20", check=False) if arguments[0] == "up" else ""
            raise SystemExit(
                f"docker compose {arguments[0]} failed:\n{done.out[-2000:]}{done.err[-4000:]}{logs}"
            )
        return done.out

    def tried(self, *arguments: str, changes: Mapping[str, str] | None = None) -> Done:
        """A command of compose, which may fail; with some variables that differ from those of all others."""
        done = subprocess.run(
            [*self._compose, *arguments],
            env={**self.environ, **(changes or {})},
            capture_output=True,
            text=True,
            check=False,
        )
        return Done(done.returncode, done.stdout, done.stderr)

    @property
    def environ(self) -> dict[str, str]:
        """What compose is told: the variables here, but for the keys, which open nothing else."""
        return {**os.environ, **self.made_up, "CERTS_DIR": str(self.certificates)}

    def say(self, text: str) -> None:
        self.console.print(text, markup=False, highlight=False)
