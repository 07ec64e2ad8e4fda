"""Stores over a real bucket, of a system that is kept in one."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Collection, Sequence
from typing import Any

from runtime.call import Call
from runtime.node.settings import read
from runtime.node.systems import load_system
from runtime.observe.log import Log
from runtime.observe.metrics import Metrics
from runtime.stores.contract import LeaseProof, LeaseSettlement, Transitioned
from runtime.stores.layouts.s3 import KeptInS3
from runtime.stores.s3.client.objects import Objects
from runtime.stores.s3.store import S3Store
from runtime.stores.store import NoSuchEntity
from runtime.world import RealWorld
from tests.runtime.hand_world import Lines
from tests.support.s3.fixtures import Bucket


class TestWorld(RealWorld):
    """The world as it is, but with a clock that can be moved and a chance that can be written down."""

    __test__ = False

    def __init__(self) -> None:
        self.ahead_ms = 0
        self.stands_at_ms: int | None = None
        """Where the clock stands while nobody moves it, if it does."""
        self.slept: list[float] = []
        self.chance: float | None = None

    def now_ms(self) -> int:
        return (super().now_ms() if self.stands_at_ms is None else self.stands_at_ms) + self.ahead_ms

    def uniform(self, low: float, high: float) -> float:
        return RealWorld.uniform(low, high) if self.chance is None else low + (high - low) * self.chance

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        await asyncio.sleep(min(seconds, 0.02))


class OtherTime(Objects):
    """A client for tests that let time pass: the clock of the server goes with that of the test."""

    ignores_clock = True

    @property
    def clock_offset_s(self) -> float | None:
        return None if self.ignores_clock else super().clock_offset_s


async def ask(objects: Objects, kind: str) -> object:
    """One request of a kind that may be repeated."""
    if kind == "GetObject":
        return await objects.get("there")
    if kind == "PutObject":
        return await objects.put("new", b"1")
    if kind == "DeleteObject":
        return await objects.delete("there")
    if kind == "ListObjectsV2":
        return await objects.page("", most=5)
    return [each async for each in objects.versions("there")]


def proof(record: Any) -> LeaseProof:
    """The proof of the lease that a task has."""
    return LeaseProof(record.worker_id, record.attempt)


class Process:
    """One process that uses the bucket: its stores, its clock and its log."""

    def __init__(self, bucket: Bucket, **values: Any) -> None:
        self.system = load_system("objectqueue")
        self.bucket = bucket
        self.world = TestWorld()
        self.lines = Lines()
        self.log = Log("test", "DEBUG", self.world, self.lines)
        self.objects = OtherTime(bucket.location)
        known = [
            each
            for each in self.system.variables.values()
            if each.type in ("int", "number", "choice", "bool")
        ]
        self.values = {**read(known, (), {}, {}), **values}
        self.tasks: S3Store[Any] = self.store("task")
        self.tasks._context.indexes.log = self.log
        self.task = self.system.lifecycles["task"]
        self._narrowed: dict[str, tuple[Sequence[str], Collection[str] | None]] = {}
        self.states = {name: number for number, name in self.task.states.items()}

    def store(self, entity: str) -> S3Store[Any]:
        lifecycle = self.system.lifecycles[entity]
        assert lifecycle.record is not None
        return S3Store(
            self.system, lifecycle, lifecycle.record, self.objects, self.world, Metrics(), self.values
        )

    async def close(self) -> None:
        await self.tasks.drain_indexes()
        await self.objects.close()

    def call(self, actor: str = "client") -> Call:
        return Call(world=self.world, log=self.log, caller=actor)

    def new(self, **fields: Any) -> Any:
        assert self.task.record is not None
        given = {
            "id": "",
            "task_type": "echo",
            "input": "1",
            "timeout_seconds": 300,
            "max_retries": 3,
            "retry_policy": self.policy(),
        }
        return self.task.record(**{**given, **fields})

    def policy(self, **fields: Any) -> Any:
        usual = {
            "initial_interval_ms": 1000,
            "max_interval_ms": 60000,
            "multiplier": 2.0,
            "jitter_percent": 0.25,
        }
        return self.task.require_storage(KeptInS3).messages["RetryPolicy"].made(**{**usual, **fields})

    async def submit(self, **fields: Any) -> Any:
        made = (await self.tasks.create(self.new(**fields), self.call())).record
        await self.tasks.drain_indexes()
        return made

    def narrow(self, owner: str, *, shards: Sequence[str] = (), kinds: Collection[str] | None = None) -> None:
        """Lets an owner claim of some shards and kinds only."""
        self._narrowed[owner] = (shards, kinds)

    async def take(self, owner: str = "w1", free: int = 1) -> list[Any]:
        """Claims once; the indexes say so when it returns."""
        shards, kinds = self._narrowed.get(owner, ((), None))
        claimed: list[Any] = []
        for where in [{"shard": each} for each in shards] or [{}]:
            left = free - len(claimed)
            claimed += await self.tasks.claim(
                owner, left, self.call("worker"), where=where, capabilities=kinds
            )
        await self.tasks.drain_indexes()
        return claimed

    async def renew(self, record: Any) -> bool:
        """Renews a lease; whether it goes on."""
        return (await self.tasks.renew([(record.id, proof(record))]))[0] is not None

    async def move(self, key: str, source: str, target: str, actor: str = "client", **given: Any) -> Any:
        """Takes the edge between two states."""
        edge = self.tasks.edge_between(self.states[source], self.states[target], self.call(actor))
        return await self.tasks.transition(key, edge.name, self.call(actor), given=given)

    async def move_to(self, key: str, target: str, actor: str = "client", **given: Any) -> Any:
        """Takes the edge from the state that a task is in, if there is one."""
        found = await self.tasks.get(key)
        if found is None:
            raise NoSuchEntity(key)
        if (found.status, self.states[target]) not in self.task.edges:
            return Transitioned(False, found.status)
        return await self.move(key, self.task.states[found.status], target, actor, **given)

    async def create(self, record: Any) -> tuple[Any, bool]:
        """Creates a task or finds it; whether it is new."""
        return (await self.tasks.create(record, self.call()))[:2]

    async def advance(self, record: Any, **given: Any) -> Any:
        """Writes how far the owner of a lease is."""
        return await self.tasks.transition(
            record.id, "advance", self.call("worker"), lease=proof(record), given=given
        )

    async def sweep(self, edge: str = "retry") -> int:
        """Does all that is due by an edge."""
        swept = 0
        while moved := await self.tasks.run_due(edge, self.call("monitor")):
            swept += moved
        await self.tasks.drain_indexes()
        return swept

    async def repair(self) -> int:
        """Puts all indexes in order."""
        repaired = 0
        while some := await self.tasks.repair(self.call("monitor")):
            repaired += some
        await self.tasks.drain_indexes()
        return repaired

    async def settle(self, record: Any, edge: str, **given: Any) -> Any:
        """Leaves a lease by the name of an edge; the state, or why not."""
        final = bool(given.pop("final", False))
        asked = LeaseSettlement(record.id, proof(record), edge, given, final)
        outcome = (await self.tasks.settle_many([asked], self.call("worker")))[0]
        await self.tasks.drain_indexes()
        return outcome

    def raw(self, key: str) -> dict[str, Any]:
        """An object as a stranger sees it."""
        body = self.bucket.raw.get_object(Bucket=self.bucket.name, Key=key)["Body"].read()
        found: dict[str, Any] = json.loads(body)
        return found

    def raw_task(self, record: Any) -> dict[str, Any]:
        return self.raw(f"tasks/{record.shard}/{record.id}.json")

    def raw_versions(self, record: Any) -> list[dict[str, Any]]:
        """Everything that a task has been, oldest first."""
        key = f"tasks/{record.shard}/{record.id}.json"
        raw = self.bucket.raw
        found = raw.list_object_versions(Bucket=self.bucket.name, Prefix=key)["Versions"]
        bodies = [
            raw.get_object(Bucket=self.bucket.name, Key=key, VersionId=each["VersionId"])["Body"].read()
            for each in reversed(found)
        ]
        return [json.loads(each) for each in bodies]

    def raw_delete(self, key: str) -> None:
        self.bucket.raw.delete_object(Bucket=self.bucket.name, Key=key)

    def raw_put(self, key: str, body: bytes) -> None:
        self.bucket.raw.put_object(Bucket=self.bucket.name, Key=key, Body=body)

    def keys(self, prefix: str) -> list[str]:
        return self.bucket.keys(prefix)
