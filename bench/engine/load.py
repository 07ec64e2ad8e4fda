"""Load client with a fixed number of calls in flight: `python -m bench.engine.load` prints a line of JSON.

It is a process of its own with bare gRPC, the same for both sides of a comparison. With `typed` at the end it
uses a generated client instead, to measure that. The method `job` is a submit and then polls until the result
is ready.
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

from bench.engine.bare_services import SYSTEM, open_channel, read_credentials
from generated import taskqueue_internal_pb2 as internal
from generated import taskqueue_public_pb2 as public
from runtime.client import Client
from runtime.node.systems import load_system

Caller = Callable[[], Awaitable[object]]
PAUSE_S = 0.02
"""Between two polls for a result."""

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


async def run_calls(
    address: str, method: str, calls: int, in_flight: int, token: str, *, typed: bool = False
) -> dict[str, float]:
    """Make that many calls, with so many in flight."""
    async with (
        _open_typed_caller(address, method, token)
        if typed
        else _open_bare_caller(address, method, token) as call
    ):

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


async def run_jobs(addresses: list[str], count: int, users: int) -> dict[str, float]:
    """Run that many jobs: each user submits one and polls until its result is ready."""
    channels = [open_channel(each, "gateway") for each in addresses]
    submit, result = (
        f"/taskqueue.v1.TaskQueuePublicService/{each}" for each in ("SubmitJob", "GetJobResult")
    )
    request = METHODS["submit"][2]
    stubs = [
        (
            _create_stub(each, submit, type(request), public.SubmitJobResponse),
            _create_stub(each, result, public.GetJobResultRequest, public.GetJobResultResponse),
        )
        for each in channels
    ]
    turns, early = itertools.cycle(stubs), 0

    async def run_job() -> None:
        nonlocal early
        send, poll = next(turns)
        accepted = await send(request, timeout=5)
        while not (await poll(public.GetJobResultRequest(job_id=accepted.job_id), timeout=5)).result_ready:
            early += 1
            await asyncio.sleep(PAUSE_S)

    async def user() -> None:
        for _ in range(count // users):
            await run_job()

    await asyncio.gather(*(run_job() for _ in range(20)))
    early, started, cpu = 0, time.perf_counter(), time.process_time()
    await asyncio.gather(*(user() for _ in range(users)))
    seconds, busy = time.perf_counter() - started, time.process_time() - cpu
    for channel in channels:
        await channel.close()
    done = count // users * users
    return {
        "calls_per_s": done / seconds,
        "calls": done,
        "early": early / done,
        "client_cpu_us_per_call": busy / done * 1e6,
    }


def _create_stub(channel: grpc.aio.Channel, path: str, request: Any, response: Any) -> Any:
    return channel.unary_unary(
        path, request_serializer=request.SerializeToString, response_deserializer=response.FromString
    )


@asynccontextmanager
async def _open_bare_caller(address: str, method: str, token: str) -> AsyncIterator[Caller]:
    """Open bare channels; several addresses, separated by commas, are called in turn."""
    path, component, request, response = METHODS[method]
    channels = [open_channel(each, component) for each in address.split(",")]
    calls: Iterator[Any] = itertools.cycle(
        [_create_stub(channel, path, type(request), response) for channel in channels]
    )
    metadata = (("authorization", f"Bearer {token}"),) if token else ()
    yield lambda: next(calls)(request, timeout=5, metadata=metadata)
    for channel in channels:
        await channel.close()


@asynccontextmanager
async def _open_typed_caller(address: str, method: str, token: str) -> AsyncIterator[Caller]:
    path, _, request, _ = METHODS[method]
    system = load_system(SYSTEM)
    table = next(
        each for service in system.services.values() for each in service.methods if each.path == path
    )
    client = Client(
        system,
        lambda _component: (address,),
        principal="gateway" if token else None,
        tls=read_credentials(),
        token=token or None,
    )
    async with client:
        service = client.service(table.service.rpartition(".")[2])
        call: Any = getattr(service, table.attribute)
        yield lambda: call(request, client.call())


if __name__ == "__main__":
    address, method, calls, in_flight, token, *how = sys.argv[1:]
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        if method == "job":
            print(json.dumps(runner.run(run_jobs(address.split(","), int(calls), int(in_flight)))))
            sys.exit()
        report = runner.run(
            run_calls(address, method, int(calls), int(in_flight), token, typed=how == ["typed"])
        )
        print(json.dumps(report))
