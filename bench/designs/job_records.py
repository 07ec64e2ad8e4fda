"""Job records after a load, read through the public API: the jobs' outcomes and times."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator

from bench.designs.results import Jobs
from bench.generator.fleet import LoadOutcome, Window
from bench.percentiles import LatencyHistogram
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


async def wait_until_idle(client: Client, seconds: float) -> bool:
    """Wait until no node has a queued or running job; return whether that was within the time."""
    until = time.monotonic() + seconds
    request = ListJobsRequest(status_filter=[QUEUED, RUNNING], page=PageRequest(page_size=1))
    for node in client.nodes("gateway"):
        api = node.of(TaskQueuePublicServiceClient)
        while (await api.list_jobs(request, node.call())).jobs:
            if time.monotonic() > until:
                return False
            await asyncio.sleep(_PAUSE)
    return True


async def read_jobs(client: Client, outcome: LoadOutcome, since_ms: int) -> Jobs:
    """Read the jobs that were created since then, on every node."""
    window, seconds = outcome.window, outcome.window.end - outcome.window.start
    end_to_end, waited = LatencyHistogram(), LatencyHistogram()
    done = submitted = backlog = unfinished = 0
    async for job in _list_created_since(client, since_ms):
        over = job.status in JOB.terminal
        if job.status == DONE and _is_within(job.finished_at_ms, window):
            done += 1
        if not _is_within(job.created_at_ms, window):
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
        end_to_end=end_to_end.summarize(),
        end_to_end_histogram=end_to_end.encode(),
        waited=waited.summarize(),
        observed=outcome.observed.summarize(),
        observed_histogram=outcome.observed.encode(),
    )


async def _list_created_since(client: Client, since_ms: int) -> AsyncIterator[JobSummary]:
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


def _is_within(at_ms: int, window: Window) -> bool:
    return window.start_ms <= at_ms < window.end_ms
