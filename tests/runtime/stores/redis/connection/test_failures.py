"""When Redis is away, full, forgetful, or not the master any more: nothing is lost and everybody is told."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
import redis.asyncio

from generated.priority.lifecycle import TASK_RETRY
from generated.priority.messages import COMPLETED, HIGH, MEDIUM, QUEUED
from generated.priority.records import TaskRecord
from runtime.call.conditions import Condition
from runtime.launch.embedded.redis import EmbeddedRedis
from runtime.stores.contract import LeaseProof
from runtime.stores.redis import creation
from runtime.stores.redis.connection import client as servers
from runtime.stores.redis.connection import pipelined_connection as lines
from runtime.stores.redis.connection.client import Full, RedisClient, RedisUnavailable, code_of, refusal
from runtime.stores.redis.connection.pipelined_connection import ReplyError
from tests.runtime.stores.redis.claims.test_leases import results
from tests.runtime.stores.redis.conftest import MakeKit
from tests.runtime.stores.redis.kit import Kit
from tests.support.eventually import eventually


@pytest.mark.req("PQ-164")
async def test_a_server_that_forgets_its_scripts_is_given_them_again(kit: Kit) -> None:
    """In the middle of a run, with every step that there is; nobody notices."""
    worker = await kit.worker()
    for _ in range(5):
        await kit.redis.script_flush()
        await kit.create(*(kit.intent() for _ in range(3)))
        await kit.redis.script_flush()
        tasks = await kit.claim(worker)
        assert len(tasks) == 3
        await kit.redis.script_flush()
        assert await kit.settle(tasks[0]) == COMPLETED
        await kit.redis.script_flush()
        assert await kit.fail(tasks[1]) == QUEUED
        await kit.redis.script_flush()
        assert (await kit.cancel(tasks[2].task_id)).applied
        await kit.redis.script_flush()
        assert await kit.sweep(TASK_RETRY) == 0
        assert await kit.settle((await kit.claim(worker))[0]) == COMPLETED
    await kit.sound()


async def test_a_flush_between_results_and_a_look_for_more_hides_nothing(kit: Kit) -> None:
    """The slots that the results free are seen although the results were sent twice."""
    worker = await kit.worker(5)
    await kit.create(*(kit.intent() for _ in range(30)))
    tasks = await kit.claim(worker)
    for _ in range(4):
        await kit.redis.script_flush()
        exchanged = await kit.tasks.exchange(worker, results(tasks), 0, kit.call("worker"))
        tasks = [*exchanged.claimed]
        assert exchanged.outcomes == [COMPLETED] * 5 and len(tasks) == 5


@pytest.mark.req("PQ-099")
async def test_while_redis_is_away_everybody_is_told_so(own_server: EmbeddedRedis, make_kit: MakeKit) -> None:
    """Within a moment, by one condition; when it is back everything goes on with what was there."""
    kit = await make_kit(own_server.url)
    worker = await kit.worker()
    made, waiting = await kit.add(), await kit.add()
    (task,) = await kit.claim(worker, 1)
    own_server.kill()
    for work in (
        kit.create(kit.intent()),
        kit.claim(worker),
        kit.tasks.get(made.task_id),
        kit.cancel(waiting.task_id),
        kit.tasks.backlog(),
        kit.sweep(TASK_RETRY),
        kit.tasks.exchange(worker, [], 3, kit.call("worker")),
    ):
        with pytest.raises(Condition) as away:
            async with asyncio.timeout(60):
                await work
        assert away.value.code == "service_unavailable"
    assert "does not answer" in (await kit.tasks.health() or "")
    own_server.start()
    await eventually(kit.tasks.health, wanted=lambda problem: problem is None)
    assert await kit.settle(task) == COMPLETED
    assert [each.task_id for each in await kit.claim(worker, wait_s=60.0)] == [waiting.task_id]
    await kit.sound()


@pytest.mark.req("PQ-183")
async def test_after_a_kill_everything_acknowledged_is_there(
    own_server: EmbeddedRedis, make_kit: MakeKit
) -> None:
    """The server is killed under load three times, with a log that is on disk before anybody is answered."""
    kit = await make_kit(own_server.url, level="WARNING")
    acknowledged: set[str] = set()
    stopping = asyncio.Event()

    async def submit() -> None:
        while not stopping.is_set():
            try:
                acknowledged.update(
                    each.record.task_id for each in await kit.create(*(kit.intent() for _ in range(5)))
                )
            except Condition:
                await asyncio.sleep(0.02)

    submitting = [asyncio.create_task(submit()) for _ in range(3)]
    for _ in range(3):
        enough = len(acknowledged) + 20
        await eventually(lambda: len(acknowledged), wanted=lambda number: number >= enough)  # noqa: B023
        await asyncio.to_thread(own_server.kill)
        await asyncio.to_thread(own_server.start)
    stopping.set()
    await asyncio.gather(*submitting)
    there = set(await kit.redis.zrange("queue:medium", 0, -1))
    assert acknowledged and acknowledged <= there
    await kit.sound()


async def test_a_creation_whose_answer_was_lost_is_sent_again(kit: Kit) -> None:
    """The connection breaks after the script has run: the caller learns of its task, and there is one."""
    await kit.create(kit.intent(priority=HIGH))
    intent = kit.intent()
    original = kit.server._line

    async def breaking(name: str) -> object:
        line = await original(name)
        kit.server._line = original  # type: ignore[method-assign]
        asked = line.ask

        def ask(commands: object) -> object:
            future = asked(commands)  # type: ignore[arg-type]

            async def lose() -> None:
                while not await kit.redis.exists(f"tasks:{intent.task_id}"):
                    await asyncio.sleep(0.001)
                line.close()

            line.data_received = lambda data: None  # type: ignore[attr-defined]
            tasks.append(asyncio.create_task(lose()))
            return future

        line.ask = ask  # type: ignore[method-assign, assignment]
        return line

    tasks: list[asyncio.Task[None]] = []
    kit.server._line = breaking  # type: ignore[method-assign, assignment]
    (made,) = await kit.create(intent)
    assert made.is_new and made.record == await kit.task(intent.task_id)
    assert len(await kit.outbox(intent.task_id)) == 1
    await kit.sound()


async def test_a_full_redis_refuses_what_is_new_and_is_drained_all_the_same(
    own_server: EmbeddedRedis, make_kit: MakeKit
) -> None:
    """Results, cancels, heartbeats and claims go through, and make room for more."""
    kit = await make_kit(own_server.url)
    worker = await kit.worker(50)
    await kit.create(*(kit.intent(parameters=f'"{"x" * 10_000}"') for _ in range(60)))
    running = await kit.claim(worker, 20)
    await kit.redis.config_set("maxmemory", 1_000_000)
    before = await kit.redis.dbsize()
    with pytest.raises(Condition) as full:
        await kit.create(kit.intent(idempotency_key="k"))
    assert full.value.code == "queue_full"
    with pytest.raises(Condition):
        await kit.worker()
    assert await kit.redis.dbsize() == before
    assert await kit.settle(running[0], result='"done"') == COMPLETED
    assert await kit.fail(running[1]) == QUEUED
    assert (await kit.cancel(running[2].task_id)).applied
    assert (await kit.workers.transition(worker, "beat", kit.call("worker"))).applied
    assert await kit.tasks.renew([(running[3].task_id, _held(running[3]))], seconds=100) != [None]
    assert len(await kit.claim(worker, 5)) == 5
    (waiting, *_), _ = await kit.tasks.find(states=[QUEUED], size=1)
    assert (await kit.cancel(waiting.task_id)).applied
    await kit.sound()
    await kit.redis.config_set("maxmemory", 0)
    assert (await kit.create(kit.intent(idempotency_key="k")))[0].is_new


def _held(task: TaskRecord) -> LeaseProof:
    return LeaseProof(task.assigned_worker_id or "", task.attempt)


@pytest.fixture
def replica(own_server: EmbeddedRedis, tmp_path: Path) -> Iterator[EmbeddedRedis]:
    made = EmbeddedRedis(
        tmp_path / "replica",
        settings={"replicaof": f"127.0.0.1 {own_server.port}", "masterauth": own_server.password},
    )
    made.start()
    yield made
    made.remove()


@pytest.mark.req("PQ-253")
async def test_replicas_are_waited_for_after_a_script_was_loaded(
    own_server: EmbeddedRedis, replica: EmbeddedRedis, make_kit: MakeKit, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A server that has forgotten its scripts has written nothing yet when it answers the first wait."""
    kit = await make_kit(own_server.url, REDIS_WAIT_REPLICAS=1)
    monkeypatch.setattr(lines, "COMMAND_S", 120.0)
    monkeypatch.setattr(creation, "_WAIT_MS", 60_000)
    sent: list[str] = []
    run = kit.server.run

    async def record(commands: Any, **options: Any) -> Any:
        sent.extend(command[0] for command in commands)
        return await run(commands, **options)

    await kit.redis.script_flush()
    kit.server.run = record  # type: ignore[method-assign]
    await kit.add(idempotency_key="k1")
    assert sent == ["EVALSHA", "WAIT", "EVAL", "WAIT"]


@pytest.mark.req("PQ-253")
async def test_a_creation_waits_for_the_replicas_that_it_needs(
    own_server: EmbeddedRedis, replica: EmbeddedRedis, make_kit: MakeKit, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With one it is acknowledged and there; with two it is not, and a repeat under its key finds it."""
    kit = await make_kit(own_server.url, REDIS_WAIT_REPLICAS=1)
    await eventually(
        lambda: kit.redis.info("replication"),
        wanted=lambda told: told.get("connected_slaves") == 1 and told["slave0"]["state"] == "online",
    )
    # However long the replica takes.
    monkeypatch.setattr(lines, "COMMAND_S", 120.0)
    monkeypatch.setattr(creation, "_WAIT_MS", 60_000)
    made = await kit.add(idempotency_key="k1")
    there = redis.asyncio.Redis.from_url(replica.url, decode_responses=True)
    assert (await there.hgetall(f"tasks:{made.task_id}"))["status"] == "queued"
    await there.aclose()
    monkeypatch.setattr(creation, "_WAIT_MS", 100)
    kit.tasks._replicas = 2
    with pytest.raises(Condition) as unsure:
        await kit.create(kit.intent(idempotency_key="k2"))
    assert unsure.value.code == "service_unavailable"
    monkeypatch.setattr(creation, "_WAIT_MS", 60_000)
    kit.tasks._replicas = 1
    (again,) = await kit.create(kit.intent(idempotency_key="k2"))
    assert not again.is_new


async def test_a_replica_is_no_place_to_write_to(
    own_server: EmbeddedRedis, replica: EmbeddedRedis, make_kit: MakeKit, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is a problem of the node, and every write is refused as long as nobody makes it the master."""
    kit = await make_kit(replica.url)
    assert "replica" in (await kit.tasks.health() or "")
    with pytest.raises(Condition) as away:
        await kit.create(kit.intent())
    assert away.value.code == "service_unavailable"
    # The server is asked again at once; the change comes while somebody waits for it, however long it takes.
    kit.server._closed_until = 0.0
    monkeypatch.setattr(servers, "PATIENCE_S", 60.0)
    attempts, connected = list[str](), kit.server._line

    async def note_attempt(name: str) -> Any:
        attempts.append(name)
        return await connected(name)

    monkeypatch.setattr(kit.server, "_line", note_attempt)
    promoted = asyncio.create_task(_promote(kit, attempts))
    (made,) = await kit.create(kit.intent())
    await promoted
    assert made.is_new and await kit.tasks.health() is None


async def _promote(kit: Kit, attempts: Sequence[str]) -> None:
    await eventually(lambda: len(attempts) > 1, "it was refused and is asked again")
    await kit.redis.execute_command("REPLICAOF", "NO", "ONE")


def test_what_the_server_says_is_understood() -> None:
    """Also where a script says it in the middle of something else."""
    inside = "ERR Error running script (call to f_1): @user_script:9: @user_script: 9: -"
    full = "OOM command not allowed when used memory > 'maxmemory'."
    said = {
        "LOADING Redis is loading the dataset in memory": RedisUnavailable,
        "READONLY You can't write against a read only replica.": RedisUnavailable,
        f"{inside}READONLY You can't write against a read only replica.": RedisUnavailable,
        full: Full,
        inside + full: Full,
        "MISCONF Redis is configured to save RDB snapshots, but it cannot": RedisUnavailable,
        "NOAUTH Authentication required.": RedisUnavailable,
        "NOREPLICAS Not enough good replicas to write.": RedisUnavailable,
        "ERR wrong number of arguments for 'get' command": ReplyError,
        "WRONGTYPE Operation against a key holding the wrong kind of value": ReplyError,
    }
    assert {text: type(refusal(ReplyError(text))) for text in said} == said
    assert code_of(ReplyError("ERR nothing")) is None


async def test_a_server_that_needs_another_password_is_away(own_server: EmbeddedRedis) -> None:
    server = RedisClient(own_server.url.replace(own_server.password, "wrong"))
    with pytest.raises(RedisUnavailable):
        await server.ask(("PING",))
    await server.close()


async def test_a_subscription_that_is_cut_off_is_made_again(kit: Kit) -> None:
    """Whoever waits looks for itself once a second until the subscription is back."""
    worker, position = await kit.worker(), kit.tasks._wakeups.position
    await kit.redis.client_kill_filter(_type="pubsub")
    await eventually(
        lambda: kit.tasks._wakeups.position > position, "the subscription is known to be cut off"
    )
    waiting = asyncio.create_task(kit.claim(worker, wait_s=60.0))
    await eventually(lambda: kit.waiting, "the worker waits")
    made = await kit.add(priority=MEDIUM)
    async with asyncio.timeout(60):
        assert [task.task_id for task in await waiting] == [made.task_id]
