"""The stores of a node whose entities are in a bucket, and what it drives by the clock."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from runtime.observe.metrics import Metrics
from runtime.stores.node_stores import Stores
from runtime.stores.store import StoreUnusable
from runtime.world import RealWorld
from tests.runtime.stores.s3.conftest import Make
from tests.runtime.stores.s3.kit import Process
from tests.support.eventually import eventually
from tests.support.s3.fixtures import Bucket


def stores_of(one: Process, bucket: Bucket, **values: Any) -> Stores:
    """What a node makes of its variables."""
    known = {**one.values, "S3_ENDPOINT": bucket.endpoint, "S3_BUCKET": bucket.name, "S3_REGION": "us-east-1"}
    return Stores(one.system, RealWorld(), Metrics(), {**known, **values}, "worker")


@pytest.mark.req("OQ-142", "OQ-131", "OQ-143", "OQ-210", "OQ-212")
async def test_the_clock_drives_sweeps_and_repairs(process: Make, bucket: Bucket) -> None:
    """What a lost entry hid is found again; an interval of 0 is never."""
    one = process()
    await one.submit()
    entry = one.keys("ready/")
    bucket.raw.delete_object(Bucket=bucket.name, Key=entry[0])
    stores = stores_of(one, bucket, QO_MONITOR_SWEEP_INTERVAL=0.2, QO_MONITOR_CHECK_INTERVAL=0.2)
    await stores.open(one.log, ["monitor"])
    assert one.task.record is not None
    store = stores.of(one.task, one.task.record)
    assert await store.health() is None
    stopping = asyncio.Event()
    loops = [asyncio.create_task(each) for each in stores.sweepers("monitor", one.call("monitor"), stopping)]
    assert len(loops) == 2
    await eventually(lambda: one.keys("ready/"), wanted=lambda keys: keys == entry)
    stopping.set()
    await asyncio.gather(*loops)
    assert list(stores.sweepers("queue", one.call(), stopping)) == []
    await stores.close()
    never = stores_of(one, bucket, QO_MONITOR_SWEEP_INTERVAL=0)
    await never.open(one.log, ["monitor"])
    only = list(never.sweepers("monitor", one.call("monitor"), stopping))
    assert len(only) == 1
    for each in only:
        each.close()
    await never.close()


@pytest.mark.req("OQ-236", "OQ-204")
async def test_a_bucket_that_is_not_there_is_said_so_at_the_start(process: Make, bucket: Bucket) -> None:
    one = process()
    for components in (["queue"], ["worker"]):
        stores = stores_of(one, bucket, S3_BUCKET="nobody-made-it")
        with pytest.raises(StoreUnusable, match="nobody-made-it"):
            await stores.open(one.log, components)
        await stores.close()


async def test_queues_in_one_bucket_do_not_meet(process: Make, bucket: Bucket) -> None:
    """Each has its own beginning of all keys."""
    one = process()
    assert one.task.record is not None
    stores = [stores_of(one, bucket, QO_QUEUE=name) for name in ("red", "blue")]
    red, blue = [each.of(one.task, one.task.record) for each in stores]
    made = (await red.create(one.new(), one.call())).record
    await red.drain_indexes()
    assert {key.partition("/")[0] for key in one.keys("")} == {"red"}
    assert await blue.get(made.id) is None
    assert await blue.claim("w", 1, one.call("worker")) == []
    assert (await red.claim("w", 1, one.call("worker")))[0].id == made.id
    for each in stores:
        await each.close()


@pytest.mark.parametrize("queue", ["../other", "a/", "/a", "a//b", "."])
def test_a_queue_has_a_plain_name(process: Make, bucket: Bucket, queue: str) -> None:
    """A server that takes keys for paths would look for them elsewhere."""
    one = process()
    assert one.task.record is not None
    with pytest.raises(StoreUnusable, match="set QO_QUEUE to a plain name"):
        stores_of(one, bucket, QO_QUEUE=queue).of(one.task, one.task.record)
