"""New entities: stored, queued and remembered in one step, first come first served."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest
from msgspec.structs import replace

from generated.priority.messages import COMPLETED, HIGH, LOW, MEDIUM, QUEUED
from runtime.call.conditions import Condition
from runtime.stores.redis.codec import parse_moment, to_microseconds
from runtime.stores.store import GuardBreach
from tests.runtime.stores.redis.conftest import MakeKit
from tests.runtime.stores.redis.kit import PRIORITIES, Kit
from tests.support.eventually import eventually


@pytest.mark.req("PQ-001", "PQ-002", "PQ-003", "PQ-004", "PQ-005", "PQ-033", "PQ-055", "PQ-165")
async def test_a_task_is_a_hash_and_an_entry_of_the_queue_of_its_priority(kit: Kit) -> None:
    """The score is the time of creation by the clock of Redis, in microseconds."""
    before = await kit.now()
    for priority, word in PRIORITIES.items():
        made = await kit.add(priority=priority)
        assert await kit.redis.type(f"queue:{word}") == "zset"
        assert await kit.redis.type(f"tasks:{made.task_id}") == "hash"
        assert await kit.redis.zrange(f"queue:{word}", 0, -1) == [made.task_id]
        row = await kit.hash(made.task_id)
        assert await kit.redis.zscore(f"queue:{word}", made.task_id) == float(row["created_at"])
        assert before <= int(row["created_at"]) <= await kit.now()
        assert made == await kit.task(made.task_id)
    await kit.sound()


@pytest.mark.req("PQ-006", "PQ-007")
async def test_no_two_are_created_at_the_same_moment(kit: Kit) -> None:
    """Not even in one script, so that whoever came first is first whatever its id."""
    made = await kit.create(*(kit.intent(priority=LOW) for _ in range(700)))
    for _ in range(300):
        made += await kit.create(kit.intent(priority=LOW))
    moments = [each.record.created_at for each in made]
    assert moments == sorted(set(moments))
    assert await kit.redis.zrange("queue:low", 0, -1) == [each.record.task_id for each in made]
    worker = await kit.worker(1)
    taken = []
    for _ in range(200):
        (task,) = await kit.claim(worker, 1)
        taken.append(task.task_id)
        await kit.settle(task)
    assert taken == [each.record.task_id for each in made[:200]]


async def test_the_clock_never_goes_back(kit: Kit) -> None:
    """After a step of the server's clock the next creation comes right after the last one."""
    ahead = await kit.now() + 3_600_000_000
    await kit.redis.set("clock:task", ahead)
    made = await kit.create(kit.intent(), kit.intent())
    assert [to_microseconds(each.record.created_at) for each in made] == [ahead + 1, ahead + 2]


@pytest.mark.req("PQ-036", "PQ-041", "PQ-042", "PQ-043", "PQ-044", "PQ-045", "PQ-047", "PQ-049", "PQ-077")
async def test_what_was_not_given_comes_from_the_priority(make_kit: MakeKit) -> None:
    kit = await make_kit(HIGH_MAX_RETRIES=7)
    rows = {priority: await kit.add(priority=priority) for priority in (HIGH, MEDIUM, LOW)}
    assert [row.max_retries for row in rows.values()] == [7, 3, 2]
    assert [row.timeout_seconds for row in rows.values()] == [300, 600, 900]
    given = await kit.add(priority=HIGH, timeout_seconds=42, max_retries=0)
    assert (given.timeout_seconds, given.base_timeout_seconds, given.max_retries) == (42, 42, 0)
    assert (given.status, given.retry_count, given.attempt) == (QUEUED, 0, 0)
    assert (given.effective_priority, given.started_at, given.assigned_worker_id) == (HIGH, None, None)


@pytest.mark.req("PQ-093")
async def test_the_place_in_the_queue_is_told(kit: Kit) -> None:
    made = [(await kit.create(kit.intent()))[0].position for _ in range(3)]
    made += [
        each.position for each in await kit.create(kit.intent(), kit.intent(priority=HIGH), kit.intent())
    ]
    assert made == [1, 2, 3, 4, 1, 5]


@pytest.mark.req("PQ-198", "PQ-199", "PQ-200", "PQ-202", "PQ-203", "PQ-206")
async def test_a_key_names_one_task_for_a_day(kit: Kit) -> None:
    """Whoever comes again under it finds the task as it is now, and the day is not made longer."""
    (first,) = await kit.create(kit.intent(idempotency_key="k1"))
    assert await kit.redis.get("idempotent:k1") == first.record.task_id
    assert 86_340_000 <= await kit.redis.pttl("idempotent:k1") <= 86_400_000
    await kit.redis.expire("idempotent:k1", 100)
    (again,) = await kit.create(kit.intent(idempotency_key="k1"))
    assert (again.is_new, again.record.task_id) == (False, first.record.task_id)
    assert await kit.redis.ttl("idempotent:k1") <= 100
    await kit.settle((await kit.claim(await kit.worker()))[0])
    (ended,) = await kit.create(kit.intent(idempotency_key="k1"))
    assert (ended.is_new, ended.record.status) == (False, COMPLETED)
    assert all(each.is_new for each in await kit.create(kit.intent(), kit.intent()))
    await kit.sound()


@pytest.mark.req("PQ-201")
async def test_after_its_time_the_key_is_free(make_kit: MakeKit) -> None:
    kit = await make_kit(IDEMPOTENCY_TTL_SECONDS=0.05)
    (first,) = await kit.create(kit.intent(idempotency_key="k1"))
    await eventually(lambda: kit.redis.exists("idempotent:k1"), wanted=lambda exists: not exists)
    (second,) = await kit.create(kit.intent(idempotency_key="k1"))
    assert second.is_new and second.record.task_id != first.record.task_id


@pytest.mark.req("PQ-204", "PQ-095", "PQ-205")
async def test_of_many_with_one_key_one_is_created(make_kit: MakeKit) -> None:
    """From two processes, in batches and one by one."""
    kits = [await make_kit(), await make_kit()]
    made = await asyncio.gather(
        *(kits[n % 2].create(kits[0].intent(idempotency_key="same")) for n in range(50)),
        *(each.create(*(each.intent(idempotency_key="same") for _ in range(20))) for each in kits),
    )
    outcomes = [each for part in made for each in part]
    assert len(outcomes) == 90
    assert sum(each.is_new for each in outcomes) == 1
    assert len({each.record.task_id for each in outcomes}) == 1
    assert await kits[0].redis.zcard("queue:medium") == 1
    await kits[0].sound()


async def test_a_key_whose_task_is_gone_is_used_again(kit: Kit) -> None:
    """Somebody deleted the hash; the key does not keep its next user from a task."""
    (first,) = await kit.create(kit.intent(idempotency_key="k1"))
    await kit.redis.delete(f"tasks:{first.record.task_id}")
    (second,) = await kit.create(kit.intent(idempotency_key="k1"))
    assert second.is_new and await kit.redis.get("idempotent:k1") == second.record.task_id


async def test_the_key_of_another_task_is_refused(kit: Kit) -> None:
    """Nothing of the call is created."""
    (first,) = await kit.create(kit.intent())
    with pytest.raises(GuardBreach, match="exists already"):
        await kit.create(kit.intent(), kit.intent(task_id=first.record.task_id))
    assert len(await kit.outbox()) == 1
    await kit.sound()


async def test_too_many_that_wait_are_refused(make_kit: MakeKit) -> None:
    """Also within one call; a known key is answered all the same, and room that comes free is used."""
    kit = await make_kit(MAX_QUEUE_DEPTH=3)
    made = await kit.create(*(kit.intent(idempotency_key=f"k{n}", priority=1 + n % 3) for n in range(5)))
    assert [each.is_refused for each in made] == [False, False, False, True, True]
    assert await kit.redis.exists("idempotent:k3") == 0
    (again,) = await kit.create(kit.intent(idempotency_key="k0"))
    assert (again.is_refused, again.is_new) == (False, False)
    with pytest.raises(Condition) as refused:
        await kit.tasks.create(kit.intent(), kit.call("client"))
    assert refused.value.code == "queue_full"
    await kit.claim(await kit.worker(), 1)
    assert not (await kit.create(kit.intent()))[0].is_refused
    await kit.sound()


async def test_a_delayed_task_waits_elsewhere(kit: Kit) -> None:
    """One whose time has come already does not wait at all."""
    later = parse_moment(await kit.now()) + timedelta(hours=1)
    (delayed, past) = await kit.create(
        kit.intent(available_at=later), kit.intent(available_at=later - timedelta(hours=2))
    )
    assert delayed.position is None and delayed.record.available_at == later
    assert await kit.redis.zscore("queue:delayed", delayed.record.task_id) == to_microseconds(later)
    assert (await kit.task(past.record.task_id)).available_at is None and past.position == 1
    assert [each.task_id for each in await kit.claim(await kit.worker())] == [past.record.task_id]
    await kit.sound()


@pytest.mark.req("PQ-089")
async def test_only_those_who_may_create_do(kit: Kit) -> None:
    with pytest.raises(Condition) as denied:
        await kit.tasks.create_many([kit.intent()], kit.call("promoter"))
    assert denied.value.grpc == "PERMISSION_DENIED"
    assert await kit.redis.dbsize() == 0


async def test_fields_that_nothing_goes_by_may_be_updated(kit: Kit) -> None:
    made = await kit.add()
    changed = await kit.tasks.update(made.task_id, task_type="other")
    assert changed == replace(made, task_type="other") == await kit.task(made.task_id)
    for field in ("status", "queued_at", "effective_priority", "attempt"):
        with pytest.raises(GuardBreach):
            await kit.tasks.update(made.task_id, **{field: getattr(made, field)})
    assert (await kit.cancel(made.task_id)).applied
