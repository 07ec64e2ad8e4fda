"""Measures of the object queue: latency of claims, rate of tasks, requests, and cost of a poll."""

from __future__ import annotations

import asyncio
import itertools
import json
import time
import uuid
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

from bench.objectqueue.queue_bench import QueueBench, create_task, read_cpu_s, run_bounded
from generated.objectqueue.system import SYSTEM
from runtime.stores.s3.client.objects import Objects
from tests.support.s3.proxy import S3Proxy

KINDS = {"ListObjectsV2": "LIST", "GetObject": "GET", "PutObject": "PUT", "DeleteObject": "DELETE"}
BODY = b"x" * 800
"""About the size of a small task."""
POLLS = 6
"""A round of polls in mode hybrid: one of them also reads the last sweep, and some tasks."""
SWEEPS = "QO_MONITOR_SWEEP_INTERVAL"
_AGE_S = 61.0
"""A sweep does not cover tasks that changed less than a minute before it."""
_numbers = itertools.count(1)


class TaskRate(NamedTuple):
    """A rate per second, and the CPU time of the client process and of the store for each task."""

    per_s: float
    own_cpu_ms: float
    store_cpu_ms: float


def new_queue_name() -> str:
    """Create the name of a queue that is not in use."""
    return f"queue-{next(_numbers)}"


async def measure_claims(bench: QueueBench, count: int) -> list[float]:
    """Measure the seconds of each claim, one after the other, with the LIST requests between them."""
    queue = new_queue_name()
    await bench.submit(queue, count + 1)
    took = []
    async with bench.open_tasks(queue) as (tasks, call):
        call.caller = "worker"
        await tasks.claim("bench", 1, call)
        for _ in range(count):
            began = time.perf_counter()
            claimed = await tasks.claim("bench", 1, call)
            took.append(time.perf_counter() - began)
            assert len(claimed) == 1
    return took


async def measure_tasks(bench: QueueBench, count: int, at_once: int) -> TaskRate:
    """Measure a worker process with tasks that do nothing, from the first end to the last."""
    queue = new_queue_name()
    keys = await bench.submit(queue, count)
    store = read_cpu_s(bench.server.pid)
    async with bench.run_worker(queue, QO_CONCURRENCY=str(at_once)) as process:
        await bench.wait_for_completed(queue, count)
        own, store = read_cpu_s(process.pid), read_cpu_s(bench.server.pid) - store
    ends = await bench.read_ends(queue, keys)
    seconds = (ends[-1] - ends[0]).total_seconds()
    return TaskRate((count - 1) / seconds, own / count * 1000, store / count * 1000)


async def measure_bare_puts(bench: QueueBench, count: int, at_once: int) -> TaskRate:
    """Measure conditional writes by a client that does nothing else."""
    keys = [f"{new_queue_name()}/tasks/{number % 16:x}/{number}.json" for number in range(count)]
    created = dict(
        zip(keys, await run_bounded(keys, lambda key: bench.objects.create(key, BODY), 8), strict=True)
    )
    own, store, began = time.process_time(), read_cpu_s(bench.server.pid), time.perf_counter()
    await run_bounded(keys, lambda key: bench.objects.replace(key, BODY + b"y", created[key].etag), at_once)
    seconds = time.perf_counter() - began
    own, store = time.process_time() - own, read_cpu_s(bench.server.pid) - store
    return TaskRate(count / seconds, own / count * 1000, store / count * 1000)


async def measure_by_hand(bench: QueueBench, count: int, at_once: int) -> TaskRate:
    """Measure the requests of a task as a client sends them that knows all answers beforehand."""
    root, minute = new_queue_name(), f"{int(time.time()) // 60:010d}"
    keys = [f"{number % 16:x}/{number}" for number in range(count)]
    objects = bench.objects

    async def prepare(key: str) -> None:
        await objects.create(f"{root}/tasks/{key}.json", BODY)
        await objects.put(f"{root}/ready/{minute}/{key}", b"{}")

    async def work(key: str) -> None:
        task = f"{root}/tasks/{key}.json"
        found = await objects.get(task)
        assert found is not None
        running = await objects.replace(task, BODY + b"y", found.etag)
        await asyncio.gather(
            objects.delete(f"{root}/ready/{minute}/{key}"),
            objects.replace(task, BODY + b"z", running.etag),
        )

    await run_bounded(keys, prepare, 8)
    own, store, began = time.process_time(), read_cpu_s(bench.server.pid), time.perf_counter()
    await run_bounded(keys, work, at_once)
    seconds = time.perf_counter() - began
    own, store = time.process_time() - own, read_cpu_s(bench.server.pid) - store
    return TaskRate(count / seconds, own / count * 1000, store / count * 1000)


async def count_requests_per_task(bench: QueueBench, count: int, mode: str) -> dict[str, float]:
    """Count a worker's requests to the store for one task, by kind, with those that it sends besides."""
    queue = new_queue_name()
    await bench.submit(queue, count)
    with _start_proxy(bench) as proxy:
        settings = {"S3_ENDPOINT": proxy.url, "QO_CONCURRENCY": "8", "QO_INDEX_MODE": mode}
        async with bench.run_worker(queue, **settings):
            await bench.wait_for_completed(queue, count)
            seen = _count_requests(proxy, queue)
    return {kind: seen[kind] / count for kind in KINDS.values()}


async def count_idle_requests(bench: QueueBench, seconds: float, mode: str) -> dict[str, float]:
    """Count the requests of an idle hour of a worker and its monitor, with those of its sweeps."""
    queue = new_queue_name()
    await bench.submit(queue, 1)
    with _start_proxy(bench) as proxy:
        # Its own sweeps are far apart, so that none is in the counted time; one is counted by itself.
        settings = {
            "S3_ENDPOINT": proxy.url,
            "QO_INDEX_MODE": mode,
            "QO_NO_MONITOR": "false",
            SWEEPS: "86400",
        }
        async with bench.run_worker(queue, **settings):
            await bench.wait_for_completed(queue, 1)
            await _sweep(bench, queue)
            await asyncio.sleep(12)
            proxy.forget()
            await asyncio.sleep(seconds)
            seen = _count_requests(proxy, queue)
        proxy.forget()
        await _sweep(bench, queue, S3_ENDPOINT=proxy.url)
        swept = _count_requests(proxy, queue)
    sweeps = 3600 / float(SYSTEM.variables[SWEEPS].default or 0)
    return {kind: seen[kind] * 3600 / seconds + swept[kind] * sweeps for kind in KINDS.values()}


class FinishedTasks:
    """A queue with that many finished tasks and no other, to poll."""

    def __init__(self, bench: QueueBench, finished: int) -> None:
        self._bench = bench
        self._finished = finished
        self._queue = new_queue_name()
        self._filled_at = 0.0

    async def fill(self) -> None:
        """Write the tasks as finished long ago."""
        objects = Objects(self._bench.bucket(f"{self._queue}/"))
        async with self._bench.open_tasks(self._queue) as (tasks, call):
            model = (await tasks.create(create_task(), call)).record
        found = await objects.get(f"tasks/{model.id[0]}/{model.id}.json")
        assert found is not None
        ended = json.loads(found.body)
        ended |= {"status": "Completed", "attempt": 1, "rev": 3, "completed_at": ended["updated_at"]}

        async def write(key: str) -> None:
            body = json.dumps({**ended, "id": key, "shard": key[0]}, separators=(",", ":")).encode()
            await objects.put(f"tasks/{key[0]}/{key}.json", body)

        await run_bounded([str(uuid.uuid4()) for _ in range(self._finished - 1)], write, 32)
        await write(model.id)
        for entry in (await objects.page("ready/", most=10)).entries:
            await objects.delete(entry.key)
        await objects.close()
        self._filled_at = time.monotonic()

    async def sweep(self) -> None:
        """Sweep all tasks as a monitor once they are old enough, as in every running system."""
        await asyncio.sleep(max(0.0, self._filled_at + _AGE_S - time.monotonic()))
        await _sweep(self._bench, self._queue)

    async def poll(self, rounds: int, mode: str) -> tuple[float, float]:
        """Measure one poll of the empty queue: CPU time of the client and the store, and requests."""
        with _start_proxy(self._bench) as proxy:
            through = {"S3_ENDPOINT": proxy.url, "QO_INDEX_MODE": mode}
            async with self._bench.open_tasks(self._queue, **through) as (tasks, call):
                call.caller = "worker"
                for _ in range(POLLS):
                    await tasks.claim("bench", 1, call)
            requests = _count_requests(proxy, self._queue).total() / POLLS
        async with self._bench.open_tasks(self._queue, QO_INDEX_MODE=mode) as (tasks, call):
            call.caller = "worker"
            await tasks.claim("bench", 1, call)
            cpu = time.process_time() + read_cpu_s(self._bench.server.pid)
            for _ in range(rounds * POLLS):
                await tasks.claim("bench", 1, call)
            cpu = time.process_time() + read_cpu_s(self._bench.server.pid) - cpu
        return cpu / (rounds * POLLS) * 1000, requests


async def _sweep(bench: QueueBench, queue: str, **settings: str) -> None:
    """Sweep all tasks of a queue once, as a monitor."""
    async with bench.open_tasks(queue, **settings) as (tasks, call):
        call.caller = "monitor"
        while await tasks.repair(call):
            pass


@contextmanager
def _start_proxy(bench: QueueBench) -> Iterator[S3Proxy]:
    proxy = S3Proxy(bench.server.url, bench.server.access_key, bench.server.secret_key)
    proxy.start()
    try:
        yield proxy
    finally:
        proxy.stop()


def _count_requests(proxy: S3Proxy, queue: str) -> Counter[str]:
    """Count the requests for a queue, without those for others in the bucket."""
    return Counter(
        KINDS[each.kind]
        for each in list(proxy.seen)
        if each.kind in KINDS and (each.key.startswith(queue) or queue in each.query.get("prefix", ""))
    )
