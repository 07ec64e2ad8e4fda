"""The libraries behind the client: where they send requests, with which key, and what their errors mean."""

from __future__ import annotations

from datetime import timedelta

import obstore
import pytest
from obstore.exceptions import GenericError

from runtime.stores.s3.bucket.bucket_settings import is_versioned
from runtime.stores.s3.bucket.page_links import presign
from runtime.stores.s3.client.api_client import ApiClient
from runtime.stores.s3.client.client import DataClient, patience_s
from runtime.stores.s3.client.credentials import AccessKey, KeySource
from runtime.stores.s3.client.errors import Away, Unsure
from runtime.stores.s3.client.location import address_of
from runtime.stores.s3.client.objects import BucketLocation, Objects
from runtime.stores.s3.client.responses import NotSent, explain_obstore
from tests.runtime.stores.s3.kit import ask
from tests.support.s3.fixtures import Bucket
from tests.support.s3.proxy import S3Proxy

KEY = KeySource({"AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": "s"})


@pytest.mark.req("OQ-203", "OQ-204")
@pytest.mark.parametrize(
    "location",
    [
        BucketLocation(bucket="plain"),
        BucketLocation(bucket="plain", region="cn-north-1"),
        BucketLocation(bucket="with.dots", region="eu-west-3"),
        BucketLocation(bucket="plain", endpoint="http://h:8333"),
        BucketLocation(bucket="plain", endpoint="https://h/s3/"),
    ],
)
async def test_all_clients_mean_the_same_address(
    location: BucketLocation, s3_key: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where variables name another store to a library that reads them itself."""
    address = address_of(location, {})
    monkeypatch.setenv("AWS_ENDPOINT", "http://elsewhere")
    monkeypatch.setenv("AWS_VIRTUAL_HOSTED_STYLE_REQUEST", "true")
    if location.endpoint:
        monkeypatch.setenv("AWS_ENDPOINT_URL_S3", "http://elsewhere")
    wanted = f"{address.origin}{address.root}/a%20b"
    for repeats in (True, False):
        store = await DataClient(location, KEY).store(repeats=repeats)
        assert obstore.sign(store, "GET", "a b", timedelta(minutes=1)).partition("?")[0] == wanted
    objects = Objects(location, KEY)
    assert (await presign(objects, "a b", 60)).partition("?")[0] == wanted
    await objects.close()
    api = ApiClient(location, KEY)
    client = api.client(await KEY.key())
    url = client.generate_presigned_url("get_object", {"Bucket": location.bucket, "Key": "a b"})
    assert url.partition("?")[0] == wanted
    api.close()


def test_a_long_body_has_more_time() -> None:
    """A second for each megabyte at least, over what every request has; for few different times in all."""
    location = BucketLocation(bucket="b", timeout_s=10)
    sizes = [number << 18 for number in range(4096)]
    assert all(10 + (size >> 20) <= patience_s(location, size) <= 11 + 2 * (size >> 20) for size in sizes)
    assert len({patience_s(location, size) for size in sizes}) == 11


@pytest.mark.req("OQ-205")
async def test_a_key_that_ends_is_asked_for_again(
    bucket: Bucket, s3_proxy: S3Proxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each request has the key that holds then, whichever library sends it."""
    known = await KeySource().key()

    class Lent:
        token = "first"

        def refresh_needed(self) -> bool:
            return True

        def get_frozen_credentials(self) -> object:
            found = {"access_key": known.access, "secret_key": known.secret, "token": self.token}
            return type("Frozen", (), found)

    lent = Lent()
    monkeypatch.setattr("runtime.stores.s3.client.credentials._load_chain", lambda: lent)
    monkeypatch.setattr("runtime.stores.s3.client.credentials._ASKED_AGAIN", timedelta(0))
    objects = Objects(bucket.through(s3_proxy).location, KeySource({}))
    s3_proxy.rule(status=404, times=None)
    for lent.token in ("first", "second"):
        s3_proxy.seen.clear()
        assert await objects.get("a") is None
        assert not await objects.delete("a", '"b"')
        with pytest.raises(Exception, match="404"):
            await anext(objects.versions("a"))
        assert [each.headers["x-amz-security-token"] for each in s3_proxy.seen] == 3 * [lent.token]
    await objects.close()


def test_a_fixed_key_is_kept_by_obstore() -> None:
    assert KEY.provide() == {
        "access_key_id": "a",
        "secret_access_key": "s",
        "token": None,
        "expires_at": None,
    }
    assert AccessKey("a", "s").token is None


async def test_a_store_on_this_machine_is_asked_directly(
    bucket: Bucket, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A proxy of the network does not know it; such a proxy is there for others."""
    for name in ("http_proxy", "HTTP_PROXY", "https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")
    for name in ("no_proxy", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
    objects = Objects(bucket.location)
    await objects.create("there", b"1")
    for kind in ("GetObject", "PutObject", "ListObjectsV2", "ListObjectVersions", "DeleteObject"):
        assert await ask(objects, kind)
    assert await is_versioned(objects)
    await objects.close()
    far = Objects(BucketLocation(bucket="far", endpoint="http://192.0.2.1", tries=1))
    for asked in (far.get("a"), far.page("", most=1)):
        with pytest.raises(Away):
            await asked
    await far.close()


async def test_words_of_a_key_are_no_words_of_an_answer(bucket: Bucket, s3_proxy: S3Proxy) -> None:
    """What obstore tells of a failure has the key in it."""
    objects = Objects(bucket.through(s3_proxy).location)
    for key in ("redirect", "a - Server returned non-2xx status code: 403 b", "kind: Connect"):
        s3_proxy.rule(kind="PutObject", drop=True)
        with pytest.raises(Unsure, match=r"^The store does not answer: the connection ended"):
            await objects.create(key, b"1")
    assert len(bucket.keys()) == 3
    await objects.close()


def test_an_error_that_nobody_understands_is_a_lost_answer() -> None:
    """A later release of obstore may have other words. Then no write is repeated, and none is called done."""
    found = explain_obstore(GenericError("What else?"), BucketLocation(bucket="b"), "s3:PutObject")
    assert type(found) is Away and not isinstance(found, NotSent)
