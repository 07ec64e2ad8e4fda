"""No name of a field stands in the way of a script: each word that scripts use is tried as one."""

from __future__ import annotations

import asyncio
import importlib
from pathlib import Path
from typing import Any

from redis.asyncio import Redis

from runtime.call import Call
from runtime.launch.embedded.postgres import EmbeddedPostgres
from runtime.observe.log import Log
from runtime.observe.metrics import Metrics
from runtime.stores.contract import LeaseProof
from runtime.stores.history import HistoryReader, HistoryWriter
from runtime.stores.postgres import Database
from runtime.stores.redis import RedisClient, RedisStore
from tests.runtime.hand_world import Lines
from tests.runtime.stores.redis.kit import VALUES, WORLD, settlement
from tests.support.specs.harbour import new_database
from tests.support.specs.reserved_words import fields_of, texts_below, words_of
from tests.support.specs.widened_spec import generate_widened

ROOT = Path(__file__).parents[4]
LUA = ROOT / "runtime/stores/redis/lua"
HISTORY = ("history", "order", "group", "user", "select", "ctid", "xmin")
"""Some that would stand in the way of the tables of the history."""


async def test_every_word_of_the_scripts(
    tmp_path: Path, redis_url: str, shared_postgres: EmbeddedPostgres
) -> None:
    texts = [*texts_below(ROOT / "generated/priority/sql", ".sql"), *texts_below(LUA, ".lua")]
    words = {*words_of(texts), *fields_of(HISTORY), "signature", "settled", "str", "command", "self"}
    words.remove("reason")  # The metrics of this spec say what it means, and it would mean something else.
    assert {"record", "key", "owner", "fence", "stamps", "hash", "row"} <= words
    with generate_widened(ROOT / "spec/priority", tmp_path, "priority_words", "TaskRow", words) as more:
        async with new_database(shared_postgres) as url:
            await live("priority_words", more, redis_url, url)


async def live(system: str, more: list[str], redis_url: str, url: str) -> None:
    tables: Any = importlib.import_module(f"generated.{system}.lifecycle")
    records: Any = importlib.import_module(f"generated.{system}.records")
    states: Any = importlib.import_module(f"generated.{system}.messages")
    known: Any = importlib.import_module(f"generated.{system}.system").SYSTEM
    values = {**VALUES, "REDIS_KEY_PREFIX": "", "HISTORY_RETENTION_SECONDS": 0}
    log, metrics = Log("test", "DEBUG", WORLD, Lines()), Metrics()
    server, database, client = RedisClient(redis_url), Database(url), Redis.from_url(redis_url)
    task: Any = RedisStore(known, tables.TASK, records.TaskRecord, server, WORLD, metrics, values)
    worker: Any = RedisStore(known, tables.WORKER, records.WorkerRecord, server, WORLD, metrics, values)

    def call(actor: str) -> Call:
        return Call(world=WORLD, log=log, caller=actor)

    given = {each: f"the {each}" for each in more}

    def check(record: Any) -> None:
        assert {each: getattr(record, each) for each in more} == given

    await task.open(log)
    await worker.open(log)
    try:
        usual = {
            "task_type": "echo",
            "parameters": "{}",
            "priority": states.MEDIUM,
            "trace_id": WORLD.new_id(),
        }

        def one() -> Any:
            return records.TaskRecord(task_id=WORLD.new_id(), **usual, **given)

        many = await task.create_many([one(), one()], call("client"))
        alone = [await task.create(one(), call("client"))]
        made = [each.record for each in (*many, *alone)]
        found = records.WorkerRecord(worker_id=WORLD.new_id(), capacity=5)
        holder = (await worker.create(found, call("worker"))).record
        taken = await task.claim(holder.worker_id, 5, call("worker"))
        assert [each.task_id for each in taken] == [each.task_id for each in made]
        for each in (*made, *taken):
            check(each)
        check(await task.get(made[0].task_id))
        key, held = taken[0].task_id, LeaseProof(holder.worker_id, taken[0].attempt)
        settling = [settlement(key, states.COMPLETED, held, {"result": "{}"})]
        await task.settle_many(settling, call("worker"))
        ended = await task.get(key)
        check(ended)
        assert ended.status == states.COMPLETED
        writer = HistoryWriter(known, tables.TASK, client, database, metrics, values)
        reader: Any = HistoryReader(system, tables.TASK, records.TaskRecord, database)
        async with asyncio.timeout(60):
            while await reader.get(key) is None:
                await writer.step(call("historian"))
        check(await reader.get(key))
        assert [each.target for each in await reader.history(key)][-1] == states.COMPLETED
    finally:
        await task.close()
        await worker.close()
        await server.close()
        await database.close()
        await client.aclose()
