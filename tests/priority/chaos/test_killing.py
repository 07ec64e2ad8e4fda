"""Random kills: processes and Redis die at random moments, and no acknowledged task is lost."""

from __future__ import annotations

import asyncio
from collections import Counter
from itertools import pairwise
from typing import Any

import asyncpg
import pytest

from runtime.launch.embedded.redis import EmbeddedRedis
from tests.support.chaos import Chaos
from tests.support.priority.stack import BRISK, TOKENS, Stack, wait_until
from tests.support.priority.submitters import Client
from tests.support.random_kills import RandomKills

VICTIMS = ["worker"] * 3 + ["api"] * 2 + ["scheduler"] * 3 + ["redis"] * 2
QUICK = {**BRISK, "WORKER_DEAD_SECONDS": "2", "LOW_TO_MEDIUM_SECONDS": "1", "MEDIUM_TO_HIGH_SECONDS": "2"}
PATIENT = {
    **dict.fromkeys(("HIGH_MAX_RETRIES", "MEDIUM_MAX_RETRIES", "LOW_MAX_RETRIES"), "100"),
    # No task may have to wait for its time limit, neither after a lost answer nor after a dropped outcome.
    **dict.fromkeys(("HIGH_TIMEOUT_SECONDS", "MEDIUM_TIMEOUT_SECONDS", "LOW_TIMEOUT_SECONDS"), "3600"),
}


@pytest.mark.chaos
@pytest.mark.req("PQ-167", "PQ-173", "PQ-183", "PQ-250", "PQ-259", "PQ-260")
def test_no_acknowledged_task_is_lost_whatever_is_killed(
    stack_on_own_redis: Stack, own_redis: EmbeddedRedis, chaos: Chaos
) -> None:
    """API, worker, promoter, history writer and Redis die: every task ends, with all of its history."""
    intervals = {**QUICK, **PATIENT}
    apis = [stack_on_own_redis.node("api", deployment="compose", intervals=intervals) for _ in range(2)]
    stack_on_own_redis.node("scheduler", deployment="compose", intervals=intervals)
    # One loses the answers of Redis, the other those of an API.
    stack_on_own_redis.node("worker", intervals=intervals)
    manager = {"MANAGER_ADDR": apis[0].address, "CALLER_TOKEN": TOKENS["worker"]}
    stack_on_own_redis.node("worker", deployment="compose", intervals=intervals, **manager)
    for node in stack_on_own_redis.nodes:
        node.begin()
    for node in stack_on_own_redis.nodes:
        node.wait()
    clients = [Client(f"client-{place}", api.url, chaos.chance) for place, api in enumerate(apis)]
    for client in clients:
        client.start()
    fate = RandomKills(stack_on_own_redis.nodes, "redis", own_redis)
    try:
        for chance in chaos.rounds(1):
            fate.kill_all(VICTIMS, chance)
    finally:
        fate.revive()
        for client in clients:
            client.end()
    promised = {key: task for client in clients for key, task in client.acknowledged.items()}
    assert len(set(promised.values())) == len(promised), "one task for each key"
    wait_until(
        lambda: _count_states(stack_on_own_redis, promised.values()),
        "all have ended",
        lambda seen: set(seen) == {"completed"},
    )
    stored = {
        name.removeprefix("tasks:") for name in stack_on_own_redis.redis.scan_iter("tasks:*", _type="hash")
    }
    assert stored == set(promised.values()), "no task that was not acknowledged"
    assert not stack_on_own_redis.redis.zcard("executing:deadlines")
    rows = wait_until(
        lambda: _read_history(stack_on_own_redis),
        "the history is written",
        lambda seen: _is_complete(seen, stored),
    )
    again = sum(client.refused for client in clients)
    repeated = sum(len(each) > 3 for each in rows.values())
    written = sum(map(len, rows.values()))
    chaos.count(**{f"kills_of_{name}": number for name, number in sorted(fate.killed.items())})
    chaos.count(
        tasks=len(promised), lost=0, submits_repeated=again, run_twice=repeated, rows_of_history=written
    )


def _count_states(stack: Stack, tasks: Any) -> Counter[str]:
    with stack.redis.pipeline(transaction=False) as pipe:
        for task in tasks:
            pipe.hget(f"tasks:{task}", "status")
        return Counter(str(each) for each in pipe.execute())


def _read_history(stack: Stack) -> dict[str, list[tuple[int, str | None, str]]]:
    """The changes of each task, in order."""

    async def read() -> list[asyncpg.Record]:
        connection: asyncpg.Connection[asyncpg.Record] = await asyncpg.connect(stack.servers.database_url)
        try:
            return list(await connection.fetch("SELECT * FROM task_changes"))
        finally:
            await connection.close()

    found: dict[str, list[tuple[int, str | None, str]]] = {}
    for row in asyncio.run(read()):
        values = dict(row)
        change = (int(values["sequence"]), values["from_state"], values["to_state"])
        found.setdefault(str(values["task_id"]), []).append(change)
    return {task: sorted(changes, key=lambda each: each[0]) for task, changes in found.items()}


def _is_complete(history: dict[str, list[tuple[int, str | None, str]]], tasks: set[str]) -> bool:
    """Whether every task has its whole chain, each change once, the last of which is its end."""
    return set(history) == tasks and all(
        len({number for number, _, _ in changes}) == len(changes)
        and all(one[2] == next_[1] for one, next_ in pairwise(changes))
        and changes[0][1] is None
        and changes[-1][2] == "completed"
        for changes in history.values()
    )
