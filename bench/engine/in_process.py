"""CPU cost of handlers and guards without a network: one monolith node that is called in this process.

`python -m bench.engine.in_process` prints CPU microseconds for each kind of call as one JSON line.
"""

from __future__ import annotations

import asyncio
import json
import os
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TextIO

import uvloop

from generated.taskqueue.clients import QueueInternalServiceClient, TaskQueuePublicServiceClient
from generated.taskqueue.messages import (
    EnqueueJobRequest,
    GetJobResultRequest,
    GetJobStatusRequest,
    JobSpec,
    SubmitJobRequest,
)
from generated.taskqueue.system import SYSTEM
from runtime.call import Call, Channel
from runtime.node.assembly import Assembly
from runtime.transport.in_process import LocalChannel
from runtime.world import RealWorld

CALLS = 2000
_NODES = 6


async def measure_in_process(stream: TextIO) -> dict[str, float]:
    """Measure the CPU microseconds of a call between two components, and of each public method.

    A submit is measured without a worker, then with one until the job has ended.
    """
    parts = _assemble_node(stream)
    local = QueueInternalServiceClient(LocalChannel(SYSTEM, parts.endpoints, "gateway"))
    public = TaskQueuePublicServiceClient(LocalChannel(SYSTEM, parts.endpoints, "client"))
    world, log = parts.world, parts.log

    def call(caller: str) -> Call:
        return Call(world=world, log=log, caller=caller, method="bench")

    async def submit(_: int) -> str:
        answer = await public.submit_job(
            SubmitJobRequest(spec=JobSpec(job_type="bench", payload_size_bytes=64)), call("client")
        )
        return answer.job_id

    ids = [await submit(0) for _ in range(100)]
    costs = {
        "local": await _measure_call(
            lambda number: local.enqueue_job(EnqueueJobRequest(job_id=ids[number % 100]), call("gateway"))
        ),
        "submit": await _measure_call(submit),
    }
    costs["job"] = costs["submit"] + await _measure_runs(parts, CALLS + 100)
    costs["status"] = await _measure_call(
        lambda number: public.get_job_status(GetJobStatusRequest(job_id=ids[number % 100]), call("client"))
    )
    costs["result"] = await _measure_call(
        lambda number: public.get_job_result(GetJobResultRequest(job_id=ids[number % 100]), call("client"))
    )
    return {name: round(each, 2) for name, each in costs.items()}


async def _measure_runs(parts: Assembly, jobs: int) -> float:
    """Measure the CPU microseconds of running a queued job, from its dispatch to its end."""
    stopping = asyncio.Event()
    before, ended = time.process_time(), parts.metrics.served + 8 * jobs
    running = [asyncio.ensure_future(work) for _, work in parts.background(stopping)]
    while parts.metrics.served < ended:
        await asyncio.sleep(0.01)
    cost = (time.process_time() - before) / jobs * 1e6
    stopping.set()
    for task in running:
        task.cancel()
    await asyncio.gather(*running, return_exceptions=True)
    return cost


async def _measure_call(call: Callable[[int], Awaitable[object]]) -> float:
    before = time.process_time()
    for number in range(CALLS):
        await call(number)
    return (time.process_time() - before) / CALLS * 1e6


def _assemble_node(stream: TextIO) -> Assembly:
    deployment = SYSTEM.deployments["monolith"]
    environ = {
        "NODE_INDEX": "0",
        "NODE_ADDRS": ",".join(f"127.0.0.1:{50051 + each}" for each in range(_NODES)),
        "WORKER_ID": "inside",
    }
    return Assembly(
        SYSTEM, deployment, deployment.nodes["monolith"], environ, RealWorld(), _refuse_channel, stream=stream
    )


def _refuse_channel(_parts: Assembly, _component: str, service: str) -> Channel:
    raise LookupError(f"{service} is not in this process")


if __name__ == "__main__":
    with (
        Path(os.devnull).open("w") as devnull,
        asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner,
    ):
        print(json.dumps(runner.run(measure_in_process(devnull))))
