"""Anatomy of one SubmitJob: its latency hop by hop, from the traces of the nodes.

Every node records when a call came in and when its answer went out, on the clock of the one machine. The
time between two records is the hop: the caller's own work, both ends of the connection, and waiting to be
scheduled.
"""

from __future__ import annotations

import asyncio
import secrets
import statistics
import time
from collections import defaultdict
from collections.abc import Mapping, Sequence

from bench.designs.collector import CallSpan, collect_spans
from bench.designs.results import ResultRecord
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


class Segment(ResultRecord):
    """A hop or a handler, and its median latency."""

    name: str
    median_us: float


class Anatomy(ResultRecord):
    """One SubmitJob of one design, without other load."""

    deployment: str
    calls: int
    segments: tuple[Segment, ...]
    total_median_us: float


async def dissect(deployment: str, *, tls: bool) -> Anatomy:
    """Send submits one after the other and trace each through the nodes."""
    async with (
        collect_spans() as spans,
        launched(deployment, ports="auto", tls=tls) as running,
        running.client() as client,
    ):
        # Keep all slots busy, so that no job is dispatched while its submit is being answered.
        for _ in range(_SLOTS):
            await _submit(client, secrets.token_hex(16), _BUSY_MS)
        for _ in range(_WARM_UP):
            await _submit(client, secrets.token_hex(16))
        sent = {trace: await _submit(client, trace) for trace in _create_traces()}
        await _wait_for_spans(spans, sent)
    return assemble_anatomy(deployment, sent, spans)


def assemble_anatomy(
    deployment: str, sent: Mapping[str, tuple[int, int]], spans: Sequence[CallSpan]
) -> Anatomy:
    """Compute the median of each segment. `sent` has when a client sent a call and when it got the answer."""
    by_trace: dict[str, dict[str, CallSpan]] = defaultdict(dict)
    for span in spans:
        by_trace[span.trace][span.name] = span
    rows = [
        _split_segments(start, end, by_trace[trace])
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


def _split_segments(sent_ns: int, received_ns: int, spans: Mapping[str, CallSpan]) -> dict[str, float]:
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


def _create_traces() -> list[str]:
    return [secrets.token_hex(16) for _ in range(CALLS)]


async def _submit(client: Client, trace: str, work_ms: int = 0) -> tuple[int, int]:
    call = client.call()
    call.trace = f"00-{trace}-{secrets.token_hex(8)}-01"
    request = SubmitJobRequest(spec=JobSpec(job_type="bench", work_duration_ms=work_ms))
    start = time.time_ns()
    await client.of(TaskQueuePublicServiceClient).submit_job(request, call)
    return start, time.time_ns()


async def _wait_for_spans(spans: Sequence[CallSpan], sent: Mapping[str, object]) -> None:
    """Wait for the spans of the last calls, which nodes export in batches, up to a limit."""
    until = time.monotonic() + _ARRIVAL_S
    while time.monotonic() < until:
        enqueued = {span.trace for span in spans if span.name == ENQUEUE}
        submitted = {span.trace for span in spans if span.name == SUBMIT}
        if sent.keys() <= enqueued & submitted:
            return
        await asyncio.sleep(0.05)
