"""The processes of an orchestrator on a real PostgreSQL, and helpers to call them."""

from __future__ import annotations

import json
import os
import socket
import uuid
from collections.abc import Mapping
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import httpx

from generated.orchestrator.system import SYSTEM
from tests.support import eventually, forked_nodes
from tests.support.orchestrator.sql_session import Sql
from tests.support.plain_http import NO_TLS

wait_until = eventually.wait_until
PATIENCE = 90.0
"""How long a test waits for an event. Nothing is asserted about how long it took."""
_LOOPBACK = "127.0.0.1"
SERVE = "runtime.serve"
PATIENT = "tests.support.orchestrator.patient_node"
"""The same for nodes that log nothing of an outage, and so of no busy machine either."""

SHORT = {
    "CREATED_GRACE_SECONDS": "0.5",
    "CREATED_SWEEP_SECONDS": "0.1",
    "WORKER_CONCURRENCY": "4",
    "POLL_INTERVAL_MS": "50",
    "LEASE_SECONDS": "30",
    "LEASE_RENEW_SECONDS": "5",
    "BACKOFF_BASE_SECONDS": "0.05",
    "BACKOFF_MAX_SECONDS": "0.2",
    "REAPER_INTERVAL_SECONDS": "0.1",
    "SCHEDULER_INTERVAL_SECONDS": "0.05",
    "SHUTDOWN_GRACE_SECONDS": "2",
}
"""Settings under which everything that is due happens soon. No worker is lost here, however busy it is."""


def new_key(name: str = "key") -> str:
    """An idempotency key that no other test uses."""
    return f"{name}-{uuid.uuid4()}"


class Node:
    """One process of a deployment. It can be started again after it was stopped or killed, on the same ports.

    `program` stands in place of `runtime.serve`, for a test whose node has job functions of its own.
    """

    system = SYSTEM

    def __init__(
        self,
        name: str,
        database: str,
        logs: Path,
        settings: Mapping[str, str] | None = None,
        *,
        deployment: str = "local",
        program: str = SERVE,
    ) -> None:
        self.name = name
        self.database = database
        self._table = self.system.deployments[deployment].nodes[name]
        self._program = program
        self._node = f"{self.system.name}.{deployment}.{name}"
        self._reserved: list[socket.socket] = []
        self._process: forked_nodes.Process | None = None
        logs.mkdir(parents=True, exist_ok=True)
        unique = uuid.uuid4().hex[:8]
        self.log = logs / f"{name}-{unique}.jsonl"
        self.errors = logs / f"{name}-{unique}.stderr"
        assert self._table.http is not None
        variables = [each for each in (self._table.http.port_variable, self._table.port_variable) if each]
        ports = {variable: str(self._free_port()) for variable in variables}
        self.url = f"http://{_LOOPBACK}:{ports[self._table.http.port_variable]}"
        self.address = f"{_LOOPBACK}:{ports.get(self._table.port_variable or '', '')}"
        """The address of its gRPC port, if it has one."""
        clean = {name: value for name, value in os.environ.items() if name not in self.system.variables}
        self._environment = {**clean, "DATABASE_URL": database, **ports, **(settings or {})}
        self.http = httpx.Client(base_url=self.url, timeout=PATIENCE, verify=NO_TLS)

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    @property
    def running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def begin(self) -> Self:
        """Start it and do not wait for it."""
        self._process = forked_nodes.start(
            self.system.name, self._program, [self._node], self._environment, self.log, self.errors
        )
        return self

    def start(self) -> Self:
        """Start it and wait until it is ready."""
        self.begin()
        self.wait()
        return self

    def wait(self) -> None:
        """Wait until it is ready; fail with the reason if it ended."""
        wait_until(self._is_ready_or_ended, f"{self.name} is ready")
        assert self.running, self.errors.read_text()[-2000:] + self.log.read_text()[-2000:]

    def stop(self) -> int:
        """Ask it to end and wait for it; return its exit code."""
        assert self._process is not None
        self._process.terminate()
        return self._process.wait(PATIENCE)

    def kill(self) -> None:
        """Kill it as a crash would."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    def signal(self, number: int) -> None:
        """Send it a signal, such as SIGSTOP."""
        os.kill(self.pid, number)

    def discard(self) -> None:
        """Kill it for good and release its ports."""
        self.kill()
        self.http.close()
        while self._reserved:
            self._reserved.pop().close()

    def lines(self) -> list[dict[str, Any]]:
        """Its log so far. The last line may be half written."""
        found = []
        for line in self.log.read_bytes().split(b"\n")[:-1]:
            found.append(json.loads(line))
        return found

    def _is_ready_or_ended(self) -> bool:
        if not self.running:
            return True
        # A connection of its own: one that is kept may be that of a process that has ended.
        connection = HTTPConnection(self.url.removeprefix("http://"), timeout=PATIENCE)
        try:
            connection.request("GET", "/readyz")
            return connection.getresponse().status == 200
        except (OSError, HTTPException):
            return False
        finally:
            connection.close()

    def _free_port(self) -> int:
        """A port that no other process gets while it is reserved, and that the node can bind all the same."""
        holder = socket.socket()
        holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        holder.bind((_LOOPBACK, 0))
        self._reserved.append(holder)
        port: int = holder.getsockname()[1]
        return port


class Stack:
    """One database with processes around it, or what a deployment with other settings has in its place."""

    def __init__(self, database: str, logs: Path, deployment: str = "local", **settings: str) -> None:
        self.database = database
        self.sql = Sql(database)
        self._logs = logs
        self._deployment = deployment
        self._settings = settings
        self.nodes: list[Node] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for node in self.nodes:
            node.discard()
        self.sql.close()

    def node(self, name: str, /, *, deployment: str = "", program: str = PATIENT, **settings: str) -> Node:
        """A node with short intervals, not started yet."""
        deployment = deployment or self._deployment
        table = SYSTEM.deployments[deployment].nodes[name]
        short = {key: value for key, value in SHORT.items() if key in table.variables}
        node = Node(
            name,
            self.database,
            self._logs,
            {**short, **self._settings, **settings},
            deployment=deployment,
            program=program,
        )
        self.nodes.append(node)
        return node

    def add(self, name: str, /, *, deployment: str = "", program: str = PATIENT, **settings: str) -> Node:
        """A node that is ready."""
        return self.node(name, deployment=deployment, program=program, **settings).start()

    @property
    def api(self) -> Node:
        """The first API."""
        return next(node for node in self.nodes if node.name == "api")

    @property
    def worker(self) -> Node:
        """The first worker."""
        return next(node for node in self.nodes if node.name == "worker")


def submit(
    http: httpx.Client,
    job_type: str = "echo",
    payload: object = None,
    key: str | None = None,
    **more: object,
) -> str:
    """Submit a job and return its id."""
    answer = post(http, job_type, {} if payload is None else payload, key or new_key(), **more)
    assert answer.status_code == 202, answer.text
    return str(answer.json()["jobId"])


def post(
    http: httpx.Client, job_type: object, payload: object, key: object, **more: object
) -> httpx.Response:
    """Submit a job in any shape, and return the whole answer."""
    body = {"jobType": job_type, "payload": payload, "idempotencyKey": key, **more}
    return http.post("/jobs", json=body)


def get(http: httpx.Client, job_id: str) -> dict[str, Any]:
    """A job as clients see it."""
    answer = http.get(f"/jobs/{job_id}")
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


def status(http: httpx.Client, job_id: str) -> str:
    """The status of a job as clients see it."""
    return str(get(http, job_id)["status"])


def wait_until_final(http: httpx.Client, job_id: str) -> str:
    """The status of a job when it has ended."""
    return wait_until(
        lambda: status(http, job_id), f"job {job_id} has ended", lambda seen: seen in ("COMPLETED", "FAILED")
    )
