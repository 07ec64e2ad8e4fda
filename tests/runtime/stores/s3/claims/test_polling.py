"""Where a worker looks, in each of the three modes, and what it does about wrong hints."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta

import pytest

from runtime.stores.s3.keys import minute
from tests.runtime.stores.s3.conftest import Make
from tests.runtime.stores.s3.kit import Process
from tests.support.s3.proxy import S3Proxy

MODES = ("index-only", "hybrid", "log-scan")


def listed(proxy: S3Proxy) -> list[str]:
    """What the listings were of, without their parts."""
    return [str(each.query["prefix"]).partition("/")[0] for each in proxy.asked("ListObjectsV2", ".*")]


async def work_off(one: Process, owner: str = "w1", rounds: int = 20) -> list[str]:
    """Takes and completes what there is."""
    done: list[str] = []
    for _ in range(rounds):
        taken = await one.take(owner, free=8)
        for each in taken:
            await one.settle(each, "complete", output="1")
            done.append(each.id)
        if not taken and not any(each.is_behind for each in one.tasks._claims.values()):
            break
    return done


@pytest.mark.req("OQ-067", "OQ-068", "OQ-069", "OQ-070", "OQ-102")
@pytest.mark.parametrize("mode", MODES)
async def test_each_mode_finds_what_there_is(process: Make, s3_proxy: S3Proxy, mode: str) -> None:
    one = process(s3_proxy, QO_INDEX_MODE=mode)
    made = [await one.submit() for _ in range(6)]
    s3_proxy.forget()
    taken = await one.take(free=2)
    assert taken
    first = listed(s3_proxy)
    assert set(first) == ({"tasks"} if mode == "log-scan" else {"ready"})
    for each in taken:
        await one.settle(each, "complete", output="1")
    assert len(await work_off(one)) + len(taken) == len(made)
    assert set(listed(s3_proxy)) == {"index-only": {"ready"}, "log-scan": {"tasks"}}.get(
        mode, {"ready", "tasks"}
    )
    pages = {
        each.query["prefix"][0]: each.query["max-keys"] for each in s3_proxy.asked("ListObjectsV2", ".*")
    }
    assert pages.get("r", "100") == "100" and pages.get("t", "50") == "50"


@pytest.mark.req("OQ-059", "OQ-070", "OQ-143")
@pytest.mark.parametrize("mode", ["hybrid", "index-only"])
async def test_a_lost_hint_loses_nothing(process: Make, mode: str) -> None:
    """One mode looks at the objects themselves; the other needs the indexes put in order."""
    one = process(QO_INDEX_MODE=mode)
    made = [await one.submit() for _ in range(5)]
    for key in one.keys("ready/"):
        one.bucket.raw.delete_object(Bucket=one.bucket.name, Key=key)
    if mode == "index-only":
        assert await work_off(one) == []
        assert await one.repair() == 5
    assert sorted(await work_off(one)) == sorted(each.id for each in made)


@pytest.mark.req("OQ-057", "OQ-060", "OQ-062", "OQ-097")
async def test_wrong_hints_are_removed_and_never_believed(process: Make) -> None:
    """Of one that has ended, of one that is not there, and what is no hint at all."""
    one = process(QO_INDEX_MODE="index-only")
    ended = await one.submit()
    await one.move_to(ended.id, "FAILED")
    await one.tasks.drain_indexes()
    now = minute(datetime.now(UTC))
    ghost = one.world.new_id()
    one.raw_put(f"ready/{ended.shard}/{now}/{ended.id}", b"{}")
    one.raw_put(f"ready/{ghost[0]}/{now}/{ghost}", b"{}")
    one.raw_put(f"ready/{ghost[0]}/{now}/1{ghost}", b"{}")
    one.raw_put("ready/0/odd", b"{}")
    one.world.ahead_ms = 3_000
    assert await one.take(free=4) == []
    left = one.keys("ready/")
    assert f"ready/{ended.shard}/{now}/{ended.id}" not in left
    assert f"ready/{ghost[0]}/{now}/{ghost}" not in left
    assert one.raw_task(ended)["status"] == "Failed"


@pytest.mark.req("OQ-060")
async def test_a_hint_at_a_later_time_follows(process: Make) -> None:
    """An entry of an earlier minute than the entity waits for is replaced by the right one."""
    one = process(QO_INDEX_MODE="index-only")
    later = one.tasks._context.now() + timedelta(minutes=10)
    task = await one.submit(available_at=later)
    [right] = one.keys("ready/")
    one.bucket.raw.delete_object(Bucket=one.bucket.name, Key=right)
    one.raw_put(f"ready/{task.shard}/{minute(datetime.now(UTC))}/{task.id}", b"{}")
    assert await one.take() == []
    assert one.keys("ready/") == [right]


@pytest.mark.req("OQ-095", "OQ-061")
async def test_hints_of_later_minutes_are_not_looked_at(process: Make, s3_proxy: S3Proxy) -> None:
    one = process(s3_proxy, QO_INDEX_MODE="index-only")
    await one.submit(available_at=one.tasks._context.now() + timedelta(minutes=2))
    s3_proxy.forget()
    assert await one.take() == []
    assert s3_proxy.asked("GetObject", "tasks/.*") == []
    assert len(one.keys("ready/")) == 1


@pytest.mark.req("OQ-100", "OQ-021")
async def test_every_page_is_listed(process: Make, s3_proxy: S3Proxy) -> None:
    """What is due is found behind pages of what is not, and what is not due is not read again and again."""
    one = process(s3_proxy, QO_INDEX_MODE="index-only", QO_READY_PAGE_SIZE=5)
    # Early in a minute, so that all of them have their entries in it.
    one.world.stands_at_ms = one.world.now_ms() // 60_000 * 60_000 + 65_000
    soon = one.tasks._context.now() + timedelta(seconds=30)
    waiting = [
        one.new(id=f"a{number:07x}{one.world.new_id()[8:]}", available_at=soon) for number in range(17)
    ]
    await one.tasks.create_many(waiting, one.call())
    due = await one.submit(id=f"a{'f' * 7}{one.world.new_id()[8:]}")
    one.narrow("w1", shards=["a"])
    assert [each.id for each in await one.take()] == [due.id]
    assert len(s3_proxy.asked("ListObjectsV2", ".*")) == 4
    assert await one.take() == []
    s3_proxy.forget()
    assert await one.take() == []
    assert s3_proxy.asked("GetObject", "tasks/.*") == []
    one.world.ahead_ms += 31_000
    assert len(await one.take(free=3)) == 3


@pytest.mark.req("OQ-101")
async def test_nothing_waits_behind_what_cannot_be_taken(process: Make, s3_proxy: S3Proxy) -> None:
    """Many that always fail, of which each is tried once in a round, and a good one behind them."""
    one = process(s3_proxy, QO_INDEX_MODE="index-only", QO_READY_PAGE_SIZE=4)
    bad = [one.new(id=f"0{number:07x}{one.world.new_id()[8:]}") for number in range(14)]
    await one.tasks.create_many(bad, one.call())
    good = await one.submit(id=f"0{'f' * 7}{one.world.new_id()[8:]}")
    s3_proxy.rule(kind="PutObject", key=r"tasks/0/0000.*", status=412, times=None)
    taken = await one.take() or await one.take()
    assert [each.id for each in taken] == [good.id]


@pytest.mark.req("OQ-069", "OQ-102")
async def test_a_scan_does_not_read_again_what_has_ended(process: Make, s3_proxy: S3Proxy) -> None:
    """It goes on page by page, and by their ETags it knows what it has seen."""
    one = process(s3_proxy, QO_INDEX_MODE="log-scan", QO_LOG_SCAN_PAGE_SIZE=3)
    for number in range(7):
        task = await one.submit(id=f"b{number:07x}{one.world.new_id()[8:]}")
        await one.move_to(task.id, "FAILED")
    one.narrow("w1", shards=["b"])
    for _ in range(4):
        assert await one.take() == []
    s3_proxy.forget()
    for _ in range(4):
        assert await one.take() == []
    assert s3_proxy.asked("GetObject", "tasks/.*") == []
    await one.move_to(task.id, "PENDING")
    assert await work_off(one) == [task.id]


@pytest.mark.req("OQ-259", "OQ-021")
async def test_an_empty_queue_costs_a_listing(process: Make, s3_proxy: S3Proxy) -> None:
    """All parts are listed together while that is no more than a page, else each by itself."""
    for mode, most in (("index-only", 1), ("log-scan", 1), ("hybrid", 2)):
        one = process(s3_proxy, QO_INDEX_MODE=mode, QO_READY_PAGE_SIZE=4)
        s3_proxy.forget()
        assert await one.take() == []
        assert len(s3_proxy.asked("ListObjectsV2", ".*")) == most
        # Whoever looks beside the index asks first whether that is needed, and not each time.
        assert len(s3_proxy.seen) == most + (mode == "hybrid")
        s3_proxy.forget()
        assert await one.take() == []
        assert len(s3_proxy.seen) == most
    one = process(s3_proxy, QO_INDEX_MODE="index-only", QO_READY_PAGE_SIZE=4)
    later = one.tasks._context.now() + timedelta(minutes=5)
    ids = [f"{digit}{one.world.new_id()[1:]}" for digit in "0123456789abcdef"]
    await one.tasks.create_many([one.new(id=each, available_at=later) for each in ids[:-1]], one.call())
    due = await one.submit(id=ids[-1])
    s3_proxy.forget()
    assert [each.id for each in await one.take()] == [due.id]
    prefixes = [each.query["prefix"] for each in s3_proxy.asked("ListObjectsV2", ".*")]
    assert prefixes[0] == "ready/" and "ready/f/" in prefixes
    assert len(s3_proxy.asked("GetObject", "tasks/.*")) == 1


@pytest.mark.req("OQ-259", "OQ-070")
async def test_a_look_beside_the_index_costs_the_same_however_much_there_is(
    process: Make, s3_proxy: S3Proxy
) -> None:
    """It reads some of what it has never seen, and goes on from there the next time."""
    one = process(s3_proxy)
    made = await one.tasks.create_many([one.new() for _ in range(80)], one.call())
    ids = [each.record.id for each in made]
    await asyncio.gather(*[one.move_to(each, "FAILED") for each in ids])
    await one.tasks.drain_indexes()
    reads = []
    for _ in range(4):
        s3_proxy.forget()
        assert await one.take() == []
        reads.append(len(s3_proxy.asked("GetObject", "tasks/.*")))
        assert len(s3_proxy.asked("ListObjectsV2", ".*")) <= 32
    assert (sum(reads), reads[-1]) == (80, 0)
    assert max(reads) <= 32


@pytest.mark.req("OQ-064", "OQ-086", "OQ-091")
async def test_indexes_may_fail_and_nothing_else_does(process: Make, s3_proxy: S3Proxy) -> None:
    one = process(s3_proxy)
    s3_proxy.rule(key="(ready|leases)/.*", status=403, times=None)
    made = (await one.tasks.create(one.new(), one.call())).record
    assert not await one.tasks.wait_indexed(made.id)
    other = process()
    [taken] = await other.take()
    assert taken.id == made.id
    assert await other.settle(taken, "complete", output="1") == one.states["COMPLETED"]
    assert one.lines.read_back("index_not_written")


@pytest.mark.req("OQ-059", "OQ-064")
async def test_work_goes_on_without_indexes(process: Make, s3_proxy: S3Proxy) -> None:
    """The entries cannot be written, and the listing of the objects is enough."""
    one = process(s3_proxy)
    s3_proxy.rule(kind="PutObject", key="(ready|leases)/.*", status=403, times=None)
    s3_proxy.rule(kind="DeleteObject", key="(ready|leases)/.*", status=403, times=None)
    made = [await one.submit() for _ in range(4)]
    assert sorted(await work_off(one)) == sorted(each.id for each in made)


@pytest.mark.req("OQ-063", "OQ-065", "OQ-119")
async def test_a_put_back_leaves_exactly_one_hint(process: Make) -> None:
    """Also where others clean up behind it in the same minute: each removes only what it has seen."""
    one, other = process(), process()
    task = await one.submit(max_retries=50, retry_policy=one.policy(initial_interval_ms=0))
    for _ in range(8):
        [taken] = await one.take() or await one.take()
        # The other one meets the old entry at any moment.
        looking = other.tasks.claim("other", 1, other.call("worker"))
        assert await one.settle(taken, "retry", error="again") == one.states["PENDING"]
        for each in await looking:
            await other.settle(each, "release")
        await other.tasks.drain_indexes()
    await one.repair()
    assert [key.rpartition("/")[2] for key in one.keys("ready/")] == [task.id]
    assert one.keys("leases/") == []


@pytest.mark.req("OQ-022", "OQ-065")
async def test_an_entry_is_only_removed_as_it_was_read(process: Make) -> None:
    """A newer one of the same minute stays, where the store can tell the two apart."""
    one = process()
    task = await one.submit()
    [entry] = one.keys("ready/")
    old = (await one.objects.page("ready/", most=5)).entries[0]
    one.tasks._context.indexes.remove(task.id, entry, '"0123456789abcdef0123456789abcdef"')
    await one.tasks.drain_indexes()
    assert one.keys("ready/") == [entry]
    one.tasks._context.indexes.remove(task.id, entry, old.etag)
    await one.tasks.drain_indexes()
    assert one.keys("ready/") == []


@pytest.mark.req("OQ-068")
async def test_where_a_listing_of_all_takes_long_parts_are_listed(
    process: Make, s3_proxy: S3Proxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each from its first minute that is left, so that a store need not step over what was removed."""
    monkeypatch.setattr("runtime.stores.s3.claims.index_search._SLOW_S", -1.0)
    one = process(s3_proxy, QO_INDEX_MODE="index-only")
    asked = []
    for _ in range(2):
        s3_proxy.forget()
        assert await one.take() == []
        asked.append([str(each.query["prefix"]) for each in s3_proxy.asked("ListObjectsV2", ".*")])
    assert asked[0] == ["ready/"]
    assert sorted(asked[1]) == [f"ready/{part:x}/" for part in range(16)]
