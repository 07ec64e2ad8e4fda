"""Nodes over a database: what handlers are handed, what the engine drives alone, and how it is opened."""

from __future__ import annotations

import asyncio

import pytest

from generated.orchestrator.lifecycle import JOB
from generated.orchestrator.messages import CREATED, RUNNING
from generated.orchestrator.system import SYSTEM
from runtime.call import Channel
from runtime.launch import launched
from runtime.node.assembly import Assembly
from runtime.node.wiring import needs_no_handler
from runtime.stores.postgres import PostgresStore
from runtime.world import RealWorld
from tests.runtime.hand_world import Lines
from tests.runtime.stores.postgres.kit import Kit, unguarded
from tests.support.eventually import eventually


def nobody_else(_parts: Assembly, component: str, service: str) -> Channel:
    raise LookupError(f"{component} wants {service}")


def assembled(url: str, node: str, **settings: str) -> Assembly:
    deployment = SYSTEM.deployments["local"]
    environment = {"DATABASE_URL": url, **settings}
    return Assembly(
        SYSTEM, deployment, deployment.nodes[node], environment, RealWorld(), nobody_else, stream=Lines()
    )


async def test_components_of_a_node_share_one_store(kit: Kit) -> None:
    """It is the same for the component that holds the entities and for those that share them."""
    parts = assembled(kit.url, "worker")
    found = {id(parts.stores.of(JOB, JOB.record or object)) for _ in range(3)}
    assert len(found) == 1
    assert isinstance(parts.stores.of(JOB, JOB.record or object), PostgresStore)
    await parts.open()
    assert await parts.find_problem() is None
    await parts.close()


def test_components_that_the_clock_drives_need_no_handler() -> None:
    assert {name for name in ("api", "worker", "reaper", "scheduler") if needs_no_handler(SYSTEM, name)} == {
        "reaper",
        "scheduler",
    }


@pytest.mark.req("ORC-013", "ORC-068", "ORC-140")
async def test_the_engine_drives_what_is_due(kit: Kit) -> None:
    """A node that hosts a component drives its edges, and leaves those of others alone."""
    left, held = await kit.add(), await kit.add(RUNNING)
    await kit.sql.execute(unguarded("UPDATE jobs SET created_at = '2001-01-01Z' WHERE state = 'CREATED'"))
    await kit.sql.execute("UPDATE jobs SET lease_expiry = '2001-01-01Z' WHERE state = 'RUNNING'")
    stopping = asyncio.Event()
    worker = assembled(kit.url, "worker", REAPER_INTERVAL_SECONDS="0.05", SCHEDULER_INTERVAL_SECONDS="0.05")
    await worker.open()
    running = [asyncio.create_task(work) for _, work in worker.background(stopping)]
    await eventually(lambda: kit.job(held.job_id), wanted=lambda job: job.state != RUNNING)
    assert (await kit.job(left.job_id)).state == CREATED
    api = assembled(kit.url, "api", CREATED_SWEEP_SECONDS="0.05")
    await api.open()
    running += [asyncio.create_task(work) for _, work in api.background(stopping)]
    await eventually(lambda: kit.job(left.job_id), wanted=lambda job: job.state != CREATED)
    stopping.set()
    await asyncio.gather(*running)
    assert (await kit.edges(left.job_id))[1] == ("CREATED", "QUEUED", "api")
    await worker.close()
    await api.close()


async def test_a_deployment_brings_its_own_server_along() -> None:
    """Without a URL a server is started on data of its own, and nothing is left of it afterwards."""
    told: list[str] = []
    async with launched("orchestrator.local", ports="auto", tls=False, tell=told.append) as deployment:
        server = deployment.servers["postgres"]
        folder = server.folder
        assert server.pid is not None
        assert any(f"data in {folder}" in line for line in told)
    assert deployment.servers.running == []
    assert not folder.exists()
    assert told[-1] == "postgres: stopped"


async def test_a_server_that_is_named_is_used(kit: Kit) -> None:
    settings = {"DATABASE_URL": kit.url}
    async with launched("orchestrator.local", ports="auto", tls=False, settings=settings) as deployment:
        with pytest.raises(KeyError):
            deployment.servers["postgres"]
        names = await kit.sql.fetch(
            "SELECT DISTINCT application_name FROM pg_stat_activity WHERE datname = current_database()"
        )
        assert {row[0] for row in names} >= {"orchestrator api", "orchestrator worker"}
