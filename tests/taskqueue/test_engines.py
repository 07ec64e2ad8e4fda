"""Deployments that keep jobs elsewhere than in memory: what was accepted outlives every process."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from generated.taskqueue.messages import CANCELED, DONE, FAILED, QUEUED
from generated.taskqueue.system import SYSTEM
from runtime.launch import Launched
from runtime.model.text import sha256_hex
from tests.support.chaos import Chaos
from tests.support.taskqueue.api import Api, expect_code, new_key
from tests.support.taskqueue.forked_deployments import launched_by_fork
from tests.support.taskqueue.gates import HANDLERS
from tests.support.taskqueue.node_kills import NodeKills, Submits

pytestmark = pytest.mark.asyncio(loop_scope="session")

ENGINES = ("postgres", "sqlite")
SETTINGS = {
    "HEARTBEAT_INTERVAL_MS": "100",
    "WORKER_TIMEOUT_MS": "1000",
    "WORKER_SLOTS": "1",
    "MAX_DEDUP_KEYS": "100000",
    **HANDLERS,
}
"""A lost worker is noticed soon, and jobs start one after the other, so that their order can be seen."""


@pytest_asyncio.fixture(scope="module", params=ENGINES, loop_scope="session")
async def kept(request: pytest.FixtureRequest) -> AsyncIterator[Launched]:
    """The six services over each engine."""
    async with launched_by_fork(f"taskqueue.{request.param}", settings=SETTINGS) as running:
        yield running


async def restart_all(deployment: Launched) -> None:
    """Kill every node before any is started again."""
    for name in deployment.processes:
        await deployment.kill(name)
    for name in deployment.processes:
        await deployment.restart(name)


@pytest.mark.parametrize("engine", ENGINES)
async def test_the_interfaces_are_those_of_the_microservices(engine: str) -> None:
    own, other = SYSTEM.deployments["microservices"], SYSTEM.deployments[engine]
    assert other.nodes.keys() == own.nodes.keys()
    for name, node in own.nodes.items():
        assert other.nodes[name].serves == node.serves
        assert other.nodes[name].port_variable == node.port_variable
        assert other.nodes[name].upstreams == node.upstreams


async def test_what_waits_has_ended_or_has_a_key_is_there_after_a_kill_of_all(kept: Launched) -> None:
    """Results, submit keys, cancels, and the queue in its order, when no process has any memory of them."""
    async with kept.client() as client:
        api, keys = Api(client), [new_key() for _ in range(4)]
        ended = (await api.submit(size=5, key=keys[0])).job_id
        await api.wait_until_terminal(ended)
        result = await api.result(ended)
        await kept.stop("worker")
        waiting = [(await api.submit("waits", key=key)).job_id for key in keys[1:]]
        canceled = (await api.submit("waits")).job_id
        await api.cancel(canceled, "no longer wanted")
        await restart_all(kept)
        assert await api.result(ended) == result and result.result_ready
        assert (await api.status(canceled)).status == CANCELED
        assert (await api.result(canceled)).output_summary == "no longer wanted"
        again = [await api.submit("waits", key=key) for key in keys[1:]]
        assert [each.job_id for each in again] == waiting
        assert (await api.submit(size=5, key=keys[0])).job_id == ended
        with expect_code("FAILED_PRECONDITION"):
            await api.submit("another", key=keys[1])
        starts = [(await api.wait_until_terminal(each)).started_at_ms for each in waiting]
        assert starts == sorted(starts) and all(starts)
        assert await api.list_all(QUEUED) == []


@pytest.mark.chaos
async def test_no_accepted_job_is_lost(kept: Launched, chaos: Chaos) -> None:
    """Every node is killed while jobs are submitted; each accepted job ends, and has a result to be read."""
    async with kept.client() as client:
        api, kills, stopping = Api(client), NodeKills(kept), asyncio.Event()
        submits = Submits(api, chaos.chance)
        running = asyncio.create_task(submits.run(4, stopping))
        for chance in chaos.rounds(1):
            await kills.kill_all(chance)
        stopping.set()
        await kills.revive()
        await running
        for key, job_id in submits.accepted.items():
            ended = await api.wait_until_terminal(job_id)
            result = await api.result(job_id)
            assert result.result_ready and result.terminal_status == ended.status in (DONE, FAILED)
            assert result.checksum == sha256_hex(result.output_bytes)
            assert ended.status == DONE or ended.failure_reason == "WORKER_LOST"
            assert await submits.repeat(key) == job_id
        chaos.count(kills=kills.killed.total(), jobs=len(submits.accepted))
        assert len(set(submits.accepted.values())) == len(submits.accepted) > 0
        assert kills.killed.keys() == kept.processes.keys()
