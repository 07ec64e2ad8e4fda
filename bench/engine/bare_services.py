"""Baselines: hand-written gRPC services without the engine.

`python -m bench.engine.bare_services ROLE PORT [ADDRESS …]` serves one of them.
"""

from __future__ import annotations

import asyncio
import os
import sys
import uuid
from pathlib import Path
from typing import Any

import grpc
import grpc.aio
import uvloop

from generated import taskqueue_internal_pb2 as internal
from generated import taskqueue_internal_pb2_grpc as internal_grpc
from generated import taskqueue_public_pb2 as public
from generated import taskqueue_public_pb2_grpc as public_grpc
from runtime.transport.tls import Credentials, server_name

SYSTEM = "taskqueue"


class BareQueue(internal_grpc.QueueInternalServiceServicer):
    """Queue that accepts every enqueue and stores nothing."""

    async def EnqueueJob(self, _request: Any, _context: Any) -> Any:  # noqa: N802
        return internal.EnqueueJobResponse(accepted=True)


class BareJob(internal_grpc.JobInternalServiceServicer):
    """Job service that stores created jobs in a dictionary."""

    def __init__(self) -> None:
        self._jobs: dict[str, Any] = {}

    async def CreateJob(self, request: Any, _context: Any) -> Any:  # noqa: N802
        job_id = str(uuid.uuid4())
        self._jobs[job_id] = request.spec
        return internal.CreateJobResponse(job_id=job_id, status=public.QUEUED)


class BareGateway(public_grpc.TaskQueuePublicServiceServicer):
    """Gateway that creates a job, then enqueues it."""

    def __init__(self, job: grpc.aio.Channel, queue: grpc.aio.Channel) -> None:
        self._job = internal_grpc.JobInternalServiceStub(job)
        self._queue = internal_grpc.QueueInternalServiceStub(queue)

    async def SubmitJob(self, request: Any, _context: Any) -> Any:  # noqa: N802
        created = await self._job.CreateJob(internal.CreateJobRequest(spec=request.spec), timeout=1)
        await self._queue.EnqueueJob(internal.EnqueueJobRequest(job_id=created.job_id), timeout=1)
        return public.SubmitJobResponse(job_id=created.job_id, initial_status=public.QUEUED)


class BareSubmit(public_grpc.TaskQueuePublicServiceServicer):
    """Echo with real messages: answers a submit and a poll for a result at once, and stores nothing."""

    async def SubmitJob(self, _request: Any, _context: Any) -> Any:  # noqa: N802
        return public.SubmitJobResponse(
            job_id="3f2b8c1e-9d4a-4e6b-8f10-2a7c5d9e0b13",
            initial_status=public.QUEUED,
            accepted_at_ms=1_770_681_600_000,
        )

    async def GetJobResult(self, request: Any, _context: Any) -> Any:  # noqa: N802
        return public.GetJobResultResponse(
            job_id=request.job_id,
            result_ready=True,
            terminal_status=public.DONE,
            output_summary="bench made 0 bytes",
            checksum="e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
        )


SERVICERS: dict[str, tuple[Any, Any]] = {
    "queue": (internal_grpc.add_QueueInternalServiceServicer_to_server, BareQueue),
    "job": (internal_grpc.add_JobInternalServiceServicer_to_server, BareJob),
    "gateway": (public_grpc.add_TaskQueuePublicServiceServicer_to_server, BareGateway),
    "submit": (public_grpc.add_TaskQueuePublicServiceServicer_to_server, BareSubmit),
}


async def serve(role: str, port: int, upstreams: list[str]) -> None:
    """Serve one of the baselines until it is killed."""
    server = grpc.aio.server(options=[("grpc.so_reuseport", 0)])
    callees = zip(upstreams, ("job", "queue"), strict=False)
    channels = [open_channel(address, component) for address, component in callees]
    add, servicer = SERVICERS[role]
    add(servicer(*channels), server)
    tls = read_credentials()
    if tls is None:
        server.add_insecure_port(f"127.0.0.1:{port}")
    else:
        required = role not in ("gateway", "submit")
        pair = [(tls.key or b"", tls.certificate or b"")]
        trusted = grpc.ssl_server_credentials(pair, tls.authority if required else None, required)
        server.add_secure_port(f"127.0.0.1:{port}", trusted)
    await server.start()
    await server.wait_for_termination()


def read_credentials() -> Credentials | None:
    """Read the certificates of the compared nodes, the authority alone, or none, by the environment."""
    files = [
        os.environ[name] for name in ("TLS_CERT_FILE", "TLS_KEY_FILE", "TLS_CA_FILE") if name in os.environ
    ]
    if not files:
        return None
    return Credentials.read(*files) if len(files) == 3 else Credentials(Path(files[0]).read_bytes())


def open_channel(address: str, component: str) -> grpc.aio.Channel:
    """Open a channel to one component, without settings of the engine."""
    tls = read_credentials()
    if tls is None:
        return grpc.aio.insecure_channel(address)
    options = [("grpc.ssl_target_name_override", server_name(SYSTEM, component))]
    trusted = grpc.ssl_channel_credentials(tls.authority, tls.key, tls.certificate)
    return grpc.aio.secure_channel(address, trusted, options)


if __name__ == "__main__":
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(serve(sys.argv[1], int(sys.argv[2]), sys.argv[3:]))
