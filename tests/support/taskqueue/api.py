"""The five public methods of a running deployment, as short as tests want to say them."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from typing import TypeVar

import pytest
from google.protobuf.message import Message

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
from runtime.call import Call
from runtime.call.conditions import Failure
from runtime.call.routing import find_owner
from runtime.client import Client
from tests.support.eventually import eventually
from tests.support.taskqueue.gates import GATED, gate

SLOTS = 6
Request = TypeVar("Request", bound=Message)
Answer = TypeVar("Answer", bound=Message)


class Api:
    """Calls a deployment as an outsider does."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._service = client.of(TaskQueuePublicServiceClient)
        self._nodes = len(client.nodes("gateway"))

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
        return await self._answer(self._service.submit_job, request)

    async def status(self, job_id: str) -> GetJobStatusResponse:
        return await self._answer(self._service.get_job_status, GetJobStatusRequest(job_id=job_id))

    async def result(self, job_id: str) -> GetJobResultResponse:
        return await self._answer(self._service.get_job_result, GetJobResultRequest(job_id=job_id))

    async def result_without_retry(self, job_id: str) -> GetJobResultResponse:
        """The same by one call, without retries."""
        return await self._service.get_job_result(GetJobResultRequest(job_id=job_id), self._client.call())

    async def cancel(self, job_id: str, reason: str = "") -> CancelJobResponse:
        return await self._answer(self._service.cancel_job, CancelJobRequest(job_id=job_id, reason=reason))

    async def list(
        self,
        *statuses: JobStatus.ValueType,
        sort: JobSort.ValueType = JOB_SORT_UNSPECIFIED,
        size: int = 0,
        token: str = "",
    ) -> ListJobsResponse:
        page = PageRequest(page_size=size, page_token=token)
        request = ListJobsRequest(status_filter=statuses, page=page, sort=sort)
        return await self._answer(self._service.list_jobs, request)

    async def _answer(self, ask: Callable[[Request, Call], Awaitable[Answer]], request: Request) -> Answer:
        """Retry calls that get no answer in time: a busy machine may delay any node for some seconds."""

        async def ask_once() -> Answer | None:
            try:
                return await ask(request, self._client.call())
            except Failure as failure:
                if failure.grpc not in ("UNAVAILABLE", "DEADLINE_EXCEEDED"):
                    raise
                return None

        answer: Answer | None = await eventually(
            ask_once, wanted=lambda seen: seen is not None, what=f"an answer to {request}"
        )
        assert answer is not None
        return answer

    async def list_all(
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

    async def wait_until_terminal(self, job_id: str) -> GetJobStatusResponse:
        """The status of a job once it is terminal."""
        return await eventually(
            lambda: self.status(job_id),
            wanted=lambda seen: seen.status in JOB.terminal,
            what=f"the end of {job_id}",
        )

    async def wait_until_dequeued(self, job_id: str) -> GetJobStatusResponse:
        """The status of a job once it is not QUEUED any more; where workers are lost it may have ended."""
        return await eventually(
            lambda: self.status(job_id),
            wanted=lambda seen: seen.status != QUEUED,
            what=f"the start of {job_id}",
        )

    async def wait_until_running(self, job_id: str) -> GetJobStatusResponse:
        """The status of a job once it runs."""
        seen = await self.wait_until_dequeued(job_id)
        assert seen.status == RUNNING
        return seen

    async def wait_until_ready(self) -> None:
        """Wait until a job can run to its end, as it can when the nodes are connected again."""
        await self.wait_until_terminal((await self.submit("probe", key=new_key())).job_id)

    @asynccontextmanager
    async def occupy_slots(self, slots: int = SLOTS) -> AsyncIterator[Sequence[str]]:
        """Fill every slot with a job that does not end within the block, so that other jobs have to wait."""
        with gate() as labels:
            # Each under a key, so that a job which is submitted again does not occupy a second slot.
            keys = [self._make_key(node % self._nodes) for node in range(slots)]
            answers = await asyncio.gather(*(self.submit(GATED, labels=labels, key=key) for key in keys))
            jobs = [answer.job_id for answer in answers]
            for job_id in jobs:
                await self.wait_until_running(job_id)
            yield jobs

    def _make_key(self, node: int) -> str:
        """A key whose jobs belong to one of the nodes that the client knows."""
        return next(key for key in iter(new_key, "") if find_owner(key, self._nodes) == node)

    @asynccontextmanager
    async def run_job(self, *, ms: int = 0, size: int = 0) -> AsyncIterator[str]:
        """Run a job that ends some time after the block."""
        with gate() as labels:
            job_id = (await self.submit(GATED, ms=ms, size=size, labels=labels)).job_id
            await self.wait_until_running(job_id)
            yield job_id

    async def submit_canceled(self, reason: str = "", *, key: str = "") -> str:
        """Submit a job and cancel it while it waits."""
        async with self.occupy_slots():
            job_id = (await self.submit("waits", key=key)).job_id
            await self.cancel(job_id, reason)
        return job_id


@contextmanager
def expect_code(code: str) -> Iterator[None]:
    """Expect a call to fail with a code."""
    with pytest.raises(Failure) as caught:
        yield
    assert caught.value.grpc == code, caught.value.message


def new_key() -> str:
    """A name that no other test uses."""
    return str(uuid.uuid4())
