"""The five public methods of a running deployment, as short as tests want to say them."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

import pytest

from generated.taskqueue.clients import TaskQueuePublicServiceClient
from generated.taskqueue.lifecycle import JOB
from generated.taskqueue.messages import (
    JOB_SORT_UNSPECIFIED,
    QUEUED,
    RUNNING,
    CancelJobRequest,
    CancelJobResponse,
    GetJobResultRequest,
    GetJobResultResponse,
    GetJobStatusRequest,
    GetJobStatusResponse,
    JobSort,
    JobSpec,
    JobStatus,
    JobSummary,
    ListJobsRequest,
    ListJobsResponse,
    PageRequest,
    SubmitJobRequest,
    SubmitJobResponse,
)
from runtime.client import Client
from runtime.conditions import Failure
from tests.taskqueue.blackbox.polling import eventually

SLOTS = 6
BUSY_MS = 2000
"""How long a job lasts that keeps a slot from others: many times what a few calls take."""


class Api:
    """Calls a deployment as an outsider does."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._service = client.of(TaskQueuePublicServiceClient)

    async def submit(
        self,
        job_type: str = "sleep",
        *,
        ms: int = 0,
        size: int = 0,
        labels: Mapping[str, str] | None = None,
        key: str = "",
    ) -> SubmitJobResponse:
        spec = JobSpec(job_type=job_type, work_duration_ms=ms, payload_size_bytes=size, labels=labels or {})
        return await self.send(SubmitJobRequest(spec=spec, client_request_id=key))

    async def send(self, request: SubmitJobRequest) -> SubmitJobResponse:
        return await self._service.submit_job(request, self._client.call())

    async def status(self, job_id: str) -> GetJobStatusResponse:
        return await self._service.get_job_status(GetJobStatusRequest(job_id=job_id), self._client.call())

    async def result(self, job_id: str) -> GetJobResultResponse:
        return await self._service.get_job_result(GetJobResultRequest(job_id=job_id), self._client.call())

    async def cancel(self, job_id: str, reason: str = "") -> CancelJobResponse:
        request = CancelJobRequest(job_id=job_id, reason=reason)
        return await self._service.cancel_job(request, self._client.call())

    async def list(
        self,
        *statuses: JobStatus.ValueType,
        sort: JobSort.ValueType = JOB_SORT_UNSPECIFIED,
        size: int = 0,
        token: str = "",
    ) -> ListJobsResponse:
        page = PageRequest(page_size=size, page_token=token)
        request = ListJobsRequest(status_filter=statuses, page=page, sort=sort)
        return await self._service.list_jobs(request, self._client.call())

    async def walk(
        self, *statuses: JobStatus.ValueType, sort: JobSort.ValueType = JOB_SORT_UNSPECIFIED, size: int = 0
    ) -> Sequence[JobSummary]:
        """All pages of a listing, one after the other."""
        found: list[JobSummary] = []
        token = ""
        while True:
            page = await self.list(*statuses, sort=sort, size=size, token=token)
            found += page.jobs
            token = page.page.next_page_token
            if not token:
                return found

    async def ended(self, job_id: str) -> GetJobStatusResponse:
        """The status of a job once it is terminal."""
        return await eventually(
            lambda: self.status(job_id), lambda seen: seen.status in JOB.terminal, f"the end of {job_id}"
        )

    async def started(self, job_id: str) -> GetJobStatusResponse:
        """The status of a job once it runs."""
        seen = await eventually(
            lambda: self.status(job_id), lambda seen: seen.status != QUEUED, f"the start of {job_id}"
        )
        assert seen.status == RUNNING
        return seen

    async def reached(self) -> None:
        """Returns once a job gets all the way through, as it does when nodes have found each other again."""
        key = new_key()

        async def accepted() -> SubmitJobResponse | None:
            try:
                return await self.submit("probe", key=key)
            except Failure as failure:
                assert failure.grpc == "UNAVAILABLE"
                return None

        answer = await eventually(accepted, what="the way to all nodes")
        assert answer is not None
        await self.ended(answer.job_id)

    async def fill(self) -> None:
        """Gives every slot a job that lasts, so that whatever is submitted next has to wait."""
        await asyncio.gather(*(self.submit("filler", ms=BUSY_MS) for _ in range(SLOTS)))

    async def waiting(self, *, key: str = "") -> str:
        """A job that is queued and stays so for a while."""
        await self.fill()
        return (await self.submit("waits", key=key)).job_id


@contextmanager
def refused(code: str) -> Iterator[None]:
    """Expects a call to fail with a code."""
    with pytest.raises(Failure) as caught:
        yield
    assert caught.value.grpc == code, caught.value.message


def new_key() -> str:
    """A name that no other test uses."""
    return str(uuid.uuid4())
