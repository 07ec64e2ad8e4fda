"""Texts that were meant to be something else: kept as they are, or refused, and never more than text."""

from __future__ import annotations

import json
from typing import Any

import pytest
import redis.asyncio
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from generated.priority.messages import ACTIVE, COMPLETED, DEAD_LETTER, QUEUED
from runtime.call.conditions import Condition
from runtime.stores.contract import LeaseProof
from runtime.stores.redis import RedisStore
from runtime.stores.redis.codec import compute_signature
from runtime.stores.store import GuardBreach, NoSuchEntity, Unstorable
from tests.runtime.stores.redis.kit import Kit, gathered, settlement

HOSTILE = (
    "'; redis.call('FLUSHALL'); --",
    "]] return redis.call('KEYS', '*') --[[",
    "*3\r\n$3\r\nSET\r\n$1\r\na\r\n$1\r\nb\r\n",
    "tasks:*",
    "{other}:slot",
    "a:b:cap:any",
    "../../etc/passwd",
    "\x00\x01\x7f",
    "ü☃𝄞",
    "%s%n %.0f {0} {task_id}",
    "|le|+Inf|sum",
    '"quoted", [1, 2]',
    " ",
    "x" * 5000,
)


@pytest.mark.req("PQ-162", "PQ-038", "PQ-072")
@pytest.mark.parametrize("text", HOSTILE, ids=range(len(HOSTILE)))
async def test_hostile_texts_are_only_texts(kit: Kit, text: str) -> None:
    """As a tag, a key, a payload, a result, an error and an id that does not exist."""
    worker = await kit.worker(5, text)
    made = await kit.add(
        idempotency_key=text,
        required_capabilities=(text,),
        task_type=text,
        parameters=json.dumps({text: text}),
    )
    assert await kit.redis.get(f"idempotent:{text}") == made.task_id
    (task,) = await kit.claim(worker)
    assert (task.required_capabilities, task.task_type, task.idempotency_key) == ((text,), text, text)
    assert json.loads(task.parameters) == {text: text}
    assert await kit.settle(task, QUEUED, error=text, retriable=text, reason=text) == QUEUED
    (task,) = await kit.claim(worker)
    assert await kit.settle(task, result=json.dumps(text)) == COMPLETED
    assert json.loads((await kit.task(made.task_id)).result or "") == text
    assert await kit.tasks.get(text) is None
    assert await kit.held_by(text) == set()
    assert await kit.claim(text) == []
    (refused,) = await kit.tasks.settle_many(
        [settlement(text, COMPLETED, LeaseProof(text, 1), {"result": text})], kit.call("worker")
    )
    assert isinstance(refused, Exception)
    await kit.sound()


async def test_half_a_surrogate_pair_is_refused(kit: Kit) -> None:
    """It cannot be written; whoever gave it is told, and whoever came with it is not held up."""
    with pytest.raises(Unstorable):
        await kit.create(kit.intent(task_type="\ud800"))
    made = await gathered(*(kit.create(kit.intent(task_type=text)) for text in ("a", "b", "\ud800", "c")))
    assert [isinstance(each, Unstorable) for each in made] == [False, False, True, False]
    await kit.redis.flushall()
    task = await kit.running()
    assert await kit.settle(task, QUEUED, error="a\ud800b", reason="reported") == QUEUED
    assert (await kit.task(task.task_id)).error == "a?b"
    await kit.sound()


async def test_what_is_no_text_holds_nobody_up(kit: Kit) -> None:
    """Whatever somebody else has put into a hash, the task is taken and given back like any other."""
    made, other, worker = await kit.add(), await kit.add(), await kit.worker()
    await kit.redis.hset(f"tasks:{made.task_id}", "trace_id", b"\xff\x00'\"")
    taken = await kit.claim(worker)
    assert [task.trace_id for task in taken] == ["\udcff\0'\"", other.trace_id]
    held = [settlement(task.task_id, COMPLETED, LeaseProof(worker, 1)) for task in taken]
    assert await kit.tasks.settle_many(held, kit.call("worker")) == [COMPLETED, COMPLETED]


@given(st.lists(st.text(max_size=20), max_size=6))
def test_a_signature_says_which_texts_and_nothing_else(texts: list[str]) -> None:
    mark = compute_signature(texts)
    assert mark == compute_signature(sorted(texts, reverse=True)) == compute_signature([*texts, *texts])
    assert mark == "any" if not texts else len(mark) == 16
    assert compute_signature([*texts, "one more"]) != mark or "one more" in texts


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(
    payload=st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
        max_leaves=10,
    )
)
async def test_json_comes_back_as_it_was(kit: Kit, payload: object) -> None:
    text = json.dumps({"value": payload})
    made = await kit.add(parameters=text)
    assert (await kit.task(made.task_id)).parameters == text


async def test_no_id_is_the_name_of_another_key(kit: Kit) -> None:
    """Whatever else begins as the hashes do is no entity: nothing is found there, and nothing is changed."""
    worker = await kit.worker()
    await kit.running(worker)
    task = await kit.add()
    kinds = {key: await kit.redis.type(key) for key in await kit.redis.keys("*")}
    for store, head in ((kit.tasks, "tasks:"), (kit.workers, "workers:")):
        indexes = [
            key.removeprefix(head) for key, kind in kinds.items() if key.startswith(head) and kind != "hash"
        ]
        assert any(each.startswith("status:") for each in indexes), indexes
        before = await contents(kit)
        for name in (*indexes, *(key for key in kinds if not key.startswith(head)), f"{task.task_id}\n", ""):
            await check_unknown(kit, store, name)
        assert await contents(kit) == before
    await kit.sound()


async def contents(kit: Kit) -> dict[str, bytes]:
    raw: Any = redis.asyncio.Redis.from_url(kit.url)
    async with raw:
        return {key: await raw.dump(key) for key in sorted(await kit.redis.keys("*"))}


async def check_unknown(kit: Kit, store: RedisStore[Any], name: str) -> None:
    """Every way to name an entity, or the holder of one."""
    assert await store.get(name) is None
    assert await store.history(name) == []
    if store is kit.tasks:
        with pytest.raises(NoSuchEntity):
            await store.transition(name, "cancel", kit.call("client"))
        with pytest.raises(NoSuchEntity):
            await store.update(name, digest="x")
        with pytest.raises(NoSuchEntity):
            await store.delete(name, DEAD_LETTER, kit.call("admin"))
        with pytest.raises(NoSuchEntity):
            await store.transition(name, "advance", kit.call("worker"), lease=LeaseProof(name, 1))
        assert await store.renew([(name, LeaseProof(name, 1))], seconds=5) == [None]
        (refused,) = await store.settle_many(
            [settlement(name, COMPLETED, LeaseProof(name, 1))], kit.call("worker")
        )
        assert isinstance(refused, Condition) and refused.code == "stale_attempt"
        with pytest.raises(GuardBreach):
            await kit.create(kit.intent(task_id=name or " "))
    else:
        with pytest.raises(NoSuchEntity):
            await store.delete(name, ACTIVE, kit.call("worker"))
        with pytest.raises(NoSuchEntity):
            await store.transition(name, "beat", kit.call("worker"))
        assert await kit.claim(name) == [] and await kit.held_by(name) == set()
        assert await kit.tasks.exchange(name, [], 5, kit.call("worker")) == ([], [])
