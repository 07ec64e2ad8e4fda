"""Nodes that stop, crash and come back, one at a time, in a deployment with small settings."""

from __future__ import annotations

import asyncio

import pytest

from generated.taskqueue.messages import (
    CANCELED,
    DONE,
    FAILED,
    QUEUED,
    GetJobResultResponse,
    JobSpec,
    SubmitJobRequest,
)
from runtime.launch import Launched, NodeProcess
from tests.support.eventually import eventually
from tests.support.taskqueue.api import Api, new_key, refused
from tests.support.taskqueue.callers import Shown, caller
from tests.support.taskqueue.logs import lines, told
from tests.support.taskqueue.matrix_oracle import METHODS, requests
from tests.support.taskqueue.single_node import exit_code, terminate

pytestmark = pytest.mark.asyncio(loop_scope="session")

LONG_MS = 60_000
PUBLIC = [each for each in METHODS if each.component == "gateway"]


@pytest.mark.req("TQ-175", "TQ-110", "TQ-111")
async def test_few_keys_are_remembered(tried: Api) -> None:
    """With room for two keys the first is forgotten with the third, and free for another payload."""
    keys = [new_key() for _ in range(3)]
    first, second, _ = [await tried.submit(key=key) for key in keys]
    assert await tried.submit(key=keys[1]) == second
    assert (await tried.submit("other", key=keys[0])).job_id != first.job_id


@pytest.mark.req("TQ-175", "TQ-093", "CH-53")
async def test_a_small_output_is_the_largest(tried: Api) -> None:
    """With a cap of 16 bytes, 16 are an output and 17 are a failure."""
    fits, bursts = await tried.submit(size=16), await tried.submit(size=17)
    assert (await tried.ended(fits.job_id)).status == DONE
    assert len((await tried.result(fits.job_id)).output_bytes) == 16
    assert (await tried.ended(bursts.job_id)).failure_reason == "OUTPUT_TOO_LARGE"


@pytest.mark.req("TQ-175", "CH-44")
async def test_a_worker_has_as_many_slots_as_it_is_told(tried: Api) -> None:
    """With two slots the third job waits while two run."""
    async with tried.busy(slots=2) as running:
        third = (await tried.submit()).job_id
        assert (await tried.status(third)).status == QUEUED
    ended = [await tried.ended(job_id) for job_id in (*running, third)]
    assert ended[2].started_at_ms >= min(ended[0].finished_at_ms, ended[1].finished_at_ms)


@pytest.mark.req("TQ-070", "TQ-054", "CH-15")
async def test_without_the_queue_nothing_is_accepted_and_nothing_is_left(whole: Launched, tried: Api) -> None:
    """A submit is unavailable, no job is listed for it, and its key is free for another payload."""
    name, key = f"refused-{new_key()}", new_key()
    await whole.stop("queue")
    spec = JobSpec(job_type=name)
    async with caller(whole, Shown("client")) as client:
        submits = [SubmitJobRequest(spec=spec, client_request_id=given) for given in (key, "")]
        codes = await asyncio.gather(*(client.code(PUBLIC[0], each) for each in submits))
    assert (PUBLIC[0].method, codes) == ("SubmitJob", ["UNAVAILABLE"] * 2)
    assert [each for each in await tried.walk() if each.job_type == name] == []
    await whole.restart("queue")
    await tried.reached()
    accepted = await tried.submit("another", key=key)
    assert (await tried.ended(accepted.job_id)).status == DONE


@pytest.mark.req("TQ-151", "TQ-165")
async def test_without_the_job_service_every_method_is_unavailable(whole: Launched) -> None:
    """Each public method says so, and a line of the log with it."""
    await whole.stop("job")
    async with caller(whole, Shown("client")) as client:
        codes = await asyncio.gather(*(client.code(each, next(requests("client", each))) for each in PUBLIC))
    assert codes == ["UNAVAILABLE"] * 5
    for each in PUBLIC:
        method = f"{each.service}.{each.method}"
        await told(whole.processes["gateway"], "rpc_error", method=method, grpc_code="UNAVAILABLE")


@pytest.mark.req("TQ-109", "TQ-220", "CH-63")
async def test_what_the_job_service_knew_is_lost_with_it(whole: Launched, tried: Api) -> None:
    """After a restart the key of an earlier submit makes a new job, and the earlier job is unknown."""
    key = new_key()
    first = await tried.submit(key=key)
    await tried.ended(first.job_id)
    assert (await tried.submit(key=key)).job_id == first.job_id
    await whole.restart("job")
    await tried.reached()
    with refused("NOT_FOUND"):
        await tried.status(first.job_id)
    second = await tried.submit(key=key)
    assert second.job_id != first.job_id
    assert (await tried.ended(second.job_id)).status == DONE


@pytest.mark.req("TQ-122", "TQ-152", "TQ-166", "TQ-220", "CH-61", "CH-63")
async def test_a_job_whose_result_is_lost_is_an_anomaly(whole: Launched, tried: Api) -> None:
    """Its status is known, its result is not and a line says so; a job that runs has its usual answer."""
    job_id = (await tried.submit()).job_id
    before = await tried.ended(job_id)
    await whole.stop("result")
    running = (await tried.submit(ms=LONG_MS)).job_id
    await tried.started(running)
    assert await tried.result(running) == GetJobResultResponse(job_id=running)
    await whole.restart("result")
    await tried.reached()
    with refused("UNAVAILABLE"):
        await tried.result_at_once(job_id)
    anomaly = await told(whole.processes["gateway"], "consistency_anomaly", job_id=job_id)
    assert anomaly["current_status"] == "DONE"
    assert await tried.status(job_id) == before
    await whole.kill("worker")


@pytest.mark.req("TQ-012", "TQ-220")
async def test_the_gateway_knows_nothing_that_could_be_lost(whole: Launched, tried: Api) -> None:
    """It is restarted while a job runs and after another ended: status, result and key stay the same."""
    key = new_key()
    done = await tried.submit(size=5, key=key)
    status, result = await tried.ended(done.job_id), await tried.result(done.job_id)
    async with tried.running() as runs:
        await whole.restart("gateway")
        await tried.reached()
    assert await tried.status(done.job_id) == status
    assert await tried.result(done.job_id) == result
    assert await tried.submit(size=5, key=key) == done
    assert (await tried.ended(runs)).status == DONE


@pytest.mark.req("TQ-139", "TQ-138", "TQ-175", "CH-32")
async def test_a_job_ends_with_its_worker(losing: Launched, lost: Api) -> None:
    """The coordinator gives up a worker that crashed, and its jobs; a worker that returns is welcome."""
    jobs = [(await lost.submit(ms=LONG_MS)).job_id for _ in range(2)]
    for job_id in jobs:
        await lost.left_queue(job_id)
    waits = (await lost.submit()).job_id
    await lost.cancel(jobs[1], "no longer wanted")
    await losing.kill("worker")
    for job_id in jobs:
        ended = await lost.ended(job_id)
        assert (ended.status, ended.failure_reason) == (FAILED, "WORKER_LOST")
        assert (await lost.result(job_id)).output_summary.startswith("WORKER_LOST")
        await told(losing.processes["coordinator"], "consistency_anomaly", job_id=job_id, worker_id="hand")
    await told(losing.processes["coordinator"], "worker_unavailable", worker_id="hand")
    assert (await lost.status(waits)).status == QUEUED
    await losing.restart("worker")
    assert (await lost.ended(waits)).status == DONE


@pytest.mark.req("CH-94", "CH-63", "TQ-081")
async def test_what_waited_in_a_killed_queue_runs(losing: Launched, lost: Api) -> None:
    """The queue comes back with nothing in it; what waited runs all the same, with an anomaly each."""
    await losing.stop("worker")
    jobs = [(await lost.submit()).job_id for _ in range(3)]
    await losing.kill("queue")
    await asyncio.gather(losing.restart("queue"), losing.restart("worker"))
    for job_id in jobs:
        assert (await lost.ended(job_id)).status == DONE
        await told(losing.processes["coordinator"], "consistency_anomaly", job_id=job_id)


@pytest.mark.req("CH-94", "CH-63", "CH-32")
async def test_what_ran_when_coordinator_and_worker_were_killed_is_lost(losing: Launched, lost: Api) -> None:
    """Neither knows of the job when it is back; it ends as WORKER_LOST, and others run."""
    job_id = (await lost.submit(ms=LONG_MS)).job_id
    await lost.left_queue(job_id)
    await asyncio.gather(losing.kill("coordinator"), losing.kill("worker"))
    await asyncio.gather(losing.restart("coordinator"), losing.restart("worker"))
    ended = await lost.ended(job_id)
    assert (ended.status, ended.failure_reason) == (FAILED, "WORKER_LOST")
    await told(losing.processes["coordinator"], "consistency_anomaly", job_id=job_id)
    assert (await lost.ended((await lost.submit()).job_id)).status == DONE


@pytest.mark.req("CH-45", "TQ-220")
async def test_a_worker_that_is_asked_to_stop_finishes_its_job(whole: Launched, tried: Api) -> None:
    """The job ends as done and is reported before the worker exits with 0; it takes no other."""
    async with tried.running(size=3) as runs:
        await begin_to_stop(whole.processes["worker"])
    assert await exit_code(whole.processes["worker"]) == 0
    assert (await tried.status(runs)).status == DONE
    assert len((await tried.result(runs)).output_bytes) == 3
    after = (await tried.submit()).job_id
    assert lines(whole.processes["worker"])[-1]["event"] == "service_stopped"
    assert (await tried.status(after)).status == QUEUED
    assert (await tried.cancel(after)).current_status == CANCELED


@pytest.mark.req("CH-45")
async def test_a_second_signal_ends_a_node_at_once(losing: Launched, lost: Api) -> None:
    """A worker that drains is cut off: its job stays behind and no line tells of an orderly stop."""
    runs = (await lost.submit(ms=LONG_MS)).job_id
    await lost.left_queue(runs)
    process = losing.processes["worker"]
    written = await begin_to_stop(process)
    terminate(process)
    assert await exit_code(process) == 1
    assert "service_stopped" not in [line["event"] for line in lines(process)[written:]]
    assert (await lost.ended(runs)).failure_reason == "WORKER_LOST"


async def begin_to_stop(process: NodeProcess) -> int:
    """Asks a node once to stop; returns when it does, with the number of lines that it had written before."""
    written = len(lines(process))
    terminate(process)

    async def told_since() -> list[str]:
        return [line["event"] for line in lines(process)[written:]]

    await eventually(
        told_since, wanted=lambda events: "service_stopping" in events, what="the beginning of the stop"
    )
    return written
