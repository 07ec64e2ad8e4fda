"""What became of the jobs, by their own records, read through the public API when the load is over."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator

from bench.designs.results import Jobs
from bench.generator.fleet import Outcome, Window
from bench.percentiles import Times
from generated.taskqueue.clients import TaskQueuePublicServiceClient
from generated.taskqueue.lifecycle import JOB
from generated.taskqueue.messages import (
    CREATED_AT_DESC,
    DONE,
    QUEUED,
    RUNNING,
    JobSummary,
    ListJobsRequest,
    PageRequest,
)
from runtime.client import Client

_PAGE = 200
_PAUSE = 0.1


async def settled(client: Client, seconds: float) -> bool:
    """Waits until no node has a job that waits or runs. Whether that came to pass in time."""
    until = time.monotonic() + seconds
    request = ListJobsRequest(status_filter=[QUEUED, RUNNING], page=PageRequest(page_size=1))
    for node in client.nodes("gateway"):
        api = node.of(TaskQueuePublicServiceClient)
        while (await api.list_jobs(request, node.call())).jobs:
            if time.monotonic() > until:
                return False
            await asyncio.sleep(_PAUSE)
    return True


async def read_jobs(client: Client, outcome: Outcome, since_ms: int) -> Jobs:
    """Everything that was created since then, on every node."""
    window, seconds = outcome.window, outcome.window.end - outcome.window.start
    end_to_end, waited = Times(), Times()
    done = submitted = backlog = unfinished = 0
    async for job in _created_since(client, since_ms):
        over = job.status in JOB.terminal
        if job.status == DONE and _within(job.finished_at_ms, window):
            done += 1
        if not _within(job.created_at_ms, window):
            continue
        submitted += 1
        backlog += not over or job.finished_at_ms >= window.end_ms
        unfinished += not over
        if job.status == DONE:
            end_to_end.record((job.finished_at_ms - job.created_at_ms) / 1000)
            waited.record((job.started_at_ms - job.created_at_ms) / 1000)
    return Jobs(
        done_per_s=round(done / seconds, 2),
        done=done,
        submitted=submitted,
        backlog=backlog,
        unfinished=unfinished,
        end_to_end=end_to_end.summary(),
        end_to_end_histogram=end_to_end.encode(),
        waited=waited.summary(),
        observed=outcome.observed.summary(),
        observed_histogram=outcome.observed.encode(),
    )


async def _created_since(client: Client, since_ms: int) -> AsyncIterator[JobSummary]:
    for node in client.nodes("gateway"):
        api, token = node.of(TaskQueuePublicServiceClient), ""
        while True:
            request = ListJobsRequest(
                sort=CREATED_AT_DESC, page=PageRequest(page_size=_PAGE, page_token=token)
            )
            answer = await api.list_jobs(request, node.call())
            for job in answer.jobs:
                if job.created_at_ms < since_ms:
                    break
                yield job
            else:
                token = answer.page.next_page_token
                if token:
                    continue
            break


def _within(at_ms: int, window: Window) -> bool:
    return window.start_ms <= at_ms < window.end_ms
