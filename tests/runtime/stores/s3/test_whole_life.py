"""An entity from its creation to its end, on stores that are not quite alike."""

from __future__ import annotations

from typing import Any

import pytest

from tests.runtime.stores.s3.kit import Process
from tests.support.s3.fixtures import Bucket
from tests.support.s3.proxy import S3Proxy

STORES: dict[str, dict[str, Any]] = {
    "plain": {},
    "other etags": {"rewrites_etags": True},
    "no conditional delete": {
        "rule": {"kind": "DeleteObject", "having": "if-match", "status": 501, "times": None}
    },
    "in trouble now and then": {"rule": {"kind": "GetObject", "status": 503, "times": 2}},
}


@pytest.mark.req("OQ-022", "OQ-024", "OQ-025")
@pytest.mark.parametrize("store", STORES)
async def test_a_whole_life(store: str, bucket: Bucket, s3_proxy: S3Proxy) -> None:
    """Taken, failed, taken again and completed. No two of its versions have the same ETag."""
    kind = STORES[store]
    s3_proxy.rewrites_etags = bool(kind.get("rewrites_etags"))
    if "rule" in kind:
        s3_proxy.rule(**kind["rule"])
    one = Process(bucket.through(s3_proxy))
    made = await one.submit(retry_policy=one.policy(initial_interval_ms=0, max_interval_ms=0))
    [first] = await one.take()
    await one.settle(first, "retry", error="once more")
    [second] = await one.take()
    assert (second.id, second.attempt, second.retry_count) == (made.id, 2, 1)
    await one.settle(second, "complete", output="2")
    assert await one.take() == []
    found = await one.tasks.get(made.id)
    assert found is not None
    assert (one.task.states[found.status], found.output) == ("COMPLETED", "2")
    assert bucket.keys("ready/") == bucket.keys("leases/") == []
    told = bucket.raw.list_object_versions(Bucket=bucket.name, Prefix="tasks/")["Versions"]
    assert len(told) == 5 == len({each["ETag"] for each in told})
    await one.close()
