"""Benchmark `nox -s bench -- object-batches`: an object for each entity against one for a whole shard.

Writers change entities all the time, each its own. Either every entity is an object, or those of a shard are
one object that a writer reads, changes for all of its entities at once and writes if no other writer did.
Both layouts in turns on one server, also with a store that is slow to answer.
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

from runtime.launch.embedded.seaweedfs import REGION, EmbeddedSeaweedfs
from runtime.stores.s3.bucket.bucket_settings import set_up
from runtime.stores.s3.client.errors import NotMatched, ObjectError, Unsure
from runtime.stores.s3.client.objects import BucketLocation, Objects

BATCH = 32
"""Entities that a writer changes at a time."""
BODY = "x" * 700
WRITERS = (1, 2, 4)
DELAYS_S = (0.0, 0.05)
_RESULTS = Path(__file__).parents[1] / "results" / "object-batches.json"

Change = Callable[[Objects, int], Awaitable[int]]


async def change_each(objects: Objects, writer: int) -> int:
    """Change a batch of entities, each its own object, at the same time."""
    results = await asyncio.gather(*(objects.get(f"apart/{writer}/{number}") for number in range(BATCH)))
    await asyncio.gather(
        *(
            objects.replace(f"apart/{writer}/{number}", _change_body(each.body), each.etag)
            for number, each in enumerate(results)
            if each is not None
        )
    )
    return BATCH


async def change_shard(objects: Objects, _writer: int) -> int:
    """Change a batch of entities in the one object of a shard; none if another writer was first."""
    results = await objects.get("shard")
    assert results is not None
    try:
        await objects.replace("shard", _change_body(results.body), results.etag)
    except (NotMatched, Unsure):
        return 0
    return BATCH


def _change_body(before: bytes) -> bytes:
    stored = json.loads(before)
    return json.dumps({"rev": stored["rev"] + 1, "text": stored["text"]}).encode()


async def measure(objects: Objects, *, seconds: float, rounds: int) -> list[dict[str, float | str]]:
    """Measure changes per second for each layout, number of writers and delay of the store."""
    await objects.put("shard", json.dumps({"rev": 0, "text": BODY * BATCH}).encode())
    for writer in range(max(WRITERS)):
        for number in range(BATCH):
            await objects.put(f"apart/{writer}/{number}", json.dumps({"rev": 0, "text": BODY}).encode())
    layouts: dict[str, Change] = {"an object each": change_each, "one object for a shard": change_shard}
    rates_by_case: dict[tuple[str, int, float], list[float]] = {}
    for _ in range(rounds):
        for delay_s in DELAYS_S:
            for writers in WRITERS:
                for name, change in layouts.items():
                    rate = await _measure_rate(objects, change, writers, delay_s, seconds)
                    rates_by_case.setdefault((name, writers, delay_s), []).append(rate)
    return [
        {
            "way": name,
            "writers": writers,
            "delay_ms": delay_s * 1000,
            "per_s": round(statistics.median(rates), 1),
        }
        for (name, writers, delay_s), rates in rates_by_case.items()
    ]


async def _measure_rate(
    objects: Objects, change: Change, writers: int, delay_s: float, seconds: float
) -> float:
    until = time.monotonic() + seconds
    began = time.monotonic()

    async def write(writer: int) -> int:
        done = 0
        while time.monotonic() < until:
            # A round trip for the reads and one for the writes, however many there are of each.
            await asyncio.sleep(2 * delay_s)
            try:
                done += await change(objects, writer)
            except ObjectError as error:
                print(f"a writer goes on after: {error}", file=sys.stderr)
        return done

    done = sum(await asyncio.gather(*(write(writer) for writer in range(writers))))
    return done / (time.monotonic() - began)


async def _run(server: EmbeddedSeaweedfs, *, seconds: float, rounds: int) -> list[dict[str, float | str]]:
    objects = Objects(BucketLocation(bucket="batches", endpoint=server.url, region=REGION, connections=64))
    try:
        await set_up(objects, (), {})
        return await measure(objects, seconds=seconds, rounds=rounds)
    finally:
        await objects.close()


def main(arguments: list[str]) -> int:
    """Measure, print and write the results."""
    parser = argparse.ArgumentParser(prog="nox -s bench -- object-batches")
    parser.add_argument("--seconds", type=float, default=4.0)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as folder:
        server = EmbeddedSeaweedfs(Path(folder) / "s3")
        server.start()
        try:
            os.environ.update(server.variables)
            results = asyncio.run(_run(server, seconds=options.seconds, rounds=options.rounds))
        finally:
            server.remove()
    for each in results:
        case = f"{each['writers']} writers, {each['delay_ms']:g} ms"
        print(f"{each['way']:24} {case}: {each['per_s']:,} changes/s")
    _RESULTS.write_text(
        json.dumps({"command": "nox -s bench -- object-batches", "found": results}, indent=2) + "\n"
    )
    return 0
