"""A stream as scripts fill it, the tables it ends up in, and writers between them."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Iterable
from typing import Any

import asyncpg
from redis.asyncio import Redis

from generated.priority.lifecycle import TASK
from generated.priority.records import TaskRecord
from generated.priority.system import SYSTEM
from runtime.call import Call
from runtime.observe.log import Log
from runtime.observe.metrics import Metrics
from runtime.stores.history import HistoryReader, HistoryWriter
from runtime.stores.postgres import Database
from runtime.world import RealWorld
from tests.runtime.hand_world import Lines
from tests.support.eventually import eventually

WORLD = RealWorld()
PREFIX = "{kit}:"
STREAM = f"{PREFIX}history:outbox"
PATH = ("queued", "executing", "queued", "executing", "completed")
"""A life with a retry."""


class Kit:
    """One Redis and one database, both for this test alone."""

    def __init__(self, redis_url: str, database_url: str) -> None:
        self.redis: Redis = Redis.from_url(redis_url, decode_responses=True)
        self.redis_url = redis_url
        self.database_url = database_url
        self.lines = Lines()
        self.log = Log("test", "DEBUG", WORLD, self.lines)
        self.metrics = Metrics()
        self.database = Database(database_url)
        self.reader = HistoryReader(SYSTEM.name, TASK, TaskRecord, self.database)
        self._stops: list[tuple[asyncio.Event, asyncio.Task[None]]] = []
        self._clients: list[Redis] = []

    def writer(self, **values: Any) -> HistoryWriter:
        """A further copy; it does nothing by itself."""
        client = self.writer_client()
        settings = {"REDIS_KEY_PREFIX": PREFIX, "HISTORY_RETENTION_SECONDS": 0, **values}
        return HistoryWriter(SYSTEM, TASK, client, self.database, self.metrics, settings)

    def writer_client(self) -> Redis:
        """A client as writers have it."""
        client: Redis = Redis.from_url(self.redis_url)
        self._clients.append(client)
        return client

    @property
    def call(self) -> Call:
        return Call(world=WORLD, log=self.log, caller="historian")

    def begin(self, writer: HistoryWriter | None = None) -> asyncio.Task[None]:
        """Lets a copy run until the end of the test."""
        stop = asyncio.Event()
        task = asyncio.create_task((writer or self.writer()).run(self.call, stop))
        self._stops.append((stop, task))
        return task

    async def stop_all(self) -> None:
        """Stops every copy in order."""
        for stop, _ in self._stops:
            stop.set()
        await asyncio.gather(*(task for _, task in self._stops), return_exceptions=True)
        self._stops = []

    async def close(self) -> None:
        await self.stop_all()
        for client in (*self._clients, self.redis):
            await client.aclose()
        await self.database.close()
        await asyncio.sleep(0)

    async def live(self, key: str, path: Iterable[str] = PATH, **record: str) -> None:
        """Appends what scripts append in the life of one task."""
        before, pipeline = "", self.redis.pipeline(transaction=False)
        for sequence, state in enumerate(path, 1):
            pipeline.xadd(STREAM, entry(key, sequence, before, state, **record))
            before = state
        await pipeline.execute()

    async def rows(self, text: str, *arguments: Any) -> list[Any]:
        """What a person finds in the database; nothing where the tables are not there yet."""
        connection: asyncpg.Connection[Any] = await asyncpg.connect(self.database_url)
        try:
            return await connection.fetch(text, *arguments)
        except asyncpg.UndefinedTableError:
            return []
        finally:
            await connection.close()

    async def emptied(self, seconds: float = 60.0) -> None:
        """Waits until everything was taken out of the stream."""
        await eventually(
            lambda: self.redis.xlen(STREAM), "the stream is empty", lambda left: not left, patience=seconds
        )


def entry(key: str, sequence: int, before: str, state: str, **record: str) -> dict[Any, Any]:
    """One change as the script writes it."""
    now = str(int(time.time() * 1e6))
    found = {
        "entity": "task",
        "key": key,
        "sequence": str(sequence),
        "to": state,
        "at": now,
        "actor": "worker",
    }
    if before:
        found |= {"from": before, "owner": "w-1", "fence": str(sequence // 2), "reason": "timeout"}
    found["trace"] = f"trace of {key}"
    if state in ("completed", "failed", "cancelled", "dead_letter"):
        fields = {**stored(key, state, now), "changes": str(sequence), **record}
        found["record"] = json.dumps([part for pair in fields.items() for part in pair])
    return found


def together(*entries: dict[Any, Any]) -> dict[Any, Any]:
    """Changes of one kind, as a script that makes them writes them."""
    first = entries[0]
    shared = {name: first[name] for name in ("entity", "from", "to", "at", "actor") if name in first}
    columns = [name for name in first if name not in shared]
    rows = [
        [json.loads(each[name]) if name == "record" else each[name] for name in columns] for each in entries
    ]
    return {**shared, "columns": json.dumps(columns), "rows": json.dumps(rows)}


def stored(key: str, state: str, now: str) -> dict[str, str]:
    """The hash of a task that ended."""
    return {
        "task_id": key, "task_type": "report", "priority": "low", "effective_priority": "high",
        "parameters": '{"n": 1.0, "deep": {"a": [1e400, null, "\\u0000"]}}',
        "required_capabilities": '["gpu","ssd"]', "status": state, "retry_count": "1", "max_retries": "2",
        "timeout_seconds": "900", "base_timeout_seconds": "600", "created_at": "1700000000123456",
        "queued_at": "1700000000123456", "updated_at": now, "completed_at": now, "attempt": "2",
        "assigned_worker_id": "w-1", "result": '{"ok": true}', "retriable": "true",
        "trace_id": f"trace of {key}",
    }  # fmt: skip
