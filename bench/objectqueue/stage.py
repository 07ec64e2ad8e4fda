"""A store, tasks in it, and one worker process: what every measurement of the object queue is made on."""

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
from runtime.embedded.seaweedfs import REGION, EmbeddedSeaweedfs
from runtime.node.assembly import Assembly
from runtime.node.systems import load_system
from runtime.stores.object_store import ObjectStore
from runtime.stores.s3.bucket.bucket_settings import set_up
from runtime.stores.s3.client.objects import Objects, Place
from runtime.world import RealWorld

BUCKET = "bench-queue"
_PATIENCE_S = 300.0
_TICKS = os.sysconf("SC_CLK_TCK")
_WORKER = "bench"


class Stage:
    """One server for the whole run; every measurement has a queue of its own in the same bucket."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._system = load_system("objectqueue")
        self.server = EmbeddedSeaweedfs(folder / "s3")

    async def __aenter__(self) -> Self:
        await asyncio.to_thread(self.server.start)
        os.environ.update(self.server.variables)
        self.objects = Objects(self.place())
        await set_up(self.objects, [TASK], {"QO_ALLOW_NO_VERSIONING": False, "QO_ARCHIVE_DAYS": None})
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.objects.close()
        await asyncio.to_thread(self.server.remove)

    def place(self, prefix: str = "") -> Place:
        return Place(bucket=BUCKET, endpoint=self.server.url, region=REGION, prefix=prefix)

    def settings(self, queue: str, **more: str) -> dict[str, str]:
        """The environment of whoever works on a queue."""
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
    async def tasks(self, queue: str, **more: str) -> AsyncIterator[tuple[ObjectStore[TaskRecord], Call]]:
        """The tasks of a queue, as a process has them that does everything."""
        design = self._system.deployments["local"]
        parts = Assembly(
            self._system,
            design,
            design.nodes["worker"],
            self.settings(queue, **more),
            RealWorld(),
            _nobody,
            stream=io.StringIO(),
        )
        try:
            store: ObjectStore[TaskRecord] = parts.stores.of(TASK, TaskRecord)
            yield store, Call(world=parts.world, log=parts.log, caller="client")
        finally:
            await parts.close()

    async def submit(self, queue: str, count: int) -> list[str]:
        """As many tasks that do nothing."""
        wanted = [wanted_task() for _ in range(count)]
        async with self.tasks(queue) as (tasks, call):
            made = await tasks.create_or_find_all(wanted, call)
            await tasks.drained()
        return [each[0].id for each in made if isinstance(each, tuple)]

    async def ends(self, queue: str, keys: Sequence[str]) -> list[datetime]:
        """When each task was completed, in order."""
        objects = Objects(self.place(f"{queue}/"))

        async def end(key: str) -> datetime:
            found = await objects.get(f"tasks/{key[0]}/{key}.json")
            assert found is not None
            return datetime.fromisoformat(json.loads(found.body)["completed_at"])

        try:
            return sorted(await in_turns(keys, end, 16))
        finally:
            await objects.close()

    @asynccontextmanager
    async def worker(self, queue: str, **more: str) -> AsyncIterator[subprocess.Popen[bytes]]:
        """One worker process, from its start to an orderly end."""
        settings = {**os.environ, **self.settings(queue, **more)}
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

    async def done(self, queue: str, count: int) -> None:
        """Wait until the worker says that it has completed so many."""
        objects, deadline = Objects(self.place(f"{queue}/")), time.monotonic() + _PATIENCE_S
        try:
            while True:
                found = await objects.get(f"workers/{_WORKER}.json")
                if found is not None and json.loads(found.body)["tasks_completed"] >= count:
                    return
                assert time.monotonic() < deadline, "the worker does not come to an end"
                await asyncio.sleep(0.3)
        finally:
            await objects.close()


def wanted_task() -> TaskRecord:
    """A task as it is submitted without saying much."""
    policy = RetryPolicy(
        initial_interval_ms=1000, max_interval_ms=60_000, multiplier=2.0, jitter_percent=0.25
    )
    return TaskRecord(
        id="", task_type="bench_noop", input="null", timeout_seconds=300, max_retries=3, retry_policy=policy
    )


async def in_turns(given: Sequence[Any], work: Any, at_once: int) -> list[Any]:
    """Do the same for all of some, so many at a time."""
    found: dict[int, Any] = {}
    waiting = iter(enumerate(given))

    async def some() -> None:
        for number, each in waiting:
            found[number] = await work(each)

    await asyncio.gather(*(some() for _ in islice(given, at_once)))
    return [found[number] for number in range(len(given))]


def cpu_s(pid: int | None) -> float:
    """Processor time of a process and of what it has started and waited for."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return sum(int(each) for each in fields[11:15]) / _TICKS


def _nobody(*_asked: object) -> Any:
    raise AssertionError("nothing is elsewhere")
