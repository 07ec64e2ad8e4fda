"""A store that is away for a while, or for good: workers wait without haste, or stop where that is no use."""

from __future__ import annotations

import asyncio
import signal
import time

import pytest

from tests.support.eventually import eventually
from tests.support.objectqueue.crew import Crew
from tests.support.s3.proxy import S3Proxy

OUTAGE_S = 2.5


@pytest.mark.req("OQ-240", "OQ-250")
@pytest.mark.parametrize("how", ["answers 503", "is not there"])
async def test_a_worker_outlives_an_outage(how: str, proxied_crew: Crew, s3_proxy: S3Proxy) -> None:
    """It asks now and then, takes next to no processor time, and goes on by itself afterwards."""
    async with proxied_crew.worker() as works:
        before = await proxied_crew.submit("echo", 1)
        await proxied_crew.ended(before)
        s3_proxy.forget()
        if how == "answers 503":
            s3_proxy.rule(status=503, times=None)
        else:
            s3_proxy.down()
        used, since = time.process_time(), time.monotonic()
        await asyncio.sleep(OUTAGE_S)
        used, lasted = time.process_time() - used, time.monotonic() - since
        asked = len(s3_proxy.seen)
        s3_proxy.forget()
        if how == "is not there":
            s3_proxy.up()
        after = await proxied_crew.submit("echo", 2)
        assert (await proxied_crew.ended(after))["status"] == "Completed"
        assert asked < 40 * lasted
        assert used < 0.4 * lasted
        assert not works.events("worker_stopped")


@pytest.mark.req("OQ-240", "OQ-250")
@pytest.mark.parametrize("how", ["answers 503", "is not there"])
@pytest.mark.parametrize("node", ["worker", "monitor"])
async def test_a_node_that_is_started_during_an_outage_waits_for_its_end(
    how: str, node: str, proxied_crew: Crew, s3_proxy: S3Proxy
) -> None:
    """It says that it waits, and begins when the store is there."""
    key = await proxied_crew.submit("echo", 1)
    if how == "answers 503":
        s3_proxy.rule(status=503, times=None)
    else:
        s3_proxy.down()
    process = proxied_crew.process("early", node)
    (told, *_) = await eventually(lambda: process.events("store_away"))
    assert told["level"] == "WARNING" and "It is asked again in" in told["message"]
    await eventually(lambda: len(process.events("store_away")) > 1)
    assert not process.events("service_ready")
    s3_proxy.forget()
    if how == "is not there":
        s3_proxy.up()
    await eventually(lambda: process.events("service_ready"))
    if node == "worker":
        assert (await proxied_crew.ended(key))["status"] == "Completed"


@pytest.mark.req("OQ-240", "OQ-165")
async def test_a_worker_that_waits_for_the_store_can_be_stopped(
    proxied_crew: Crew, s3_proxy: S3Proxy
) -> None:
    """It ends as it does at any other time, and at once also while it asks."""
    s3_proxy.rule(delay_s=3600, times=None)
    asking = proxied_crew.process("asking")
    await eventually(lambda: s3_proxy.seen)
    asking.signal(signal.SIGTERM)
    assert await asking.ended() == 0
    s3_proxy.forget()
    s3_proxy.down()
    waiting = proxied_crew.process("waiting")
    await eventually(lambda: waiting.events("store_away"))
    waiting.signal(signal.SIGTERM)
    assert await waiting.ended() == 0
    for each in (asking, waiting):
        assert each.events("service_stopped") and "Traceback" not in each.text()
    s3_proxy.up()


@pytest.mark.req("OQ-251")
@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"AWS_SECRET_ACCESS_KEY": "wrong"}, "does not take the key"),
        ({"S3_BUCKET": "no-such-bucket"}, "There is no bucket"),
    ],
)
async def test_a_worker_that_is_refused_stops(crew: Crew, settings: dict[str, str], words: str) -> None:
    process = crew.process("refused", **settings)
    assert await process.ended() != 0
    told = process.text()
    assert words in told and "Traceback" not in told


@pytest.mark.req("OQ-251")
async def test_a_worker_that_is_refused_later_stops_too(proxied_crew: Crew, s3_proxy: S3Proxy) -> None:
    process = await proxied_crew.process("later").ready()
    s3_proxy.rule(status=403, times=None)
    assert await process.ended() != 0
    told = process.text()
    assert "may not do this" in told and "Traceback" not in told
