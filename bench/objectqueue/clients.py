"""Benchmark `nox -s bench -- object-clients`: our bucket client against obstore and botocore, by CPU time.

All three send the same requests to the same server in turns, so that other load of the machine affects all.
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
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from runtime.launch.embedded.seaweedfs import REGION, EmbeddedSeaweedfs
from runtime.stores.s3.bucket.bucket_settings import set_up
from runtime.stores.s3.client.objects import BucketLocation, Objects

BUCKET = "clients"
BODY = b"x" * 700
"""About the size of a small task."""
PAGE = 50
OPERATIONS = ("create", "replace", "put", "get", "list")
_IN_FLIGHT = 8

Operation = Callable[[int], Awaitable[Any]]


class OperationCost(NamedTuple):
    """CPU time and rate of one operation of one client, the median of several rounds."""

    client: str
    operation: str
    cpu_us: float
    per_s: float


async def measure(server: EmbeddedSeaweedfs, *, requests: int, rounds: int) -> list[OperationCost]:
    """Measure every operation of every client, in turns."""
    bucket = BucketLocation(bucket=BUCKET, endpoint=server.url, region=REGION)
    ours = Objects(bucket)
    await set_up(ours, (), {})
    clients: Sequence[tuple[str, Mapping[str, Operation]]] = (
        ("ours", _our_operations(ours)),
        ("obstore", _obstore_operations(server)),
        ("botocore", _botocore_operations(server)),
    )
    seen: dict[tuple[str, str], list[tuple[float, float]]] = {}
    for number in range(rounds + 1):
        for operation in OPERATIONS:
            for name, operations in clients:
                first = number * requests
                times = await _time_requests(operations[operation], range(first, first + requests))
                # The first round fills caches and opens connections.
                if number:
                    seen.setdefault((name, operation), []).append(times)
    await ours.close()
    return [
        OperationCost(
            name,
            operation,
            statistics.median(cpu_s for cpu_s, _ in times) / requests * 1e6,
            statistics.median(requests / wall_s for _, wall_s in times),
        )
        for (name, operation), times in seen.items()
    ]


async def _time_requests(operation: Operation, numbers: Sequence[int]) -> tuple[float, float]:
    """Measure the CPU time of this process, all threads, and the wall time."""
    waiting = iter(numbers)

    async def run_some() -> None:
        for number in waiting:
            await operation(number)

    cpu, wall = time.process_time(), time.perf_counter()
    await asyncio.gather(*(run_some() for _ in range(_IN_FLIGHT)))
    return time.process_time() - cpu, time.perf_counter() - wall


def _format_key(client: str, number: int) -> str:
    return f"{client}/{number % 16:x}/{number:08}.json"


def _our_operations(objects: Objects) -> Mapping[str, Operation]:
    etags: dict[int, str] = {}

    async def create(number: int) -> None:
        etags[number] = (await objects.create(_format_key("ours", number), BODY)).etag

    return {
        "create": create,
        "replace": lambda number: objects.replace(_format_key("ours", number), BODY + b"y", etags[number]),
        "put": lambda number: objects.put(_format_key("ours", number), BODY),
        "get": lambda number: objects.get(_format_key("ours", number)),
        "list": lambda number: objects.page(f"ours/{number % 16:x}/", most=PAGE),
    }


def _obstore_operations(server: EmbeddedSeaweedfs) -> Mapping[str, Operation]:
    from obstore.store import S3Store

    store = S3Store(
        BUCKET,
        endpoint=server.url,
        region=REGION,
        access_key_id=server.access_key,
        secret_access_key=server.secret_key,
        virtual_hosted_style_request=False,
        client_options={"allow_http": True},
    )
    etags: dict[int, str | None] = {}

    async def create(number: int) -> None:
        done = await store.put_async(_format_key("obstore", number), BODY, mode="create")
        etags[number] = done["e_tag"]

    async def get(number: int) -> bytes:
        return bytes(await (await store.get_async(_format_key("obstore", number))).bytes_async())

    async def page(number: int) -> Any:
        # It has no limit for the number of keys, so this stops after the first chunk.
        async for costs in store.list(f"obstore/{number % 16:x}/", chunk_size=PAGE):
            return costs
        return None

    return {
        "create": create,
        "replace": lambda number: store.put_async(
            _format_key("obstore", number), BODY + b"y", mode={"e_tag": etags[number]}
        ),
        "put": lambda number: store.put_async(_format_key("obstore", number), BODY),
        "get": get,
        "list": page,
    }


def _botocore_operations(server: EmbeddedSeaweedfs) -> Mapping[str, Operation]:
    import botocore.config
    import botocore.session

    client = botocore.session.get_session().create_client(
        "s3",
        endpoint_url=server.url,
        region_name=REGION,
        aws_access_key_id=server.access_key,
        aws_secret_access_key=server.secret_key,
        config=botocore.config.Config(max_pool_connections=_IN_FLIGHT),
    )
    etags: dict[int, str] = {}

    def put(number: int, body: bytes = BODY, **condition: str) -> None:
        done = client.put_object(Bucket=BUCKET, Key=_format_key("botocore", number), Body=body, **condition)
        etags[number] = done["ETag"]

    def get(number: int) -> None:
        client.get_object(Bucket=BUCKET, Key=_format_key("botocore", number))["Body"].read()

    def page(number: int) -> None:
        client.list_objects_v2(Bucket=BUCKET, Prefix=f"botocore/{number % 16:x}/", MaxKeys=PAGE)

    return {
        "create": lambda number: asyncio.to_thread(put, number, IfNoneMatch="*"),
        "replace": lambda number: asyncio.to_thread(put, number, BODY + b"y", IfMatch=etags[number]),
        "put": lambda number: asyncio.to_thread(put, number),
        "get": lambda number: asyncio.to_thread(get, number),
        "list": lambda number: asyncio.to_thread(page, number),
    }


def main(arguments: list[str]) -> int:
    """Measure and print a table, or JSON."""
    parser = argparse.ArgumentParser(prog="nox -s bench -- object-clients", description=__doc__)
    parser.add_argument("--requests", type=int, default=200, help="of each kind in each round")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(prefix="charter-bench-") as folder:
        server = EmbeddedSeaweedfs(Path(folder) / "s3")
        server.start()
        os.environ.update(server.variables)
        try:
            costs = asyncio.run(measure(server, requests=options.requests, rounds=options.rounds))
        finally:
            server.remove()
    if options.json:
        print(json.dumps([each._asdict() for each in costs]))
        return 0
    print(f"{'operation':10}{'client':10}{'CPU us':>8}{'per s':>8}")
    for each in sorted(costs, key=lambda cost: OPERATIONS.index(cost.operation)):
        print(f"{each.operation:10}{each.client:10}{each.cpu_us:8.0f}{each.per_s:8.0f}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
