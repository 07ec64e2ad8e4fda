"""Data of the release before the contract: it is read, and all of it goes on where it was."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from generated.priority.lifecycle import TASK_RELEASE, TASK_RETRY
from generated.priority.messages import (
    CANCELLED,
    COMPLETED,
    DEAD,
    DEAD_LETTER,
    DRAINING,
    EXECUTING,
    FAILED,
    HIGH,
    LOW,
    MEDIUM,
    QUEUED,
)
from tests.runtime.stores.redis.kit import Kit

RELEASE = json.loads((Path(__file__).parent / "data/release.json").read_text(encoding="utf-8"))
NAMES: dict[str, str] = RELEASE["names"]


async def restore(kit: Kit) -> None:
    """Writes what that release has left behind."""
    for key, entry in RELEASE["keys"].items():
        kind, value = entry["type"], entry["value"]
        if kind == "hash":
            await kit.redis.hset(key, mapping=value)
        elif kind == "zset":
            await kit.redis.zadd(key, dict(value))
        elif kind == "set":
            await kit.redis.sadd(key, *value)
        elif kind == "stream":
            for fields in value:
                await kit.redis.xadd(key, fields)
        else:
            await kit.redis.set(key, value)
        if entry["expires"]:
            await kit.redis.expire(key, 3600)


async def test_every_state_is_read(kit: Kit) -> None:
    """As a record, in listings and counts, and with all that was written later."""
    await restore(kit)
    states = {
        "held by the lost": EXECUTING,
        "completed": COMPLETED,
        "failed": FAILED,
        "dead letter": DEAD_LETTER,
        "cancelled": CANCELLED,
        "executing": EXECUTING,
        "retried": QUEUED,
        "delayed": QUEUED,
    }
    for name, state in states.items():
        assert (await kit.task(NAMES[name])).status == state, name
    completed, retried = await kit.task(NAMES["completed"]), await kit.task(NAMES["retried"])
    assert (completed.result, completed.assigned_worker_id) == ('{"a":1}', NAMES["worker"])
    assert (retried.retry_count, retried.timeout_seconds, retried.base_timeout_seconds) == (1, 900, 600)
    running = await kit.task(NAMES["executing"])
    assert (running.progress, running.parameters) == ('{"done":5}', '{"x": [1, "é"]}')
    assert (await kit.task(NAMES["delayed"])).available_at == datetime(2040, 1, 1, tzinfo=UTC)
    assert await kit.tasks.count([EXECUTING, DEAD_LETTER]) == {EXECUTING: 2, DEAD_LETTER: 1}
    assert {value: each.entities for value, each in (await kit.tasks.backlog()).items()} == {
        HIGH: 1,
        MEDIUM: 3,
        LOW: 1,
    }
    assert await kit.tasks.paused() == {LOW}
    workers = {name: await kit.workers.get(NAMES[name]) for name in ("draining", "lost worker")}
    assert {name: each and each.status for name, each in workers.items()} == {
        "draining": DRAINING,
        "lost worker": DEAD,
    }
    await kit.sound()


async def test_everything_goes_on(kit: Kit) -> None:
    """Claims in their order, settling by the old lease, keys that are known, clocks and a new life."""
    await restore(kit)
    worker = NAMES["worker"]
    (again,) = await kit.create(kit.intent(idempotency_key="once"))
    assert (again.is_new, again.record.task_id) == (False, NAMES["completed"])
    claimed = await kit.claim(worker)
    assert [each.task_id for each in claimed] == [
        NAMES[name] for name in ("high", "low gpu", "retried", "medium")
    ]
    await kit.redis.hset(f"tasks:{NAMES['executing']}", "deadline_at", await kit.now() + 60_000_000)
    assert await kit.settle(await kit.task(NAMES["executing"])) == COMPLETED
    assert await kit.sweep(TASK_RETRY, TASK_RETRY.dues[1]) == 1
    assert (await kit.task(NAMES["held by the lost"])).status == QUEUED
    assert (await kit.replay(NAMES["dead letter"])).applied
    assert (await kit.cancel(NAMES["delayed"])).applied
    assert await kit.sweep(TASK_RELEASE) == 0
    for task in claimed:
        assert await kit.settle(task) == COMPLETED
    await kit.sound()


async def test_the_stored_form_is_the_same(kit: Kit) -> None:
    """The same life gives the same keys, fields and entries of the outbox."""
    worker = await kit.worker(50, "gpu", "cpu")
    task = await kit.running(worker, idempotency_key="once", digest="abc")
    await kit.settle(task, result='{"a":1}')
    before = RELEASE["keys"][f"tasks:{NAMES['completed']}"]["value"]
    after = await kit.redis.hgetall(f"tasks:{task.task_id}")
    assert after.keys() == before.keys() - {".settled"}
    assert json.loads(after[".given"]).keys() == json.loads(before[".given"]).keys()
    found = _outbox(await kit.redis.xrange("history:outbox"), task.task_id)
    wanted = [(_, entry) for entry in RELEASE["keys"]["history:outbox"]["value"] for _ in [""]]
    assert found == _outbox(wanted, NAMES["completed"])


def _outbox(entries: Any, key: str) -> list[Any]:
    """The entries about a task: their fields, and what their rows have."""
    found = []
    for _, entry in entries:
        if key in (entry.get("key"), *(row[0] for row in json.loads(entry.get("rows", "[]")))):
            found.append(({*entry}, entry.get("from"), entry["to"], entry.get("columns")))
    return found
