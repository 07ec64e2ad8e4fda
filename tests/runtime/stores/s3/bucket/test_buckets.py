"""A bucket made ready for what is kept in it, and a store that is tried out before anybody relies on it."""

from __future__ import annotations

import asyncio
import json
import urllib.error
import urllib.request
from dataclasses import replace
from typing import Any

import pytest

from runtime.launch.embedded.seaweedfs import EmbeddedSeaweedfs
from runtime.node.systems import load_system
from runtime.stores.s3.bucket.bucket_settings import allow_anonymous_reads, is_versioned, set_up
from runtime.stores.s3.bucket.probe import examine, find_write_problem
from runtime.stores.s3.client.errors import ObjectError, Refused
from runtime.stores.s3.client.location import Names
from runtime.stores.s3.client.objects import BucketLocation, Objects
from tests.support.s3.fixtures import Bucket
from tests.support.s3.proxy import S3Proxy

LIFECYCLES = load_system("objectqueue").lifecycles.values()


@pytest.fixture
async def through(bucket: Bucket, s3_proxy: S3Proxy) -> Any:
    made = Objects(bucket.through(s3_proxy).location)
    yield made
    await made.close()


@pytest.mark.req("OQ-218", "OQ-219")
async def test_a_bucket_is_made_ready(s3_server: EmbeddedSeaweedfs, s3_raw: Any, s3_key: None) -> None:
    """Made where it is missing, with versions, and open to pages of other origins; also a second time."""
    objects = Objects(BucketLocation(bucket="made-ready", endpoint=s3_server.url, prefix="q1/"))
    first = await set_up(objects, LIFECYCLES, {"QO_ARCHIVE_DAYS": 30})
    again = await set_up(objects, LIFECYCLES, {"QO_ARCHIVE_DAYS": 7})
    assert "The bucket made-ready is created." in first and "The bucket made-ready is there." in again
    assert s3_raw.get_bucket_versioning(Bucket="made-ready")["Status"] == "Enabled"
    assert await is_versioned(objects)
    [rule] = s3_raw.get_bucket_cors(Bucket="made-ready")["CORSRules"]
    assert (rule["AllowedOrigins"], rule["AllowedHeaders"]) == (["*"], ["*"])
    assert sorted(rule["AllowedMethods"]) == ["GET", "HEAD", "PUT"]
    assert {"ETag", "x-amz-version-id", "Date"} <= set(rule["ExposeHeaders"])
    await objects.close()


@pytest.mark.parametrize(
    "told",
    [
        b"200 OK\r\ncontent-length: 8\r\n\r\n<p>hi<br",
        b"200 OK\r\ncontent-length: 9\r\n\r\n<p>hi</p>",
        b"404 Not Found\r\ncontent-length: 0\r\n\r\n",
    ],
)
async def test_what_is_no_store_is_told(s3_key: None, told: bytes) -> None:
    """Any other server of HTTP may stand where a store is expected, and answers as it likes."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 " + told)
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    async with server:
        port = server.sockets[0].getsockname()[1]
        url = f"http://127.0.0.1:{port}"
        objects = Objects(BucketLocation(bucket="some", endpoint=url, names=Names(endpoint="NURSERY_STORE")))
        for asked in (is_versioned(objects), objects.page("", most=1)):
            with pytest.raises(Refused, match=r"no S3 store \(.*\): check NURSERY_STORE\."):
                await asked
        [found] = await examine(objects)
        assert not found.ok and "no S3 store" in found.reason
        with pytest.raises(ObjectError):
            await anext(objects.versions("a"))
        await objects.close()


async def test_a_store_at_another_path_is_told(bucket: Bucket) -> None:
    """What is wanted as a bucket is an object of another one there, and there is no such object."""
    objects = Objects(replace(bucket.location, bucket="tasks", endpoint=f"{bucket.endpoint}/{bucket.name}"))
    with pytest.raises(Refused, match="no S3 store"):
        await is_versioned(objects)
    await objects.close()


async def test_a_bucket_removes_what_is_out_of_use(bucket: Bucket, objects: Objects) -> None:
    """What is retired after some days, and old versions of hints at once; rules of others stay."""
    foreign = {"ID": "mine", "Status": "Enabled", "Filter": {"Prefix": "logs/"}, "Expiration": {"Days": 3}}
    bucket.raw.put_bucket_lifecycle_configuration(
        Bucket=bucket.name, LifecycleConfiguration={"Rules": [foreign]}
    )

    async def rules(**values: Any) -> dict[str, Any]:
        await set_up(objects, LIFECYCLES, values)
        told = bucket.raw.get_bucket_lifecycle_configuration(Bucket=bucket.name)["Rules"]
        return {each["ID"]: each for each in told}

    for days in (30, 7):
        found = await rules(QO_ARCHIVE_DAYS=days)
        for folder in ("tasks/", "data/"):
            archived = found[f"charter:{folder}:archived"]
            assert archived["Expiration"] == {"Days": days}
            assert archived["Filter"]["And"]["Tags"] == [{"Key": "qo-status", "Value": "archived"}]
        for folder in ("ready/", "leases/", "sweeps/", "workers/", "trials/"):
            assert found[f"charter:{folder}"]["NoncurrentVersionExpiration"] == {"NoncurrentDays": 1}
            assert "Days" not in found[f"charter:{folder}"]["Expiration"]
        assert found["mine"]["Expiration"] == {"Days": 3}
        assert len(found) == 8
    assert "charter:tasks/:archived" not in await rules()
    other = Objects(BucketLocation(bucket=bucket.name, endpoint=bucket.endpoint, prefix="q2/"))
    await set_up(other, LIFECYCLES, {})
    await other.close()
    assert len(await rules()) == 11


@pytest.mark.parametrize("kind", ["GetBucketLifecycle", "GetBucketCors", "GetBucketPolicy"])
async def test_settings_that_are_cut_off_are_read_again(
    kind: str, bucket: Bucket, through: Objects, s3_proxy: S3Proxy
) -> None:
    """Or those of others would be taken for missing, and be gone."""
    rule = {"ID": "mine", "Status": "Enabled", "Filter": {"Prefix": "logs/"}, "Expiration": {"Days": 3}}
    origin = {"ID": "mine", "AllowedMethods": ["GET"], "AllowedOrigins": ["http://a.example"]}
    policy = {"Sid": "mine", "Effect": "Allow", "Principal": "*", "Action": ["s3:GetObject"]}
    statement = {**policy, "Resource": [f"arn:aws:s3:::{bucket.name}/open/*"]}
    name = {"Bucket": bucket.name}
    bucket.raw.put_bucket_lifecycle_configuration(**name, LifecycleConfiguration={"Rules": [rule]})
    bucket.raw.put_bucket_cors(**name, CORSConfiguration={"CORSRules": [origin]})
    bucket.raw.put_bucket_policy(
        **name, Policy=json.dumps({"Version": "2012-10-17", "Statement": [statement]})
    )
    s3_proxy.rule(kind=kind, truncate=0)
    await set_up(through, LIFECYCLES, {})
    await allow_anonymous_reads(through, "ui/")
    assert len(s3_proxy.asked(kind)) == 2
    rules = bucket.raw.get_bucket_lifecycle_configuration(**name)["Rules"]
    origins = bucket.raw.get_bucket_cors(**name)["CORSRules"]
    statements = json.loads(bucket.raw.get_bucket_policy(**name)["Policy"])["Statement"]
    assert "mine" in {each["ID"] for each in rules}
    assert "mine" in {each["ID"] for each in origins}
    assert "mine" in {each["Sid"] for each in statements}


@pytest.mark.req("OQ-219")
async def test_a_page_of_another_origin_may_write(bucket: Bucket, objects: Objects) -> None:
    """What a browser asks before it sends a guarded write, and what it lets the page see."""
    await set_up(objects, LIFECYCLES, {})
    asked = urllib.request.Request(
        f"{bucket.endpoint}/{bucket.name}/tasks/0/x.json",
        method="OPTIONS",
        headers={
            "Origin": "http://elsewhere.example",
            "Access-Control-Request-Method": "PUT",
            "Access-Control-Request-Headers": "authorization,if-match,x-amz-date",
        },
    )
    with urllib.request.urlopen(asked) as told:
        assert told.headers["Access-Control-Allow-Origin"] in {"*", "http://elsewhere.example"}
        assert "PUT" in told.headers["Access-Control-Allow-Methods"]
        assert "if-match" in told.headers["Access-Control-Allow-Headers"].lower()


async def test_one_folder_is_open_to_everybody(bucket: Bucket, objects: Objects, s3_proxy: S3Proxy) -> None:
    foreign = {
        "Sid": "mine",
        "Effect": "Allow",
        "Principal": "*",
        "Action": ["s3:GetObject"],
        "Resource": [f"arn:aws:s3:::{bucket.name}/open/*"],
    }
    policy = json.dumps({"Version": "2012-10-17", "Statement": [foreign]})
    bucket.raw.put_bucket_policy(Bucket=bucket.name, Policy=policy)
    for key in ("ui/index.html", "tasks/0/x.json"):
        await objects.put(key, b"here")
    for _ in range(2):
        assert "ui/ is readable without a key" in await allow_anonymous_reads(objects, "ui/")
    with urllib.request.urlopen(f"{bucket.endpoint}/{bucket.name}/ui/index.html") as told:
        assert (told.read(), told.headers["Content-Type"]) == (b"here", "text/html")
    for key in ("tasks/0/x.json", "?list-type=2"):
        with pytest.raises(urllib.error.HTTPError, match="403") as refused:
            urllib.request.urlopen(f"{bucket.endpoint}/{bucket.name}/{key}")
        refused.value.close()
    told = json.loads(bucket.raw.get_bucket_policy(Bucket=bucket.name)["Policy"])
    assert len(told["Statement"]) == 2
    through = Objects(bucket.through(s3_proxy).location)
    s3_proxy.rule(kind="PutBucketPolicy", status=403)
    assert "ui/ stays unreadable without a key" in await allow_anonymous_reads(through, "ui/")
    await through.close()


@pytest.mark.req("OQ-018", "OQ-019")
async def test_a_bucket_without_versions_is_told(
    bucket: Bucket, through: Objects, s3_proxy: S3Proxy, s3_raw: Any
) -> None:
    """And made one with versions, unless the store has none; then only whoever allows that may go on."""
    s3_raw.put_bucket_versioning(Bucket=bucket.name, VersioningConfiguration={"Status": "Suspended"})
    assert not await is_versioned(through)
    found = {each.name: each for each in await examine(through, racers=2)}
    assert not found["versions"].ok and "no history" in found["versions"].reason
    assert found["race"].ok
    s3_proxy.rule(kind="PutBucketVersioning", status=501, times=None)
    with pytest.raises(Refused, match="501"):
        await set_up(through, LIFECYCLES, {})
    done = await set_up(through, LIFECYCLES, {"QO_ALLOW_NO_VERSIONING": True})
    assert any("no history" in each for each in done)


@pytest.mark.req("OQ-017", "OQ-023")
async def test_a_good_store_passes_with_nothing_special(through: Objects, s3_proxy: S3Proxy) -> None:
    """Every operation is one that all stores have; what was written to try is gone."""
    found = await examine(through, racers=2)
    assert [each.name for each in found if not each.ok] == []
    assert await find_write_problem(through) is None
    assert (await through.page("", most=5)).entries == []
    await set_up(through, LIFECYCLES, {})
    assert {each.kind for each in s3_proxy.seen} == {
        "PutObject",
        "GetObject",
        "DeleteObject",
        "ListObjectsV2",
        "ListObjectVersions",
        "GetBucketVersioning",
        "GetBucketCors",
        "PutBucketCors",
        "GetBucketLifecycle",
        "PutBucketLifecycle",
    }


@pytest.mark.req("OQ-017")
@pytest.mark.parametrize(
    ("header", "words"),
    [("if-match", "If-Match is ignored"), ("if-none-match", "If-None-Match is ignored")],
)
async def test_a_store_that_ignores_conditions_is_found_out(
    header: str, words: str, through: Objects, s3_proxy: S3Proxy
) -> None:
    s3_proxy.rule(kind="PutObject", having=header, strip=(header,), times=None)
    problem = await find_write_problem(through)
    assert problem is not None and words in problem and "work would be done twice" in problem
    found = {each.name: each for each in await examine(through, racers=2)}
    assert not found["race"].ok and "succeeded" in found["race"].reason
    assert (await through.page("", most=5)).entries == []


@pytest.mark.req("OQ-017")
async def test_conditions_that_hold_for_one_at_a_time_only_are_found_out(
    through: Objects, s3_proxy: S3Proxy
) -> None:
    """The first stale writer is refused; of those that write at once two succeed."""
    s3_proxy.rule(kind="PutObject", key="race", having="if-match", strip=("if-match",), times=None)
    problem = await find_write_problem(through)
    assert problem is not None and "of 2 that replaced an object at once 2 succeeded" in problem


async def test_what_else_is_wrong_is_told_by_name(
    bucket: Bucket, through: Objects, s3_proxy: S3Proxy
) -> None:
    s3_proxy.clock_offset_s = 20
    s3_proxy.rule(kind="DeleteObject", having="if-match", status=501, times=None)
    s3_proxy.rule(kind="ListObjectVersions", status=403, times=None)
    found = {each.name: each for each in await examine(through, racers=2)}
    assert not found["clock"].ok and "behind the store, and 2 s are allowed" in found["clock"].reason
    assert found["conditional delete"].ok and "not offered" in found["conditional delete"].reason
    assert not found["versions"].ok and "may not do this" in found["versions"].reason
    away = Objects(BucketLocation(bucket=bucket.name, endpoint="http://127.0.0.1:1", tries=1))
    [only] = await examine(away)
    assert not only.ok and "connection refused" in only.reason
    await away.close()
