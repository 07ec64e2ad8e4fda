"""Leases of entities in a bucket: one taker each, and answers that are lost."""

from __future__ import annotations

import asyncio
import json
from datetime import timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from runtime.call.conditions import Condition
from runtime.stores.s3.indexes import index_writer
from runtime.stores.store import StoreUnusable
from tests.runtime.stores.s3.conftest import Make
from tests.support.eventually import eventually
from tests.support.s3.proxy import S3Proxy


@pytest.mark.req("OQ-106", "OQ-108", "OQ-096")
async def test_a_taking_is_a_read_and_a_guarded_write(process: Make, s3_proxy: S3Proxy) -> None:
    """Only after it has won does the taker write the lease's entry and remove the one that led it there."""
    one = process(s3_proxy)
    task = await one.submit()
    s3_proxy.forget()
    [taken] = await one.take()
    asked = [each for each in s3_proxy.seen if each.kind != "ListObjectsV2"]
    assert [(each.kind, each.key.partition("/")[0]) for each in asked] == [
        ("GetObject", "tasks"), ("PutObject", "tasks"), ("PutObject", "leases"), ("DeleteObject", "ready"),
    ]  # fmt: skip
    assert "if-match" in asked[1].headers
    s3_proxy.forget()
    await one.settle(taken, "complete", output="1")
    assert [(each.kind, each.key.partition("/")[0]) for each in s3_proxy.seen] == [
        ("PutObject", "tasks"), ("DeleteObject", "leases"),
    ]  # fmt: skip
    assert one.keys("") == [f"tasks/{task.shard}/{task.id}.json"]


async def test_a_short_lease_has_no_entry(
    process: Make, s3_proxy: S3Proxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is done at once costs a read and two writes, and the removal of the entry that led to it."""
    young_s = index_writer._YOUNG_S
    monkeypatch.setattr(index_writer, "_YOUNG_S", 60.0)
    one = process(s3_proxy)
    await one.submit()
    s3_proxy.forget()
    [taken] = await one.tasks.claim("w1", 1, one.call("worker"))
    await one.settle(taken, "complete", output="1")
    asked = [
        (each.kind, each.key.partition("/")[0]) for each in s3_proxy.seen if each.kind != "ListObjectsV2"
    ]
    assert sorted(asked) == [
        ("DeleteObject", "ready"), ("GetObject", "tasks"), ("PutObject", "tasks"), ("PutObject", "tasks"),
    ]  # fmt: skip
    monkeypatch.setattr(index_writer, "_YOUNG_S", young_s)
    await one.submit()
    [taken] = await one.tasks.claim("w1", 1, one.call("worker"))
    await eventually(lambda: one.keys("leases/"))


@pytest.mark.req("OQ-109", "OQ-113", "OQ-108", "OQ-242")
async def test_each_is_taken_once_whoever_comes_first(process: Make, s3_proxy: S3Proxy) -> None:
    """Those who lose write no entry and go on with the next."""
    workers = [process(s3_proxy) for _ in range(4)]
    first = workers[0]
    made = [await first.submit() for _ in range(25)]
    s3_proxy.forget()

    async def work(number: int) -> list[str]:
        taken: list[str] = []
        while some := await workers[number].take(f"w{number}", free=2):
            taken += [each.id for each in some]
        return taken

    shares = await asyncio.gather(*[work(number) for number in range(len(workers))])
    taken = [key for share in shares for key in share]
    assert sorted(taken) == sorted(each.id for each in made)
    for each in made:
        assert [version["status"] for version in first.raw_versions(each)] == ["Pending", "Running"]
    assert len(s3_proxy.asked("PutObject", "leases/.*")) == len(made)


@pytest.mark.req("OQ-110")
@pytest.mark.parametrize("status", [409, 404, 412])
async def test_a_refused_taking_is_left_for_the_next_look(
    process: Make, s3_proxy: S3Proxy, status: int
) -> None:
    one = process(s3_proxy, QO_INDEX_MODE="index-only")
    task = await one.submit()
    s3_proxy.forget()
    s3_proxy.rule(kind="PutObject", key="tasks/.*", status=status)
    assert await one.take() == []
    assert one.keys("leases/") == []
    assert len(s3_proxy.asked("GetObject", "tasks/.*")) == 1
    [taken] = await one.take()
    assert (taken.id, taken.attempt) == (task.id, 1)


@pytest.mark.req("OQ-111")
@pytest.mark.parametrize("harm", [{"drop": True}, {"status": 500, "carried_out": True}])
async def test_a_taking_whose_answer_is_lost_is_found_again(
    process: Make, s3_proxy: S3Proxy, harm: dict[str, Any]
) -> None:
    """The token in the object says whose it is; the entry is written and nothing is taken twice."""
    one = process(s3_proxy)
    task = await one.submit()
    s3_proxy.rule(kind="PutObject", key="tasks/.*", **harm)
    [taken] = await one.take()
    assert (taken.id, taken.attempt) == (task.id, 1)
    assert len(one.keys("leases/")) == 1
    assert len(one.raw_versions(task)) == 2
    assert await one.settle(taken, "complete", output="1") == one.states["COMPLETED"]


async def test_a_taking_that_was_not_done_is_done_again(process: Make, s3_proxy: S3Proxy) -> None:
    one = process(s3_proxy)
    await one.submit()
    s3_proxy.rule(kind="PutObject", key="tasks/.*", status=503)
    [taken] = await one.take() or await one.take()
    assert taken.attempt == 1


@pytest.mark.req("OQ-127", "OQ-247")
@pytest.mark.parametrize("edge", ["complete", "retry", "fail", "release"])
async def test_an_outcome_whose_answer_is_lost_is_written_once(
    process: Make, s3_proxy: S3Proxy, edge: str
) -> None:
    one = process(s3_proxy)
    task = await one.submit()
    [taken] = await one.take()
    s3_proxy.rule(kind="PutObject", key="tasks/.*", drop=True)
    outcome = await one.settle(taken, edge, **({"output": "1"} if edge == "complete" else {"error": "no"}))
    assert outcome == one.task.transition(edge).target
    assert len(one.raw_versions(task)) == 3
    assert one.keys("leases/") == []


async def test_an_outcome_in_doubt_is_recognised_when_the_store_is_back(
    process: Make, s3_proxy: S3Proxy
) -> None:
    """Its answer is lost and nothing can be asked for a while; the next try finds its own write."""
    one = process(s3_proxy)
    task = await one.submit()
    [taken] = await one.take()
    s3_proxy.rule(kind="PutObject", key="tasks/.*", drop=True)
    s3_proxy.rule(kind="GetObject", key="tasks/.*", status=503, times=one.objects.location.tries)
    outcome = await one.settle(taken, "complete", output="1")
    assert isinstance(outcome, Condition) and outcome.grpc == "UNAVAILABLE"
    assert await one.settle(taken, "complete", output="1") == one.states["COMPLETED"]
    assert len(one.raw_versions(task)) == 3


@pytest.mark.req("OQ-125", "OQ-247")
async def test_who_has_lost_a_lease_writes_nothing(process: Make) -> None:
    one, two = process(), process()
    task = await one.submit(timeout_seconds=5)
    [late] = await one.take()
    two.world.ahead_ms = 20_000
    assert await two.sweep() == 1
    two.world.ahead_ms += 5_000
    [taken] = await two.take("w2")
    for edge in ("complete", "retry", "fail", "release"):
        lost = await one.settle(late, edge, output="1")
        assert isinstance(lost, Condition) and lost.code == one.system.roles["lease_lost"].code
    assert await one.renew(late) is False
    assert one.raw_task(task)["worker_id"] == "w2"
    assert await two.settle(taken, "complete", output="2") == one.states["COMPLETED"]
    assert one.raw_task(task)["output"] == 2


@pytest.mark.req("OQ-129", "OQ-138")
async def test_a_lease_is_made_longer_and_its_entry_follows(process: Make) -> None:
    """A sweeper that finds the old entry does not cut the lease."""
    one = process()
    task = await one.submit(timeout_seconds=90)
    [taken] = await one.take()
    [old] = one.keys("leases/")
    one.world.ahead_ms = 80_000
    assert await one.renew(taken) is True
    await one.tasks.drain_indexes()
    [new] = one.keys("leases/")
    assert new > old
    renewed = one.raw_task(task)
    assert (renewed["attempt"], renewed["lease_id"]) == (1, taken.lease_id)
    one.raw_put(old, b"{}")
    one.world.ahead_ms = 110_000
    assert await one.sweep() == 0
    assert one.keys("leases/") == [new]
    assert one.raw_task(task)["status"] == "Running"
    assert await one.settle(taken, "complete", output="1") == one.states["COMPLETED"]


@pytest.mark.req("OQ-031", "OQ-061", "OQ-103")
async def test_what_is_not_due_is_left_alone(process: Make) -> None:
    """Its entry stays, nobody waits for it, and what is due is taken meanwhile."""
    one = process()
    one.world.stands_at_ms = one.world.now_ms()
    now = one.tasks._context.now()
    later = await one.submit(available_at=now + timedelta(seconds=40))
    due = await one.submit()
    [taken] = await one.take(free=5)
    assert taken.id == due.id
    assert [key.rpartition("/")[2] for key in one.keys("ready/")] == [later.id]
    one.world.ahead_ms = 10_000
    assert await one.take() == []
    one.world.ahead_ms = 40_100
    [taken] = await one.take()
    assert taken.id == later.id


@pytest.mark.req("OQ-105")
async def test_only_known_kinds_are_taken(process: Make, s3_proxy: S3Proxy) -> None:
    """Another kind is looked at once and remembered; a worker that knows it takes it."""
    one = process(s3_proxy)
    other = await one.submit(task_type="b")
    one.narrow("w1", kinds=["a"])
    assert await one.take() == []
    s3_proxy.forget()
    assert await one.take() == []
    assert s3_proxy.asked("GetObject", "tasks/.*") == []
    assert one.keys("ready/") != []
    one.narrow("w2", kinds=["a", "b"])
    [taken] = await one.take("w2")
    assert taken.id == other.id


@pytest.mark.req("OQ-073")
async def test_a_worker_keeps_to_its_parts(process: Make, s3_proxy: S3Proxy) -> None:
    one = process(s3_proxy)
    for digit in "012f":
        await one.submit(id=f"{digit}{one.world.new_id()[1:]}")
    s3_proxy.forget()
    one.narrow("w1", shards=["0", "1"])
    taken = await one.take(free=4) + await one.take(free=4) + await one.take(free=4)
    assert sorted(each.shard for each in taken) == ["0", "1"]
    listed = {each.query.get("prefix") for each in s3_proxy.asked("ListObjectsV2", ".*")}
    assert listed <= {"ready/0/", "ready/1/", "tasks/0/", "tasks/1/"}
    touched = {each.key.rpartition("/")[0] for each in s3_proxy.seen if each.kind != "ListObjectsV2"}
    assert {each.split("/")[1] for each in touched - {"sweeps"}} == {"0", "1"}


@pytest.mark.req("OQ-216", "OQ-148")
async def test_a_clock_that_is_off_takes_nothing(process: Make) -> None:
    """Neither a worker nor a sweeper acts by it; both say why. What time it is they hear when they start."""
    one = process()
    await one.submit(timeout_seconds=1)
    await one.tasks.open(one.log, ["worker"])
    one.objects.ignores_clock = False
    one.world.ahead_ms = 10_000
    assert await one.take() == []
    assert await one.sweep() == 0
    [line] = one.lines.read_back("clock_off")
    assert "ahead of" in line["message"] and line["level"] == "ERROR"
    one.world.ahead_ms = 0
    assert len(await one.take()) == 1


async def test_the_holder_says_how_far_it_is(process: Make) -> None:
    """Only whoever has the lease can."""
    one = process()
    task = await one.submit()
    [taken] = await one.take()
    assert (await one.advance(taken, progress='{"done":0.5}')).applied
    assert one.raw_task(task)["progress"] == {"done": 0.5}
    with pytest.raises(Condition):
        await one.advance(replace(taken, worker_id="w2"), progress="1")
    assert await one.settle(taken, "complete", output="1") == one.states["COMPLETED"]
    assert not (await one.advance(taken, progress="1")).applied


@pytest.mark.req("OQ-251")
async def test_a_store_that_refuses_ends_the_work(process: Make, s3_proxy: S3Proxy) -> None:
    one = process(s3_proxy)
    await one.submit()
    s3_proxy.rule(kind="ListObjectsV2", status=403, times=None)
    with pytest.raises(StoreUnusable):
        await one.take()


@pytest.mark.req("OQ-047", "OQ-104")
async def test_what_cannot_be_read_is_told_of_and_skipped(process: Make) -> None:
    one = process()
    good = await one.submit()
    bad = one.world.new_id()
    one.raw_put(f"tasks/{bad[0]}/{bad}.json", b"{ no json")
    one.raw_put(f"ready/{bad[0]}/0000000001/{bad}", b"{}")
    half = one.world.new_id()
    one.raw_put(f"tasks/{half[0]}/{half}.json", json.dumps({"id": half, "status": "Dancing"}).encode())
    taken = await one.take(free=3) + await one.take(free=3)
    assert [each.id for each in taken] == [good.id]
    told = one.lines.read_back("object_unreadable")
    assert {bad, half} == {line["message"].split("/")[2][:36] for line in told}
