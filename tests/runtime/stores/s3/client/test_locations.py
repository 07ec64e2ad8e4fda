"""Where a store is, who may use it, and what time it has there."""

from __future__ import annotations

import asyncio
import ssl
import time
import urllib.request
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from msgspec import structs

from runtime.certs import make_certificates
from runtime.launch.embedded.seaweedfs import EmbeddedSeaweedfs
from runtime.node.systems import load_system
from runtime.stores.layouts.s3 import KeptInS3
from runtime.stores.s3.bucket.page_files import page_url
from runtime.stores.s3.bucket.page_links import presign
from runtime.stores.s3.client.credentials import AccessKey, KeySource
from runtime.stores.s3.client.errors import Refused
from runtime.stores.s3.client.location import StoreAddress, address_of, location_of, locations_of
from runtime.stores.s3.client.objects import BucketLocation, Objects
from runtime.stores.s3.client.responses import Response, refusal
from runtime.stores.s3.client.server_clock import ServerClock
from tests.runtime.stores.s3.kit import ask
from tests.support.s3.fixtures import Bucket
from tests.support.s3.proxy import S3Proxy


@pytest.mark.req("OQ-203", "OQ-204")
@pytest.mark.parametrize(
    ("location", "environ", "address"),
    [
        (BucketLocation(bucket="b"), {}, StoreAddress("b.s3.us-east-1.amazonaws.com", 443, True, "")),
        (
            BucketLocation(bucket="b", region="eu-west-3"),
            {},
            StoreAddress("b.s3.eu-west-3.amazonaws.com", 443, True, ""),
        ),
        (BucketLocation(bucket="b.c"), {}, StoreAddress("s3.us-east-1.amazonaws.com", 443, True, "/b.c")),
        (
            BucketLocation(bucket="b", region="cn-north-1"),
            {},
            StoreAddress("b.s3.cn-north-1.amazonaws.com.cn", 443, True, ""),
        ),
        (BucketLocation(bucket="b", endpoint="http://h:8333"), {}, StoreAddress("h", 8333, False, "/b")),
        (BucketLocation(bucket="b", endpoint="https://h/s3/"), {}, StoreAddress("h", 443, True, "/s3/b")),
        (BucketLocation(bucket="b"), {"AWS_ENDPOINT_URL": "http://e"}, StoreAddress("e", 80, False, "/b")),
        (
            BucketLocation(bucket="b", endpoint="http://h"),
            {"AWS_ENDPOINT_URL_S3": "http://e"},
            StoreAddress("h", 80, False, "/b"),
        ),
    ],
)
def test_where_requests_go(location: BucketLocation, environ: dict[str, str], address: StoreAddress) -> None:
    """To the address that is given, else to where the provider has the region's buckets."""
    found = address_of(location, environ)
    assert found == address


NURSERY = {
    "NURSERY_STORE": "http://127.0.0.1:1",
    "NURSERY_BUCKET": "garden",
    "NURSERY_REGION": "eu-west-3",
    "NURSERY_FOLDER": "green",
}


def kept_elsewhere() -> KeptInS3:
    """Entities whose spec has other names for its variables."""
    kept = load_system("objectqueue").lifecycles["task"].require_storage(KeptInS3)
    assert kept is not None
    endpoint, bucket, region, prefix = NURSERY
    return structs.replace(kept, endpoint=endpoint, bucket=bucket, region=region, prefix=prefix)


def test_a_place_is_where_the_variables_of_a_spec_say() -> None:
    """What is unset is where the provider has it; entities that share a bucket are at one location."""
    location = location_of(kept_elsewhere(), NURSERY)
    assert (location.bucket, location.region, location.prefix) == ("garden", "eu-west-3", "green/")
    assert address_of(location, {}) == StoreAddress("127.0.0.1", 1, False, "/garden")
    location = location_of(kept_elsewhere(), {**NURSERY, "NURSERY_STORE": None, "NURSERY_FOLDER": ""})
    assert (location.endpoint, location.prefix) == (None, "")
    queue = {"S3_BUCKET": "b", "S3_REGION": "r", "QO_QUEUE": "q"}
    lifecycles = load_system("objectqueue").lifecycles
    assert locations_of(lifecycles.values(), queue) == [BucketLocation(bucket="b", region="r", prefix="q/")]
    assert len(lifecycles) > 1


@pytest.mark.parametrize(
    ("changes", "environ", "words"),
    [
        ({"NURSERY_BUCKET": ""}, {}, "set NURSERY_BUCKET."),
        ({"NURSERY_REGION": ""}, {}, "set NURSERY_REGION."),
        ({"NURSERY_STORE": "ftp://there"}, {}, "set NURSERY_STORE to http://"),
        ({"NURSERY_STORE": "http://there/a b"}, {}, "set NURSERY_STORE to http://"),
        ({"NURSERY_BUCKET": "a b"}, {}, '"a b" is no name of a bucket: set NURSERY_BUCKET'),
        ({"NURSERY_BUCKET": ".."}, {}, '".." is no name of a bucket'),
        ({"NURSERY_REGION": "eu west"}, {}, '"eu west" is no name of a region: set NURSERY_REGION'),
        ({"NURSERY_FOLDER": "a//b"}, {}, "set NURSERY_FOLDER to a plain name"),
        ({"NURSERY_STORE": None}, {"AWS_ENDPOINT_URL": "there"}, "set AWS_ENDPOINT_URL to http://"),
    ],
)
def test_what_has_to_be_set_has_the_name_that_the_spec_gives_it(
    changes: dict[str, str | None], environ: dict[str, str], words: str
) -> None:
    location = location_of(kept_elsewhere(), {**NURSERY, **changes})
    with pytest.raises(Refused) as told:
        address_of(location, environ)
    assert words in str(told.value)


@pytest.mark.parametrize(
    ("response", "words"),
    [
        (Response(404, "NoSuchBucket"), "set NURSERY_BUCKET, or make it."),
        (Response(403, "InvalidAccessKeyId"), "and NURSERY_REGION."),
        (Response(301, region="eu-west-1"), "set NURSERY_REGION to eu-west-1."),
    ],
)
def test_what_a_store_refuses_names_the_variables_of_the_spec(response: Response, words: str) -> None:
    location = location_of(kept_elsewhere(), NURSERY)
    assert words in str(refusal(response, location, "s3:GetObject"))


def test_a_refusal_without_a_known_cause_has_the_words_of_the_store() -> None:
    response = Response(400, "InvalidRequest", "Missing required header.")
    found = refusal(response, BucketLocation(bucket="b"), "s3:GetObject")
    assert str(found) == "The store refuses: 400 InvalidRequest Missing required header."


def test_where_a_browser_finds_a_page() -> None:
    """Where requests go, too; what it is to show is in the address."""
    of_provider = page_url(BucketLocation(bucket="b", region="cn-north-1"))
    assert of_provider == "https://b.s3.cn-north-1.amazonaws.com.cn/ui/index.html?region=cn-north-1"
    own = page_url(BucketLocation(bucket="b", endpoint="http://h:8333/", prefix="q/"))
    assert own == "http://h:8333/b/ui/index.html?region=us-east-1&queue=q"


def test_what_a_store_is_called_in_a_request() -> None:
    """Its port is named unless it is the usual one, and an address with colons has brackets."""
    for host, name in (("h", "h"), ("::1", "[::1]")):
        assert StoreAddress(host, 443, True, "").authority == name
        assert StoreAddress(host, 443, False, "").authority == f"{name}:443"
        assert (
            address_of(BucketLocation(bucket="b", endpoint=f"http://{name}:8333"), {}).authority
            == f"{name}:8333"
        )


@pytest.mark.req("OQ-204")
async def test_other_names_of_bucket_and_region(bucket: Bucket) -> None:
    """A name of one's own, and a region that the server has never heard of."""
    objects = Objects(BucketLocation(bucket=bucket.name, endpoint=bucket.endpoint, region="mars-north-7"))
    await objects.create("a", b"1")
    assert bucket.keys() == ["a"]
    await objects.close()


@pytest.mark.req("OQ-205")
async def test_a_key_from_a_profile(bucket: Bucket, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The variables come first; without them the file that every S3 client reads."""
    key = await KeySource().key()
    shared = tmp_path / "credentials"
    shared.write_text(f"[mine]\naws_access_key_id={key.access}\naws_secret_access_key={key.secret}\n")
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name)
    with pytest.raises(Refused, match="There is no key for the store"):
        await KeySource().key()
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(shared))
    monkeypatch.setenv("AWS_PROFILE", "mine")
    assert await KeySource().key() == key
    objects = Objects(bucket.location)
    await objects.create("a", b"1")
    assert bucket.keys() == ["a"]
    await objects.close()
    monkeypatch.setenv("AWS_PROFILE", "nobody")
    with pytest.raises(Refused, match="cannot be read"):
        await KeySource().key()


@pytest.mark.req("OQ-205")
async def test_a_key_that_is_lent_has_a_token(
    bucket: Bucket, s3_proxy: S3Proxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The token goes with every request, as a part of what is signed."""
    monkeypatch.setenv("AWS_SESSION_TOKEN", "lent")
    objects = Objects(bucket.through(s3_proxy).location)
    s3_proxy.rule(status=503, code="SlowDown", times=None)
    with pytest.raises(Exception, match="503"):
        await objects.get("a")
    headers = s3_proxy.seen[0].headers
    assert headers["x-amz-security-token"] == "lent"
    assert "x-amz-security-token" in headers["authorization"].partition("SignedHeaders=")[2]
    await objects.close()


async def test_an_address_can_be_lent(bucket: Bucket, monkeypatch: pytest.MonkeyPatch) -> None:
    """It opens one object and no other, and only for as long as it says."""
    objects = Objects(replace(bucket.location, prefix="q/"))
    key = "a b/ü+'.txt"
    for name in (key, "other"):
        await objects.put(name, b"lent")
    url = await presign(objects, key, 60, {"region": "x y"})
    with urllib.request.urlopen(url) as found:
        assert found.read() == b"lent"
    past = datetime.now(UTC) - timedelta(seconds=120)
    monkeypatch.setattr("botocore.auth.get_current_datetime", lambda: past)
    late = await presign(objects, key, 60)
    for wrong in (late, url.replace("a%20b/%C3%BC%2B%27.txt", "other"), url.replace("x%20y", "z")):
        assert wrong != url
        with pytest.raises(OSError, match="403"):
            urllib.request.urlopen(wrong)
    await objects.close()


async def test_a_key_is_renewed_before_it_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    """What comes from elsewhere and ends is asked for again; the one that stays is not."""

    class Lent:
        asked = 0

        def refresh_needed(self) -> bool:
            return self.asked % 2 == 0

        def get_frozen_credentials(self) -> object:
            self.asked += 1
            return type("Frozen", (), {"access_key": f"k{self.asked}", "secret_key": "s", "token": "t"})

    lent = Lent()
    monkeypatch.setattr("runtime.stores.s3.client.credentials._load_chain", lambda: lent)
    credentials = KeySource({})
    assert [await credentials.key() for _ in range(3)] == [
        AccessKey(f"k{number}", "s", "t") for number in (1, 2, 3)
    ]


async def heard(objects: Objects, ahead_s: float) -> None:
    """Asks until it is known how far the store's clock is ahead: an answer that comes late says little."""
    async with asyncio.timeout(60):
        while objects.clock_offset_s != pytest.approx(ahead_s, abs=0.7):
            await objects.page("", most=1)


async def test_the_clock_of_the_store_is_known(bucket: Bucket, s3_proxy: S3Proxy) -> None:
    """From the answers that come anyway; a few of them say it to a fraction of a second."""
    objects = Objects(bucket.through(s3_proxy).location)
    assert objects.clock_offset_s is None
    s3_proxy.clock_offset_s = 30
    await heard(objects, 30)
    s3_proxy.clock_offset_s = -30
    await heard(objects, -30)
    await objects.close()


def test_many_answers_say_the_time_better_than_one() -> None:
    clock, ahead = ServerClock(), 7.25
    for step in range(40):
        ours = 1_000_000 + step * 0.13
        theirs = time.strftime("%a, %d %b %Y %H:%M:%S GMT", time.gmtime(ours + 0.01 + ahead))
        clock.observe(theirs, ours, ours + 0.02)
    assert clock.offset_s == pytest.approx(ahead, abs=0.1)
    clock.observe("nonsense", 0, 0)
    later = 1_000_100.0
    clock.observe(time.strftime("%a, %d %b %Y %H:%M:%S GMT", time.gmtime(later)), later, later + 0.02)
    assert clock.offset_s == pytest.approx(0.5, abs=0.1)


@pytest.mark.parametrize("kind", ["GetObject", "PutObject", "ListObjectsV2", "ListObjectVersions"])
async def test_a_clock_that_is_far_off_is_told(kind: str, bucket: Bucket, s3_proxy: S3Proxy) -> None:
    """A signature has a time in it, and a store takes none that is too old."""
    objects = Objects(bucket.through(s3_proxy).location)
    s3_proxy.rule(kind=kind, status=403, code="RequestTimeTooSkewed")
    with pytest.raises(Refused, match=r"^The clock of this machine and that of the store are too far apart"):
        await ask(objects, kind)
    await objects.close()


async def test_a_store_behind_tls_has_to_prove_itself(
    bucket: Bucket, s3_server: EmbeddedSeaweedfs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By an authority that the machine trusts, or that a variable names."""
    make_certificates(load_system("taskqueue"), "monolith", tmp_path)
    tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    tls.load_cert_chain(tmp_path / "monolith.crt", tmp_path / "monolith.key")
    proxy = S3Proxy(s3_server.url, s3_server.access_key, s3_server.secret_key, tls=tls)
    proxy.start()
    try:
        strange = Objects(bucket.through(proxy).location)
        with pytest.raises(Refused, match=r"cannot be trusted: .* AWS_CA_BUNDLE"):
            await strange.get("a")
        await strange.close()
        monkeypatch.setenv("AWS_CA_BUNDLE", str(tmp_path / "ca.crt"))
        objects = Objects(bucket.through(proxy).location)
        for number in range(3):
            await objects.create(f"{number}", b"x" * 100_000)
        found = await objects.get("2")
        assert found is not None and len(found.body) == 100_000
        await objects.close()
        monkeypatch.setenv("AWS_CA_BUNDLE", str(tmp_path / "nowhere"))
        with pytest.raises(Refused, match=r"AWS_CA_BUNDLE: .*nowhere cannot be used"):
            Objects(bucket.through(proxy).location)
    finally:
        proxy.stop()
