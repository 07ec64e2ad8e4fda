"""The objects of a bucket as the client has them: seen at once, written under conditions, listed in pages."""

from __future__ import annotations

import asyncio
import secrets

import pytest

from runtime.stores.s3.client.errors import Gone, NotMatched, Unsure
from runtime.stores.s3.client.kinds import _of_ending
from runtime.stores.s3.client.objects import BucketLocation, Objects, WrittenObject
from tests.support.chaos import Chaos
from tests.support.deep import DEEP
from tests.support.s3.fixtures import Bucket
from tests.support.s3.proxy import S3Proxy

WRITES = 1000 if DEEP else 100
RACES = 20
"""How many objects are raced for at a time, so that no store has to do them one after the other."""


@pytest.mark.req("OQ-013")
async def test_what_is_written_is_seen_at_once(objects: Objects) -> None:
    """By a read and by a listing, many at a time."""

    async def once(number: int) -> None:
        key, body = f"seen/{number % 16:x}/{number:05}", b"body %d" % number
        written = await objects.put(key, body)
        found = await objects.get(key)
        assert found is not None and (found.body, found.etag) == (body, written.etag)
        listed = await objects.page(key, most=1)
        assert [each.key for each in listed.entries] == [key]
        assert (listed.entries[0].size, listed.entries[0].etag) == (len(body), written.etag)

    turns = asyncio.Semaphore(8)

    async def in_turn(number: int) -> None:
        async with turns:
            await once(number)

    await asyncio.gather(*(in_turn(number) for number in range(WRITES)))


@pytest.mark.req("OQ-014")
async def test_an_object_is_created_once(bucket: Bucket, s3_proxy: S3Proxy, objects: Objects) -> None:
    """The request says `If-None-Match: *`; the second one leaves the object as it is."""
    through = Objects(bucket.through(s3_proxy).location)
    first = await through.create("one.json", b"first", {"kind": "a b", "x": "1"})
    with pytest.raises(NotMatched):
        await through.create("one.json", b"second")
    found = await objects.get("one.json")
    assert found is not None and (found.body, found.etag, found.version) == (b"first", *first)
    assert [each.headers["if-none-match"] for each in s3_proxy.asked("PutObject")] == ["*", "*"]
    assert [each.status for each in s3_proxy.seen] == [200, 412]
    raw = bucket.raw.get_object(Bucket=bucket.name, Key="one.json")
    assert raw["ContentType"] == "application/json"
    tags = bucket.raw.get_object_tagging(Bucket=bucket.name, Key="one.json")["TagSet"]
    assert {each["Key"]: each["Value"] for each in tags} == {"kind": "a b", "x": "1"}
    await through.close()


@pytest.mark.req("OQ-015", "OQ-024")
async def test_only_what_is_as_it_was_is_replaced(bucket: Bucket, s3_proxy: S3Proxy) -> None:
    """The request has the ETag of the read as it came, quotes included."""
    objects = Objects(bucket.through(s3_proxy).location)
    await objects.create("one", b"1")
    found = await objects.get("one")
    assert found is not None and found.etag.startswith('"') and found.etag.endswith('"')
    second = await objects.replace("one", b"2", found.etag)
    with pytest.raises(NotMatched):
        await objects.replace("one", b"3", found.etag)
    now = await objects.get("one")
    assert now is not None and (now.body, now.etag) == (b"2", second.etag)
    sent = [each.headers["if-match"] for each in s3_proxy.asked("PutObject") if "if-match" in each.headers]
    assert sent == [found.etag, found.etag]
    await objects.close()


async def test_what_is_missing_is_not_replaced(bucket: Bucket, s3_proxy: S3Proxy, objects: Objects) -> None:
    """Some stores say that it is not there, some that it does not match: no writer may go on."""
    with pytest.raises(NotMatched):
        await objects.replace("never", b"1", '"0"')
    assert await objects.get("never") is None
    through = Objects(bucket.through(s3_proxy).location)
    s3_proxy.rule(kind="PutObject", status=404)
    with pytest.raises(Gone):
        await through.replace("never", b"1", '"0"')
    s3_proxy.rule(kind="PutObject", status=409)
    with pytest.raises(NotMatched):
        await through.create("never", b"1")
    await through.close()


@pytest.mark.chaos
@pytest.mark.req("OQ-016")
async def test_of_many_writers_one_succeeds(objects: Objects, chaos: Chaos) -> None:
    """All have the same ETag."""
    racing = chaos.size(3, 6)

    async def one_round(number: int) -> None:
        key = f"race/{number:04}"
        start = await objects.create(key, b"start")
        turn = asyncio.Event()

        async def write(racer: int) -> WrittenObject:
            await turn.wait()
            return await objects.replace(key, b"racer %d" % racer, start.etag)

        racers = [asyncio.create_task(write(racer)) for racer in range(racing)]
        turn.set()
        done = await asyncio.gather(*racers, return_exceptions=True)
        won = [racer for racer, each in enumerate(done) if isinstance(each, WrittenObject)]
        assert len(won) == 1, done
        assert all(isinstance(each, WrittenObject | NotMatched) for each in done), done
        found = await objects.get(key)
        assert found is not None and found.body == b"racer %d" % won[0]
        assert len([each async for each in objects.versions(key)]) == 2

    for number, _ in enumerate(chaos.rounds(1)):
        await asyncio.gather(*(one_round(number * RACES + each) for each in range(RACES)))
        chaos.count(races=RACES, two_winners=0)


@pytest.mark.req("OQ-020")
async def test_every_version_is_listed(bucket: Bucket, s3_proxy: S3Proxy) -> None:
    """Newest first, over all pages, of this key alone, and without the marks that deletions leave."""
    objects = Objects(bucket.through(s3_proxy).location)
    etag = (await objects.create("a/1.json", b"0")).etag
    for number in range(1, 5):
        etag = (await objects.replace("a/1.json", b"%d" % number, etag)).etag
    await objects.put("a/1.json.more", b"other")
    await objects.put("a/1.jso", b"other")
    await objects.delete("a/1.json")
    await objects.create("a/1.json", b"after")
    found = [each async for each in objects.versions("a/1.json")]
    bodies = [await objects.get("a/1.json", each.version) for each in found]
    assert [each.body for each in bodies if each is not None] == [b"after", b"4", b"3", b"2", b"1", b"0"]
    assert [each.is_latest for each in found] == [True] + 5 * [False]
    assert len({each.etag for each in found}) == len(found)
    assert found == sorted(found, key=lambda each: each.changed, reverse=True)
    assert s3_proxy.asked("ListObjectVersions") and not s3_proxy.asked("ListObjects")
    assert await objects.get("a/1.json", secrets.token_hex(16)) is None
    await objects.close()


async def test_versions_come_from_more_than_one_page(objects: Objects) -> None:
    written = [(await objects.put("many", b"%d" % number)).version for number in range(7)]
    await objects.put("many/more", b"")
    for most in (1, 2, 3):
        assert [each.version async for each in objects.versions("many", most=most)] == written[::-1]


@pytest.mark.req("OQ-021")
async def test_a_listing_has_as_many_pages_as_it_needs(bucket: Bucket, s3_proxy: S3Proxy) -> None:
    objects = Objects(bucket.through(s3_proxy).location)
    names = [f"listed/{number:02} +ü&'/{number:02}" for number in range(50)]
    await asyncio.gather(*(objects.put(name, b"") for name in (*names, "listee", "listef/x")))
    seen, token, pages = list[str](), None, 0
    while True:
        page = await objects.page("listed/", token=token, most=2)
        assert len(page.entries) <= 2
        seen += [each.key for each in page.entries]
        pages += 1
        if (token := page.token) is None:
            break
    assert seen == names and pages in {25, 26}
    after = await objects.page("listed/", after=names[46], most=10)
    assert [each.key for each in after.entries] == names[47:] and after.token is None
    assert (await objects.page("nothing/", most=10)) == ([], None)
    asked = s3_proxy.asked("ListObjectsV2")
    assert all(each.query["max-keys"] in {"2", "10"} for each in asked)
    assert sum("continuation-token" in each.query for each in asked) == pages - 1
    await objects.close()


@pytest.mark.req("OQ-022")
async def test_a_deletion_has_a_condition_where_the_store_knows_it(
    bucket: Bucket, s3_proxy: S3Proxy, objects: Objects
) -> None:
    etag = (await objects.create("one", b"1")).etag
    assert not await objects.delete("one", '"other"')
    assert await objects.get("one") is not None
    assert await objects.delete("one", etag)
    assert await objects.get("one") is None
    assert await objects.delete("never")
    through = Objects(bucket.through(s3_proxy).location)
    s3_proxy.rule(kind="DeleteObject", having="if-match", status=501, times=None)
    for name in ("two", "three"):
        await through.create(name, b"1")
        assert await through.delete(name, '"other"')
        assert await through.get(name) is None
    assert [each.headers.get("if-match") for each in s3_proxy.asked("DeleteObject")] == [
        '"other"',
        None,
        None,
    ]
    await through.close()


@pytest.mark.req("OQ-024")
async def test_etags_mean_nothing_but_themselves(bucket: Bucket, s3_proxy: S3Proxy) -> None:
    """Every ETag is another text than the store's own, and all goes on as before."""
    s3_proxy.rewrites_etags = True
    objects = Objects(bucket.through(s3_proxy).location)
    first = await objects.create("one", b"1")
    assert first.etag.endswith('-opaque"')
    assert (await objects.page("", most=5)).entries[0].etag == first.etag
    second = await objects.replace("one", b"2", first.etag)
    with pytest.raises(NotMatched):
        await objects.replace("one", b"3", first.etag)
    assert [each.etag async for each in objects.versions("one")] == [second.etag, first.etag]
    assert not await objects.delete("one", first.etag)
    assert await objects.delete("one", second.etag)
    await objects.close()


async def test_a_prefix_is_never_seen(bucket: Bucket) -> None:
    """Two queues in one bucket do not know of each other."""
    one, two = (
        Objects(BucketLocation(bucket=bucket.name, endpoint=bucket.endpoint, prefix=prefix))
        for prefix in ("q1/", "q2/")
    )
    await one.create("a/1", b"one")
    await two.create("a/1", b"two")
    assert bucket.keys() == ["q1/a/1", "q2/a/1"]
    for objects, body in ((one, b"one"), (two, b"two")):
        found = await objects.get("a/1")
        assert found is not None and found.body == body
        assert [each.key for each in (await objects.page("a/", most=5)).entries] == ["a/1"]
        assert len([each async for each in objects.versions("a/1")]) == 1
        await objects.close()


async def test_large_bodies_pass_whole(objects: Objects) -> None:
    body = secrets.token_bytes(3 << 20)
    await objects.create("large", body)
    found = await objects.get("large")
    assert found is not None and found.body == body


async def test_an_answer_that_says_nothing_is_no_answer(bucket: Bucket, s3_proxy: S3Proxy) -> None:
    """A write without an ETag may have been done; whoever asked has to look."""
    objects = Objects(bucket.through(s3_proxy).location)
    s3_proxy.rule(kind="PutObject", strip_answer=("etag",))
    with pytest.raises(Unsure):
        await objects.create("one", b"1")
    assert bucket.keys() == ["one"]
    await objects.close()


async def test_names_without_an_ending_are_not_remembered(objects: Objects) -> None:
    """A process that writes hints for years knows no more kinds of documents than on its first day."""
    before = _of_ending.cache_info().currsize
    for number in range(3):
        await objects.put(f"ready/a/1/{number}", b"")
    assert _of_ending.cache_info().currsize == before
