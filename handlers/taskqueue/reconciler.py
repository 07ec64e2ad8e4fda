"""Find stranded jobs: those that are QUEUED outside the queue, and those that are RUNNING on no worker.

A component that is restarted loses what it had in memory, and a call that fails half-way can leave a record
which no component acts on. The records are the source of truth, so they are compared with the state of the
queue and of the workers. A job in flight is in neither for a moment; only a job that two consecutive scans
find stranded counts as stranded.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from generated.taskqueue.events import CONSISTENCY_ANOMALY
from generated.taskqueue.messages import (
    CREATED_AT_ASC,
    QUEUED,
    RUNNING,
    EnqueueJobRequest,
    GetJobRecordRequest,
    JobStatus,
    JobSummary,
    ListJobRecordsRequest,
    PageRequest,
)
from generated.taskqueue.services import JobInternalService, QueueInternalService
from runtime.call import Call
from runtime.call.conditions import Failure
from runtime.world import World

JobPredicate = Callable[[str], bool]
_LARGEST_PAGE = 2**32 - 1
"""A page size that the server clamps to its maximum."""


class Reconciler:
    """A comparison of the records of all open jobs with the queue and the workers."""

    def __init__(
        self,
        jobs: JobInternalService,
        queue: QueueInternalService,
        world: World,
        is_dispatching: JobPredicate,
        has_no_worker: JobPredicate,
    ) -> None:
        self._jobs = jobs
        self._queue = queue
        self._world = world
        self._is_dispatching = is_dispatching
        self._has_no_worker = has_no_worker
        self._queue_was_empty = False
        self._latest_dispatched_ms = 0
        self._overdue: frozenset[str] = frozenset()
        self._unowned: frozenset[str] = frozenset()

    def note_empty_queue(self) -> None:
        """Note that the queue had nothing, so that no job that is QUEUED waits in it."""
        self._queue_was_empty = True

    def note_dispatch(self, job: JobSummary) -> None:
        """Note a job that came out of the queue: older ones that are still QUEUED have been overtaken."""
        self._queue_was_empty = False
        self._latest_dispatched_ms = max(self._latest_dispatched_ms, job.created_at_ms)

    async def reconcile(self, call: Call) -> list[str]:
        """Put stranded QUEUED jobs back into the queue; return those that are RUNNING on no worker."""
        try:
            await self._requeue(call)
            return await self._find_unowned(call)
        except Failure:
            return []  # The failed call is logged, and the next scan is the retry.

    async def _requeue(self, call: Call) -> None:
        """Confirm with the queue that it has the jobs which should have left it by now."""
        found: list[str] = []
        page, token = await self._list(QUEUED, "", call)
        while page:
            overdue = [job.job_id for job in page if self._is_overdue(job)]
            for job_id in overdue:
                if job_id in self._overdue and not self._is_dispatching(job_id):
                    await self._confirm_waiting(job_id, call)
            found += overdue
            if len(overdue) < len(page) or not token:
                break  # The oldest come first, so none of the rest is overdue.
            page, token = await self._list(QUEUED, token, call)
        self._overdue = frozenset(found)

    def _is_overdue(self, job: JobSummary) -> bool:
        """Whether a QUEUED job is not where the queue, which is first in, first out, would have it."""
        return self._queue_was_empty or job.created_at_ms < self._latest_dispatched_ms

    async def _confirm_waiting(self, job_id: str, call: Call) -> None:
        """Enqueue a job, which is idempotent where it waits already."""
        request = EnqueueJobRequest(job_id=job_id, enqueued_at_ms=self._world.now_ms())
        response = await self._queue.enqueue_job(request, call)
        if response.already_waiting:
            return
        record = await self._jobs.get_job_record(GetJobRecordRequest(job_id=job_id), call)
        if record.summary.status != QUEUED:
            return  # It was cancelled or dispatched meanwhile; the entry is dropped at its dispatch.
        problem = "put back into it" if response.accepted else "the queue does not take it"
        call.tell(CONSISTENCY_ANOMALY, f"was QUEUED outside the queue; {problem}", job_id=job_id)

    async def _find_unowned(self, call: Call) -> list[str]:
        found: list[str] = []
        page, token = await self._list(RUNNING, "", call)
        while page:
            found += [job.job_id for job in page if self._has_no_worker(job.job_id)]
            if not token:
                break
            page, token = await self._list(RUNNING, token, call)
        stranded = [job_id for job_id in found if job_id in self._unowned]
        self._unowned = frozenset(found)
        return stranded

    async def _list(
        self, status: JobStatus.ValueType, token: str, call: Call
    ) -> tuple[Sequence[JobSummary], str]:
        """One page of the jobs in a state, oldest first, and the token of the next."""
        page = PageRequest(page_size=_LARGEST_PAGE, page_token=token)
        request = ListJobRecordsRequest(status_filter=[status], page=page, sort=CREATED_AT_ASC)
        response = await self._jobs.list_job_records(request, call)
        return response.jobs, response.page.next_page_token
