"""Where the time of one SubmitJob goes, hop by hop, by the traces of the nodes.

Every node says when a call came in and when its answer went out, on the clock of the one machine. What lies
between those moments is the way: the caller's own work, both ends of the connection, and waiting to be run.
"""

from __future__ import annotations

import asyncio
import secrets
import statistics
import time
from collections import defaultdict
from collections.abc import Mapping, Sequence

from bench.designs.collector import Span, collecting
from bench.designs.results import Record
from generated.taskqueue.clients import TaskQueuePublicServiceClient
from generated.taskqueue.messages import JobSpec, SubmitJobRequest
from runtime.client import Client
from runtime.launch import launched

CALLS = 150
_WARM_UP = 30
_BUSY_MS = 3000
_SLOTS = 6
_ARRIVAL_S = 3.0
SUBMIT, CREATE, ENQUEUE = (
    "TaskQueuePublicService.SubmitJob",
    "JobInternalService.CreateJob",
    "QueueInternalService.EnqueueJob",
)


class Segment(Record):
    """A stretch of the way, and the middle of how long it took."""

    name: str
    median_us: float


class Anatomy(Record):
    """One SubmitJob of one design, with nothing else going on."""

    deployment: str
    calls: int
    segments: tuple[Segment, ...]
    total_median_us: float


async def dissect(deployment: str, *, tls: bool) -> Anatomy:
    """Sends submits one after the other and follows each through the nodes."""
    async with (
        collecting() as spans,
        launched(deployment, ports="auto", tls=tls) as running,
        running.client() as client,
    ):
        # All slots are kept busy, so that no job is dispatched while its submit is being answered.
        for _ in range(_SLOTS):
            await _submit(client, secrets.token_hex(16), _BUSY_MS)
        for _ in range(_WARM_UP):
            await _submit(client, secrets.token_hex(16))
        sent = {trace: await _submit(client, trace) for trace in _traces()}
        await _all_arrived(spans, sent)
    return put_together(deployment, sent, spans)


def put_together(deployment: str, sent: Mapping[str, tuple[int, int]], spans: Sequence[Span]) -> Anatomy:
    """The segments of every call, in the middle. `sent` has when a client sent and when it got its answer."""
    by_trace: dict[str, dict[str, Span]] = defaultdict(dict)
    for span in spans:
        by_trace[span.trace][span.name] = span
    rows = [
        _segments(start, end, by_trace[trace])
        for trace, (start, end) in sent.items()
        if {SUBMIT, CREATE, ENQUEUE} <= by_trace[trace].keys()
    ]
    return Anatomy(
        deployment=deployment,
        calls=len(rows),
        segments=tuple(
            Segment(name=name, median_us=round(statistics.median(row[name] for row in rows), 1))
            for name in (rows[0] if rows else ())
        ),
        total_median_us=round(statistics.median(sum(row.values()) for row in rows), 1) if rows else 0.0,
    )


def _segments(sent_ns: int, received_ns: int, spans: Mapping[str, Span]) -> dict[str, float]:
    submit, create, enqueue = spans[SUBMIT], spans[CREATE], spans[ENQUEUE]
    moments = {
        "client → gateway": (sent_ns, submit.start_ns),
        "gateway → job": (submit.start_ns, create.start_ns),
        "job: CreateJob": (create.start_ns, create.end_ns),
        "job → gateway → queue": (create.end_ns, enqueue.start_ns),
        "queue: EnqueueJob": (enqueue.start_ns, enqueue.end_ns),
        "queue → gateway": (enqueue.end_ns, submit.end_ns),
        "gateway → client": (submit.end_ns, received_ns),
    }
    return {name: (end - start) / 1000 for name, (start, end) in moments.items()}


def _traces() -> list[str]:
    return [secrets.token_hex(16) for _ in range(CALLS)]


async def _submit(client: Client, trace: str, work_ms: int = 0) -> tuple[int, int]:
    call = client.call()
    call.trace = f"00-{trace}-{secrets.token_hex(8)}-01"
    request = SubmitJobRequest(spec=JobSpec(job_type="bench", work_duration_ms=work_ms))
    start = time.time_ns()
    await client.of(TaskQueuePublicServiceClient).submit_job(request, call)
    return start, time.time_ns()


async def _all_arrived(spans: Sequence[Span], sent: Mapping[str, object]) -> None:
    """Nodes send their spans now and then; those of the last calls are waited for, but not for ever."""
    until = time.monotonic() + _ARRIVAL_S
    while time.monotonic() < until:
        known = {span.trace for span in spans if span.name == ENQUEUE}
        also = {span.trace for span in spans if span.name == SUBMIT}
        if sent.keys() <= known & also:
            return
        await asyncio.sleep(0.05)
