"""The log of a whole run of all nodes, checked against the lifecycle."""

from __future__ import annotations

import asyncio
import json

import pytest

from generated.taskqueue.messages import CANCELED, DONE, FAILED, JobStatus
from runtime.launch import Launched
from tests.support.eventually import eventually
from tests.support.taskqueue.api import Api, expect_code, new_key
from tests.support.taskqueue.log_check import find_problems
from tests.support.taskqueue.logs import merge_logs

pytestmark = pytest.mark.asyncio(loop_scope="session")


@pytest.mark.req("TQ-162", "TQ-163", "TQ-164", "TQ-053")
async def test_every_line_of_a_mixed_run_is_valid(deployment: Launched, api: Api) -> None:
    """Every line of every node is well-formed, each transition legal, and the last state is the client's."""
    ends = {job_id: JobStatus.Name(status) for job_id, status in (await run_mixed_jobs(api)).items()}

    async def read_paths() -> dict[str, list[str]]:
        found: dict[str, list[str]] = {}
        for line in map(json.loads, merge_logs(deployment)):
            if line["event"] == "transition" and line["job_id"] in ends:
                found.setdefault(line["job_id"], []).append(line["to_status"])
        return found

    # A client may see an end some milliseconds before the line is in its node's log.
    paths = await eventually(
        read_paths,
        wanted=lambda found: {job_id: path[-1] for job_id, path in found.items()} == ends,
        what="every end in a log",
    )
    assert all(path[0] == "QUEUED" for path in paths.values())
    assert find_problems(merge_logs(deployment)) == []


async def run_mixed_jobs(api: Api) -> dict[str, JobStatus.ValueType]:
    """Run jobs of every kind; return how each ended."""
    key = new_key()
    expected = {await api.submit_canceled("on second thoughts"): CANCELED}
    jobs = await asyncio.gather(
        api.submit(size=100, key=key), api.submit("fail", ms=10), api.submit(size=2**20)
    )
    with expect_code("FAILED_PRECONDITION"):
        await api.submit(size=101, key=key)
    with expect_code("NOT_FOUND"):
        await api.status(new_key())
    async with api.run_job() as stopped:
        await api.cancel(stopped)
    ends = dict(zip((job.job_id for job in jobs), (DONE, FAILED, FAILED), strict=True))
    expected |= {**ends, stopped: CANCELED}
    for job_id, status in expected.items():
        assert (await api.wait_until_terminal(job_id)).status == status
    return expected
