"""When the store is slow, away or out of order: what may be repeated is; a guarded write never."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest

from runtime.launch.embedded.seaweedfs import EmbeddedSeaweedfs
from runtime.stores.s3.bucket.bucket_settings import allow_anonymous_reads, is_versioned
from runtime.stores.s3.client.errors import Away, NotMatched, Refused, Unsure
from runtime.stores.s3.client.objects import BucketLocation, Objects
from tests.runtime.stores.s3.kit import ask
from tests.support.s3.fixtures import Bucket, raw_client
from tests.support.s3.proxy import S3Proxy

PATIENCE_S = 2.0
"""How long they wait for an answer that is delayed. For others it is longer than a machine stands still."""


@pytest.fixture
async def through(bucket: Bucket, s3_proxy: S3Proxy) -> Any:
    made = Objects(replace(bucket.through(s3_proxy).location, timeout_s=60.0))
    yield made
    await made.close()


@asynccontextmanager
async def asking(through: Objects, harm: Mapping[str, Any]) -> AsyncIterator[Objects]:
    """A client that waits as long as the harm allows it to."""
    patience_s = PATIENCE_S if "delay_s" in harm else through.location.timeout_s
    async with closing(Objects(replace(through.location, timeout_s=patience_s))) as made:
        yield made


@asynccontextmanager
async def closing(objects: Objects) -> AsyncIterator[Objects]:
    try:
        yield objects
    finally:
        await objects.close()


IDEMPOTENT = ("GetObject", "PutObject", "DeleteObject", "ListObjectsV2", "ListObjectVersions")


@pytest.mark.req("OQ-239")
@pytest.mark.parametrize("status", [500, 503])
@pytest.mark.parametrize("kind", IDEMPOTENT)
async def test_a_store_in_trouble_is_asked_again(
    kind: str, status: int, through: Objects, s3_proxy: S3Proxy
) -> None:
    """It answers so twice, then as usual; whoever asked notices nothing."""
    await through.put("there", b"1")
    s3_proxy.rule(kind=kind, status=status, times=2)
    assert await ask(through, kind)
    assert [each.status for each in s3_proxy.asked(kind)][-3:] in (
        [status, status, 200],
        [status, status, 204],
    )


@pytest.mark.req("OQ-238", "OQ-240")
@pytest.mark.parametrize("harm", ["delay_s", "refuse", "drop", "truncate"])
async def test_a_lost_answer_is_asked_for_again(harm: str, through: Objects, s3_proxy: S3Proxy) -> None:
    """Too late, not at all, cut off in the middle of the connection or of the body."""
    await through.put("there", b"x" * 1000)
    values: dict[str, object] = {"delay_s": 1.5 * PATIENCE_S, "truncate": 10}
    s3_proxy.rule(kind="GetObject", **{harm: values.get(harm, True)})
    async with asking(through, {harm: True}) as client:
        found = await client.get("there")
    assert found is not None and found.body == b"x" * 1000
    # Whoever does not wait for long asks once more where the machine stands still.
    asked = len(s3_proxy.asked("GetObject"))
    assert asked == 2 or (harm == "delay_s" and asked > 2)


@pytest.mark.req("OQ-238")
@pytest.mark.parametrize("kind", IDEMPOTENT)
async def test_what_timed_out_is_asked_for_again(kind: str, through: Objects, s3_proxy: S3Proxy) -> None:
    """Whichever library asks, and whether it was carried out or not."""
    await through.put("there", b"1")
    s3_proxy.forget()
    s3_proxy.rule(kind=kind, delay_s=1.5 * PATIENCE_S)
    async with asking(through, {"delay_s": True}) as client:
        assert await ask(client, kind)
    assert len(s3_proxy.asked(kind)) >= 2


@pytest.mark.req("OQ-240")
@pytest.mark.parametrize("harm", [{"truncate": 0}, {"truncate": 150}, {"drop": True}, {"refuse": True}])
@pytest.mark.parametrize("kind", ["ListObjectsV2", "ListObjectVersions"])
async def test_a_listing_that_is_cut_off_is_asked_for_again(
    kind: str, harm: dict[str, Any], through: Objects, s3_proxy: S3Proxy
) -> None:
    """A part of it is never taken for the whole, nor for another server's answer."""
    await through.put("there", b"1")
    whole = await ask(through, kind)
    s3_proxy.rule(kind=kind, **harm)
    assert await ask(through, kind) == whole
    assert len(s3_proxy.asked(kind)) == 3


@pytest.mark.req("OQ-238", "OQ-239", "OQ-240")
@pytest.mark.parametrize(
    "harm",
    [
        {"delay_s": 1.5 * PATIENCE_S},
        {"drop": True},
        {"status": 500},
        {"status": 503, "carried_out": True},
        {"refuse": True},
    ],
)
async def test_a_guarded_write_is_never_repeated(
    harm: dict[str, Any], through: Objects, s3_proxy: S3Proxy
) -> None:
    """Its own first try would be in its way. Whoever asked looks what is there now."""
    etag = (await through.create("one", b"1")).etag
    s3_proxy.rule(kind="PutObject", having="if-match", **harm)
    async with asking(through, harm) as client:
        with pytest.raises(Unsure):
            await client.replace("one", b"2", etag)
    assert len([each for each in s3_proxy.asked("PutObject") if "if-match" in each.headers]) == 1
    s3_proxy.rule(kind="PutObject", having="if-none-match", **harm)
    async with asking(through, harm) as client:
        with pytest.raises(Unsure):
            await client.create("two", b"1")
    assert len(s3_proxy.asked("PutObject", "two")) == 1


async def test_a_guarded_write_that_was_not_sent_is_sent(
    through: Objects, s3_proxy: S3Proxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without a connection the store has surely seen nothing of it."""
    s3_proxy.down()
    refused, pause = asyncio.Event(), asyncio.sleep

    async def note_pause(seconds: float) -> None:
        refused.set()
        await pause(seconds)

    async with closing(Objects(replace(through.location, tries=30))) as patient:
        with monkeypatch.context() as patched:
            patched.setattr("asyncio.sleep", note_pause)
            writing = asyncio.create_task(patient.create("one", b"1"))
            await refused.wait()
        s3_proxy.up()
        assert (await writing).etag
    s3_proxy.down()
    with pytest.raises(Away):
        await through.create("two", b"1")


@pytest.mark.req("OQ-250")
async def test_repetition_has_an_end_and_pauses(
    through: Objects, s3_proxy: S3Proxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Pauses grow, and are by chance, so that not all ask at the same time; nobody asks for ever."""
    s3_proxy.rule(kind="GetObject", status=503, times=None)
    s3_proxy.rule(kind="ListObjectsV2", status=503, times=None)
    seen = set[int]()
    for _ in range(2):
        async with closing(Objects(through.location)) as client:
            s3_proxy.seen.clear()
            with pytest.raises(Away, match=r"^The store answers 503 SlowDown\.$"):
                await client.get("there")
        pauses = [late.at - soon.at for soon, late in pairwise(s3_proxy.seen)]
        assert len(pauses) == 3
        assert min(pauses) >= 0.05
        seen |= {round(pause * 1e5) for pause in pauses}
    assert len(seen) >= 5, "two may be the same by chance"
    wanted = list[float]()

    async def sleep(seconds: float) -> None:
        wanted.append(seconds)

    async with closing(Objects(replace(through.location, tries=12))) as patient:
        with monkeypatch.context() as patched, pytest.raises(Away):
            patched.setattr("asyncio.sleep", sleep)
            await patient.page("", most=1)
    assert len(wanted) == 11
    for number, pause in enumerate(wanted):
        longest = min(0.1 * 2**number, 2.0)
        assert longest / 2 <= pause <= longest


@pytest.mark.req("OQ-251")
@pytest.mark.parametrize(
    ("status", "code"),
    [(403, "AccessDenied"), (404, "NoSuchBucket"), (400, "InvalidRequest"), (301, "Moved")],
)
async def test_a_refusal_is_final(status: int, code: str, through: Objects, s3_proxy: S3Proxy) -> None:
    """It is not asked for again, be it a read or a guarded write."""
    s3_proxy.rule(status=status, code=code, times=None)
    for asked in (
        through.get("a"),
        through.create("a", b""),
        through.page("", most=1),
        through.put("a", b""),
    ):
        with pytest.raises(Refused) as told:
            await asked
        assert "\n" not in str(told.value) and str(told.value).endswith(".")
    assert len(s3_proxy.seen) == 4


async def test_a_permission_that_is_missing_has_its_name(through: Objects, s3_proxy: S3Proxy) -> None:
    """As policies of S3 call it, so that it can be given."""
    s3_proxy.rule(status=403, code="AccessDenied", times=None)
    for asked, needed in (
        (through.get("a"), "s3:GetObject"),
        (through.get("a", "1"), "s3:GetObjectVersion"),
        (through.create("a", b""), "s3:PutObject"),
        (through.put("a", b""), "s3:PutObject"),
        (through.tag("a", {"b": "c"}, "1"), "s3:PutObjectTagging"),
        (through.tag("a", None), "s3:DeleteObjectTagging"),
        (through.delete("a"), "s3:DeleteObject"),
        (through.page("", most=1), "s3:ListBucket"),
        (anext(through.versions("a")), "s3:ListBucketVersions"),
        (is_versioned(through), "s3:GetBucketVersioning"),
        (allow_anonymous_reads(through, "ui/"), "s3:GetBucketPolicy"),
        (through.delete("a", '"b"'), "s3:DeleteObject"),
        (through.api.call("get_bucket_cors"), "s3:GetBucketCORS"),
        (through.api.call("put_bucket_cors", CORSConfiguration={"CORSRules": []}), "s3:PutBucketCORS"),
        (through.api.call("get_bucket_lifecycle_configuration"), "s3:GetLifecycleConfiguration"),
        (
            through.api.call("put_bucket_lifecycle_configuration", LifecycleConfiguration={"Rules": []}),
            "s3:PutLifecycleConfiguration",
        ),
        (through.api.call("create_bucket"), "s3:CreateBucket"),
    ):
        with pytest.raises(Refused, match=rf"let it have {needed}, "):
            await asked


@pytest.mark.req("OQ-236", "OQ-251")
@pytest.mark.parametrize(
    ("variables", "changes", "words"),
    [
        ({"AWS_SECRET_ACCESS_KEY": "wrong"}, {}, "does not take the key (SignatureDoesNotMatch)"),
        ({"AWS_ACCESS_KEY_ID": "NOBODY"}, {}, "does not take the key (InvalidAccessKeyId)"),
        ({"AWS_ACCESS_KEY_ID": None}, {}, "There is no key for the store: set AWS_ACCESS_KEY_ID"),
        ({}, {"bucket": "no-such-bucket"}, 'There is no bucket "no-such-bucket"'),
        ({}, {"bucket": ""}, "No bucket is named: set the bucket."),
        ({}, {"region": ""}, "No region is named: set the region."),
        ({}, {"endpoint": "ftp://there"}, '"ftp://there" is no address of a store'),
        ({}, {"endpoint": "127.0.0.1:1"}, '"127.0.0.1:1" is no address of a store'),
        ({}, {"endpoint": "http://127.0.0.1:x"}, '"http://127.0.0.1:x" is no address of a store'),
        ({}, {"endpoint": "http://127.0.0.1:1"}, "no connection to 127.0.0.1:1: connection refused"),
        ({}, {"endpoint": "http://no-such-host.invalid"}, "no connection to no-such-host.invalid:80"),
    ],
)
async def test_wrong_settings_are_told_in_a_line(
    variables: dict[str, str | None],
    changes: dict[str, Any],
    words: str,
    bucket: Bucket,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name, value in variables.items():
        monkeypatch.delenv(name) if value is None else monkeypatch.setenv(name, value)
    with pytest.raises((Refused, Away)) as told:
        async with closing(Objects(replace(bucket.location, tries=2, **changes))) as objects:
            await objects.get("a")
    assert words in str(told.value)
    assert "\n" not in str(told.value)


@pytest.mark.req("OQ-240")
async def test_a_server_that_is_killed_and_started_again_is_found_again(own_s3: EmbeddedSeaweedfs) -> None:
    """The same client goes on, and everything that was answered is there."""
    raw = raw_client(own_s3)
    raw.create_bucket(Bucket="kept")
    raw.close()
    objects = Objects(BucketLocation(bucket="kept", endpoint=own_s3.url, tries=30))
    for number in range(50):
        await objects.create(f"kept/{number:02}", b"%d" % number)
    etag = (await objects.put("last", b"1")).etag
    await asyncio.to_thread(own_s3.kill)
    async with closing(Objects(replace(objects.location, tries=1))) as hasty:
        with pytest.raises(Away):
            await hasty.get("last")
    asked = asyncio.create_task(objects.get("last"))
    own_s3.spawn()
    await asyncio.to_thread(own_s3.wait)
    found = await asked
    assert found is not None and found.etag == etag
    assert len((await objects.page("kept/", most=100)).entries) == 50
    # It may answer for a while before it has found its files for what is new, and stop again in between.
    while True:
        with suppress(Unsure):
            await objects.put("ready", b"")
            break
    while True:
        with suppress(Unsure, NotMatched):
            await objects.replace("last", b"2", etag)
            break
        # Whoever is not sure looks: the write may have been carried out.
        found = await objects.get("last")
        assert found is not None
        if found.body == b"2":
            break
        assert found.etag == etag
    with pytest.raises(NotMatched):
        await objects.create("kept/00", b"")
    await objects.close()


async def test_a_caller_that_gives_up_leaves_nothing_behind(through: Objects, s3_proxy: S3Proxy) -> None:
    """The next request does not get the answer that nobody waited for."""
    await through.put("a", b"of a")
    await through.put("b", b"of b")
    s3_proxy.rule(kind="GetObject", key="^a$", delay_s=0.1)
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.05):
            await through.get("a")
    for _ in range(5):
        found = await through.get("b")
        assert found is not None and found.body == b"of b"


async def test_no_more_connections_than_allowed(bucket: Bucket, s3_proxy: S3Proxy) -> None:
    objects = Objects(replace(bucket.through(s3_proxy).location, connections=3))
    s3_proxy.rule(kind="GetObject", delay_s=0.02, times=None)
    began = time.monotonic()
    await asyncio.gather(*(objects.get(f"{number}") for number in range(12)))
    assert time.monotonic() - began >= 4 * 0.02
    await objects.close()
