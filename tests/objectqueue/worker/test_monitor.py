"""The monitor: dead workers, shards without a worker, and where it runs."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta

import pytest

from tests.support.eventually import eventually
from tests.support.objectqueue.crew import Crew
from tests.support.s3.proxy import S3Proxy

LEASES = "leases/"


@pytest.mark.req("OQ-075")
async def test_shards_without_a_worker_are_logged(crew: Crew) -> None:
    """As long as there is none; with a worker for the rest nothing more is logged."""
    async with crew.worker("some", QO_SHARDS="0,1,2"), crew.monitor() as monitor:
        (warning,) = await eventually(lambda: monitor.events("shards_uncovered"))
        assert warning["message"] == f"no live worker looks after {', '.join('3456789abcdef')}"
    async with (
        crew.worker("some", QO_SHARDS="0,1,2"),
        crew.worker("rest", QO_SHARDS="3,4,5,6,7,8,9,a,b,c,d,e,f"),
        crew.monitor(QO_LOG="debug") as monitor,
    ):
        await eventually(lambda: monitor.events("sweep"))
        assert monitor.events("shards_uncovered") == []


@pytest.mark.req("OQ-140", "OQ-131", "OQ-209")
@pytest.mark.parametrize("without", ["true", "false"])
async def test_a_worker_has_a_built_in_monitor_by_default(
    proxied_crew: Crew, s3_proxy: S3Proxy, without: str
) -> None:
    """The leases are listed, or they are not."""
    settings = {"QO_NO_MONITOR": without, "QO_MONITOR_CHECK_INTERVAL": "0.1"}
    async with proxied_crew.worker(**settings):
        if without == "false":
            await eventually(lambda: any(LEASES in each.query.get("prefix", "") for each in s3_proxy.asked()))
        else:
            await eventually(lambda: len(s3_proxy.asked("ListObjectsV2")) > 4)
    assert any(LEASES in each.query.get("prefix", "") for each in s3_proxy.asked()) == (without == "false")


@pytest.mark.req("OQ-141")
async def test_a_worker_with_a_new_heartbeat_is_not_dead(crew: Crew) -> None:
    """A live one is never called dead, and one that has stopped in order has no object."""
    async with crew.monitor(QO_LOG="debug", QO_MONITOR_WORKER_HEALTH_THRESHOLD="600") as monitor:
        async with crew.worker("alive", QO_HEARTBEAT_SECONDS="0.2"):
            await eventually(lambda: len(monitor.events("sweep")) > 3)
        assert monitor.events("worker_dead") == []


@pytest.mark.req("OQ-059", "OQ-070", "OQ-142")
async def test_a_sweep_writes_a_checkpoint(proxied_crew: Crew, s3_proxy: S3Proxy) -> None:
    """Workers in mode hybrid rely on it, and still find tasks without an entry."""
    crew = proxied_crew
    waits = await crew.submit("echo", 1, available_at=datetime.now(UTC) + timedelta(hours=1))
    async with crew.monitor(QO_MONITOR_SWEEP_INTERVAL="0.1"):
        await eventually(lambda: crew.bucket.keys("sweeps/"))
    body = crew.bucket.raw.get_object(Bucket=crew.bucket.name, Key="sweeps/last.json")["Body"].read()
    checkpoint = json.loads(body)
    assert [each.rpartition("/")[2] for each in checkpoint["witnesses"]] == [waits]
    assert datetime.fromisoformat(checkpoint["began"]) < datetime.fromisoformat(checkpoint["next"])
    key = await crew.submit("echo", 1)
    for each in crew.bucket.keys("ready/"):
        crew.bucket.raw.delete_object(Bucket=crew.bucket.name, Key=each)
    s3_proxy.forget()
    async with crew.worker():
        assert (await crew.wait_until_ended(key))["status"] == "Completed"
    assert s3_proxy.asked("GetObject", "sweeps/last.json")
