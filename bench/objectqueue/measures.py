"""What is measured: how long claims take, how many tasks a worker does, and what a look for one costs."""

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

from bench.objectqueue.stage import Stage, cpu_s, in_turns, wanted_task
from generated.objectqueue.system import SYSTEM
from runtime.stores.s3.client.objects import Objects
from tests.support.s3.proxy import S3Proxy

KINDS = {"ListObjectsV2": "LIST", "GetObject": "GET", "PutObject": "PUT", "DeleteObject": "DELETE"}
BODY = b"x" * 800
"""About as long as a task that says little."""
LOOKS = 6
"""A round of looks in mode hybrid: one of them is also at the last sweep, and at some tasks."""
SWEEPS = "QO_MONITOR_SWEEP_INTERVAL"
_AGE_S = 61.0
"""A sweep does not vouch for tasks that changed less than a minute before it."""
_numbers = itertools.count(1)


class Rate(NamedTuple):
    """How fast something was done, and what it cost the process that asked and the store."""

    per_s: float
    own_cpu_ms: float
    store_cpu_ms: float


def fresh() -> str:
    """The name of a queue that nobody has used."""
    return f"queue-{next(_numbers)}"


async def claims(stage: Stage, count: int) -> list[float]:
    """Seconds that each of some claims takes, one after the other; the lists between them are in it."""
    queue = fresh()
    await stage.submit(queue, count + 1)
    took = []
    async with stage.tasks(queue) as (tasks, call):
        taking = tasks.taking()
        call.caller = "worker"
        await taking.exchange("bench", (), 1, call)
        for _ in range(count):
            began = time.perf_counter()
            exchanged = await taking.exchange("bench", (), 1, call)
            took.append(time.perf_counter() - began)
            assert len(exchanged.taken) == 1
    return took


async def tasks_done(stage: Stage, count: int, at_once: int) -> Rate:
    """Tasks that do nothing, by one worker process, from the first end to the last."""
    queue = fresh()
    keys = await stage.submit(queue, count)
    store = cpu_s(stage.server.pid)
    async with stage.worker(queue, QO_CONCURRENCY=str(at_once)) as process:
        await stage.done(queue, count)
        own, store = cpu_s(process.pid), cpu_s(stage.server.pid) - store
    ends = await stage.ends(queue, keys)
    seconds = (ends[-1] - ends[0]).total_seconds()
    return Rate((count - 1) / seconds, own / count * 1000, store / count * 1000)


async def bare_puts(stage: Stage, count: int, at_once: int) -> Rate:
    """Objects that are written under a condition, by a client that does nothing else."""
    keys = [f"{fresh()}/tasks/{number % 16:x}/{number}.json" for number in range(count)]
    made = dict(zip(keys, await in_turns(keys, lambda key: stage.objects.create(key, BODY), 8), strict=True))
    own, store, began = time.process_time(), cpu_s(stage.server.pid), time.perf_counter()
    await in_turns(keys, lambda key: stage.objects.replace(key, BODY + b"y", made[key].etag), at_once)
    seconds = time.perf_counter() - began
    own, store = time.process_time() - own, cpu_s(stage.server.pid) - store
    return Rate(count / seconds, own / count * 1000, store / count * 1000)


async def same_by_hand(stage: Stage, count: int, at_once: int) -> Rate:
    """The requests of a task, as somebody would send them who knows beforehand how they all end."""
    root, minute = fresh(), f"{int(time.time()) // 60:010d}"
    keys = [f"{number % 16:x}/{number}" for number in range(count)]
    objects = stage.objects

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

    await in_turns(keys, prepare, 8)
    own, store, began = time.process_time(), cpu_s(stage.server.pid), time.perf_counter()
    await in_turns(keys, work, at_once)
    seconds = time.perf_counter() - began
    own, store = time.process_time() - own, cpu_s(stage.server.pid) - store
    return Rate(count / seconds, own / count * 1000, store / count * 1000)


async def requests_per_task(stage: Stage, count: int, mode: str) -> dict[str, float]:
    """What a worker asks of the store for one task, by kind, with all that it asks besides."""
    queue = fresh()
    await stage.submit(queue, count)
    with _proxied(stage) as proxy:
        settings = {"S3_ENDPOINT": proxy.url, "QO_CONCURRENCY": "8", "QO_INDEX_MODE": mode}
        async with stage.worker(queue, **settings):
            await stage.done(queue, count)
            seen = _counted(proxy, queue)
    return {kind: seen[kind] / count for kind in KINDS.values()}


async def idle_per_hour(stage: Stage, seconds: float, mode: str) -> dict[str, float]:
    """What a worker and its monitor ask in an idle hour, once they have settled, and for its sweeps."""
    queue = fresh()
    await stage.submit(queue, 1)
    with _proxied(stage) as proxy:
        # Its own sweeps are far apart, so that none falls into what is counted; one is counted by itself.
        settings = {
            "S3_ENDPOINT": proxy.url,
            "QO_INDEX_MODE": mode,
            "QO_NO_MONITOR": "false",
            SWEEPS: "86400",
        }
        async with stage.worker(queue, **settings):
            await stage.done(queue, 1)
            await _sweep(stage, queue)
            await asyncio.sleep(12)
            proxy.forget()
            await asyncio.sleep(seconds)
            seen = _counted(proxy, queue)
        proxy.forget()
        await _sweep(stage, queue, S3_ENDPOINT=proxy.url)
        swept = _counted(proxy, queue)
    sweeps = 3600 / float(SYSTEM.variables[SWEEPS].default or 0)
    return {kind: seen[kind] * 3600 / seconds + swept[kind] * sweeps for kind in KINDS.values()}


class Past:
    """A queue with so many tasks that have ended, and somebody who looks for one that has not."""

    def __init__(self, stage: Stage, finished: int) -> None:
        self._stage = stage
        self._finished = finished
        self._queue = fresh()
        self._filled_at = 0.0

    async def fill(self) -> None:
        """Write the tasks as if they had been done long ago."""
        objects = Objects(self._stage.place(f"{self._queue}/"))
        async with self._stage.tasks(self._queue) as (tasks, call):
            model, _ = await tasks.create_or_find(wanted_task(), call)
        found = await objects.get(f"tasks/{model.id[0]}/{model.id}.json")
        assert found is not None
        ended = json.loads(found.body)
        ended |= {"status": "Completed", "attempt": 1, "rev": 3, "completed_at": ended["updated_at"]}

        async def write(key: str) -> None:
            body = json.dumps({**ended, "id": key, "shard": key[0]}, separators=(",", ":")).encode()
            await objects.put(f"tasks/{key[0]}/{key}.json", body)

        await in_turns([str(uuid.uuid4()) for _ in range(self._finished - 1)], write, 32)
        await write(model.id)
        for entry in (await objects.page("ready/", most=10)).entries:
            await objects.delete(entry.key)
        await objects.close()
        self._filled_at = time.monotonic()

    async def sweep(self) -> None:
        """A monitor looks at all tasks once they are old enough, as it does in every running system."""
        await asyncio.sleep(max(0.0, self._filled_at + _AGE_S - time.monotonic()))
        await _sweep(self._stage, self._queue)

    async def poll(self, rounds: int, mode: str) -> tuple[float, float]:
        """Processor time of whoever looks and of the store, and requests, of one look at an empty queue."""
        with _proxied(self._stage) as proxy:
            through = {"S3_ENDPOINT": proxy.url, "QO_INDEX_MODE": mode}
            async with self._stage.tasks(self._queue, **through) as (tasks, call):
                call.caller, taking = "worker", tasks.taking()
                for _ in range(LOOKS):
                    await taking.exchange("bench", (), 1, call)
            requests = _counted(proxy, self._queue).total() / LOOKS
        async with self._stage.tasks(self._queue, QO_INDEX_MODE=mode) as (tasks, call):
            call.caller, taking = "worker", tasks.taking()
            await taking.exchange("bench", (), 1, call)
            cpu = time.process_time() + cpu_s(self._stage.server.pid)
            for _ in range(rounds * LOOKS):
                await taking.exchange("bench", (), 1, call)
            cpu = time.process_time() + cpu_s(self._stage.server.pid) - cpu
        return cpu / (rounds * LOOKS) * 1000, requests


async def _sweep(stage: Stage, queue: str, **settings: str) -> None:
    """Look at all tasks of a queue once, as a monitor."""
    async with stage.tasks(queue, **settings) as (tasks, call):
        call.caller = "monitor"
        while await tasks.repair(call):
            pass


@contextmanager
def _proxied(stage: Stage) -> Iterator[S3Proxy]:
    proxy = S3Proxy(stage.server.url, stage.server.access_key, stage.server.secret_key)
    proxy.start()
    try:
        yield proxy
    finally:
        proxy.stop()


def _counted(proxy: S3Proxy, queue: str) -> Counter[str]:
    """The requests for a queue; others in the bucket are nobody's business."""
    return Counter(
        KINDS[each.kind]
        for each in list(proxy.seen)
        if each.kind in KINDS and (each.key.startswith(queue) or queue in each.query.get("prefix", ""))
    )
