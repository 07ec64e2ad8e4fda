"""A client that keeps so many calls in flight: `python -m bench.load` prints what it got as one JSON line.

It is a process of its own, speaks bare gRPC, and is the same for a baseline and for what is compared with it.
With `typed` at the end it uses a generated client instead, to see what that costs.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from typing import Any

import grpc
import grpc.aio
import uvloop

from bench.bare import SYSTEM, credentials
from generated import taskqueue_internal_pb2 as internal
from generated import taskqueue_public_pb2 as public
from runtime.client import Client
from runtime.systems import load_system
from runtime.tls import server_name

Caller = Callable[[], Awaitable[object]]

METHODS: dict[str, tuple[str, str, Any, Any]] = {
    "enqueue": (
        "/taskqueue.internal.v1.QueueInternalService/EnqueueJob",
        "queue",
        internal.EnqueueJobRequest(job_id="3f2b8c1e-9d4a-4e6b-8f10-2a7c5d9e0b13"),
        internal.EnqueueJobResponse,
    ),
    "submit": (
        "/taskqueue.v1.TaskQueuePublicService/SubmitJob",
        "gateway",
        public.SubmitJobRequest(spec=public.JobSpec(job_type="bench", labels={"team": "a"})),
        public.SubmitJobResponse,
    ),
}


async def load(
    address: str, method: str, calls: int, in_flight: int, token: str, *, typed: bool = False
) -> dict[str, float]:
    """Makes so many calls, so many at a time."""
    async with _typed(address, method, token) if typed else _bare(address, method, token) as call:

        async def keep_calling(count: int) -> None:
            for _ in range(count):
                await call()

        await keep_calling(20)
        started, cpu = time.perf_counter(), time.process_time()
        await asyncio.gather(*(keep_calling(calls // in_flight) for _ in range(in_flight)))
        seconds, busy = time.perf_counter() - started, time.process_time() - cpu
    done = calls // in_flight * in_flight
    return {
        "calls_per_s": done / seconds,
        "client_cpu_share": busy / seconds,
        "client_cpu_us_per_call": busy / done * 1e6,
        "calls": done,
    }


@asynccontextmanager
async def _bare(address: str, method: str, token: str) -> AsyncIterator[Caller]:
    """Several addresses, with commas between, are called in turn."""
    path, component, request, response = METHODS[method]
    channels = [_channel(each, component) for each in address.split(",")]
    calls: Iterator[Any] = itertools.cycle(
        [
            channel.unary_unary(
                path,
                request_serializer=type(request).SerializeToString,
                response_deserializer=response.FromString,
            )
            for channel in channels
        ]
    )
    metadata = (("authorization", f"Bearer {token}"),) if token else ()
    yield lambda: next(calls)(request, timeout=5, metadata=metadata)
    for channel in channels:
        await channel.close()


def _channel(address: str, component: str) -> grpc.aio.Channel:
    tls = credentials()
    if tls is None:
        return grpc.aio.insecure_channel(address)
    options = tls.name_options(server_name(SYSTEM, component))
    return grpc.aio.secure_channel(address, tls.for_client(), options)


@asynccontextmanager
async def _typed(address: str, method: str, token: str) -> AsyncIterator[Caller]:
    path, _, request, _ = METHODS[method]
    system = load_system(SYSTEM)
    table = next(
        each for service in system.services.values() for each in service.methods if each.path == path
    )
    client = Client(
        system,
        lambda _component: (address,),
        principal="gateway" if token else None,
        tls=credentials(),
        token=token or None,
    )
    async with client:
        service = client.service(table.service.rpartition(".")[2])
        call: Any = getattr(service, table.attribute)
        yield lambda: call(request, client.call())


if __name__ == "__main__":
    address, method, calls, in_flight, token, *how = sys.argv[1:]
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        found = runner.run(load(address, method, int(calls), int(in_flight), token, typed=how == ["typed"]))
        print(json.dumps(found))
