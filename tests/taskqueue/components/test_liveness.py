"""Which workers count as alive, and how the jobs of a lost worker end."""

from __future__ import annotations

import pytest

from generated.taskqueue.messages import DONE, FAILED, RUNNING, JobSpec, WorkerHeartbeatRequest
from handlers.taskqueue.worker_registry import WorkerRegistry
from runtime.call.conditions import Failure
from tests.runtime.hand_world import HandWorld
from tests.support.taskqueue.fault_plans import fail_calls
from tests.support.taskqueue.stack import NO_WORKER, Stack, play


@pytest.mark.req("CH-31", "TQ-140")
def test_an_unknown_worker_gets_no_job() -> None:
    """A worker without a heartbeat gets a retry hint and no job, until its first heartbeat."""

    async def scenario(stack: Stack) -> None:
        job_id = await stack.submit_job()
        work = await stack.fetch()
        assert (work.assigned, work.retry_after_ms) == (False, 200)
        assert stack.calls("coordinator") == []
        await stack.beat()
        assert (await stack.fetch()).job_id == job_id

    play(scenario, without=NO_WORKER)


@pytest.mark.req("CH-31", "CH-39", "CH-34", "TQ-147")
def test_a_worker_has_a_name() -> None:
    """An empty worker_id is refused everywhere."""

    async def scenario(stack: Stack) -> None:
        for call in (stack.beat(""), stack.fetch(""), stack.report("x", worker_id="")):
            with pytest.raises(Failure, match="worker_id: must not be empty") as refused:
                await call
            assert refused.value.grpc == "INVALID_ARGUMENT"

    play(scenario, without=NO_WORKER)


@pytest.mark.req("TQ-139", "CH-31", "CH-40")
@pytest.mark.parametrize(("silence", "gets_work"), [(3.95, True), (4.05, False)])
def test_a_worker_is_alive_up_to_its_timeout(silence: float, gets_work: bool) -> None:
    """Within the timeout a worker gets work, after it none, whether a sweep has come by or not."""

    async def scenario(stack: Stack) -> None:
        await stack.submit_job()
        await stack.beat()
        await stack.world.sleep(silence)
        assert (await stack.fetch()).assigned == gets_work

    play(scenario, without=NO_WORKER)


@pytest.mark.req("TQ-139", "CH-40", "TQ-175")
@pytest.mark.parametrize(("elapsed_ms", "alive"), [(3999, True), (4000, True), (4001, False)])
def test_the_timeout_itself_is_still_alive(elapsed_ms: int, alive: bool) -> None:
    """A worker is unavailable when more than its timeout has gone by, to the millisecond."""
    world = HandWorld()
    registry = WorkerRegistry(world, 4000)
    registry.record_heartbeat("w1", 6)
    world.seconds += elapsed_ms / 1000
    assert (registry.find_available("w1") is not None) == alive
    assert [each.worker_id for each in registry.expire_silent()] == ([] if alive else ["w1"])


@pytest.mark.req("TQ-138", "TQ-139", "CH-40", "TQ-015")
def test_a_change_is_logged_once() -> None:
    """A worker that falls silent is logged once, and once more when it is back, with its slots."""

    async def scenario(stack: Stack) -> None:
        await stack.beat(slots=6)
        await stack.world.sleep(9)
        for _ in range(3):
            await stack.beat(slots=6)
        (unavailable,) = stack.log("worker_unavailable")
        assert (unavailable["worker_id"], unavailable["level"]) == ("w1", "WARNING")
        first, again = stack.log("worker_available")
        assert first["worker_id"] == again["worker_id"] == "w1"
        assert first["capacity_hint"] == 6
        assert 4000 < unavailable["ts_ms"] - first["ts_ms"] <= 5010

    play(scenario, without=NO_WORKER)


@pytest.mark.req("TQ-138", "CH-41")
def test_a_heartbeat_counts_from_its_receipt() -> None:
    """The time that a worker claims in its heartbeat makes no difference."""

    async def scenario(stack: Stack) -> None:
        await stack.submit_job()
        request = WorkerHeartbeatRequest(worker_id="w1", heartbeat_at_ms=1)
        assert (await stack.coordinator.worker_heartbeat(request, stack.call("worker"))).accepted
        assert (await stack.fetch()).assigned

    play(scenario, without=NO_WORKER)


@pytest.mark.req("CH-39", "TQ-175")
def test_a_heartbeat_is_answered_with_the_interval() -> None:
    """The coordinator answers with the interval until the next heartbeat."""

    async def scenario(stack: Stack) -> None:
        answer = await stack.beat()
        assert (answer.accepted, answer.next_heartbeat_in_ms) == (True, 700)

    play(scenario, without=NO_WORKER, HEARTBEAT_INTERVAL_MS="700")


@pytest.mark.req("CH-40")
def test_a_wall_clock_that_steps_loses_no_worker() -> None:
    """Silence is measured on the monotonic clock."""

    async def scenario(stack: Stack) -> None:
        await stack.submit_job()
        await stack.beat()
        stack.world.step_wall_clock(3_600_000)
        await stack.world.sleep(1.5)
        assert stack.log("worker_unavailable") == []
        assert (await stack.fetch()).assigned

    play(scenario, without=NO_WORKER)


@pytest.mark.req("CH-32", "TQ-139", "TQ-166")
def test_the_jobs_of_a_lost_worker_fail() -> None:
    """Within the timeout and one sweep every job of a silent worker is FAILED as WORKER_LOST, and logged."""

    async def scenario(stack: Stack) -> None:
        jobs = [await stack.submit_and_fetch() for _ in range(3)]
        await stack.world.sleep(5.1)
        for job_id in jobs:
            status = await stack.status(job_id)
            assert (status.status, status.failure_reason) == (FAILED, "WORKER_LOST")
            assert (await stack.result(job_id)).output_summary == "WORKER_LOST: w1"
        lost = stack.log("consistency_anomaly")
        assert sorted((line["job_id"], line["worker_id"]) for line in lost) == [
            (job, "w1") for job in sorted(jobs)
        ]

    play(scenario, without=NO_WORKER)


@pytest.mark.req("CH-32")
def test_the_jobs_of_other_workers_run_on() -> None:
    """Only the jobs of the silent worker are ended."""

    async def scenario(stack: Stack) -> None:
        lost = await stack.submit_and_fetch()
        unaffected = await stack.submit_job()
        for _ in range(6):
            await stack.beat("w2")
            if not (await stack.record(unaffected)).summary.started_at_ms:
                assert (await stack.fetch("w2")).job_id == unaffected
            await stack.world.sleep(1)
        assert (await stack.status(lost)).status == FAILED
        assert (await stack.status(unaffected)).status == RUNNING

    play(scenario, without=NO_WORKER)


@pytest.mark.req("CH-32", "TQ-094", "TQ-085")
def test_a_late_report_of_a_lost_worker_changes_nothing() -> None:
    """A worker that counts as lost and reports afterwards finds its job terminal."""

    async def scenario(stack: Stack) -> None:
        job_id = await stack.submit_and_fetch()
        await stack.world.sleep(6)
        assert (await stack.report(job_id)).accepted
        assert (await stack.status(job_id)).status == FAILED
        assert stack.log("terminal_race")[0]["job_id"] == job_id

    play(scenario, without=NO_WORKER)


@pytest.mark.req("CH-32", "CH-35")
def test_a_lost_job_that_cannot_be_ended_is_ended_by_a_later_sweep() -> None:
    """While results are down, a lost job stays RUNNING, each sweep logs it, and it ends afterwards."""

    async def scenario(stack: Stack) -> None:
        job_id = await stack.submit_and_fetch()
        stack.fail(fail_calls("StoreResult", principal="coordinator"))
        await stack.world.sleep(9)
        assert (await stack.status(job_id)).status == RUNNING
        assert len([each for each in stack.anomalies(job_id) if "could not be ended" in each]) >= 2
        stack.heal()
        await stack.world.sleep(2.5)
        assert (await stack.status(job_id)).status == FAILED

    play(scenario, without=NO_WORKER)


@pytest.mark.req("CH-32")
@pytest.mark.parametrize("away", [0.01, 1.0, 3.0])
def test_the_jobs_of_a_restarted_worker_fail(away: float) -> None:
    """A worker that dies and is back under its name before its timeout has its jobs ended."""

    async def scenario(stack: Stack) -> None:
        job_id = await stack.submit_and_start(JobSpec(job_type="sleep", work_duration_ms=1000))
        stack.deployment.crash("worker")
        await stack.world.sleep(away)
        stack.deployment.start("worker")
        status = await stack.wait_until_terminal(job_id, seconds=10)
        assert (status.status, status.failure_reason) == (FAILED, "WORKER_LOST")
        assert (await stack.wait_until_terminal(await stack.submit_job())).status == DONE

    play(scenario)


@pytest.mark.req("CH-63")
def test_a_restarted_coordinator_accepts_reports_of_unknown_jobs() -> None:
    """A new coordinator has no assignments, and ends a job that is reported all the same."""

    async def scenario(stack: Stack) -> None:
        job_id = await stack.submit_and_start(JobSpec(job_type="sleep", work_duration_ms=1000))
        stack.deployment.crash("coordinator")
        stack.deployment.start("coordinator")
        assert (await stack.wait_until_terminal(job_id)).status == DONE
        assert [line["job_id"] for line in stack.log("foreign_report")] == [job_id]

    play(scenario)
