"""Nodes that stop, crash and come back, one at a time, in a deployment with small settings."""

from __future__ import annotations

import asyncio

import pytest

from generated.taskqueue.messages import (
    CANCELED,
    DONE,
    QUEUED,
    GetJobResultResponse,
    JobSpec,
    SubmitJobRequest,
)
from runtime.launch import Launched
from tests.support.taskqueue.api import Api, expect_code, new_key
from tests.support.taskqueue.callers import Credentials, caller
from tests.support.taskqueue.logs import lines, wait_for_line
from tests.support.taskqueue.matrix_oracle import METHODS, requests
from tests.support.taskqueue.single_node import begin_to_stop, wait_for_exit

pytestmark = pytest.mark.asyncio(loop_scope="session")

LONG_MS = 60_000
PUBLIC = [each for each in METHODS if each.component == "gateway"]


@pytest.mark.req("TQ-175", "TQ-110", "TQ-111")
async def test_few_keys_are_remembered(fragile_api: Api) -> None:
    """With room for two keys the first is forgotten with the third, and free for another payload."""
    keys = [new_key() for _ in range(3)]
    first, second, _ = [await fragile_api.submit(key=key) for key in keys]
    assert await fragile_api.submit(key=keys[1]) == second
    assert (await fragile_api.submit("other", key=keys[0])).job_id != first.job_id


@pytest.mark.req("TQ-175", "TQ-093", "CH-53")
async def test_a_small_output_is_the_largest(fragile_api: Api) -> None:
    """With a cap of 16 bytes, 16 are an output and 17 are a failure."""
    fits, bursts = await fragile_api.submit(size=16), await fragile_api.submit(size=17)
    assert (await fragile_api.wait_until_terminal(fits.job_id)).status == DONE
    assert len((await fragile_api.result(fits.job_id)).output_bytes) == 16
    assert (await fragile_api.wait_until_terminal(bursts.job_id)).failure_reason == "OUTPUT_TOO_LARGE"


@pytest.mark.req("TQ-175", "CH-44")
async def test_a_worker_has_as_many_slots_as_configured(fragile_api: Api) -> None:
    """With two slots the third job waits while two run."""
    async with fragile_api.occupy_slots(slots=2) as running:
        third = (await fragile_api.submit()).job_id
        assert (await fragile_api.status(third)).status == QUEUED
    ended = [await fragile_api.wait_until_terminal(job_id) for job_id in (*running, third)]
    assert ended[2].started_at_ms >= min(ended[0].finished_at_ms, ended[1].finished_at_ms)


@pytest.mark.req("TQ-070", "TQ-054", "CH-15")
async def test_without_the_queue_nothing_is_accepted_or_stored(fragile: Launched, fragile_api: Api) -> None:
    """A submit is unavailable, no job is listed for it, and its key is free for another payload."""
    name, key = f"refused-{new_key()}", new_key()
    await fragile.stop("queue")
    spec = JobSpec(job_type=name)
    async with caller(fragile, Credentials("client")) as client:
        submits = [SubmitJobRequest(spec=spec, client_request_id=key_) for key_ in (key, "")]
        codes = await asyncio.gather(*(client.code(PUBLIC[0], each) for each in submits))
    assert (PUBLIC[0].method, codes) == ("SubmitJob", ["UNAVAILABLE"] * 2)
    assert [each for each in await fragile_api.list_all() if each.job_type == name] == []
    await fragile.restart("queue")
    await fragile_api.wait_until_ready()
    accepted = await fragile_api.submit("another", key=key)
    assert (await fragile_api.wait_until_terminal(accepted.job_id)).status == DONE


@pytest.mark.req("TQ-151", "TQ-165")
async def test_without_the_job_service_every_method_is_unavailable(fragile: Launched) -> None:
    """Each public method is UNAVAILABLE, and the gateway logs it."""
    await fragile.stop("job")
    async with caller(fragile, Credentials("client")) as client:
        codes = await asyncio.gather(*(client.code(each, next(requests("client", each))) for each in PUBLIC))
    assert codes == ["UNAVAILABLE"] * 5
    for each in PUBLIC:
        method = f"{each.service}.{each.method}"
        await wait_for_line(fragile.processes["gateway"], "rpc_error", method=method, grpc_code="UNAVAILABLE")


@pytest.mark.req("TQ-109", "TQ-220", "CH-63")
async def test_jobs_and_keys_are_lost_with_the_job_service(fragile: Launched, fragile_api: Api) -> None:
    """After a restart the key of an earlier submit makes a new job, and the earlier job is unknown."""
    key = new_key()
    first = await fragile_api.submit(key=key)
    await fragile_api.wait_until_terminal(first.job_id)
    assert (await fragile_api.submit(key=key)).job_id == first.job_id
    await fragile.restart("job")
    await fragile_api.wait_until_ready()
    with expect_code("NOT_FOUND"):
        await fragile_api.status(first.job_id)
    second = await fragile_api.submit(key=key)
    assert second.job_id != first.job_id
    assert (await fragile_api.wait_until_terminal(second.job_id)).status == DONE


@pytest.mark.req("TQ-122", "TQ-152", "TQ-166", "TQ-220", "CH-61", "CH-63")
async def test_a_job_whose_result_is_lost_is_an_anomaly(fragile: Launched, fragile_api: Api) -> None:
    """Its status is known, its result is not, and this is logged; a job that runs has its usual answer."""
    job_id = (await fragile_api.submit()).job_id
    before = await fragile_api.wait_until_terminal(job_id)
    await fragile.stop("result")
    running = (await fragile_api.submit(ms=LONG_MS)).job_id
    await fragile_api.wait_until_running(running)
    assert await fragile_api.result(running) == GetJobResultResponse(job_id=running)
    await fragile.restart("result")
    await fragile_api.wait_until_ready()
    with expect_code("UNAVAILABLE"):
        await fragile_api.result_without_retry(job_id)
    anomaly = await wait_for_line(fragile.processes["gateway"], "consistency_anomaly", job_id=job_id)
    assert anomaly["current_status"] == "DONE"
    assert await fragile_api.status(job_id) == before
    await fragile.kill("worker")


@pytest.mark.req("TQ-012", "TQ-220")
async def test_the_gateway_has_no_state(fragile: Launched, fragile_api: Api) -> None:
    """It is restarted while a job runs and after another ended: status, result and key stay the same."""
    key = new_key()
    ended = await fragile_api.submit(size=5, key=key)
    status, result = (
        await fragile_api.wait_until_terminal(ended.job_id),
        await fragile_api.result(ended.job_id),
    )
    async with fragile_api.run_job() as runs:
        await fragile.restart("gateway")
        await fragile_api.wait_until_ready()
    assert await fragile_api.status(ended.job_id) == status
    assert await fragile_api.result(ended.job_id) == result
    assert await fragile_api.submit(size=5, key=key) == ended
    assert (await fragile_api.wait_until_terminal(runs)).status == DONE


@pytest.mark.req("CH-45", "TQ-220")
async def test_a_worker_that_is_stopped_finishes_its_job(fragile: Launched, fragile_api: Api) -> None:
    """The job is done and reported before the worker exits with 0; the worker fetches no other."""
    async with fragile_api.run_job(size=3) as runs:
        await begin_to_stop(fragile.processes["worker"])
    assert await wait_for_exit(fragile.processes["worker"]) == 0
    assert (await fragile_api.status(runs)).status == DONE
    assert len((await fragile_api.result(runs)).output_bytes) == 3
    after = (await fragile_api.submit()).job_id
    assert lines(fragile.processes["worker"])[-1]["event"] == "service_stopped"
    assert (await fragile_api.status(after)).status == QUEUED
    assert (await fragile_api.cancel(after)).current_status == CANCELED
