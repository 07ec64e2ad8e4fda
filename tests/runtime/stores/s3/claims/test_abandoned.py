"""Leases whose holder dies at the worst moment: an entry leads to them, and no repair is needed."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import datetime
from typing import Any

import pytest

from runtime.stores.s3.indexes import index_writer
from runtime.stores.sweeper import Sweep, sweep_regularly
from tests.runtime.stores.s3.conftest import Make
from tests.runtime.stores.s3.kit import Process
from tests.support.eventually import eventually
from tests.support.s3.proxy import S3Proxy

ALLOWED_MS = 7_001
"""The grace of the monitor, and what clocks may differ by."""


@pytest.fixture
async def dead(process: Make, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Process]:
    """A process that never comes to what it has put off."""
    monkeypatch.setattr(index_writer, "_YOUNG_S", 3600.0)
    one = process()
    yield one
    one.tasks._context.indexes._young.clear()


async def taken_by(one: Process, **fields: Any) -> Any:
    """A task that was taken a moment ago, of which its worker has written nothing else."""
    task = await one.submit(timeout_seconds=600, **fields)
    [_] = await one.tasks.claim("w1", 1, one.call("worker"))
    assert one.raw_task(task)["status"] == "Running"
    return task


@pytest.mark.req("OQ-112", "OQ-131", "OQ-006")
@pytest.mark.parametrize("mode", ["index-only", "hybrid", "log-scan"])
async def test_whoever_looks_for_work_finds_it(process: Make, dead: Process, mode: str) -> None:
    """The look of another worker gives the lease its entry; after its time the task is put back."""
    task = await taken_by(dead)
    assert dead.keys("leases/") == []
    other = process(QO_INDEX_MODE=mode)
    other.world.ahead_ms = 3_000
    assert await other.take("w2") == []
    assert await other.sweep() == 0
    other.world.ahead_ms = 600_000 + ALLOWED_MS
    assert await other.take("w2") == []
    assert len(other.keys("leases/")) == 1
    assert other.keys("ready/") == ([] if mode != "log-scan" else dead.keys("ready/"))
    assert await other.sweep() == 1
    back = other.raw_task(task)
    assert (back["status"], back["last_error"]) == ("Pending", "lease expired (worker w1, attempt 1)")


@pytest.mark.req("OQ-060", "OQ-108")
async def test_one_that_has_just_been_taken_is_left_to_its_taker(
    process: Make, dead: Process, s3_proxy: S3Proxy
) -> None:
    """Others read it once and neither write nor remove anything."""
    taken = dead.raw_task(await taken_by(dead))
    other = process(s3_proxy, QO_INDEX_MODE="index-only")
    other.world.stands_at_ms = round(datetime.fromisoformat(taken["updated_at"]).timestamp() * 1000)
    for _ in range(3):
        assert await other.take("w2") == []
    assert len(s3_proxy.asked("GetObject", "tasks/")) == 1
    assert s3_proxy.asked("PutObject") == s3_proxy.asked("DeleteObject") == []


@pytest.mark.req("OQ-070", "OQ-112")
async def test_what_has_no_entry_gets_one_before_it_is_taken(process: Make, s3_proxy: S3Proxy) -> None:
    """Or it would have none while its lease is young."""
    one = process(s3_proxy)
    task = await one.submit()
    one.raw_delete(one.keys("ready/")[0])
    s3_proxy.forget()
    [_] = await one.take()
    written = [(each.kind, each.key.partition("/")[0]) for each in s3_proxy.seen if each.method != "GET"]
    assert written == [
        ("PutObject", "ready"), ("PutObject", "tasks"), ("PutObject", "leases"), ("DeleteObject", "ready"),
    ]  # fmt: skip
    assert one.raw_task(task)["status"] == "Running"


@pytest.mark.req("OQ-063", "OQ-064")
@pytest.mark.parametrize("edge", ["retry", "release", "complete"])
async def test_a_short_lease_leaves_the_entries_that_the_task_has(
    process: Make, s3_proxy: S3Proxy, monkeypatch: pytest.MonkeyPatch, edge: str
) -> None:
    """The one by which it was found is gone, unless it is the one that the task has again."""
    monkeypatch.setattr(index_writer, "_YOUNG_S", 3600.0)
    one = process(s3_proxy)
    one.world.stands_at_ms = one.world.now_ms() // 60_000 * 60_000 + 20_000
    task = await one.submit()
    s3_proxy.forget()
    [taken] = await one.tasks.claim("w1", 1, one.call("worker"))
    await one.settle(taken, edge, **({"output": "1"} if edge == "complete" else {"error": "no"}))
    assert s3_proxy.asked(key="leases/") == []
    assert [key.rpartition("/")[2] for key in one.keys("ready/")] == ([] if edge == "complete" else [task.id])
    if edge != "complete":
        one.world.ahead_ms = 61_000
        assert [each.id for each in await one.take()] == [task.id]


@pytest.mark.req("OQ-063", "OQ-145")
async def test_a_lease_entry_of_what_waits_again_is_replaced_by_its_own(process: Make) -> None:
    """Its worker put it back and died before it could say so in the index."""
    one = process()
    task = await one.submit(timeout_seconds=1)
    [taken] = await one.take()
    [lease] = one.keys("leases/")
    await one.settle(taken, "release")
    one.raw_delete(one.keys("ready/")[0])
    one.raw_put(lease, b"{}")
    one.world.ahead_ms = 61_000 + ALLOWED_MS
    assert await one.sweep() == 0
    assert one.keys("leases/") == []
    assert [key.rpartition("/")[2] for key in one.keys("ready/")] == [task.id]


@pytest.mark.req("OQ-142", "OQ-143", "OQ-250")
@pytest.mark.parametrize("harmed", ["ListObjectsV2", "PutObject"])
async def test_a_repair_that_failed_is_tried_again_soon(
    process: Make, s3_proxy: S3Proxy, harmed: str
) -> None:
    """Although the next one is due in an hour, and also where it was an entry that could not be written."""
    one = process(s3_proxy)
    task = await one.submit()
    [entry] = one.keys("ready/")
    one.raw_delete(entry)
    s3_proxy.rule(kind=harmed, status=503, times=None)
    stopping = asyncio.Event()
    repair = Sweep("task", "repair", one.tasks.repair)
    loop = asyncio.create_task(sweep_regularly([repair], 3600.0, one.call("monitor"), stopping))
    await eventually(lambda: one.lines.read_back("sweep_failed"))
    assert one.keys("ready/") == []
    s3_proxy.forget()
    await eventually(lambda: one.keys("ready/"), wanted=lambda keys: keys == [entry])
    stopping.set()
    await loop
    assert one.raw_task(task)["status"] == "Pending"
