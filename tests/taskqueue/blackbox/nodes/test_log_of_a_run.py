"""The log of a whole run, all nodes together, held against the lifecycle."""

from __future__ import annotations

import asyncio
import heapq
import json

import pytest

from generated.taskqueue.messages import CANCELED, DONE, FAILED, JobStatus
from runtime.launch import Launched
from tests.support.eventually import eventually
from tests.support.taskqueue.api import Api, new_key, refused
from tests.support.taskqueue.log_check import problems
from tests.support.taskqueue.logs import texts

pytestmark = pytest.mark.asyncio(loop_scope="session")


@pytest.mark.req("TQ-162", "TQ-163", "TQ-164", "TQ-053")
async def test_no_line_of_a_mixed_run_tells_of_what_cannot_be(deployment: Launched, api: Api) -> None:
    """Every line of every node is well-formed, each transition legal, and the last what the client saw."""
    ends = {job_id: JobStatus.Name(status) for job_id, status in (await mixed_run(api)).items()}

    async def told() -> dict[str, list[str]]:
        found: dict[str, list[str]] = {}
        for line in map(json.loads, merged_log(deployment)):
            if line["event"] == "transition" and line["job_id"] in ends:
                found.setdefault(line["job_id"], []).append(line["to_status"])
        return found

    # A client may hear of an end some milliseconds before the line leaves its node.
    paths = await eventually(
        told,
        wanted=lambda found: {job_id: path[-1] for job_id, path in found.items()} == ends,
        what="every end in a log",
    )
    assert all(path[0] == "QUEUED" for path in paths.values())
    assert problems(merged_log(deployment)) == []


@pytest.mark.req("TQ-162", "TQ-163", "TQ-164", "TQ-166")
async def test_no_line_of_a_run_with_breakdowns_is_malformed(losing: Launched, lost: Api) -> None:
    """Also after nodes were stopped and killed each line has its fields, and each anomaly its job."""
    job_id = (await lost.submit(ms=60_000)).job_id
    await lost.left_queue(job_id)
    await losing.kill("worker")
    await lost.ended(job_id)
    await losing.restart("gateway")
    assert problems(merged_log(losing)) == []


async def mixed_run(api: Api) -> dict[str, JobStatus.ValueType]:
    """Jobs of every kind and fate; how each ended."""
    key = new_key()
    expected = {await api.canceled("on second thoughts"): CANCELED}
    jobs = await asyncio.gather(
        api.submit(size=100, key=key), api.submit("fail", ms=10), api.submit(size=2**20)
    )
    with refused("FAILED_PRECONDITION"):
        await api.submit(size=101, key=key)
    with refused("NOT_FOUND"):
        await api.status(new_key())
    async with api.running() as stopped:
        await api.cancel(stopped)
    ends = dict(zip((job.job_id for job in jobs), (DONE, FAILED, FAILED), strict=True))
    expected |= {**ends, stopped: CANCELED}
    for job_id, status in expected.items():
        assert (await api.ended(job_id)).status == status
    return expected


def merged_log(deployment: Launched) -> list[str]:
    """The lines of all nodes by their time; those of one node stay in their order."""
    logs = (texts(process) for process in deployment.processes.values())
    return list(heapq.merge(*logs, key=lambda text: json.loads(text)["ts_ms"]))
