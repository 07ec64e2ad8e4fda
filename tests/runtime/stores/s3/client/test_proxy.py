"""The proxy that harms requests: nothing changes unless a rule says so, and each harm is what it says."""

from __future__ import annotations

from typing import Any

import botocore.config
import botocore.session
import pytest
from botocore.exceptions import ClientError, ConnectionClosedError, EndpointConnectionError, HTTPClientError

from tests.support.s3.fixtures import REGION, Bucket
from tests.support.s3.proxy import S3Proxy


@pytest.fixture
def there(bucket: Bucket, s3_proxy: S3Proxy) -> Any:
    once = botocore.config.Config(retries={"total_max_attempts": 1}, s3={"addressing_style": "path"})
    return botocore.session.get_session().create_client(
        "s3", endpoint_url=s3_proxy.url, region_name=REGION, config=once
    )


def test_without_rules_everything_passes(there: Any, bucket: Bucket, s3_proxy: S3Proxy) -> None:
    """Bodies of any size, conditions and listings; each is recorded by its S3 name."""
    big = bytes(range(256)) * 8192
    put = there.put_object(Bucket=bucket.name, Key="a b/ü?.json", Body=big, IfNoneMatch="*")
    assert there.get_object(Bucket=bucket.name, Key="a b/ü?.json")["Body"].read() == big
    assert there.head_object(Bucket=bucket.name, Key="a b/ü?.json")["ContentLength"] == len(big)
    assert there.list_objects_v2(Bucket=bucket.name)["KeyCount"] == 1
    with pytest.raises(ClientError, match="PreconditionFailed"):
        there.put_object(Bucket=bucket.name, Key="a b/ü?.json", Body=b"", IfNoneMatch="*")
    there.delete_object(Bucket=bucket.name, Key="a b/ü?.json", VersionId=put["VersionId"])
    assert [(each.kind, each.status) for each in s3_proxy.seen] == [
        ("PutObject", 200),
        ("GetObject", 200),
        ("HeadObject", 200),
        ("ListObjectsV2", 200),
        ("PutObject", 412),
        ("DeleteObject", 204),
    ]
    assert s3_proxy.seen[0].key == "a b/ü?.json"
    assert s3_proxy.seen[0].headers["if-none-match"] == "*"


def test_each_harm_is_what_it_says(there: Any, bucket: Bucket, s3_proxy: S3Proxy) -> None:
    def put(key: str) -> Any:
        return there.put_object(Bucket=bucket.name, Key=key, Body=b"x" * 100)

    s3_proxy.rule(key="refused", refuse=True)
    with pytest.raises(HTTPClientError):
        put("refused")
    s3_proxy.rule(key="dropped", drop=True)
    with pytest.raises(ConnectionClosedError):
        put("dropped")
    s3_proxy.rule(key="slow", status=503)
    with pytest.raises(ClientError, match="SlowDown"):
        put("slow")
    s3_proxy.rule(key="odd", status=500, carried_out=True)
    with pytest.raises(ClientError, match="InternalError"):
        put("odd")
    s3_proxy.rule(kind="GetObject", truncate=10)
    with pytest.raises(HTTPClientError):
        there.get_object(Bucket=bucket.name, Key="odd")["Body"].read()
    assert bucket.keys() == ["dropped", "odd"]
    for each in ("refused", "slow"):
        assert put(each)["ResponseMetadata"]["HTTPStatusCode"] == 200


def test_a_stripped_condition_leaves_a_true_signature(there: Any, bucket: Bucket, s3_proxy: S3Proxy) -> None:
    there.put_object(Bucket=bucket.name, Key="a", Body=b"1")
    s3_proxy.rule(having="if-none-match", strip=("if-none-match",))
    assert there.put_object(Bucket=bucket.name, Key="a", Body=b"2", IfNoneMatch="*")["VersionId"]
    with pytest.raises(ClientError, match="PreconditionFailed"):
        there.put_object(Bucket=bucket.name, Key="a", Body=b"2", IfNoneMatch="*")


def test_other_etags_work_in_every_place(there: Any, bucket: Bucket, s3_proxy: S3Proxy) -> None:
    s3_proxy.rewrites_etags = True
    etag = there.put_object(Bucket=bucket.name, Key="a", Body=b"1")["ETag"]
    assert etag.endswith('-opaque"')
    assert there.list_objects_v2(Bucket=bucket.name)["Contents"][0]["ETag"] == etag
    assert there.list_object_versions(Bucket=bucket.name)["Versions"][0]["ETag"] == etag
    again = there.put_object(Bucket=bucket.name, Key="a", Body=b"2", IfMatch=etag)["ETag"]
    assert again != etag
    with pytest.raises(ClientError, match="PreconditionFailed"):
        there.put_object(Bucket=bucket.name, Key="a", Body=b"3", IfMatch=etag)


def test_a_store_that_is_away_comes_back_where_it_was(there: Any, bucket: Bucket, s3_proxy: S3Proxy) -> None:
    there.put_object(Bucket=bucket.name, Key="a", Body=b"1")
    s3_proxy.down()
    with pytest.raises((EndpointConnectionError, ConnectionClosedError)):
        there.get_object(Bucket=bucket.name, Key="a")
    s3_proxy.up()
    assert there.get_object(Bucket=bucket.name, Key="a")["Body"].read() == b"1"
