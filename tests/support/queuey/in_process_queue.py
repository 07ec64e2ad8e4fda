"""A queue inside the test's own process, on a real file and a real port, with a clock that a test can set."""

from __future__ import annotations

import io
import json
import sqlite3
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any, Self
from unittest.mock import patch

import httpx

from generated.queuey.system import SYSTEM
from runtime.node.node import Node
from runtime.stores.redis import RedisStore
from runtime.stores.redis import engine as redis_engine
from runtime.world import RealWorld
from tests.support.eventually import eventually
from tests.support.plain_http import NO_TLS

FIELDS = {
    "job_id",
    "binary_addr",
    "input_addr",
    "created_at",
    "updated_at",
    "completed_at",
    "status",
    "run_attempts",
    "runner_id",
    "output_addr",
}
"""All public fields of a job."""


class SteppedWorld(RealWorld):
    """The real world with a wall clock that a test can freeze and step."""

    def __init__(self) -> None:
        self.at_ms: int | None = None

    def now_ms(self) -> int:
        return super().now_ms() if self.at_ms is None else self.at_ms

    def freeze(self) -> int:
        """Stop the clock; return its time."""
        self.at_ms = super().now_ms()
        return self.at_ms

    def step(self, milliseconds: int) -> None:
        """Step a frozen clock forward."""
        assert self.at_ms is not None
        self.at_ms += milliseconds


class House:
    """One queue, its file and its clock."""

    def __init__(self, path: Path, deployment: str = "local", /, **settings: str) -> None:
        self.path = path
        self.deployment = deployment
        self.world = SteppedWorld()
        self.log = io.StringIO()
        # No periodic work runs unless a test enables it.
        self._settings = {
            "DB_PATH": str(path),
            "SWEEP_INTERVAL": "3600",
            "MDNS_ENABLED": "false",
            "LOG_LEVEL": "DEBUG",
            **settings,
        }
        self._node: Node | None = None
        self._client: httpx.AsyncClient | None = None
        self.port = self.grpc_port = 0

    async def __aenter__(self) -> Self:
        await self.open()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def open(self, **settings: str) -> None:
        """Start the queue."""
        self._settings.update(settings)
        # The server of another engine has a clock of its own, which no test could step.
        stepped = partial(RedisStore, clock=lambda: self.world.now_ms() * 1000)
        with patch.object(redis_engine, "RedisStore", stepped):
            self._node = Node(SYSTEM, self.deployment, "queue", self._settings, self.world, self.log)
        await self._node.start(port=0, http_port=0)
        self.port = self._node.http_port or 0
        self.grpc_port = self._node.port or 0
        limits = httpx.Limits(max_connections=200, max_keepalive_connections=200)
        self._client = httpx.AsyncClient(
            base_url=f"http://127.0.0.1:{self.port}", timeout=30, limits=limits, verify=NO_TLS
        )

    async def close(self) -> None:
        """Stop it in order."""
        if self._client is not None:
            await self._client.aclose()
        if self._node is not None:
            await self._node.stop()
        self._node = self._client = None

    async def ask(self, method: str, path: str, body: Any = None, **more: Any) -> httpx.Response:
        """Make any request."""
        assert self._client is not None
        if body is not None:
            more["json"] = body
        return await self._client.request(method, path, **more)

    async def create(self, **fields: Any) -> dict[str, Any]:
        return _ok(await self.ask("POST", "/jobs/create", {"binary_addr": "binary", **fields}))

    async def get(self, job_id: str) -> dict[str, Any]:
        return _ok(await self.ask("GET", f"/jobs/{job_id}"))

    async def claim(self, runner_id: str = "runner") -> dict[str, Any] | None:
        answer = await self.ask("POST", "/jobs/claim", {"runner_id": runner_id})
        return None if answer.status_code == 204 else _ok(answer)

    async def tickle(self, job_id: str, **fields: Any) -> httpx.Response:
        return await self.ask("POST", f"/jobs/{job_id}/tickle", fields or None)

    async def complete(self, job_id: str, status: str = "completed", **fields: Any) -> httpx.Response:
        if status == "completed":
            fields.setdefault("output_addr", "output")
        return await self.ask("POST", f"/jobs/{job_id}/complete", {"status": status, **fields})

    async def create_active(self, runner_id: str = "runner") -> dict[str, Any]:
        """Create a job and claim it. There must be no older one."""
        await self.create()
        job = await self.claim(runner_id)
        assert job is not None
        return job

    async def create_in_status(self, status: str) -> dict[str, Any]:
        """Create a job in a status. There must be none that waits."""
        if status == "pending":
            return await self.create()
        job = await self.create_active()
        if status != "active":
            assert (await self.complete(job["job_id"], status)).status_code == 200
        return await self.get(job["job_id"])

    def rows(self) -> list[tuple[Any, ...]]:
        """The whole table, as another process sees it."""
        with sqlite3.connect(self.path) as connection:
            found = connection.execute("SELECT * FROM jobs ORDER BY number").fetchall()
        connection.close()
        return found

    def sql(self, statement: str, *arguments: Any) -> list[Any]:
        """Run a statement on the file, as an operator would."""
        connection = sqlite3.connect(self.path, isolation_level=None)
        try:
            return connection.execute(statement, arguments).fetchall()
        finally:
            connection.close()

    async def sweep(self) -> None:
        """Let the queue sweep for abandoned jobs now, by starting it anew with a short interval."""
        await self.close()
        before = len(self.lines())
        await self.open(SWEEP_INTERVAL="0.05")
        await eventually(lambda: "sweep" in [line["event"] for line in self.lines()[before:]])

    def lines(self) -> list[dict[str, Any]]:
        """Its log."""
        return [json.loads(line) for line in self.log.getvalue().splitlines()]


def _ok(answer: httpx.Response) -> dict[str, Any]:
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found
