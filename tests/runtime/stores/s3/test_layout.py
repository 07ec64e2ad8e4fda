"""Where everything is in the bucket, and what an entity is as an object, seen by a stranger."""

from __future__ import annotations

import json
import random
import re
from collections import Counter
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from runtime.stores.s3.keys import derived_uuid, minute
from runtime.world import RealWorld
from tests.runtime.stores.s3.conftest import Make
from tests.runtime.stores.s3.kit import Process

_UUID4 = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}")
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z")
_FIELDS = {
    "id", "task_type", "shard", "status", "available_at", "lease_expires_at", "input", "output",
    "timeout_seconds", "max_retries", "retry_count", "retry_policy", "created_at", "updated_at",
    "completed_at", "worker_id", "lease_id", "attempt", "last_error", "schema_version", "rev",
}  # fmt: skip


@pytest.mark.req("OQ-003", "OQ-005", "OQ-006", "OQ-010", "OQ-056", "OQ-058")
async def test_an_entity_and_its_entries_have_their_places(process: Make) -> None:
    """One that waits has an entry by its time, one that is leased by the end of its lease; both are tiny."""
    one = process()
    task = await one.submit()
    shard, key = task.id[0], task.id
    assert one.keys("tasks/") == [f"tasks/{shard}/{key}.json"]
    assert one.keys("ready/") == [f"ready/{shard}/{minute(task.available_at)}/{key}"]
    [taken] = await one.take()
    assert one.keys("ready/") == []
    [entry] = one.keys("leases/")
    assert entry == f"leases/{shard}/{minute(taken.lease_expires_at)}/{key}"
    body = one.raw(entry)
    assert (body["attempt"], body["retry_count"]) == (1, 0)
    assert len(json.dumps(body)) < 256
    assert all(re.fullmatch(r"(tasks|ready|leases)/[0-9a-f]/.+", each) for each in one.keys(""))


@pytest.mark.req("OQ-001", "OQ-004", "OQ-011", "OQ-012", "OQ-153")
async def test_an_entity_keeps_its_key_for_life(process: Make, s3_proxy) -> None:  # type: ignore[no-untyped-def]
    """Every change is one more version of the same object; nothing of it is ever deleted."""
    one = process(s3_proxy)
    task = await one.submit(max_retries=1, retry_policy=one.policy(initial_interval_ms=0))
    where = one.keys("tasks/")
    for edge, error in (("retry", "first"), ("retry", "second")):
        [taken] = await one.take()
        await one.settle(taken, edge, error=error)
    assert one.raw_task(task)["status"] == "Failed"
    await one.move_to(task.id, "ARCHIVED")
    await one.tasks.drain_indexes()
    assert one.keys("") == one.keys("tasks/") == where
    versions = one.raw_versions(task)
    assert [each["status"] for each in versions] == [
        "Pending", "Running", "Pending", "Running", "Failed", "Archived",
    ]  # fmt: skip
    assert len(versions) == 6
    assert not s3_proxy.asked("DeleteObject", "tasks/.*")
    assert len(s3_proxy.asked("PutObject", "tasks/.*")) == 6


@pytest.mark.req(
    "OQ-026", "OQ-027", "OQ-029", "OQ-030", "OQ-032", "OQ-040", "OQ-043", "OQ-044", "OQ-045", "OQ-046"
)
async def test_every_version_has_every_field(process: Make) -> None:
    """Times have one form and never go back; what belongs to a lease is there only with the lease."""
    one = process()
    task = await one.submit(retry_policy=one.policy(initial_interval_ms=0))
    for edge, said in (("retry", {"error": "no"}), ("release", {}), ("complete", {"output": "7"})):
        [taken] = await one.take()
        await one.settle(taken, edge, **said)
    versions = one.raw_versions(task)
    assert len(versions) == 7
    for each in versions:
        assert each.keys() >= _FIELDS
        assert _UUID4.fullmatch(each["id"])
        assert each["shard"] == each["id"][0]
        assert each["status"] in {"Pending", "Running", "Completed", "Failed", "Archived"}
        is_leased = each["status"] == "Running"
        assert (each["lease_expires_at"] is not None) == is_leased
        assert (each["lease_id"] is not None) == is_leased
        assert (each["completed_at"] is not None) == (each["status"] == "Completed")
        for name in ("created_at", "updated_at", "available_at", "completed_at", "lease_expires_at"):
            assert each[name] is None or _TIME.fullmatch(each[name])
        assert each["created_at"] == versions[0]["created_at"]
    written = [each["updated_at"] for each in versions]
    assert written == sorted(set(written))
    tokens = [each["lease_id"] for each in versions if each["lease_id"]]
    assert len(set(tokens)) == len(tokens) == 3


@pytest.mark.req("OQ-044")
async def test_a_clock_that_steps_back_moves_no_time_back(process: Make) -> None:
    one = process()
    task = await one.submit()
    one.world.ahead_ms = -1500
    await one.move_to(task.id, "FAILED")
    before, after = one.raw_versions(task)
    assert after["updated_at"] == before["updated_at"] and after["rev"] > before["rev"]


@pytest.mark.req("OQ-033", "OQ-039", "OQ-041", "OQ-042", "OQ-107", "OQ-116")
async def test_what_a_lease_leaves_behind(process: Make) -> None:
    """A lease ends its seconds after the write that began it. Who had it last is known where it has ended."""
    one = process()
    task = await one.submit(timeout_seconds=77, retry_policy=one.policy(initial_interval_ms=0))
    [taken] = await one.take()
    running = one.raw_task(task)
    assert (running["status"], running["worker_id"], running["attempt"]) == ("Running", "w1", 1)
    assert _UUID4.fullmatch(running["lease_id"])
    ends, began = map(datetime.fromisoformat, (running["lease_expires_at"], running["updated_at"]))
    assert ends - began == timedelta(seconds=77)
    await one.settle(taken, "retry", error="a stone in the way")
    waiting = one.raw_task(task)
    assert (waiting["worker_id"], waiting["retry_count"], waiting["attempt"]) == (None, 1, 1)
    assert waiting["last_error"] == "a stone in the way"
    [taken] = await one.take()
    await one.settle(taken, "complete", output='{"a":[1.50,12345678901234567890]}')
    done = one.raw_task(task)
    assert (done["status"], done["worker_id"], done["attempt"]) == ("Completed", "w1", 2)
    assert done["output"] == {"a": [1.5, 12345678901234567890]}
    again = await one.tasks.get(task.id)
    assert again is not None
    assert again.output == '{"a":[1.50,12345678901234567890]}'


@pytest.mark.req("OQ-039", "OQ-176")
async def test_attempts_go_on_counting_over_a_replay(process: Make) -> None:
    one = process()
    task = await one.submit(max_retries=0)
    [taken] = await one.take()
    assert await one.settle(taken, "retry", error="x") == one.states["FAILED"]
    await one.move_to(task.id, "PENDING")
    await one.tasks.drain_indexes()
    assert one.raw_task(task)["attempt"] == 1
    [taken] = await one.take()
    assert (taken.attempt, taken.retry_count) == (2, 0)


@pytest.mark.req("OQ-034", "OQ-035")
async def test_any_json_goes_in_and_comes_out(process: Make) -> None:
    one = process()

    @settings(max_examples=60)
    @given(
        st.recursive(
            st.none()
            | st.booleans()
            | st.integers(-(2**70), 2**70)
            | st.text()
            | st.floats(allow_nan=False, allow_infinity=False),
            lambda inner: (
                st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
            ),
            max_leaves=8,
        )
    )
    def goes_round(value: object) -> None:
        codec = one.tasks._writes._codec
        text = json.dumps(value)
        body = codec.encode(
            one.new(id=derived_uuid("x"), status=one.states["PENDING"], input=text, output=text), {}
        )
        record, _ = codec.decode(derived_uuid("x"), body)
        assert json.loads(record.input) == value
        assert json.loads(body)["input"] == value

    goes_round()
    task = await one.submit(input='{"n":1.10,"big":123456789012345678901234567890}')
    assert one.raw_task(task)["output"] is None
    [taken] = await one.take()
    assert taken.input == '{"n":1.10,"big":123456789012345678901234567890}'


@pytest.mark.req("OQ-047", "OQ-127")
async def test_what_is_unknown_in_an_object_stays(process: Make) -> None:
    """Also where somebody adds it while a worker has the lease: the worker's outcome lands all the same."""
    one = process()
    task = await one.submit()
    where = f"tasks/{task.shard}/{task.id}.json"
    one.raw_put(where, json.dumps({**one.raw(where), "x_note": {"by": "hand", "n": 1.5}}).encode())
    [taken] = await one.take()
    assert one.raw_task(task)["x_note"] == {"by": "hand", "n": 1.5}
    one.raw_put(where, json.dumps({**one.raw(where), "x_more": 2}).encode())
    assert await one.settle(taken, "complete", output="1") == one.states["COMPLETED"]
    done = one.raw_task(task)
    assert (done["x_note"], done["x_more"], done["output"]) == ({"by": "hand", "n": 1.5}, 2, 1)


@pytest.mark.req("OQ-008", "OQ-128")
async def test_large_values_are_kept_apart(process: Make, s3_proxy) -> None:  # type: ignore[no-untyped-def]
    """They are written before the entity names them; whoever takes the entity gets them with it."""
    one = process(s3_proxy)
    large = json.dumps({"text": "ä" * 70_000})
    task = await one.submit(input=large)
    shown = one.raw_task(task)
    where = f"data/{task.shard}/{task.id}/input.json"
    assert (shown["input"], shown["input_ref"]["key"]) == (None, where)
    assert shown["input_ref"]["version"]
    assert one.raw(where) == json.loads(large)
    [taken] = await one.take()
    assert taken.input == large
    s3_proxy.forget()
    assert await one.settle(taken, "complete", output=large) == one.states["COMPLETED"]
    assert [each.key.partition("/")[0] for each in s3_proxy.asked("PutObject", "")][:2] == [
        "data",
        "tasks",
    ]
    found = await one.tasks.get(task.id)
    assert found is not None
    assert (found.input, found.output) == (large, large)
    assert one.raw_task(task)["output"] is None


@pytest.mark.req("OQ-128", "OQ-125")
async def test_a_loser_does_not_change_what_the_winner_has_written(process: Make) -> None:
    """Both write a large output under one key; the entity names the version of the one with the lease."""
    one, two = process(), process()
    task = await one.submit(timeout_seconds=5)
    [late] = await one.take()
    two.world.ahead_ms = 60_000
    assert await two.sweep() == 1
    two.world.ahead_ms += 5_000
    [taken] = await two.take("w2")
    won, lost = (json.dumps(each * 70_000) for each in ("won", "lost"))
    assert await two.settle(taken, "complete", output=won) == one.states["COMPLETED"]
    assert isinstance(await one.settle(late, "complete", output=lost), Exception)
    found = await one.tasks.get(task.id)
    assert found is not None and found.output == won


@pytest.mark.req("OQ-055")
def test_minutes_as_text_are_in_the_order_of_time() -> None:
    chance = random.Random(7)
    epoch = datetime(1970, 1, 1, tzinfo=UTC)
    times = [epoch + timedelta(minutes=chance.uniform(0, 10**8)) for _ in range(2000)]
    assert [minute(each) for each in sorted(times)] == sorted(minute(each) for each in times)
    assert {len(minute(each)) for each in times} == {10}


@pytest.mark.req("OQ-071", "OQ-072", "OQ-027")
async def test_ids_spread_over_all_shards(process: Make) -> None:
    one = process()
    keys = one.tasks._context.keys
    ids = [RealWorld().new_id() for _ in range(16_000)]
    shards = Counter(keys.shard_of(each) for each in ids)
    assert set(shards) == set("0123456789abcdef") == set(keys.shards)
    assert all(850 <= count <= 1150 for count in shards.values())
    assert all(_UUID4.fullmatch(each) for each in ids)
    assert all(_UUID4.fullmatch(derived_uuid(f"key {number}")) for number in range(200))


@pytest.mark.req("OQ-002", "OQ-074")
async def test_a_new_process_needs_nothing_but_the_bucket(process: Make) -> None:
    """Everything that one process has left, another one finds and finishes, in every shard."""
    one = process()
    made = await one.tasks.create_many(
        [one.new(id=f"{digit}{RealWorld().new_id()[1:]}") for digit in "0123456789abcdef"], one.call()
    )
    await one.close()
    two: Process = process()
    done = 0
    while taken := await two.take("w2", free=5):
        for each in taken:
            await two.settle(each, "complete", output="1")
        done += len(taken)
    assert done == len(made) == 16
    assert {two.raw_task(each.record)["status"] for each in made} == {"Completed"}
