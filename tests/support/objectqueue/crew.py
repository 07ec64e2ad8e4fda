"""Workers on a real bucket: in the process of the test, or as processes that a test may kill."""

from __future__ import annotations

import asyncio
import io
import json
import os
import re
import signal
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Self, TypeVar

from generated.objectqueue.lifecycle import TASK
from generated.objectqueue.records import RetryPolicy, TaskRecord
from runtime.call import Call
from runtime.node.assembly import Assembly
from runtime.node.node import Node
from runtime.node.systems import load_system
from runtime.stores.s3.store import S3Store
from runtime.world import RealWorld
from tests.support import forked_nodes
from tests.support.eventually import eventually
from tests.support.log_events import read_events
from tests.support.s3.fixtures import Bucket

MODULE = "tests.support.objectqueue.functions"
SYSTEM = load_system("objectqueue")
QUICK = RetryPolicy(initial_interval_ms=1, max_interval_ms=1, multiplier=1.0, jitter_percent=0.0)
ENDED = ("Completed", "Failed")
PATIENCE_S = 90.0
Seen = TypeVar("Seen")


class Skewed(RealWorld):
    """A machine whose clock is wrong by so many seconds."""

    def __init__(self, ahead_s: float) -> None:
        self.ahead_s = ahead_s

    def now_ms(self) -> int:
        return super().now_ms() + round(self.ahead_s * 1000)


class Hurried(RealWorld):
    """A world in which no pause is long; they are recorded."""

    def __init__(self) -> None:
        self.slept: list[float] = []

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        await asyncio.sleep(min(seconds, 0.02))


def parse_time(text: str) -> datetime:
    """A time as an object has it."""
    return datetime.fromisoformat(text).astimezone(UTC)


class LocalNode:
    """A worker, or a monitor, in the process of the test."""

    def __init__(self, node: Node, log: io.StringIO) -> None:
        self.node = node
        self._log = log

    def text(self) -> str:
        """Its whole log."""
        return self._log.getvalue()

    def events(self, name: str) -> list[dict[str, Any]]:
        """The lines of an event."""
        lines = [json.loads(line) for line in self._log.getvalue().splitlines() if line.startswith("{")]
        return [line for line in lines if line.get("event") == name]


class Process:
    """A node as a process."""

    def __init__(self, log: Path, node: str, settings: Mapping[str, str]) -> None:
        self._log = log
        self._start = log.stat().st_size if log.exists() else 0
        self.process = forked_nodes.start(
            SYSTEM.name, "runtime.serve", [f"objectqueue.local.{node}"], {**os.environ, **settings}, log, log
        )

    def events(self, name: str) -> list[dict[str, Any]]:
        """The lines of an event."""
        return read_events(self._log, self._start, name)

    def text(self) -> str:
        """Its whole log."""
        return self._log.read_text()

    async def wait_until_ready(self) -> Self:
        await eventually(lambda: self.events("worker_started") or self.process.poll() is not None)
        assert self.process.poll() is None, self._log.read_text()
        return self

    def signal(self, number: int) -> None:
        self.process.send_signal(number)

    async def wait_for_exit(self) -> int:
        """Wait until it has ended; return its exit code."""
        await eventually(lambda: self.process.poll() is not None)
        return self.process.wait()

    def kill(self) -> None:
        self.process.kill()
        self.process.wait(60)


class Crew:
    """A bucket, tasks in it, and the nodes that work on them."""

    def __init__(self, bucket: Bucket, folder: Path) -> None:
        self.bucket = bucket
        self._folder = folder
        self._processes: list[Process] = []
        self.settings = {
            **bucket.variables,
            "QO_HANDLERS": MODULE,
            "QO_NO_MONITOR": "true",
            "QO_MONITOR_GRACE": "0",
            "QO_MAX_CLOCK_SKEW_MS": "1500",
        }
        self.world = RealWorld()
        """The world of the submitting client."""
        self._desk: Assembly | None = None

    # Tasks.

    @property
    def tasks(self) -> S3Store[TaskRecord]:
        """The store of a submitting client."""
        if self._desk is None:
            design = SYSTEM.deployments["local"]

            def refuse(*_arguments: object) -> Any:
                raise AssertionError("nothing is elsewhere")

            self._desk = Assembly(
                SYSTEM, design, design.nodes["desk"], self.settings, self.world, refuse, stream=io.StringIO()
            )
        store: S3Store[TaskRecord] = self._desk.stores.of(TASK, TaskRecord)
        return store

    def call(self, caller: str = "client") -> Call:
        assert self._desk is not None
        return Call(world=self._desk.world, log=self._desk.log, caller=caller)

    async def submit(self, task_type: str, input_: Any = None, **more: Any) -> str:
        """Submit a task; retries come at once unless the test says otherwise."""
        wanted = TaskRecord(
            **{
                "id": "",
                "task_type": task_type,
                "input": json.dumps(input_),
                "timeout_seconds": 60,
                "max_retries": 3,
                "retry_policy": QUICK,
                **more,
            }
        )
        tasks = self.tasks
        created = await tasks.create(wanted, self.call())
        await tasks.drain_indexes()
        return created.record.id

    async def submit_all(self, task_type: str, count: int, input_: Any = None, **more: Any) -> list[str]:
        wanted = [
            TaskRecord(
                **{
                    "id": "",
                    "task_type": task_type,
                    "input": json.dumps(input_),
                    "timeout_seconds": 60,
                    "max_retries": 3,
                    "retry_policy": QUICK,
                    **more,
                }
            )
            for _ in range(count)
        ]
        tasks = self.tasks
        created = await tasks.create_many(wanted, self.call())
        await tasks.drain_indexes()
        return [each.record.id for each in created]

    def task(self, key: str) -> dict[str, Any]:
        """A task as it is in the bucket."""
        return self.object(f"tasks/{key[0]}/{key}.json")

    def object(self, key: str) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.bucket.read(key))
        return found

    def worker_object(self, name: str) -> dict[str, Any] | None:
        """The heartbeat object of a worker."""
        try:
            return self.object(f"workers/{name}.json")
        except FileNotFoundError:
            return None

    def put_object(self, key: str, body: bytes | str) -> None:
        self.bucket.write(key, body.encode() if isinstance(body, str) else body)

    def versions(self, key: str) -> list[dict[str, Any]]:
        """All versions of a task, oldest first."""
        name = f"tasks/{key[0]}/{key}.json"
        pages = self.bucket.raw.get_paginator("list_object_versions").paginate(
            Bucket=self.bucket.name, Prefix=name
        )
        found = [each for page in pages for each in page.get("Versions", ()) if each["Key"] == name]
        read = [json.loads(self.bucket.read(name, each["VersionId"])) for each in found]
        return sorted(read, key=lambda each: int(each["rev"]))

    async def wait_for_state(self, key: str, *states: str, s: float = PATIENCE_S) -> dict[str, Any]:
        """A task once it is in one of some states."""
        return await eventually(
            lambda: self.task(key), wanted=lambda task: task["status"] in states, patience=s
        )

    async def wait_until_ended(self, key: str, s: float = PATIENCE_S) -> dict[str, Any]:
        return await self.wait_for_state(key, *ENDED, s=s)

    def hints(self, index: str) -> list[str]:
        """The ids that an index has an entry of."""
        return [key.rpartition("/")[2] for key in self.bucket.keys(f"{index}/")]

    async def wait_for_hint(self, key: str) -> None:
        """Wait until the index has a new task, which is written in the background.

        A worker may find a task without it; an entry that came after the run would then stay for a repair.
        """
        await eventually(lambda: key in self.hints("ready"))

    # Nodes.

    @asynccontextmanager
    async def node(
        self, name: str, settings: Mapping[str, str], world: Any = None
    ) -> AsyncIterator[LocalNode]:
        log = io.StringIO()
        node = Node(SYSTEM, "local", name, {**self.settings, **settings}, world or RealWorld(), stream=log)
        await node.start()
        try:
            yield LocalNode(node, log)
        finally:
            await node.stop()

    @asynccontextmanager
    async def worker(self, name: str = "w", world: Any = None, **settings: str) -> AsyncIterator[LocalNode]:
        """A worker in this process."""
        async with self.node("worker", {"QO_WORKER_ID": name, **settings}, world) as works:
            await eventually(lambda: works.events("worker_started"))
            yield works

    @asynccontextmanager
    async def monitor(self, world: Any = None, **settings: str) -> AsyncIterator[LocalNode]:
        """A monitor in this process."""
        quick = {"QO_MONITOR_CHECK_INTERVAL": "0.1", "QO_MONITOR_SWEEP_INTERVAL": "0.3"}
        async with self.node("monitor", {**quick, **settings}, world) as works:
            yield works

    def process(self, name: str, node: str = "worker", **settings: str) -> Process:
        """A worker as a process; it is killed when the test ends."""
        log = self._folder / f"{re.sub('[^a-z0-9]', '-', name)}.log"
        process = Process(log, node, {**self.settings, "QO_WORKER_ID": name, **settings})
        self._processes.append(process)
        return process

    async def close(self) -> None:
        for each in self._processes:
            each.signal(signal.SIGCONT)
            each.kill()
        if self._desk is not None:
            await self._desk.close()
