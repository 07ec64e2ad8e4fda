"""The bucket in memory, which most sequences of the differential test run on, answers as a server does."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from random import Random
from typing import Any

from runtime.stores.s3.client.errors import ObjectError
from runtime.stores.s3.client.objects import Objects
from tests.support.stores.differential.memory_bucket import MemoryObjects
from tests.support.stores.s3_engine import open_bucket

KEYS = ("a", "b/a", "b/c", "c")
BODIES = (b"one", b"two")
ETAGS = ("now", "now", "of another")
REQUESTS = 300


async def test_it_answers_as_a_server_does() -> None:
    """Reads, conditional writes, deletions and listings in random order have the same answers."""
    rng, server, memory = Random(1), open_bucket(), MemoryObjects()
    for number in range(REQUESTS):
        ask = draw_request(rng)
        answers = [await answer(ask, objects) for objects in (server, memory)]
        assert answers[0] == answers[1], f"request {number}"
    await server.close()


def draw_request(rng: Random) -> Callable[[Objects], Awaitable[Any]]:
    """Draw a request."""
    key, body, which = rng.choice(KEYS), rng.choice(BODIES), rng.choice(ETAGS)
    most, after = rng.randint(1, 3), rng.choice([None, *KEYS])

    async def find_etag(objects: Objects) -> str:
        found = await objects.get(key) if which == "now" else None
        return found.etag if found is not None else '"0123456789abcdef0123456789abcdef"'

    async def get(objects: Objects) -> Any:
        found = await objects.get(key)
        return None if found is None else (found.body, found.etag)

    async def create(objects: Objects) -> Any:
        return (await objects.create(key, body)).etag

    async def replace(objects: Objects) -> Any:
        return (await objects.replace(key, body, await find_etag(objects))).etag

    async def put(objects: Objects) -> Any:
        return (await objects.put(key, body)).etag

    async def delete(objects: Objects) -> Any:
        return await objects.delete(key)

    async def page(objects: Objects) -> Any:
        first = await objects.page("", after=after, most=most)
        lines = [*first.entries]
        if first.token is not None:
            lines += (await objects.page("", token=first.token, most=10)).entries
        return [(each.key, each.etag, each.size) for each in lines]

    return rng.choice([get, create, replace, put, delete, page])


async def answer(ask: Callable[[Objects], Awaitable[Any]], objects: Objects) -> Any:
    """Return what a bucket answers, or how it refuses."""
    try:
        return await ask(objects)
    except ObjectError as error:
        return type(error).__name__
