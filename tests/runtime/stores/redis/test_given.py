"""What an entity was created with is one text of its hash, and whatever is written later counts instead."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from generated.priority.messages import COMPLETED, HIGH, LOW, MEDIUM, QUEUED
from runtime.stores.redis.codec import GIVEN
from tests.runtime.stores.redis.conftest import MakeKit
from tests.runtime.stores.redis.kit import Kit

OWN = {"task_id", "trace_id", "created_at", "queued_at", "updated_at"}
"""What no two tasks share."""


async def entries(kit: Kit) -> list[dict[str, str]]:
    """What the history is told, without what no two tasks share."""
    own = ("key", "at", "trace")
    return [{name: text for name, text in told.items() if name not in own} for told in await kit.outbox()]


@pytest.mark.parametrize(
    "fields", [{}, {"priority": LOW, "required_capabilities": ("b", "a"), "max_retries": 0}]
)
async def test_one_by_itself_is_stored_as_one_of_many(kit: Kit, fields: dict[str, Any]) -> None:
    """Whichever script creates it: the hash, its place in every index, and what the history is told."""
    (alone,) = await kit.create(kit.intent(**fields))
    many = await kit.create(kit.intent(**fields), kit.intent(**fields))
    hashes = []
    for made in (alone, *many):
        stored = await kit.hash(made.record.task_id)
        assert made.record == await kit.task(made.record.task_id)
        assert {stored[name] for name in OWN if name.endswith("_at")} == {stored["created_at"]}
        hashes.append({name: text for name, text in stored.items() if name not in {*OWN, GIVEN}})
    assert hashes[0] == hashes[1] == hashes[2]
    assert [each.position for each in (alone, *many)] == [1, 2, 3]
    told = await entries(kit)
    assert told[0] == told[1] == told[2]
    await kit.sound()


async def test_what_is_set_at_the_creation_is_there(kit: Kit) -> None:
    """What is held back, has a key that no two share, or has what is kept apart."""
    now = datetime.now(UTC)
    given: list[dict[str, Any]] = [
        {"idempotency_key": "k", "digest": "d"},
        {"available_at": now + timedelta(hours=1)},
        {"result": '{"n":1}'},
    ]
    for fields in given:
        (made,) = await kit.create(kit.intent(**fields))
        found = await kit.task(made.record.task_id)
        assert made.is_new and found.status == QUEUED and found == made.record
        assert {name: getattr(found, name) for name in fields} == fields
    await kit.sound()


async def test_one_by_itself_comes_right_after_a_clock_that_is_ahead(kit: Kit) -> None:
    ahead = await kit.now() + 3_600_000_000
    await kit.redis.set("clock:task", ahead)
    for number in (1, 2):
        made = await kit.add()
        assert (await kit.hash(made.task_id))["created_at"] == str(ahead + number)
    assert await kit.redis.get("clock:task") == str(ahead + 2)


async def test_what_can_be_claimed_is_announced(kit: Kit) -> None:
    """Once for each step, however many it creates; what is held back is not."""
    listening = kit.redis.pubsub()
    await listening.subscribe("queue:wake")
    assert (await listening.get_message(timeout=60))["type"] == "subscribe"
    await kit.add()
    await kit.create(kit.intent(), kit.intent(required_capabilities=("gpu",)))
    await kit.add(available_at=datetime.now(UTC) + timedelta(hours=1))
    await kit.redis.publish("queue:wake", "the end")
    heard = [(await listening.get_message(timeout=60))["data"] for _ in range(3)]
    assert heard == ["task", "task", "the end"]
    await listening.aclose()


async def test_what_is_written_later_counts(kit: Kit) -> None:
    """A retry changes what the task was created with; a later life goes back to it."""
    made = await kit.running(priority=HIGH, timeout_seconds=10, max_retries=1)
    await kit.fail(made)
    retried = await kit.task(made.task_id)
    assert (retried.timeout_seconds, retried.base_timeout_seconds, retried.retry_count) == (15, 10, 1)
    given = json.loads((await kit.redis.hgetall(f"tasks:{made.task_id}"))[GIVEN])
    assert (given["timeout_seconds"], given["retry_count"]) == ("10", "0")


async def test_a_field_that_was_given_can_be_taken_away(kit: Kit) -> None:
    made = await kit.add(digest="what was asked for")
    assert (await kit.tasks.update(made.task_id, digest=None)).digest is None
    assert (await kit.task(made.task_id)).task_type == made.task_type
    assert (await kit.tasks.update(made.task_id, digest="another")).digest == "another"


async def test_what_a_change_may_take_away_is_kept_by_itself(kit: Kit) -> None:
    """Else it would come back from the text."""
    made = await kit.add(error="of an earlier life", progress='{"n":1}')
    assert (made.error, made.progress) == ("of an earlier life", '{"n":1}')
    stored = await kit.redis.hgetall(f"tasks:{made.task_id}")
    assert stored["error"] == "of an earlier life" and "error" not in json.loads(stored[GIVEN])
    (task,) = await kit.claim(await kit.worker())
    assert task.error == "of an earlier life"
    assert await kit.settle(task, COMPLETED, result="{}") == COMPLETED
    assert (await kit.task(made.task_id)).error is None


async def test_a_hash_that_has_every_field_by_itself_is_read_the_same(make_kit: MakeKit) -> None:
    """As earlier releases have written them: it is shown, claimed, retried and completed."""
    kit = await make_kit(RETRY_BACKOFF_SECONDS=0)
    made = await kit.add(priority=MEDIUM, timeout_seconds=10)
    stored = {name: text for name, text in (await kit.hash(made.task_id)).items() if name != GIVEN}
    await kit.redis.delete(f"tasks:{made.task_id}")
    await kit.redis.hset(f"tasks:{made.task_id}", mapping=stored)
    assert await kit.task(made.task_id) == made
    worker = await kit.worker()
    (task,) = await kit.claim(worker)
    assert await kit.fail(task) == QUEUED
    (task,) = await kit.claim(worker)
    assert (task.timeout_seconds, task.parameters, task.attempt) == (15, made.parameters, 2)
    assert await kit.settle(task, COMPLETED, result="{}") == COMPLETED
    await kit.sound()
