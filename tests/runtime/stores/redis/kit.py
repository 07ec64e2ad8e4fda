"""Stores over a real Redis, of a system whose entities have everything: leases, parts, clocks, history."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import redis.asyncio

from generated.priority.lifecycle import TASK, WORKER
from generated.priority.messages import (
    ACTIVE,
    COMPLETED,
    DEAD,
    DEAD_LETTER,
    EXECUTING,
    FAILED,
    HIGH,
    LOW,
    MEDIUM,
    QUEUED,
)
from generated.priority.records import TaskRecord, WorkerRecord
from generated.priority.system import SYSTEM
from runtime.call import Call
from runtime.node.settings import read
from runtime.observe.log import Log
from runtime.observe.metrics import Metrics
from runtime.stores.contract import DELETION, NOTHING, CreateResult, LeaseProof, LeaseSettlement, Transitioned
from runtime.stores.history.entries import split_changes
from runtime.stores.layouts.redis import KeptInRedis
from runtime.stores.redis import RedisClient, RedisStore
from runtime.stores.redis.codec import compute_signature, unpack_fields
from runtime.world import RealWorld
from tests.runtime.hand_world import Lines

WORLD = RealWorld()
PRIORITIES: dict[int, str] = {HIGH: "high", MEDIUM: "medium", LOW: "low"}
WORDS = TASK.require_storage(KeptInRedis).words["status"]
STATES = {number: word for number, word in WORDS.items() if number}
NUMBERS = [each for each in SYSTEM.variables.values() if each.type in ("int", "number")]
VALUES: dict[str, Any] = read(NUMBERS, (), {}, {})


class Kit:
    """Two stores as a process has them, a client that knows nothing of them, and what happened in the log."""

    def __init__(self, url: str, values: Mapping[str, Any] | None = None, level: str = "DEBUG") -> None:
        self.url = url
        self.lines = Lines()
        self.log = Log("test", level, WORLD, self.lines)
        self.metrics = Metrics()
        self.waiting = 0
        """How many claims wait."""
        self.values = {**VALUES, "REDIS_KEY_PREFIX": "", **(values or {})}
        self.prefix: str = self.values["REDIS_KEY_PREFIX"]
        self.server = RedisClient(url, name="test")
        self.tasks: RedisStore[TaskRecord] = RedisStore(
            SYSTEM, TASK, TaskRecord, self.server, WORLD, self.metrics, self.values
        )
        self.workers: RedisStore[WorkerRecord] = RedisStore(
            SYSTEM, WORKER, WorkerRecord, self.server, WORLD, self.metrics, self.values
        )
        # The library's own types know of answers that a client which decodes texts never gives.
        self.redis: Any = redis.asyncio.Redis.from_url(url, decode_responses=True)

    async def open(self) -> Kit:
        await self.tasks.open(self.log)
        await self.workers.open(self.log)
        return self

    async def close(self) -> None:
        await self.tasks.close()
        await self.workers.close()
        await self.server.close()
        await self.redis.aclose()

    def call(self, actor: str) -> Call:
        return Call(world=WORLD, log=self.log, caller=actor)

    def intent(self, **fields: Any) -> TaskRecord:
        given = {
            "task_type": "echo",
            "parameters": "{}",
            "priority": MEDIUM,
            "trace_id": WORLD.new_id(),
            **fields,
        }
        return TaskRecord(task_id=given.pop("task_id", None) or WORLD.new_id(), **given)

    async def create(self, *records: TaskRecord) -> list[CreateResult[TaskRecord]]:
        return await self.tasks.create_many(records, self.call("client"))

    async def add(self, **fields: Any) -> TaskRecord:
        """A task that waits."""
        (made,) = await self.create(self.intent(**fields))
        return made.record

    async def worker(self, capacity: int = 100, *offers: str) -> str:
        """A worker that is active."""
        record = WorkerRecord(worker_id=WORLD.new_id(), capacity=capacity, capabilities=offers)
        return (await self.workers.create(record, self.call("worker"))).record.worker_id

    async def claim(
        self, worker: str, most: int = 100, *, wait_s: float = 0.0, offers: Collection[str] | None = None
    ) -> list[TaskRecord]:
        """What a worker is given, if need be after a wait."""
        call, until = self.call("worker"), WORLD.monotonic() + wait_s
        while True:
            if found := await self.tasks.claim(worker, most, call, capabilities=offers):
                return found
            if (left := until - WORLD.monotonic()) <= 0:
                return []
            self.waiting += 1
            try:
                await self.tasks.wait(left)
            finally:
                self.waiting -= 1

    async def held_by(self, worker: str) -> set[str]:
        page = await self.tasks.find(states=[EXECUTING], equal={"assigned_worker_id": worker}, size=1000)
        return {each.task_id for each in page.records}

    async def cancel(self, key: str) -> Transitioned:
        """Cancels a task that waits or runs."""
        call = self.call("client")
        done = await self.tasks.transition(key, "cancel", call)
        return done if done.state != EXECUTING else await self.tasks.transition(key, "abort", call)

    async def replay(self, key: str) -> Transitioned:
        return await self.tasks.transition(key, "replay", self.call("admin"))

    async def running(self, worker: str | None = None, **fields: Any) -> TaskRecord:
        """A task that a worker runs; nothing else may wait."""
        made = await self.add(**fields)
        (task,) = await self.claim(worker or await self.worker())
        assert task.task_id == made.task_id
        return task

    async def settle(self, task: TaskRecord, target: int = COMPLETED, **given: str) -> Any:
        """What came of a result that the holder of a task reports."""
        held = LeaseProof(task.assigned_worker_id or "", task.attempt)
        (outcome,) = await self.tasks.settle_many(
            [settlement(task.task_id, target, held, given)], self.call("worker")
        )
        return outcome

    async def fail(self, task: TaskRecord, reason: str = "reported") -> Any:
        return await self.settle(task, QUEUED, error="it broke", retriable="true", reason=reason)

    async def task(self, key: str) -> TaskRecord:
        found = await self.tasks.get(key)
        assert found is not None
        return found

    async def hash(self, key: str) -> dict[str, str]:
        """A task as Redis has it, with what it was created with among its fields."""
        return dict(unpack_fields(await self.redis.hgetall(f"{self.prefix}tasks:{key}")))

    async def now(self) -> int:
        seconds, fraction = await self.redis.time()
        return int(seconds) * 1_000_000 + int(fraction)

    async def back_date(self, key: str, seconds: float) -> None:
        """Lets a task look as if it had waited for so long, in its hash and in every queue that it is in."""
        await self.back_date_all([key], seconds)

    async def back_date_all(self, keys: Sequence[str], seconds: float) -> None:
        """The same for many, each a microsecond younger than the one before."""
        at = await self.now() - int(seconds * 1e6)
        rows = await asyncio.gather(*(self.tasks.get(key) for key in keys))
        pipeline = self.redis.pipeline(transaction=False)
        for place, (key, row) in enumerate(zip(keys, rows, strict=True)):
            assert row is not None
            pipeline.hset(f"{self.prefix}tasks:{key}", mapping={"queued_at": at + place})
            word, mark = PRIORITIES[row.effective_priority], compute_signature(row.required_capabilities)
            for name in (f"queue:{word}", f"queue:{word}:cap:{mark}"):
                pipeline.zadd(self.prefix + name, {key: at + place}, xx=True)
        await pipeline.execute()

    async def sweep(self, change: Any, due: Any = None) -> int:
        """Everything that is due; how many were changed."""
        changed, by = 0, (due or change.dues[0]).by
        is_of_worker = change in (*WORKER.edges.values(), *WORKER.updates.values())
        store: RedisStore[Any] = self.workers if is_of_worker else self.tasks
        name = DELETION if change is None else change.name
        while batch := await store.run_due(name, self.call(by)):
            changed += batch
        return changed

    async def queues(self) -> dict[str, list[str]]:
        """What is in each queue, oldest first."""
        return {
            word: await self.redis.zrange(f"{self.prefix}queue:{word}", 0, -1) for word in PRIORITIES.values()
        }

    async def outbox(self, key: str | None = None) -> list[dict[str, str]]:
        """What was written for the history."""
        entries = await self.redis.xrange(f"{self.prefix}history:outbox")
        changes = [each for _, fields in entries for each in told_apart(fields)]
        return [fields for fields in changes if key is None or fields["key"] == key]

    async def sound(self) -> None:
        """Every index agrees with every hash, to the last entry."""
        await check_indexes(self)


def settlement(
    key: str, target: int, lease: LeaseProof, given: Mapping[str, str] = NOTHING, edge: str = ""
) -> LeaseSettlement:
    """That a run has come to a state, by the edge that leads there unless another one is named."""
    edges: dict[int, str] = {
        COMPLETED: "complete",
        FAILED: "fail",
        QUEUED: "retry",
        DEAD_LETTER: "bury",
    }
    return LeaseSettlement(key, lease, edge or edges[target], given)


def told_apart(fields: dict[str, str]) -> list[dict[str, str]]:
    """The changes of one entry, as the writer of the history splits them."""
    changes = split_changes({name.encode(): text.encode() for name, text in fields.items()})
    return [{name.decode(): text.decode() for name, text in each.items()} for each in changes]


async def check_indexes(kit: Kit) -> None:
    """Compares all indexes with what the hashes say they must hold."""
    wanted: dict[str, dict[str, float]] = {}
    booked: dict[str, set[str]] = {}
    known: dict[str, str] = {}
    keys = [key async for key in kit.redis.scan_iter(f"{kit.prefix}tasks:*", count=10_000)]
    hashes = [key for key in keys if not key.removeprefix(kit.prefix).startswith("tasks:status:")]
    pipeline = kit.redis.pipeline(transaction=False)
    for key in hashes:
        pipeline.hgetall(key)
    for row in map(unpack_fields, await pipeline.execute()):
        key, status = row["task_id"], row["status"]
        wanted.setdefault(f"tasks:status:{status}", {})[key] = float(row["updated_at"])
        if status == "queued" and "available_at" not in row:
            level, mark = (
                row["effective_priority"],
                compute_signature(json.loads(row["required_capabilities"])),
            )
            wanted.setdefault(f"queue:{level}", {})[key] = float(row["queued_at"])
            wanted.setdefault(f"queue:{level}:cap:{mark}", {})[key] = float(row["queued_at"])
            known[mark] = row["required_capabilities"]
        elif status == "queued":
            wanted.setdefault("queue:delayed", {})[key] = float(row["available_at"])
        elif status == "executing":
            wanted.setdefault("executing:deadlines", {})[key] = float(row["deadline_at"])
            booked.setdefault(f"worker_tasks:{row['assigned_worker_id']}", set()).add(key)
        elif status == "dead_letter":
            wanted.setdefault("queue:dlq", {})[key] = float(row["completed_at"])
    found: dict[str, dict[str, float]] = {}
    sets: dict[str, set[str]] = {}
    async for key in kit.redis.scan_iter(f"{kit.prefix}*", count=10_000):
        name = key.removeprefix(kit.prefix)
        if name.startswith(("queue:", "executing:", "tasks:status:")) and await kit.redis.type(key) == "zset":
            found[name] = dict(await kit.redis.zrange(key, 0, -1, withscores=True))
        elif name.startswith("worker_tasks:"):
            sets[name] = await kit.redis.smembers(key)
    assert found == wanted
    assert sets == booked
    there = await kit.redis.hgetall(f"{kit.prefix}queue:capabilities")
    assert {mark: set(json.loads(there[mark])) for mark in known} == {
        mark: set(json.loads(texts)) for mark, texts in known.items()
    }


async def gathered(*work: Any) -> list[Any]:
    """All of it at once; failures are among the outcomes."""
    return list(await asyncio.gather(*work, return_exceptions=True))


__all__ = ["ACTIVE", "DEAD", "EXECUTING", "Kit", "check_indexes", "gathered"]
