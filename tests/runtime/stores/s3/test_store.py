"""Creating, finding, moving and the past of entities in a bucket."""

from __future__ import annotations

import asyncio
import json
import time
from typing import Any

import pytest

from runtime.call.conditions import Condition
from runtime.node.settings import SettingsError
from runtime.stores.bucket_store import NotReadable
from runtime.stores.contract import Cursor, LeaseProof
from runtime.stores.semantics.rules import to_moment
from runtime.stores.store import GuardBreach, NoSuchEntity, StoreUnusable
from tests.runtime.stores.s3.conftest import Make
from tests.support.eventually import eventually
from tests.support.s3.fixtures import Bucket
from tests.support.s3.proxy import S3Proxy


@pytest.mark.req("OQ-083", "OQ-084", "OQ-085", "OQ-086", "OQ-036", "OQ-038")
async def test_an_entity_is_created_before_its_entry(process: Make, s3_proxy: S3Proxy) -> None:
    one = process(s3_proxy)
    task = await one.submit()
    puts = s3_proxy.asked("PutObject", ".*")
    assert [each.key.partition("/")[0] for each in puts] == ["tasks", "ready"]
    assert puts[0].headers["if-none-match"] == "*"
    shown = one.raw_task(task)
    assert (shown["status"], shown["retry_count"], shown["attempt"], shown["rev"]) == ("Pending", 0, 0, 1)
    assert shown["available_at"] == shown["created_at"] == shown["updated_at"]
    assert shown["schema_version"] == 1


@pytest.mark.req("OQ-088")
async def test_a_key_is_used_once(process: Make, s3_proxy: S3Proxy) -> None:
    """What has it stays as it is, and no entry is written for the other."""
    one = process(s3_proxy)
    task = await one.submit(input="1")
    s3_proxy.forget()
    with pytest.raises(GuardBreach):
        await one.tasks.create(one.new(id=task.id, input="2"), one.call())
    await one.tasks.drain_indexes()
    assert one.raw_task(task)["input"] == 1
    assert s3_proxy.asked("PutObject", "ready/.*") == []
    assert len(one.raw_versions(task)) == 1


async def test_what_is_no_key_names_no_object(process: Make, s3_proxy: S3Proxy) -> None:
    """Nothing is asked of the bucket for it, whichever object it would lead to."""
    one = process(s3_proxy)
    task = await one.submit()
    await one.tasks.drain_indexes()
    s3_proxy.forget()
    for name in ("", "x", f"{task.id}.json", f"../{task.id[0]}/{task.id}", f"{task.id}\n", task.id.upper()):
        assert await one.tasks.get(name) is None
        assert await one.tasks.versions(name) == []
        assert await one.tasks.renew([(name, LeaseProof("w", 1))]) == [None]
        with pytest.raises(NoSuchEntity):
            await one.tasks.transition(name, "advance", one.call("worker"), lease=LeaseProof("w", 1))
        with pytest.raises(NoSuchEntity):
            await one.move(name, "PENDING", "FAILED")
        with pytest.raises(GuardBreach):
            await one.tasks.create(one.new(id=name or " "), one.call())
    assert s3_proxy.asked() == []


@pytest.mark.req("OQ-089")
@pytest.mark.parametrize("harm", [{"drop": True}, {"status": 500, "carried_out": True}, {"status": 503}])
async def test_a_creation_whose_answer_is_lost_is_one_creation(
    process: Make, s3_proxy: S3Proxy, harm: dict[str, Any]
) -> None:
    one = process(s3_proxy)
    s3_proxy.rule(kind="PutObject", key="tasks/.*", **harm)
    record, is_new = await one.create(one.new())
    await one.tasks.drain_indexes()
    assert is_new
    assert len(one.raw_versions(record)) == 1
    assert len(one.keys("ready/")) == 1


@pytest.mark.req("OQ-263")
async def test_a_key_of_the_submitter_makes_an_entity_once(process: Make) -> None:
    """Whoever comes with the same key finds it as a whole, also with another wish, which it can compare."""
    one, two = process(), process()
    large = json.dumps("x" * 70_000)
    wishes = [{"input": '{"a": 1}'}, {"input": large}]
    for number, wish in enumerate(wishes):
        new = one.new(idempotency_key=f"k{number}", **wish)
        (first, is_new), (again, is_too) = await asyncio.gather(one.create(new), two.create(new))
        assert (first.id, is_new + is_too) == (again.id, 1)
        await one.take(free=2)
        assert (await two.create(new))[1] is False
        whole, is_new = await two.create(one.new(idempotency_key=f"k{number}", input="2"))
        assert (whole.input, is_new) == (wish["input"].replace(" ", ""), False)


async def test_a_change_that_does_not_apply_changes_nothing(process: Make) -> None:
    one = process()
    task = await one.submit()
    assert await one.move(task.id, "FAILED", "ARCHIVED") == (False, one.states["PENDING"])
    assert len(one.raw_versions(task)) == 1
    with pytest.raises(NoSuchEntity):
        await one.move(one.world.new_id(), "PENDING", "FAILED")
    with pytest.raises(Condition):
        await one.move(task.id, "PENDING", "RUNNING")
    with pytest.raises(Condition):
        await one.tasks.create(one.new(), one.call("worker"))
    with pytest.raises(GuardBreach):
        await one.tasks.update(task.id, retry_count=0)


@pytest.mark.req("OQ-178")
async def test_of_two_changes_at_once_one_is_told_that_it_came_too_late(process: Make) -> None:
    one, two = process(), process()
    task = await one.submit()
    for _ in range(4):
        await one.move_to(task.id, "FAILED")
        moved = await asyncio.gather(
            one.move(task.id, "FAILED", "PENDING"), two.move(task.id, "FAILED", "PENDING")
        )
        assert sorted(each.applied for each in moved) == [False, True]
        assert {each.state for each in moved} == {one.states["PENDING"]}


@pytest.mark.req("OQ-173", "OQ-008")
async def test_large_values_are_tagged_with_their_entity(process: Make) -> None:
    """So that what removes archived entities removes their values as well."""
    one = process()
    large = json.dumps("z" * 70_000)
    task = await one.submit(input=large)
    [taken] = await one.take()
    await one.settle(taken, "complete", output=large)

    def tags() -> list[dict[str, str]]:
        keys = (f"data/{task.shard}/{task.id}/{name}.json" for name in ("input", "output"))
        told = (one.bucket.raw.get_object_tagging(Bucket=one.bucket.name, Key=key) for key in keys)
        return [{each["Key"]: each["Value"] for each in found["TagSet"]} for found in told]

    assert tags() == [{}, {}]
    await one.move_to(task.id, "ARCHIVED")
    assert tags() == [{"qo-status": "archived"}] * 2
    await one.move_to(task.id, "COMPLETED")
    assert tags() == [{}, {}]
    found = await one.tasks.get(task.id)
    assert found is not None
    assert (found.input, found.output) == (large, large)


@pytest.mark.req("OQ-168", "OQ-173", "OQ-174")
async def test_what_is_retired_has_a_tag_for_as_long_as_it_is(process: Make) -> None:
    one = process()
    task = await one.submit()
    where = f"tasks/{task.shard}/{task.id}.json"

    def tags() -> dict[str, str]:
        found = one.bucket.raw.get_object_tagging(Bucket=one.bucket.name, Key=where)["TagSet"]
        return {each["Key"]: each["Value"] for each in found}

    await one.move_to(task.id, "FAILED")
    assert tags() == {}
    await one.move_to(task.id, "ARCHIVED")
    assert tags() == {"qo-status": "archived"}
    assert one.raw_task(task)["archived_from"] == "Failed"
    assert not (await one.move_to(task.id, "COMPLETED")).applied
    await one.move_to(task.id, "FAILED")
    assert tags() == {}
    assert one.raw_task(task)["archived_from"] is None


async def test_a_client_ends_what_runs_and_its_worker_finds_out(process: Make) -> None:
    one = process()
    task = await one.submit()
    [taken] = await one.take()
    assert (await one.move_to(task.id, "FAILED")).applied
    await one.tasks.drain_indexes()
    assert one.raw_task(task)["last_error"] == "cancelled"
    assert one.keys("leases/") == []
    assert isinstance(await one.settle(taken, "complete", output="1"), Condition)
    assert one.raw_task(task)["status"] == "Failed"


@pytest.mark.req("OQ-224", "OQ-171")
async def test_listings_are_narrowed_and_what_changed_last_comes_first(process: Make) -> None:
    one = process()
    made = [
        await one.submit(id=f"{'01'[n % 2]}{one.world.new_id()[1:]}", task_type="ab"[n % 2]) for n in range(6)
    ]
    await one.move_to(made[0].id, "FAILED")
    found = (await one.tasks.find(size=10)).records
    assert [each.id for each in found] == [made[0].id, *[each.id for each in reversed(made[1:])]]
    assert [each.id for each in (await one.tasks.find(states=[one.states["FAILED"]])).records] == [made[0].id]
    odd = await one.tasks.find(equal={"shard": "1", "task_type": "b"}, size=2)
    assert [each.id for each in odd.records] == [made[5].id, made[3].id]
    rest = await one.tasks.find(equal={"shard": "1"}, after=odd.next, size=2)
    assert [each.id for each in rest.records] == [made[1].id]
    assert (await one.tasks.find(equal={"shard": "f"})).records == []
    first = await one.tasks.find(size=4, newest_first=False)
    last = first.records[3]
    assert first.next == Cursor(to_moment(last.updated_at) or 0, last.id)
    sizes = (await one.tasks.sizes()).by_state
    assert {place: each.entities for place, each in sizes.items()} == {
        ("0", one.states["FAILED"]): 1, ("0", one.states["PENDING"]): 2, ("1", one.states["PENDING"]): 3,
    }  # fmt: skip


async def test_a_part_of_a_listing_by_place(process: Make, s3_proxy: S3Proxy) -> None:
    """From both ends, with and without more behind it; what is asked for last is not read first."""
    one = process(s3_proxy)
    made = [await one.submit(id=f"{n % 3}{one.world.new_id()[1:]}") for n in range(70)]
    one.world.ahead_ms = 60_000
    made_s = int(time.time())
    await eventually(lambda: int(time.time()) > made_s, "a new second: a listing tells times in whole ones")
    for each in made[:3]:
        await one.move_to(each.id, "FAILED")
    order = [each.id for each in (*made[3:], *made[:3])]
    for offset, size in ((0, 4), (66, 4), (66, 5), (69, 5), (70, 5), (0, 70), (0, 69)):
        for is_newest, ids in ((True, order[::-1]), (False, order)):
            found = await one.tasks.find(offset=offset, size=size, newest_first=is_newest)
            assert [each.id for each in found.records] == ids[offset : offset + size]
            assert (found.next is not None) == (offset + size < 70)
    failed = await one.tasks.find(states=[one.states["FAILED"]], offset=1, size=1, newest_first=False)
    assert [each.id for each in failed.records] == [made[1].id] and failed.next
    assert (await one.tasks.find(size=0)).records == []
    other = process(s3_proxy)
    s3_proxy.forget()
    await other.tasks.find(size=1)
    assert len(s3_proxy.asked("GetObject", "tasks/")) == 32


@pytest.mark.req("OQ-149", "OQ-150", "OQ-151", "OQ-020")
async def test_the_past_is_the_versions_of_the_object(process: Make, s3_proxy: S3Proxy) -> None:
    """In the order of time, of exactly this key, each read by its number."""
    one = process(s3_proxy)
    task = await one.submit(retry_policy=one.policy(initial_interval_ms=0))
    [taken] = await one.take()
    await one.settle(taken, "retry", error="no")
    [taken] = await one.take()
    await one.settle(taken, "complete", output="1")
    where = f"tasks/{task.shard}/{task.id}.json"
    one.raw_put(f"{where}.copy", b"{}")
    s3_proxy.forget()
    past = await one.tasks.versions(task.id)
    words = one.task.states
    assert [words[each.record.status] for each in past if each.record] == [
        "PENDING", "RUNNING", "PENDING", "RUNNING", "COMPLETED",
    ]  # fmt: skip
    assert len({each.etag for each in past}) == len({each.version for each in past}) == 5
    assert [each.at for each in past] == sorted(each.at for each in past)
    assert {each.query["versionId"] for each in s3_proxy.asked("GetObject", ".*")} == {
        each.version for each in past
    }
    assert len(s3_proxy.asked("ListObjectVersions", ".*")) == 1
    assert await one.tasks.is_versioned()


@pytest.mark.req("OQ-152")
async def test_a_long_past_is_read_page_by_page(
    process: Make, s3_proxy: S3Proxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("runtime.stores.s3.listing._PAGE", 10)
    one = process(s3_proxy)
    task = await one.submit()
    where = f"tasks/{task.shard}/{task.id}.json"
    body = one.raw(where)
    for number in range(2, 36):
        await one.objects.put(where, json.dumps({**body, "rev": number}).encode())
    past = await one.tasks.versions(task.id)
    assert [each.record.rev for each in past if each.record] == list(range(1, 36))
    assert len(s3_proxy.asked("ListObjectVersions", ".*")) == 4


@pytest.mark.req("OQ-104", "OQ-236")
async def test_what_cannot_be_read_is_said_so(process: Make) -> None:
    one = process()
    task = await one.submit()
    one.raw_put(f"tasks/{task.shard}/{task.id}.json", b"[]")
    with pytest.raises(NotReadable) as odd:
        await one.tasks.get(task.id)
    assert odd.value.key == task.id
    with pytest.raises(NotReadable):
        await one.move_to(task.id, "FAILED")
    assert (await one.tasks.find()).records == []


@pytest.mark.req("OQ-018", "OQ-019", "OQ-154", "OQ-128")
async def test_a_bucket_without_versions_is_refused_unless_it_is_wanted(
    process: Make, bucket: Bucket
) -> None:
    """Without versions, large values of two attempts have keys of their own."""
    bucket.raw.put_bucket_versioning(Bucket=bucket.name, VersioningConfiguration={"Status": "Suspended"})
    with pytest.raises(StoreUnusable, match="QO_ALLOW_NO_VERSIONING"):
        await process().tasks.open(process().log, ["queue"])
    one = process(QO_ALLOW_NO_VERSIONING=True)
    await one.tasks.open(one.log, ["queue"])
    assert not await one.tasks.is_versioned()
    large = json.dumps("y" * 70_000)
    task = await one.submit(input=large)
    [taken] = await one.take()
    await one.settle(taken, "complete", output=large)
    assert one.raw_task(task)["output_ref"]["key"].endswith("/output.1.json")
    found = await one.tasks.get(task.id)
    assert found is not None and (found.input, found.output) == (large, large)


@pytest.mark.req("OQ-017", "OQ-059")
async def test_a_store_that_ignores_conditions_is_refused(process: Make, s3_proxy: S3Proxy) -> None:
    """Whoever takes leases finds out; so does whoever could lose what is in no index."""
    one = process(s3_proxy)
    await one.tasks.open(one.log, ["worker", "monitor"])
    with pytest.raises(SettingsError, match="QO_INDEX_MODE"):
        await process(QO_INDEX_MODE="index-only", QO_MONITOR_SWEEP_INTERVAL=0).tasks.open(one.log, ["worker"])
    s3_proxy.rule(kind="PutObject", strip=("if-match", "if-none-match"), times=None)
    with pytest.raises(StoreUnusable, match="conditions"):
        await one.tasks.open(one.log, ["worker"])
    await one.tasks.open(one.log, ["queue"])


async def test_who_serves_is_created_once_and_beats_with_one_request(
    process: Make, s3_proxy: S3Proxy
) -> None:
    one = process(s3_proxy)
    workers = one.store("worker")
    lifecycle = one.system.lifecycles["worker"]
    assert lifecycle.record is not None
    record = lifecycle.record(worker_id="w1", shards=("0", "1"))
    made = (await workers.create(record, one.call("worker"))).record
    assert one.raw("workers/w1.json")["shards"] == ["0", "1"]
    with pytest.raises(GuardBreach, match="exists already"):
        await workers.create(record, one.call("worker"))
    given: dict[str, Any] = {
        "current_task": "t",
        "current_tasks": ("t",),
        "tasks_completed": 2,
        "tasks_failed": 1,
        "leases_lost": 0,
    }
    assert (await workers.transition("w1", "beat", one.call("worker"), given=given)).applied
    s3_proxy.forget()
    one.world.ahead_ms = 5_000
    given |= {"current_task": None, "current_tasks": ()}
    assert (await workers.transition("w1", "beat", one.call("worker"), given=given)).applied
    assert [each.kind for each in s3_proxy.seen] == ["PutObject"]
    shown = one.raw("workers/w1.json")
    assert (shown["current_task"], shown["current_tasks"], shown["tasks_completed"]) == (None, [], 2)
    assert shown["last_heartbeat"] > shown["started_at"]
    assert (await workers.delete("w1", made.status, one.call("worker"))).applied
    assert one.keys("workers/") == []
