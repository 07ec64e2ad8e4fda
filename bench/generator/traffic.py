"""Users of a taskqueue: they submit jobs, poll their status and results, and record when jobs end."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from random import Random
from typing import Protocol

from bench.percentiles import LatencyHistogram
from bench.workload import Load, RequestKind
from generated.taskqueue.clients import TaskQueuePublicServiceClient
from generated.taskqueue.lifecycle import JOB
from generated.taskqueue.messages import (
    CancelJobRequest,
    GetJobResultRequest,
    GetJobStatusRequest,
    JobSpec,
    ListJobsRequest,
    PageRequest,
    SubmitJobRequest,
)
from runtime.client import Client

_OPEN_JOBS = 256
"""Jobs that a user follows at a time; it forgets the oldest ones beyond that."""
_PAGE = 50


async def touch_nodes(client: Client) -> None:
    """Call every node once, to open the connections before the measurement."""
    for node in client.nodes("gateway"):
        request = ListJobsRequest(page=PageRequest(page_size=1))
        await node.of(TaskQueuePublicServiceClient).list_jobs(request, node.call())


class Traffic(Protocol):
    """A sender of requests of each kind."""

    async def send(self, kind: RequestKind, origin: float) -> RequestKind:
        """Send a request and wait for its answer; return the kind that was really sent."""
        ...


class User:
    """One user with jobs of its own. It polls the oldest job whose end it has not seen."""

    def __init__(self, client: Client, load: Load, name: str, source: Random, tally: Tally) -> None:
        self._api = client.of(TaskQueuePublicServiceClient)
        self._call = client.call
        self._load = load
        self._name = name
        self._source = source
        self._tally = tally
        self._open: deque[tuple[str, float]] = deque(maxlen=_OPEN_JOBS)
        self._last = ""
        self._ended = ""
        self._submits = 0

    async def send(self, kind: RequestKind, origin: float) -> RequestKind:
        """Send a request; a submit as long as there is no job to ask about."""
        if not self._last and kind not in ("submit", "list"):
            kind = "submit"
        if kind == "submit":
            await self._submit(origin)
        elif kind == "status":
            await self._status()
        elif kind == "result":
            await self._result()
        elif kind == "cancel":
            await self._api.cancel_job(CancelJobRequest(job_id=self._last), self._call())
        else:
            request = ListJobsRequest(page=PageRequest(page_size=_PAGE))
            await self._api.list_jobs(request, self._call())
        return kind

    async def _submit(self, origin: float) -> None:
        load, key = self._load, ""
        if load.keyed_share and self._source.random() < load.keyed_share:
            key = f"{load.seed}-{load.step}-{load.level:g}-{self._name}-{self._submits}"
            self._tally.keyed += 1
        self._submits += 1
        spec = JobSpec(job_type="bench", work_duration_ms=load.job_ms, payload_size_bytes=load.payload_bytes)
        answer = await self._api.submit_job(SubmitJobRequest(spec=spec, client_request_id=key), self._call())
        self._last = answer.job_id
        self._open.append((answer.job_id, origin))

    async def _status(self) -> None:
        job_id, origin = self._open[0] if self._open else (self._last, None)
        answer = await self._api.get_job_status(GetJobStatusRequest(job_id=job_id), self._call())
        if answer.status in JOB.terminal:
            self._record_end(job_id, origin)

    async def _result(self) -> None:
        job_id = self._ended or (self._open[0][0] if self._open else self._last)
        answer = await self._api.get_job_result(GetJobResultRequest(job_id=job_id), self._call())
        if answer.result_ready and job_id != self._ended:
            self._record_end(job_id, next((at for known, at in self._open if known == job_id), None))

    def _record_end(self, job_id: str, origin: float | None) -> None:
        self._ended = job_id
        if self._open and self._open[0][0] == job_id:
            self._open.popleft()
            if origin is not None:
                self._tally.record_end(origin)


class Tally:
    """Tally of the users of one process: keyed submits, and times until they see the end of a job."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._window = (0.0, 0.0)
        self.keyed = 0
        self.observed = LatencyHistogram()
        """From a submit to the first answer with the job's end."""

    def count_within(self, start: float, end: float) -> None:
        """Count only jobs that are submitted in this window."""
        self._window = (start, end)

    def record_end(self, origin: float) -> None:
        if self._window[0] <= origin < self._window[1]:
            self.observed.record(self._clock() - origin)
