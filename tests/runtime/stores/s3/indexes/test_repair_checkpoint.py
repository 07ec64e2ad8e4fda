"""The mark of a whole repair: a look beside the index costs the same, whatever has ended."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from runtime.call.conditions import Condition
from runtime.stores.s3.indexes.repair_checkpoint import Checkpoint, RepairPass, parse_checkpoint
from runtime.stores.store import StoreUnusable
from tests.runtime.stores.s3.claims.test_polling import work_off
from tests.runtime.stores.s3.conftest import Make
from tests.runtime.stores.s3.kit import Process
from tests.support.s3.proxy import S3Proxy

MARK = "sweeps/last.json"
LATER_MS = 120_000
"""By then an object is older than what a mark leaves out at its edge."""
LOOKS = 12


async def made(one: Process, count: int, **fields: Any) -> list[str]:
    found = await one.tasks.create_many([one.new(**fields) for _ in range(count)], one.call())
    await one.tasks.drain_indexes()
    return [each.record.id for each in found]


async def ended(one: Process, count: int) -> None:
    keys = await made(one, count)
    await asyncio.gather(*[one.move_to(each, "FAILED") for each in keys])
    await one.tasks.drain_indexes()


async def swept(one: Process, later_ms: int = LATER_MS) -> dict[str, Any]:
    """Some time later somebody has repaired the indexes; what the mark of it says."""
    one.world.ahead_ms += later_ms
    await one.repair()
    return one.raw(MARK)


def lose(one: Process, prefix: str = "ready/") -> None:
    for key in one.keys(prefix):
        one.bucket.raw.delete_object(Bucket=one.bucket.name, Key=key)


async def looks(proxy: S3Proxy, worker: Process, count: int = LOOKS) -> Counter[str]:
    """What some looks at an empty queue ask for."""
    proxy.forget()
    for _ in range(count):
        assert await worker.take() == []
    kinds = Counter(f"{each.kind} {each.key.partition('/')[0]}" for each in proxy.seen)
    kinds["pages of objects"] = sum(each.query.get("prefix", "").startswith("tasks/") for each in proxy.seen)
    return kinds


@pytest.mark.req("OQ-070", "OQ-259", "OQ-067")
async def test_a_look_costs_the_same_whatever_has_ended(process: Make, s3_proxy: S3Proxy) -> None:
    """Also for a worker that has just been started; without a mark it has to read all of it."""
    one = process()
    costs = []
    for more in (10, 140):
        await ended(one, more)
        without = process(s3_proxy)
        assert (await looks(s3_proxy, without, 2))["GetObject tasks"] >= 10
        await swept(one)
        worker = process(s3_proxy)
        worker.world.ahead_ms = one.world.ahead_ms
        costs.append(await looks(s3_proxy, worker))
        # Somebody else's mark is no part of what comes next.
        one.bucket.raw.delete_object(Bucket=one.bucket.name, Key=MARK)
    assert costs[0] == costs[1]
    assert costs[0]["GetObject tasks"] == 0
    assert (costs[0]["GetObject sweeps"], costs[0]["pages of objects"]) == (2, 2)
    assert costs[0].total() - 2 == LOOKS + 4


@pytest.mark.req("OQ-059", "OQ-070", "OQ-064")
async def test_what_came_after_the_repair_needs_no_entry(process: Make, s3_proxy: S3Proxy) -> None:
    """It is found by pages of objects, of which each goes on where the last one stopped."""
    one = process(s3_proxy, QO_LOG_SCAN_PAGE_SIZE=20)
    await ended(one, 30)
    assert (await swept(one, 0))["witnesses"] == []
    new = await made(one, 3)
    lose(one)
    s3_proxy.forget()
    done = [task for _ in range(2 * LOOKS) for task in await work_off(one)]
    assert sorted(done) == sorted(new)
    pages = [each.query for each in s3_proxy.asked("ListObjectsV2", ".*") if "tasks" in each.query["prefix"]]
    assert len(pages) <= 2 * 2 * LOOKS // 6 + 1


@pytest.mark.req("OQ-059", "OQ-070")
async def test_an_emptied_index_is_found_out(process: Make, s3_proxy: S3Proxy) -> None:
    """The last entry of the index is gone, and its task is not: everything is looked at again."""
    one = process(s3_proxy)
    keys = await made(one, 6)
    mark = await swept(one)
    assert {each.rpartition("/")[2] for each in mark["witnesses"]} <= set(keys)
    assert [each.split("/")[1] for each in sorted(mark["witnesses"])] == sorted({key[0] for key in keys})
    worker = process(s3_proxy)
    worker.world.ahead_ms = one.world.ahead_ms
    lose(one)
    assert sorted(await work_off(worker)) == sorted(keys)


@pytest.mark.req("OQ-059", "OQ-143")
async def test_one_lost_entry_is_back_after_the_next_repair(process: Make, s3_proxy: S3Proxy) -> None:
    """Until then nobody reads what the mark covers; and those who have done the rest are not misled."""
    one = process()
    late = one.tasks._context.now() + timedelta(hours=1)
    lost, kept = await one.submit(), await one.submit(available_at=late)
    await ended(one, 5)
    await swept(one)
    lose(one, f"ready/{lost.shard}/{one.keys(f'ready/{lost.shard}/')[0].split('/')[2]}/{lost.id}")
    worker = process(s3_proxy)
    worker.world.ahead_ms = one.world.ahead_ms
    if lost.shard != kept.shard:
        # Then its own part has another last one.
        one.raw_put(MARK, Checkpoint(*_times(one), (one.keys(f"ready/{kept.shard}/")[0],)).encode())
    found = await looks(s3_proxy, worker)
    assert found["GetObject tasks"] == 0 and found["GetObject ready"] == 2
    await swept(one, 1)
    worker.world.ahead_ms = one.world.ahead_ms
    assert await work_off(worker) + await work_off(worker) == [lost.id]


@pytest.mark.req("OQ-059", "OQ-070", "OQ-064")
async def test_one_that_had_no_entry_makes_a_worker_look_for_more(process: Make, s3_proxy: S3Proxy) -> None:
    """If it had none for so long that nobody is about to write it, others will lack theirs, too."""
    one = process()
    covered = await one.submit()
    [first] = (await one.objects.page("tasks/", most=5)).entries
    other, second = await one.submit(), first
    while second.changed <= first.changed:
        # The times of a store may be whole seconds.
        one.raw_put(f"tasks/{other.shard}/{other.id}.json", json.dumps(one.raw_task(other)).encode())
        lines = (await one.objects.page("tasks/", most=5)).entries
        [second] = [each for each in lines if other.id in each.key]
    lose(one)
    began = second.changed + timedelta(seconds=60)
    one.raw_put(MARK, Checkpoint(began, began + timedelta(seconds=300), ()).encode())
    worker = process(s3_proxy)
    worker.world.ahead_ms = 75_000
    assert [each.id for each in await worker.take(free=2)] == [other.id]
    assert [each.id for each in await worker.take(free=2)] == [covered.id]


def _times(one: Process) -> tuple[datetime, datetime]:
    known = parse_checkpoint(json.dumps(one.raw(MARK)).encode())
    assert known is not None
    return known.began, known.next


@pytest.mark.req("OQ-070")
@pytest.mark.parametrize("why", ["stale", "of a later time", "no mark", "not allowed", "index fails"])
async def test_without_a_mark_that_holds_everything_is_read(
    process: Make, s3_proxy: S3Proxy, why: str
) -> None:
    one = process()
    task = await one.submit()
    await ended(one, 5)
    await swept(one)
    lose(one)
    # Nothing but what is tried here shall tell that something is lost.
    one.raw_put(MARK, Checkpoint(*_times(one), ()).encode())
    worker = process(s3_proxy)
    worker.world.ahead_ms = one.world.ahead_ms
    assert await worker.take() == []
    worker = process(s3_proxy)
    worker.world.ahead_ms = one.world.ahead_ms
    if why == "stale":
        worker.world.ahead_ms += 1_000_000
    elif why == "of a later time":
        worker.world.ahead_ms -= 60_000
    elif why == "no mark":
        one.raw_put(MARK, b'{"began": 1}')
    elif why == "not allowed":
        s3_proxy.rule(key="sweeps/.*", status=403, times=None)
    else:
        s3_proxy.rule(key="ready/.*", status=403, times=None)
        worker.tasks._context.indexes.write(task.id, f"ready/{task.shard}/0000000001/{task.id}", task)
        await worker.tasks.drain_indexes()
    assert [each.id for each in await worker.take()] == [task.id]


@pytest.mark.req("OQ-143", "OQ-064")
async def test_only_a_whole_repair_leaves_a_mark(process: Make, s3_proxy: S3Proxy) -> None:
    """Not one that could not write an entry, which counts as failed, or that was cut short."""
    one = process(s3_proxy)
    one.world.chance = 0.0
    await one.submit(id=f"5{one.world.new_id()[1:]}")
    lose(one)
    monitor = one.call("monitor")
    s3_proxy.rule(kind="PutObject", key="ready/.*", status=403)
    assert await one.tasks.repair(monitor) == 1
    with pytest.raises(Condition, match="cannot be reached now"):
        await one.tasks.repair(monitor)
    assert one.keys("sweeps/") == []
    s3_proxy.rule(kind="ListObjectsV2", nth=5, status=403)
    with pytest.raises(StoreUnusable):
        await one.tasks.repair(monitor)
    assert [await one.tasks.repair(monitor) for _ in range(2)] == [1, 0]
    assert one.keys("sweeps/") == []
    assert await one.tasks.repair(monitor) == 0
    assert one.keys("sweeps/") == [MARK]


@pytest.mark.req("OQ-070", "OQ-104")
async def test_what_a_repair_could_not_read_it_does_not_vouch_for(process: Make, s3_proxy: S3Proxy) -> None:
    """Others may be able to, and do so; where too much cannot be read there is no mark."""
    one = process()
    task, covered = await one.submit(), await one.submit()
    where, body = f"tasks/{task.shard}/{task.id}.json", json.dumps(one.raw_task(task)).encode()
    one.raw_put(where, b"no { JSON")
    for _ in range(2):
        mark = await swept(one)
        assert mark["unread"] == [where]
    lose(one)
    one.raw_put(MARK, Checkpoint(*_times(one), (), frozenset(mark["unread"])).encode())
    one.raw_put(where, body)
    worker = process(s3_proxy)
    worker.world.ahead_ms = one.world.ahead_ms
    assert [each.id for each in await worker.take(free=2)] == [task.id]
    assert s3_proxy.asked("GetObject", covered.id) == []
    for number in range(101):
        one.raw_put(f"tasks/0/{number:08x}{one.world.new_id()[8:]}.json", b"no { JSON")
    known = one.raw(MARK)
    assert await swept(one) == known


@pytest.mark.req("OQ-142")
async def test_a_mark_never_goes_back_in_time(process: Make, s3_proxy: S3Proxy) -> None:
    """Of several repairs the one counts that began last, whoever ends first; not one ahead of time."""
    one, other = process(s3_proxy), process()
    early, late = RepairPass(one.tasks._context), RepairPass(other.tasks._context)
    other.world.ahead_ms = 3_000
    for each in (early, late):
        each.note_response()
    await late.write_checkpoint(300)
    known = one.raw(MARK)
    await early.write_checkpoint(300)
    assert one.raw(MARK) == known
    # Somebody else writes between the look and the write.
    s3_proxy.rule(kind="PutObject", key=MARK, status=412, times=1)
    one.world.ahead_ms = 4_000
    again = RepairPass(one.tasks._context)
    again.note_response()
    await again.write_checkpoint(300)
    assert one.raw(MARK)["began"] > known["began"]
    one.world.ahead_ms = -60_000
    back = RepairPass(one.tasks._context)
    back.note_response()
    await back.write_checkpoint(300)
    assert one.raw(MARK)["began"] < known["began"]


async def test_a_clock_that_is_set_during_a_repair_leaves_no_mark(process: Make) -> None:
    for ahead_ms in (-6_000, 6_000):
        one = process()
        looked = RepairPass(one.tasks._context)
        looked.note_response()
        one.world.ahead_ms = ahead_ms
        await looked.write_checkpoint(300)
        assert one.keys("sweeps/") == []


async def test_a_mark_that_cannot_be_written_stops_no_repair(process: Make, s3_proxy: S3Proxy) -> None:
    one = process(s3_proxy)
    await made(one, 2)
    lose(one)
    s3_proxy.rule(key="sweeps/.*", status=403, times=None)
    assert await one.repair() == 2
    assert len(one.keys("ready/")) == 2 and one.keys("sweeps/") == []
    assert MARK in one.lines.read_back("index_not_written")[0]["entry"]


@pytest.mark.req("OQ-073")
async def test_a_worker_of_some_parts_asks_for_those_only(process: Make, s3_proxy: S3Proxy) -> None:
    """A page of one part after the other, and the last entries of these parts."""
    one = process()
    later = one.tasks._context.now() + timedelta(hours=1)
    for digit in "0a3f":
        await one.submit(id=f"{digit}{one.world.new_id()[1:]}", available_at=later)
    await swept(one)
    worker = process(s3_proxy)
    worker.world.ahead_ms = one.world.ahead_ms
    worker.narrow("w1", shards=["0", "a"])
    s3_proxy.forget()
    for _ in range(2 * LOOKS):
        assert await worker.take() == []
    listed = [each.query["prefix"] for each in s3_proxy.asked("ListObjectsV2", ".*")]
    assert Counter(each for each in listed if each.startswith("tasks/")) == {"tasks/0/": 4, "tasks/a/": 4}
    assert {each.key.split("/")[1] for each in s3_proxy.asked("GetObject", "^(ready|tasks)/")} <= {"0", "a"}


def test_a_mark_is_fresh_for_some_repairs_and_an_hour_at_most() -> None:
    began = datetime(2030, 1, 1, tzinfo=UTC)
    often = Checkpoint(began, began + timedelta(seconds=300), ("ready/0/1/a",), frozenset({"tasks/0/b"}))
    rarely = Checkpoint(began, began + timedelta(days=1), ())
    for mark, most in ((often, 900), (rarely, 3600)):
        known = parse_checkpoint(mark.encode())
        assert known == mark
        assert [known.is_fresh(began + timedelta(seconds=each)) for each in (-6, 0, most, most + 1)] == [
            False,
            True,
            True,
            False,
        ]


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"no",
        b"[]",
        b'{"began":"2030-01-01T00:00:00Z","witnesses":[],"unread":[]}',
        b'{"began":"2030-01-01T00:00:00","next":"2030-01-01T00:00:00","witnesses":[],"unread":[]}',
        b'{"began":"2030-01-01T00:00:00Z","next":"2030-01-01T00:00:00","witnesses":[],"unread":[]}',
        b'{"began":"2030-01-01T00:00:00Z","next":"2030-01-01T00:05:00Z","witnesses":1,"unread":[]}',
    ],
)
def test_what_is_no_mark_says_nothing(body: bytes) -> None:
    assert parse_checkpoint(body) is None
