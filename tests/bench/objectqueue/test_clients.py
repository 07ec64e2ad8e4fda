"""Comparison of bucket clients: all of them send the same requests, and every cost is reported."""

from __future__ import annotations

from bench.objectqueue.clients import BUCKET, OPERATIONS, measure
from runtime.launch.embedded.seaweedfs import EmbeddedSeaweedfs
from tests.support.s3.fixtures import raw_client


async def test_every_client_runs_every_operation(own_s3: EmbeddedSeaweedfs) -> None:
    found = await measure(own_s3, requests=3, rounds=1)
    assert {(each.client, each.operation) for each in found} == {
        (client, operation) for client in ("ours", "obstore", "botocore") for operation in OPERATIONS
    }
    assert all(each.per_s > 0 and each.cpu_us > 0 for each in found)
    raw = raw_client(own_s3)
    written = [each["Key"] for each in raw.list_objects_v2(Bucket=BUCKET)["Contents"]]
    raw.close()
    assert len(written) == 3 * 6
