"""A store that is down for a while, or for good: workers wait with backoff, or stop where that is useless."""

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
async def test_a_worker_survives_an_outage(how: str, proxied_crew: Crew, s3_proxy: S3Proxy) -> None:
    """It polls now and then, needs next to no processor time, and works again by itself afterwards."""
    async with proxied_crew.worker() as works:
        before = await proxied_crew.submit("echo", 1)
        await proxied_crew.wait_until_ended(before)
        s3_proxy.forget()
        if how == "answers 503":
            s3_proxy.rule(status=503, times=None)
        else:
            s3_proxy.down()
        used, since = time.process_time(), time.monotonic()
        await asyncio.sleep(OUTAGE_S)
        used, lasted = time.process_time() - used, time.monotonic() - since
        requests_ = len(s3_proxy.seen)
        s3_proxy.forget()
        if how == "is not there":
            s3_proxy.up()
        after = await proxied_crew.submit("echo", 2)
        assert (await proxied_crew.wait_until_ended(after))["status"] == "Completed"
        assert requests_ < 40 * lasted
        assert used < 0.4 * lasted
        assert not works.events("worker_stopped")


@pytest.mark.req("OQ-240", "OQ-250")
@pytest.mark.parametrize("how", ["answers 503", "is not there"])
@pytest.mark.parametrize("node", ["worker", "monitor"])
async def test_a_node_that_is_started_during_an_outage_waits(
    how: str, node: str, proxied_crew: Crew, s3_proxy: S3Proxy
) -> None:
    """It logs that it waits, and begins when the store is up."""
    key = await proxied_crew.submit("echo", 1)
    if how == "answers 503":
        s3_proxy.rule(status=503, times=None)
    else:
        s3_proxy.down()
    process = proxied_crew.process("early", node)
    (warning, *_) = await eventually(lambda: process.events("store_away"))
    assert warning["level"] == "WARNING" and "It is asked again in" in warning["message"]
    await eventually(lambda: len(process.events("store_away")) > 1)
    assert not process.events("service_ready")
    s3_proxy.forget()
    if how == "is not there":
        s3_proxy.up()
    await eventually(lambda: process.events("service_ready"))
    if node == "worker":
        assert (await proxied_crew.wait_until_ended(key))["status"] == "Completed"


@pytest.mark.req("OQ-240", "OQ-165")
async def test_a_worker_that_waits_for_the_store_can_be_stopped(
    proxied_crew: Crew, s3_proxy: S3Proxy
) -> None:
    """It ends as at any other time, and at once also while it polls."""
    s3_proxy.rule(delay_s=3600, times=None)
    asking = proxied_crew.process("asking")
    await eventually(lambda: s3_proxy.seen)
    asking.signal(signal.SIGTERM)
    assert await asking.wait_for_exit() == 0
    s3_proxy.forget()
    s3_proxy.down()
    waiting = proxied_crew.process("waiting")
    await eventually(lambda: waiting.events("store_away"))
    waiting.signal(signal.SIGTERM)
    assert await waiting.wait_for_exit() == 0
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
async def test_a_worker_without_access_stops(crew: Crew, settings: dict[str, str], words: str) -> None:
    process = crew.process("refused", **settings)
    assert await process.wait_for_exit() != 0
    output = process.text()
    assert words in output and "Traceback" not in output


@pytest.mark.req("OQ-251")
async def test_a_worker_that_loses_access_stops(proxied_crew: Crew, s3_proxy: S3Proxy) -> None:
    process = await proxied_crew.process("later").wait_until_ready()
    s3_proxy.rule(status=403, times=None)
    assert await process.wait_for_exit() != 0
    output = process.text()
    assert "may not do this" in output and "Traceback" not in output
