"""Merge the listings of all nodes in the client, where each node lists only its own jobs."""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import AsyncIterator

from generated.taskqueue.clients import TaskQueuePublicServiceClient
from generated.taskqueue.messages import CREATED_AT_ASC, JobSummary, ListJobsRequest
from runtime.client import Client

COMPONENT = "gateway"


async def all_jobs(client: Client, request: ListJobsRequest) -> AsyncIterator[JobSummary]:
    """Iterate over the jobs of all nodes in the requested order, and fetch pages as they are needed.

    There is no snapshot: jobs that are created or change state meanwhile may be missed or seen twice, as on
    one node.
    """
    ascending = request.sort == CREATED_AT_ASC
    listings = [_NodeListing(node, request) for node in client.nodes(COMPONENT)]
    heads: list[tuple[int, str, int]] = []
    for number, listing in enumerate(listings):
        await _push_head(heads, number, listing, ascending=ascending)
    while heads:
        _, _, number = heapq.heappop(heads)
        yield listings[number].buffer.popleft()
        await _push_head(heads, number, listings[number], ascending=ascending)


class _NodeListing:
    """A cursor over the listing of one node."""

    def __init__(self, node: Client, request: ListJobsRequest) -> None:
        self._jobs = node.of(TaskQueuePublicServiceClient)
        self._call = node.call()
        self._request = ListJobsRequest()
        self._request.CopyFrom(request)
        self._has_more = True
        self.buffer: deque[JobSummary] = deque()

    async def peek(self) -> JobSummary | None:
        """Return the next job without consuming it, fetching a page if needed; None at the end."""
        while not self.buffer and self._has_more:
            page = await self._jobs.list_jobs(self._request, self._call)
            self.buffer.extend(page.jobs)
            self._request.page.page_token = page.page.next_page_token
            self._has_more = bool(page.page.next_page_token)
        return self.buffer[0] if self.buffer else None


async def _push_head(
    heads: list[tuple[int, str, int]], number: int, listing: _NodeListing, *, ascending: bool
) -> None:
    if (job := await listing.peek()) is not None:
        sort_key = job.created_at_ms if ascending else -job.created_at_ms
        heapq.heappush(heads, (sort_key, job.job_id, number))
