"""Test bed of the object queue's measurements: a store, tasks in it, and one worker process."""

from __future__ import annotations

import asyncio
import io
import json
import os
import re
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from datetime import datetime
from itertools import islice
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from generated.objectqueue.lifecycle import TASK
from generated.objectqueue.records import RetryPolicy, TaskRecord
from runtime.call import Call
from runtime.launch.embedded.seaweedfs import REGION, EmbeddedSeaweedfs
from runtime.node.assembly import Assembly
from runtime.node.systems import load_system
from runtime.stores.s3.bucket.bucket_settings import set_up
from runtime.stores.s3.client.objects import BucketLocation, Objects
from runtime.stores.s3.store import S3Store
from runtime.world import RealWorld

BUCKET = "bench-queue"
_TIMEOUT_S = 300.0
_TICKS = os.sysconf("SC_CLK_TCK")
_WORKER = "bench"


class QueueBench:
    """Test bed: one server for the whole run, and a queue in its bucket for every measurement."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._system = load_system("objectqueue")
        self.server = EmbeddedSeaweedfs(folder / "s3")

    async def __aenter__(self) -> Self:
        await asyncio.to_thread(self.server.start)
        os.environ.update(self.server.variables)
        self.objects = Objects(self.bucket())
        await set_up(self.objects, [TASK], {"QO_ALLOW_NO_VERSIONING": False, "QO_ARCHIVE_DAYS": None})
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.objects.close()
        await asyncio.to_thread(self.server.remove)

    def bucket(self, prefix: str = "") -> BucketLocation:
        return BucketLocation(bucket=BUCKET, endpoint=self.server.url, region=REGION, prefix=prefix)

    def make_settings(self, queue: str, **more: str) -> dict[str, str]:
        """Make the environment of a process that works on a queue."""
        return {
            **self.server.variables,
            "S3_ENDPOINT": self.server.url,
            "S3_BUCKET": BUCKET,
            "S3_REGION": REGION,
            "QO_QUEUE": queue,
            "QO_WORKER_ID": _WORKER,
            "QO_HANDLERS": "bench.objectqueue.functions",
            "QO_NO_MONITOR": "true",
            **more,
        }

    @asynccontextmanager
    async def open_tasks(self, queue: str, **more: str) -> AsyncIterator[tuple[S3Store[TaskRecord], Call]]:
        """Open the store of a queue's tasks, with all components in this process."""
        design = self._system.deployments["local"]
        parts = Assembly(
            self._system,
            design,
            design.nodes["worker"],
            self.make_settings(queue, **more),
            RealWorld(),
            _refuse_channel,
            stream=io.StringIO(),
        )
        try:
            store: S3Store[TaskRecord] = parts.stores.of(TASK, TaskRecord)
            yield store, Call(world=parts.world, log=parts.log, caller="client")
        finally:
            await parts.close()

    async def submit(self, queue: str, count: int) -> list[str]:
        """Submit that many tasks that do nothing; return their keys."""
        records = [create_task() for _ in range(count)]
        async with self.open_tasks(queue) as (tasks, call):
            created = await tasks.create_many(records, call)
            await tasks.drain_indexes()
        return [each.record.id for each in created]

    async def read_ends(self, queue: str, keys: Sequence[str]) -> list[datetime]:
        """Read when each task was completed, sorted."""
        objects = Objects(self.bucket(f"{queue}/"))

        async def end(key: str) -> datetime:
            results = await objects.get(f"tasks/{key[0]}/{key}.json")
            assert results is not None
            return datetime.fromisoformat(json.loads(results.body)["completed_at"])

        try:
            return sorted(await run_bounded(keys, end, 16))
        finally:
            await objects.close()

    @asynccontextmanager
    async def run_worker(self, queue: str, **more: str) -> AsyncIterator[subprocess.Popen[bytes]]:
        """Run one worker process, and stop it gracefully at the end."""
        settings = {**os.environ, **self.make_settings(queue, **more)}
        with (self._folder / f"{re.sub('[^a-z0-9]', '-', queue)}.log").open("ab") as log:
            process = subprocess.Popen(
                (sys.executable, "-m", "runtime.serve", "objectqueue.local.worker"),
                env=settings,
                stdout=log,
                stderr=subprocess.STDOUT,
            )
        try:
            yield process
        finally:
            process.terminate()
            await asyncio.to_thread(process.wait, 60)

    async def wait_for_completed(self, queue: str, count: int) -> None:
        """Wait until the worker reports that it has completed that many tasks."""
        objects, deadline = Objects(self.bucket(f"{queue}/")), time.monotonic() + _TIMEOUT_S
        try:
            while True:
                results = await objects.get(f"workers/{_WORKER}.json")
                if results is not None and json.loads(results.body)["tasks_completed"] >= count:
                    return
                assert time.monotonic() < deadline, "the worker does not complete its tasks in time"
                await asyncio.sleep(0.3)
        finally:
            await objects.close()


def create_task() -> TaskRecord:
    """Create a task with default settings."""
    policy = RetryPolicy(
        initial_interval_ms=1000, max_interval_ms=60_000, multiplier=2.0, jitter_percent=0.25
    )
    return TaskRecord(
        id="", task_type="bench_noop", input="null", timeout_seconds=300, max_retries=3, retry_policy=policy
    )


async def run_bounded(items: Sequence[Any], work: Any, at_once: int) -> list[Any]:
    """Run the same work for every item, with so many at a time; return the results in order."""
    results: dict[int, Any] = {}
    waiting = iter(enumerate(items))

    async def run_some() -> None:
        for number, each in waiting:
            results[number] = await work(each)

    await asyncio.gather(*(run_some() for _ in islice(items, at_once)))
    return [results[number] for number in range(len(items))]


def read_cpu_s(pid: int | None) -> float:
    """Read the CPU seconds of a process and of the children that it has waited for."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return sum(int(each) for each in fields[11:15]) / _TICKS


def _refuse_channel(*_asked: object) -> Any:
    raise AssertionError("all components are in this process")
