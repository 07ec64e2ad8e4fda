"""Six monolith nodes: each is a whole queue of its own, and the client finds the one that owns a job."""

from __future__ import annotations

from collections.abc import AsyncIterator

import psutil
import pytest
import pytest_asyncio

from generated.taskqueue.messages import CREATED_AT_ASC, DONE, QUEUED, ListJobsRequest
from handlers.taskqueue.merged_listing import all_jobs
from runtime.call.conditions import Failure
from runtime.call.routing import find_owner
from runtime.launch import Launched
from tests.support.taskqueue.api import Api

NODES = 6
pytestmark = pytest.mark.asyncio(loop_scope="session")


@pytest_asyncio.fixture(loop_scope="session")
async def nodes(monolith: Launched) -> AsyncIterator[list[Api]]:
    """The public API of each node by itself."""
    async with monolith.client() as client:
        yield [Api(node) for node in client.nodes("gateway")]


@pytest.mark.req("TQ-197", "TQ-187")
async def test_one_node_alone_serves_a_whole_life(nodes: list[Api]) -> None:
    """A job that is submitted to a node is run and answered by that node."""
    for number, node in enumerate(nodes):
        accepted = await node.submit("sleep", size=3)
        assert find_owner(accepted.job_id, NODES) == number
        assert (await node.wait_until_terminal(accepted.job_id)).status == DONE
        assert len((await node.result(accepted.job_id)).output_bytes) == 3


@pytest.mark.req("TQ-195", "CH-90")
async def test_a_node_knows_only_its_own_jobs(nodes: list[Api]) -> None:
    """A node that does not own a job does not find it, and calls no other node."""
    accepted = await nodes[2].submit("sleep")
    for number in set(range(NODES)) - {2}:
        with pytest.raises(Failure) as refused:
            await nodes[number].status(accepted.job_id)
        assert refused.value.grpc == "NOT_FOUND"


@pytest.mark.req("TQ-195")
async def test_no_node_talks_to_another(monolith: Launched, nodes: list[Api]) -> None:
    """Nodes open no connection among themselves."""
    for node in nodes:
        await node.submit("sleep")
    ports = {int(address.rpartition(":")[2]) for address in monolith.endpoints.values()}
    for process in monolith.processes.values():
        assert process.pid is not None
        opened = psutil.Process(process.pid).net_connections(kind="tcp")
        assert [each for each in opened if getattr(each.raddr, "port", None) in ports] == []


@pytest.mark.req("CH-90", "TQ-193")
async def test_a_key_counts_on_its_node_only(nodes: list[Api]) -> None:
    """A node accepts a submit under any key and remembers it for itself alone."""
    first = await nodes[0].submit("sleep", key="anyone's")
    assert (await nodes[0].submit("sleep", key="anyone's")).job_id == first.job_id
    assert (await nodes[1].submit("sleep", key="anyone's")).job_id != first.job_id


@pytest.mark.req("TQ-196")
async def test_a_node_runs_one_job_at_a_time(nodes: list[Api]) -> None:
    """The second of two jobs on one node starts when the first is over."""
    async with nodes[4].run_job() as first:
        second = (await nodes[4].submit()).job_id
        assert (await nodes[4].status(second)).status == QUEUED
    ended = [await nodes[4].wait_until_terminal(job_id) for job_id in (first, second)]
    assert ended[0].finished_at_ms <= ended[1].started_at_ms


@pytest.mark.req("TQ-134", "TQ-198", "TQ-192")
async def test_each_node_lists_its_own_jobs_and_the_union_is_complete(
    monolith: Launched, nodes: list[Api]
) -> None:
    """Twelve submits in turn reach every node twice; the union of the listings has them all, in order."""
    async with monolith.client() as client:
        submitted = [(await Api(client).submit("turn")).job_id for _ in range(2 * NODES)]
        merged = [
            job.job_id
            async for job in all_jobs(client, ListJobsRequest(sort=CREATED_AT_ASC))
            if job.job_type == "turn"
        ]
    assert sorted(merged) == sorted(submitted)
    for number, node in enumerate(nodes):
        own = [job.job_id for job in await node.list_all(size=2) if job.job_type == "turn"]
        assert len(own) == 2
        assert {find_owner(job_id, NODES) for job_id in own} == {number}


@pytest.mark.req("TQ-194")
async def test_a_routed_client_finds_every_job(monolith: Launched, nodes: list[Api]) -> None:
    """Wherever a job was submitted, a client that knows all nodes finds it by its id."""
    async with monolith.client() as client:
        routed = Api(client)
        for node in nodes:
            accepted = await node.submit("sleep")
            assert (await routed.wait_until_terminal(accepted.job_id)).job_id == accepted.job_id
