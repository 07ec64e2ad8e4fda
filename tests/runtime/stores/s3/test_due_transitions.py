"""What the clock drives: leases that ended, and indexes that do not say what the objects say."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta

import pytest

from runtime.call.conditions import Condition
from runtime.stores.s3.keys import minute
from tests.runtime.stores.s3.conftest import Make
from tests.runtime.stores.s3.kit import Process
from tests.support.s3.proxy import S3Proxy

ALLOWED_MS = 7_100
"""What a lease is overdue by before anybody but its holder ends it: the grace, the clocks, and a little."""


async def abandoned(one: Process, owner: str = "w1", **fields: object) -> object:
    """A task whose worker is never heard of again."""
    task = await one.submit(**{"timeout_seconds": 1, **fields})
    for _ in range(3):
        if taken := await one.take(owner):
            assert taken[0].id == task.id
            return task
    raise AssertionError("it was not taken")


@pytest.mark.req("OQ-133", "OQ-134", "OQ-137", "OQ-112")
async def test_a_lease_that_ended_is_put_back(process: Make) -> None:
    """With the delay of its policy, without what belongs to the lease, and with one entry."""
    one = process()
    one.world.chance = 0.5
    task = await abandoned(one, max_retries=2)
    one.world.ahead_ms = 1_000 + ALLOWED_MS
    assert await one.sweep() == 1
    back = one.raw_task(task)
    assert (back["status"], back["retry_count"], back["attempt"]) == ("Pending", 1, 1)
    assert (back["worker_id"], back["lease_id"], back["lease_expires_at"]) == (None, None, None)
    assert back["last_error"] == "lease expired (worker w1, attempt 1)"
    waits = datetime.fromisoformat(back["available_at"]) - datetime.fromisoformat(back["updated_at"])
    assert waits == timedelta(seconds=1)
    assert one.keys("leases/") == []
    assert one.keys("ready/") == [
        f"ready/{back['shard']}/{minute(datetime.fromisoformat(back['available_at']))}/{back['id']}"
    ]
    [line] = one.lines.read_back("lease_expired")
    assert (line["id"], line["worker_id"], line["attempt"]) == (back["id"], "w1", 1)
    assert await one.sweep() == 0


@pytest.mark.req("OQ-135", "OQ-246")
async def test_a_lease_that_ended_once_too_often_ends_the_entity(process: Make) -> None:
    one = process()
    task = await abandoned(one, max_retries=0)
    one.world.ahead_ms = 1_000 + ALLOWED_MS
    assert await one.sweep() == 1
    ended = one.raw_task(task)
    assert (ended["status"], ended["retry_count"], ended["worker_id"]) == ("Failed", 0, "w1")
    assert ended["completed_at"] and ended["last_error"].startswith("lease expired")
    assert one.keys("leases/") == one.keys("ready/") == []


@pytest.mark.req("OQ-148", "OQ-133")
async def test_a_lease_is_not_cut_early(process: Make) -> None:
    """Not before the grace and what clocks may differ by have passed."""
    one = process()
    one.world.stands_at_ms = one.world.now_ms()
    task = await abandoned(one)
    for seconds in (1.5, 5, 7.5):
        one.world.ahead_ms = int(seconds * 1000)
        assert await one.sweep() == 0
    assert one.raw_task(task)["status"] == "Running"
    assert len(one.keys("leases/")) == 1
    one.world.ahead_ms = 1_000 + ALLOWED_MS
    assert await one.sweep() == 1


@pytest.mark.req("OQ-139")
async def test_many_sweepers_move_each_once(process: Make) -> None:
    one = process()
    tasks = [await abandoned(one, max_retries=5) for _ in range(12)]
    many = [process() for _ in range(3)]
    for each in many:
        each.world.ahead_ms = 1_000 + ALLOWED_MS
    assert sum(await asyncio.gather(*[each.sweep() for each in many])) == len(tasks)
    assert {one.raw_task(each)["retry_count"] for each in tasks} == {1}


@pytest.mark.req("OQ-136")
async def test_a_holder_and_a_sweeper_at_once(process: Make) -> None:
    """One of them wins: it is done with its output, or it is put back and the holder is told."""
    one, other = process(), process()
    other.world.ahead_ms = 1_000 + ALLOWED_MS
    ends: set[str] = set()
    for number in range(10):
        task = await abandoned(one)
        [taken] = [each for each in [await one.tasks.get(task.id)] if each]  # type: ignore[attr-defined]
        settled, swept = await asyncio.gather(
            one.settle(taken, "complete", output=str(number)), other.sweep()
        )
        found = one.raw_task(task)
        ends.add(found["status"])
        if isinstance(settled, Condition):
            assert (swept, found["status"], found["output"]) == (1, "Pending", None)
            await one.move_to(found["id"], "FAILED")
        else:
            assert (swept, found["status"], found["output"]) == (0, "Completed", number)
    assert ends <= {"Completed", "Pending"}


@pytest.mark.req("OQ-132")
async def test_every_page_of_ended_leases_is_handled(
    process: Make, s3_proxy: S3Proxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    """More than a page in one part; what is less is listed together with all other parts."""
    monkeypatch.setattr("runtime.stores.s3.due_transitions._PAGE", 10)
    one = process(s3_proxy)
    made = await one.tasks.create_many(
        [one.new(id=f"7{one.world.new_id()[1:]}", timeout_seconds=1) for _ in range(35)], one.call()
    )
    await one.tasks.drain_indexes()
    while await one.take(free=35):
        pass
    assert len(one.keys("leases/")) == len(made)
    one.world.ahead_ms = 1_000 + ALLOWED_MS
    s3_proxy.forget()
    assert await one.sweep() == 35
    assert one.keys("leases/") == []
    prefixes = [each.query["prefix"] for each in s3_proxy.asked("ListObjectsV2", ".*")]
    assert prefixes[0] == "leases/" and prefixes.count("leases/7/") == 4
    s3_proxy.forget()
    assert await one.sweep() == 0
    assert len(s3_proxy.asked("ListObjectsV2", ".*")) == 1


async def test_what_was_removed_long_ago_is_not_listed_again(
    process: Make, s3_proxy: S3Proxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where a store takes long to step over it, each part is listed from the first minute that is left."""
    monkeypatch.setattr("runtime.stores.s3.due_transitions._SLOW_S", -1.0)
    one = process(s3_proxy)
    task = await one.submit(id=f"5{one.world.new_id()[1:]}", timeout_seconds=600)
    [_] = await one.take()
    for _ in range(2):
        assert await one.sweep() == 0
    s3_proxy.forget()
    assert await one.sweep() == 0
    begun = {
        each.query["prefix"]: each.query.get("start-after", "")
        for each in s3_proxy.asked("ListObjectsV2", ".*")
    }
    assert len(begun) == 16
    assert all(after.startswith(f"{prefix}00") for prefix, after in begun.items())
    one.world.ahead_ms = 600_000 + ALLOWED_MS
    assert await one.sweep() == 1
    assert one.raw_task(task)["status"] == "Pending"


@pytest.mark.req("OQ-138", "OQ-057")
async def test_entries_without_a_lease_are_cleaned_up(process: Make) -> None:
    one = process()
    task = await one.submit()
    early, ghost = minute(datetime.now(UTC) - timedelta(minutes=9)), one.world.new_id()
    one.raw_put(f"leases/{task.shard}/{early}/{task.id}", b"{}")
    one.raw_put(f"leases/{ghost[0]}/{early}/{ghost}", b"{}")
    assert await one.sweep() == 0
    assert one.keys("leases/") == []
    assert [each["status"] for each in one.raw_versions(task)] == ["Pending"]


@pytest.mark.req("OQ-112", "OQ-144")
async def test_a_lease_without_an_entry_is_found_in_the_end(process: Make, s3_proxy: S3Proxy) -> None:
    """It could not be written, so the entry by which the task was found stays."""
    one = process(s3_proxy)
    task = await one.submit(timeout_seconds=1)
    s3_proxy.rule(kind="PutObject", key="leases/.*", status=403)
    [_] = await one.take()
    assert one.keys("leases/") == [] and len(one.keys("ready/")) == 1
    one.world.ahead_ms = 1_000 + ALLOWED_MS
    assert await one.sweep() == 0
    assert await one.repair() == 2
    assert len(one.keys("leases/")) == 1 and one.keys("ready/") == []
    assert await one.sweep() == 1
    assert one.raw_task(task)["status"] == "Pending"


@pytest.mark.req("OQ-143", "OQ-145", "OQ-147", "OQ-062", "OQ-059")
async def test_a_repair_writes_what_is_missing_and_removes_what_is_wrong(
    process: Make, s3_proxy: S3Proxy
) -> None:
    """It never writes an entity."""
    one = process(s3_proxy)
    leased = await one.submit()
    [_] = await one.take()
    ended = await one.submit()
    await one.move_to(ended.id, "FAILED")
    await one.submit()
    right = {*one.keys("ready/"), *one.keys("leases/")}
    for key in right:
        one.bucket.raw.delete_object(Bucket=one.bucket.name, Key=key)
    ghost = one.world.new_id()
    one.raw_put(f"ready/{ghost[0]}/0029000000/{ghost}", b"{}")
    one.raw_put(f"leases/{ghost[0]}/0029000000/{ghost}", b"{}")
    one.raw_put(f"ready/{leased.shard}/0099999999/{leased.id}", b"{}")
    one.raw_put(f"tasks/{ghost[0]}/{ghost}.json", b"garbage")
    s3_proxy.forget()
    await one.repair()
    assert {*one.keys("ready/"), *one.keys("leases/")} == right | {
        f"ready/{ghost[0]}/0029000000/{ghost}", f"leases/{ghost[0]}/0029000000/{ghost}",
    }  # fmt: skip
    assert s3_proxy.asked("PutObject", "tasks/.*") == []
    one.bucket.raw.delete_object(Bucket=one.bucket.name, Key=f"tasks/{ghost[0]}/{ghost}.json")
    assert await one.repair() == 2
    assert {*one.keys("ready/"), *one.keys("leases/")} == right
    assert await one.repair() == 0


@pytest.mark.req("OQ-146", "OQ-021")
async def test_a_repair_goes_page_by_page_and_remembers(process: Make, s3_proxy: S3Proxy) -> None:
    """What has not changed since is not read again; a failure in between costs only the page."""
    one = process(s3_proxy, QO_MONITOR_SWEEP_PAGE_SIZE=4)
    await one.tasks.create_many([one.new(id=f"c{one.world.new_id()[1:]}") for _ in range(10)], one.call())
    await one.tasks.drain_indexes()
    s3_proxy.forget()
    assert await one.repair() == 0
    pages = [each for each in s3_proxy.asked("ListObjectsV2", ".*") if each.query["prefix"] == "tasks/c/"]
    assert [each.query["max-keys"] for each in pages] == ["4"] * 3
    assert len(s3_proxy.asked("GetObject", "tasks/.*")) == 10
    s3_proxy.forget()
    assert await one.repair() == 0
    assert s3_proxy.asked("GetObject", "tasks/.*") == []
    counts = {state: count for _, state, count, _ in one.tasks.census()}
    assert counts == {"PENDING": 10}


async def test_a_repair_goes_on_where_it_stopped(process: Make, s3_proxy: S3Proxy) -> None:
    one = process(s3_proxy, QO_MONITOR_SWEEP_PAGE_SIZE=4)
    await one.tasks.create_many([one.new(id=f"c{one.world.new_id()[1:]}") for _ in range(10)], one.call())
    await one.tasks.drain_indexes()
    for key in one.keys("ready/"):
        one.bucket.raw.delete_object(Bucket=one.bucket.name, Key=key)
    await one.tasks.repair(one.call("monitor"))
    s3_proxy.rule(kind="ListObjectsV2", status=503, times=one.objects.location.tries)
    with pytest.raises(Condition):
        await one.tasks.repair(one.call("monitor"))
    s3_proxy.forget()
    await one.repair()
    again = [each for each in s3_proxy.asked("ListObjectsV2", ".*") if each.query["prefix"] == "tasks/c/"]
    # Two pages are left. Where that part happens to be the last one of its round, a next round has all three.
    assert ["continuation-token" in each.query for each in again[:2]] == [True, True]
    assert len(again) in (2, 5)
    assert len(one.keys("ready/")) == 10


@pytest.mark.req("OQ-063", "OQ-119", "OQ-153")
async def test_after_all_of_it_the_indexes_are_right(process: Make) -> None:
    """What an index says at the end is what follows from the objects, however it came about."""
    one = process()
    made = [await one.submit(max_retries=1, retry_policy=one.policy(initial_interval_ms=0)) for _ in range(6)]
    for edge in ("retry", "complete", "release", "retry", "fail"):
        for each in await one.take(free=2):
            await one.settle(each, edge, error="x", output="1")
    wanted = set()
    for task in made:
        found = one.raw_task(task)
        by = {"Pending": ("ready", "available_at"), "Running": ("leases", "lease_expires_at")}
        if found["status"] in by:
            index, name = by[found["status"]]
            wanted.add(
                f"{index}/{found['shard']}/{minute(datetime.fromisoformat(found[name]))}/{found['id']}"
            )
        assert len(one.raw_versions(task)) == found["rev"]
    assert {*one.keys("ready/"), *one.keys("leases/")} == wanted
