"""`nox -s bench -- object-batches`: whether changes of many entities in one object would pay.

So many writers change entities all the time, each its own. Either every entity is an object, or those of a
shard are one object that a writer reads, changes for all of its entities at once and writes on the condition
that nobody else did. Both ways in turns on one server, also with a store that takes its time.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

from runtime.embedded.seaweedfs import REGION, EmbeddedSeaweedfs
from runtime.stores.s3.bucket.bucket_settings import set_up
from runtime.stores.s3.client.errors import NotMatched, ObjectError, Unsure
from runtime.stores.s3.client.objects import Objects, Place

TOGETHER = 32
"""Entities that a writer changes at a time."""
BODY = "x" * 700
WRITERS = (1, 2, 4)
DELAYS_S = (0.0, 0.05)
_RESULTS = Path(__file__).parents[1] / "results" / "object-batches.json"

Change = Callable[[Objects, int], Awaitable[int]]


async def apart(objects: Objects, writer: int) -> int:
    """Every entity by itself, all at once."""
    found = await asyncio.gather(*(objects.get(f"apart/{writer}/{number}") for number in range(TOGETHER)))
    await asyncio.gather(
        *(
            objects.replace(f"apart/{writer}/{number}", _body(each.body), each.etag)
            for number, each in enumerate(found)
            if each is not None
        )
    )
    return TOGETHER


async def together(objects: Objects, _writer: int) -> int:
    """All entities of a shard in one object; none are changed where another writer was first."""
    found = await objects.get("shard")
    assert found is not None
    try:
        await objects.replace("shard", _body(found.body), found.etag)
    except (NotMatched, Unsure):
        return 0
    return TOGETHER


def _body(before: bytes) -> bytes:
    told = json.loads(before)
    return json.dumps({"rev": told["rev"] + 1, "text": told["text"]}).encode()


async def measure(objects: Objects, *, seconds: float, rounds: int) -> list[dict[str, float | str]]:
    """Change a second for each way, number of writers and delay of the store."""
    await objects.put("shard", json.dumps({"rev": 0, "text": BODY * TOGETHER}).encode())
    for writer in range(max(WRITERS)):
        for number in range(TOGETHER):
            await objects.put(f"apart/{writer}/{number}", json.dumps({"rev": 0, "text": BODY}).encode())
    ways: dict[str, Change] = {"an object each": apart, "one object for a shard": together}
    seen: dict[tuple[str, int, float], list[float]] = {}
    for _ in range(rounds):
        for delay_s in DELAYS_S:
            for writers in WRITERS:
                for name, change in ways.items():
                    rate = await _rate(objects, change, writers, delay_s, seconds)
                    seen.setdefault((name, writers, delay_s), []).append(rate)
    return [
        {
            "way": name,
            "writers": writers,
            "delay_ms": delay_s * 1000,
            "per_s": round(statistics.median(rates), 1),
        }
        for (name, writers, delay_s), rates in seen.items()
    ]


async def _rate(objects: Objects, change: Change, writers: int, delay_s: float, seconds: float) -> float:
    until = time.monotonic() + seconds
    began = time.monotonic()

    async def write(writer: int) -> int:
        done = 0
        while time.monotonic() < until:
            # A round trip for what is read and one for what is written, however many there are of each.
            await asyncio.sleep(2 * delay_s)
            try:
                done += await change(objects, writer)
            except ObjectError as error:
                print(f"a writer goes on after: {error}", file=sys.stderr)
        return done

    done = sum(await asyncio.gather(*(write(writer) for writer in range(writers))))
    return done / (time.monotonic() - began)


async def _run(server: EmbeddedSeaweedfs, *, seconds: float, rounds: int) -> list[dict[str, float | str]]:
    objects = Objects(Place(bucket="batches", endpoint=server.url, region=REGION, connections=64))
    try:
        await set_up(objects, (), {})
        return await measure(objects, seconds=seconds, rounds=rounds)
    finally:
        await objects.close()


def main(arguments: list[str]) -> int:
    """Measure, print and write the results."""
    asked = argparse.ArgumentParser(prog="nox -s bench -- object-batches")
    asked.add_argument("--seconds", type=float, default=4.0)
    asked.add_argument("--rounds", type=int, default=3)
    given = asked.parse_args(arguments)
    with tempfile.TemporaryDirectory() as folder:
        server = EmbeddedSeaweedfs(Path(folder) / "s3")
        server.start()
        try:
            os.environ.update(server.variables)
            found = asyncio.run(_run(server, seconds=given.seconds, rounds=given.rounds))
        finally:
            server.remove()
    for each in found:
        crowd = f"{each['writers']} writers, {each['delay_ms']:g} ms"
        print(f"{each['way']:24} {crowd}: {each['per_s']:,} changes/s")
    _RESULTS.write_text(
        json.dumps({"command": "nox -s bench -- object-batches", "found": found}, indent=2) + "\n"
    )
    return 0
