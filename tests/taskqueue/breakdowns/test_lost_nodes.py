"""Workers, queue and coordinator that are lost while jobs wait and run."""

from __future__ import annotations

import asyncio

import pytest

from generated.taskqueue.messages import (
    DONE,
    FAILED,
    QUEUED,
)
from runtime.launch import Launched
from tests.support.taskqueue.api import Api
from tests.support.taskqueue.log_check import find_problems
from tests.support.taskqueue.logs import lines, merge_logs, wait_for_line
from tests.support.taskqueue.matrix_oracle import METHODS
from tests.support.taskqueue.single_node import begin_to_stop, terminate, wait_for_exit

pytestmark = pytest.mark.asyncio(loop_scope="session")

LONG_MS = 60_000
PUBLIC = [each for each in METHODS if each.component == "gateway"]


@pytest.mark.req("TQ-139", "TQ-138", "TQ-175", "CH-32")
async def test_a_job_fails_with_its_worker(lossy: Launched, lossy_api: Api) -> None:
    """The coordinator ends the jobs of a worker that crashed; a worker that returns gets work again."""
    jobs = [(await lossy_api.submit(ms=LONG_MS)).job_id for _ in range(2)]
    for job_id in jobs:
        await lossy_api.wait_until_dequeued(job_id)
    waits = (await lossy_api.submit()).job_id
    await lossy_api.cancel(jobs[1], "no longer wanted")
    await lossy.kill("worker")
    for job_id in jobs:
        ended = await lossy_api.wait_until_terminal(job_id)
        assert (ended.status, ended.failure_reason) == (FAILED, "WORKER_LOST")
        assert (await lossy_api.result(job_id)).output_summary.startswith("WORKER_LOST")
        await wait_for_line(
            lossy.processes["coordinator"], "consistency_anomaly", job_id=job_id, worker_id="hand"
        )
    await wait_for_line(lossy.processes["coordinator"], "worker_unavailable", worker_id="hand")
    assert (await lossy_api.status(waits)).status == QUEUED
    await lossy.restart("worker")
    assert (await lossy_api.wait_until_terminal(waits)).status == DONE


@pytest.mark.req("CH-94", "CH-63", "TQ-081")
async def test_queued_jobs_survive_a_kill_of_the_queue(lossy: Launched, lossy_api: Api) -> None:
    """The queue comes back empty; the queued jobs run all the same, with an anomaly each."""
    await lossy.stop("worker")
    jobs = [(await lossy_api.submit()).job_id for _ in range(3)]
    await lossy.kill("queue")
    await asyncio.gather(lossy.restart("queue"), lossy.restart("worker"))
    for job_id in jobs:
        assert (await lossy_api.wait_until_terminal(job_id)).status == DONE
        await wait_for_line(lossy.processes["coordinator"], "consistency_anomaly", job_id=job_id)


@pytest.mark.req("CH-94", "CH-63", "CH-32")
async def test_running_jobs_are_lost_with_their_coordinator_and_worker(
    lossy: Launched, lossy_api: Api
) -> None:
    """Neither knows of the job when it is back; it ends as WORKER_LOST, and others run."""
    job_id = (await lossy_api.submit(ms=LONG_MS)).job_id
    await lossy_api.wait_until_dequeued(job_id)
    await asyncio.gather(lossy.kill("coordinator"), lossy.kill("worker"))
    await asyncio.gather(lossy.restart("coordinator"), lossy.restart("worker"))
    ended = await lossy_api.wait_until_terminal(job_id)
    assert (ended.status, ended.failure_reason) == (FAILED, "WORKER_LOST")
    await wait_for_line(lossy.processes["coordinator"], "consistency_anomaly", job_id=job_id)
    assert (await lossy_api.wait_until_terminal((await lossy_api.submit()).job_id)).status == DONE


@pytest.mark.req("CH-45")
async def test_a_second_signal_ends_a_node_at_once(lossy: Launched, lossy_api: Api) -> None:
    """A worker that drains is cut off: its job does not end and no line of an orderly stop is logged."""
    runs = (await lossy_api.submit(ms=LONG_MS)).job_id
    await lossy_api.wait_until_dequeued(runs)
    process = lossy.processes["worker"]
    written = await begin_to_stop(process)
    terminate(process)
    assert await wait_for_exit(process) == 1
    assert "service_stopped" not in [line["event"] for line in lines(process)[written:]]
    assert (await lossy_api.wait_until_terminal(runs)).failure_reason == "WORKER_LOST"


@pytest.mark.req("TQ-162", "TQ-163", "TQ-164", "TQ-166")
async def test_no_line_of_a_run_with_breakdowns_is_malformed(lossy: Launched, lossy_api: Api) -> None:
    """Also after nodes were stopped and killed each line has its fields, and each anomaly its job."""
    job_id = (await lossy_api.submit(ms=60_000)).job_id
    await lossy_api.wait_until_dequeued(job_id)
    await lossy.kill("worker")
    await lossy_api.wait_until_terminal(job_id)
    await lossy.restart("gateway")
    assert find_problems(merge_logs(lossy)) == []
