"""One listing over all nodes, made by the client where each node lists only its own jobs."""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import AsyncIterator

from generated.taskqueue.clients import TaskQueuePublicServiceClient
from generated.taskqueue.messages import CREATED_AT_ASC, JobSummary, ListJobsRequest
from runtime.client import Client

COMPONENT = "gateway"


async def all_jobs(client: Client, request: ListJobsRequest) -> AsyncIterator[JobSummary]:
    """The jobs of every node in the order that the request asks for, page by page as they are needed.

    There is no snapshot: jobs that come or move while it runs may be missed or seen twice, as on one node.
    """
    ascending = request.sort == CREATED_AT_ASC
    listings = [_Listing(node, request) for node in client.nodes(COMPONENT)]
    heads: list[tuple[int, str, int]] = []
    for number, listing in enumerate(listings):
        await _push(heads, number, listing, ascending=ascending)
    while heads:
        _, _, number = heapq.heappop(heads)
        yield listings[number].waiting.popleft()
        await _push(heads, number, listings[number], ascending=ascending)


class _Listing:
    """The listing of one node."""

    def __init__(self, node: Client, request: ListJobsRequest) -> None:
        self._jobs = node.of(TaskQueuePublicServiceClient)
        self._call = node.call()
        self._request = ListJobsRequest()
        self._request.CopyFrom(request)
        self._more = True
        self.waiting: deque[JobSummary] = deque()

    async def head(self) -> JobSummary | None:
        """The next job, fetched if need be; None at the end."""
        while not self.waiting and self._more:
            page = await self._jobs.list_jobs(self._request, self._call)
            self.waiting.extend(page.jobs)
            self._request.page.page_token = page.page.next_page_token
            self._more = bool(page.page.next_page_token)
        return self.waiting[0] if self.waiting else None


async def _push(
    heads: list[tuple[int, str, int]], number: int, listing: _Listing, *, ascending: bool
) -> None:
    if (job := await listing.head()) is not None:
        at = job.created_at_ms if ascending else -job.created_at_ms
        heapq.heappush(heads, (at, job.job_id, number))
