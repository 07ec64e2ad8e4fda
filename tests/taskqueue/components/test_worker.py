"""The worker: sends heartbeats, fetches, runs and reports, and calls the coordinator only."""

from __future__ import annotations

import asyncio
from itertools import pairwise
from typing import Any

import pytest
from google.protobuf.json_format import MessageToDict

from generated.taskqueue.messages import (
    DONE,
    FAILED,
    JOB_OUTCOME_FAILED,
    JOB_OUTCOME_SUCCEEDED,
    FetchWorkResponse,
    JobSpec,
    ReportWorkOutcomeRequest,
    WorkerHeartbeatRequest,
    WorkerHeartbeatResponse,
)
from handlers.jobs import Job, find_or_any
from runtime.model.text import sha256_hex
from runtime.simulation import Exchange, Fault
from tests.support.taskqueue.fault_plans import fail_calls
from tests.support.taskqueue.stack import SPEC, Stack, play


def heartbeat_times(stack: Stack) -> list[float]:
    """The times of the worker's heartbeats."""
    return [each.at for each in stack.exchanges if each.name == "WorkerHeartbeat"]


def fetches(stack: Stack) -> list[float]:
    """The times of the worker's fetches."""
    return [each.at for each in stack.exchanges if each.name == "FetchWork"]


def list_reports(stack: Stack) -> list[ReportWorkOutcomeRequest]:
    return [each.request for each in stack.exchanges if isinstance(each.request, ReportWorkOutcomeRequest)]


@pytest.mark.req("TQ-137", "TQ-097")
def test_heartbeats_go_on_while_all_slots_are_busy() -> None:
    """A heartbeat comes each interval, from start to end of a job that fills the worker."""

    async def scenario(stack: Stack) -> None:
        await stack.wait_until_terminal(
            await stack.submit_job(JobSpec(job_type="sleep", work_duration_ms=5000))
        )
        assert heartbeat_times(stack) == pytest.approx([0.0, 1.0, 2.0, 3.0, 4.0, 5.0], abs=0.001)

    play(scenario, WORKER_SLOTS="1")


@pytest.mark.req("TQ-137", "CH-75")
def test_a_heartbeat_is_on_time_even_if_the_last_one_failed() -> None:
    """Neither a slow answer nor none delays the next heartbeat, and none is repeated."""

    async def scenario(stack: Stack) -> None:
        fates = iter([None, Fault.BEFORE, Fault.TIMEOUT, None])
        stack.fail(lambda each: next(fates, None) if each.name == "WorkerHeartbeat" else None)
        await stack.world.sleep(4.5)
        assert heartbeat_times(stack) == pytest.approx([0.0, 1.0, 2.0, 3.0, 4.0], abs=0.001)

    play(scenario)


@pytest.mark.req("CH-39")
@pytest.mark.parametrize(("answered_ms", "pause"), [(250, 0.25), (0, 0.5)])
def test_the_coordinator_sets_the_heartbeat_interval(answered_ms: int, pause: float) -> None:
    """An interval that is answered counts; without one the worker's own does."""

    async def scenario(stack: Stack) -> None:
        answer = WorkerHeartbeatResponse(accepted=True, next_heartbeat_in_ms=answered_ms)
        stack.fail(lambda each: answer if each.name == "WorkerHeartbeat" else None)
        await stack.world.sleep(1.1)
        assert heartbeat_times(stack) == pytest.approx(
            [pause * number for number in range(int(1.1 / pause) + 1)]
        )

    play(scenario, HEARTBEAT_INTERVAL_MS="500")


@pytest.mark.req("TQ-140")
def test_idle_slots_poll_in_turn() -> None:
    """After their first fetch, one of six idle slots polls at a time, and there is a poll at any time."""

    async def scenario(stack: Stack) -> None:
        await stack.world.sleep(1)
        before = len(fetches(stack))
        await stack.world.sleep(60)
        polls = fetches(stack)[before:]
        assert 60 / 0.6 <= len(polls) <= 60 / 0.3 + 1
        assert max(later - earlier for earlier, later in pairwise(polls)) < 0.6

    play(scenario, WORKER_SLOTS="6")


@pytest.mark.req("TQ-135")
def test_idle_slots_run_a_burst_side_by_side() -> None:
    """A burst of jobs for an idle worker takes no longer than one of them: each fetch frees the next slot."""

    async def scenario(stack: Stack) -> None:
        await stack.world.sleep(5)
        began = stack.world.monotonic()
        jobs = [await stack.submit_job(JobSpec(job_type="sleep", work_duration_ms=1000)) for _ in range(6)]
        for job_id in jobs:
            assert (await stack.wait_until_terminal(job_id)).status == DONE
        assert stack.world.monotonic() - began < 2

    play(scenario, WORKER_SLOTS="6")


@pytest.mark.req("TQ-136", "CH-38", "TQ-144", "TQ-016", "TQ-022")
def test_every_call_has_the_same_name() -> None:
    """All calls are to the coordinator, under one worker_id, and the heartbeats have the number of slots."""

    async def scenario(stack: Stack) -> None:
        await stack.wait_until_terminal(await stack.submit_job())
        calls = [each for each in stack.exchanges if each.principal == "worker"]
        assert {each.name for each in calls} == {"WorkerHeartbeat", "FetchWork", "ReportWorkOutcome"}
        assert {MessageToDict(each.request)["workerId"] for each in calls} == {"w1"}
        hints = {
            each.request.capacity_hint for each in calls if isinstance(each.request, WorkerHeartbeatRequest)
        }
        assert hints == {4}

    play(scenario, WORKER_SLOTS="4")


@pytest.mark.req("TQ-141", "TQ-140")
@pytest.mark.parametrize(("hint", "least", "most"), [(200, 45, 51), (1000, 9, 11), (0, 180, 201)])
def test_an_idle_worker_waits_for_the_retry_hint(hint: int, least: int, most: int) -> None:
    """An idle loop fetches once each hint, and does not spin even where the hint is missing."""

    async def scenario(stack: Stack) -> None:
        idle = FetchWorkResponse(assigned=False, retry_after_ms=hint)
        stack.fail(lambda each: idle if each.name == "FetchWork" else None)
        await stack.world.sleep(10)
        assert least <= stack.calls("worker").count("FetchWork") <= most

    play(scenario, WORKER_SLOTS="1")


@pytest.mark.req("TQ-135", "CH-44", "TQ-175")
@pytest.mark.parametrize(("slots", "seconds"), [("", 2), ("3", 4), ("12", 1)])
def test_as_many_jobs_run_as_there_are_slots(slots: str, seconds: int) -> None:
    """Twelve jobs of one second need as many rounds as the slots allow; six slots are the default."""

    async def scenario(stack: Stack) -> None:
        jobs = [await stack.submit_job(JobSpec(job_type="sleep", work_duration_ms=1000)) for _ in range(12)]
        ends = [await stack.wait_until_terminal(job_id) for job_id in jobs]
        rounds = {round((each.finished_at_ms - ends[0].started_at_ms) / 1000) for each in ends}
        assert rounds == set(range(1, seconds + 1))

    play(scenario, WORKER_SLOTS=slots)


@pytest.mark.req("TQ-143", "CH-37", "TQ-091")
def test_a_report_is_complete() -> None:
    """Outcome, runtime, summary and bytes are reported, and the bytes of a job are the same each time."""

    async def scenario(stack: Stack) -> None:
        job_id = await stack.submit_job()
        await stack.wait_until_terminal(job_id)
        (report,) = list_reports(stack)
        assert (report.job_id, report.outcome, report.failure_reason) == (job_id, JOB_OUTCOME_SUCCEEDED, "")
        assert (report.runtime_ms, len(report.output_bytes)) == (SPEC.work_duration_ms, 8)
        assert report.output_summary == "sleep made 8 bytes"
        output = await find_or_any("sleep")(
            Job(job_id, "sleep", stack.world, payload_size_bytes=8, max_output_bytes=99)
        )
        assert output.content == report.output_bytes
        assert (await stack.result(job_id)).checksum == sha256_hex(report.output_bytes)

    play(scenario)


@pytest.mark.req("CH-42", "TQ-143")
def test_runtime_is_measured_on_the_monotonic_clock() -> None:
    """A wall clock that steps back during a job changes neither its runtime nor the order of its stamps."""

    async def scenario(stack: Stack) -> None:
        job_id = await stack.submit_and_start(JobSpec(job_type="sleep", work_duration_ms=1000))
        stack.world.step_wall_clock(-60_000)
        status = await stack.wait_until_terminal(job_id)
        assert status.created_at_ms <= status.started_at_ms <= status.finished_at_ms
        assert (await stack.result(job_id)).runtime_ms == 1000

    play(scenario)


@pytest.mark.req("CH-37", "TQ-057", "TQ-119")
def test_a_job_of_type_fail_fails_after_its_duration() -> None:
    """The built-in type `fail` lasts as long as its spec says and then fails on purpose."""

    async def scenario(stack: Stack) -> None:
        ending = await stack.run_to_end("fail", work_duration_ms=700)
        assert ending == (FAILED, "SIMULATED_FAILURE", "SIMULATED_FAILURE")
        assert list_reports(stack)[0].runtime_ms == 700

    play(scenario)


@pytest.mark.req("CH-53", "TQ-093", "CH-37", "TQ-175")
@pytest.mark.parametrize(("size", "fits"), [(0, True), (100, True), (101, False), (2**32 - 1, False)])
def test_an_output_above_the_cap_is_never_produced(size: int, fits: bool) -> None:
    """The worker reads from the spec that an output is too large, and reports that instead of bytes."""

    async def scenario(stack: Stack) -> None:
        status, reason, summary = await stack.run_to_end("x", payload_size_bytes=size)
        assert (status, reason) == ((DONE, "") if fits else (FAILED, "OUTPUT_TOO_LARGE"))
        assert fits or summary.startswith(f"OUTPUT_TOO_LARGE: {size} bytes")
        (report,) = list_reports(stack)
        assert report.outcome == (JOB_OUTCOME_SUCCEEDED if fits else JOB_OUTCOME_FAILED)
        assert len(report.output_bytes) == (size if fits else 0)

    play(scenario, MAX_OUTPUT_BYTES="100")


@pytest.mark.req("CH-35", "TQ-156")
def test_a_report_that_never_arrives_is_dropped_after_four_attempts() -> None:
    """After four attempts the slot is free again, and the job's id is logged."""

    async def scenario(stack: Stack) -> None:
        job_id = await stack.submit_job()
        stack.fail(fail_calls("ReportWorkOutcome"))
        await stack.world.sleep(3)
        assert len(list_reports(stack)) == 4
        assert "its outcome could not be reported" in stack.anomalies(job_id)[0]
        stack.heal()
        assert (await stack.wait_until_terminal(await stack.submit_job())).status == DONE

    play(scenario, WORKER_SLOTS="1")


@pytest.mark.req("CH-33", "CH-75")
def test_a_fetch_is_not_repeated_at_once() -> None:
    """After a failed fetch the worker waits an interval, and logs it."""

    async def scenario(stack: Stack) -> None:
        await stack.world.sleep(0.3)
        before = len(stack.exchanges)
        stack.fail(fail_calls("FetchWork"))
        await stack.world.sleep(2.9)
        assert 2 <= stack.calls("worker", before).count("FetchWork") <= 4
        assert {line["grpc_code"] for line in stack.log("fetch_failed")} == {"UNAVAILABLE"}

    play(scenario, WORKER_SLOTS="1")


@pytest.mark.req("TQ-179", "CH-86", "CH-81")
def test_the_start_is_logged_even_without_a_coordinator() -> None:
    """The loop and the first heartbeat are in the log at any level, with the coordinator down."""

    async def scenario(stack: Stack) -> None:
        await stack.world.sleep(5)
        events = [line["event"] for line in stack.log() if line["service"] == "worker"]
        assert events == ["worker_loop_started", "heartbeat_attempt"]

    play(scenario, without=("coordinator",), LOG_LEVEL="ERROR")


@pytest.mark.req("CH-45")
def test_running_jobs_end_before_the_worker_stops() -> None:
    """A stop lets running jobs end and be reported, heartbeats go on, and nothing more is fetched."""

    async def scenario(stack: Stack) -> None:
        first = await stack.submit_and_start(JobSpec(job_type="sleep", work_duration_ms=2500))
        waiting = await stack.submit_job()
        stopping = asyncio.create_task(stack.deployment.nodes.pop("worker").stop())
        await stack.world.sleep(2.0)
        assert not stopping.done()
        await stopping
        assert (await stack.status(first)).status == DONE
        assert not (await stack.record(waiting)).summary.started_at_ms
        assert max(heartbeat_times(stack)) > 1.9

    play(scenario, WORKER_SLOTS="1")


@pytest.mark.req("CH-45")
def test_a_job_cut_off_at_the_end_of_the_grace_is_logged() -> None:
    """A job that outlasts the grace is named when its worker is stopped for good."""

    async def scenario(stack: Stack) -> None:
        job_id = await stack.submit_and_start(JobSpec(job_type="sleep", work_duration_ms=60_000))
        node = stack.deployment.nodes["worker"]
        (background,) = vars(node)["_background"]
        background.cancel()
        await asyncio.wait([background])
        assert stack.anomalies(job_id) == ["was cut off when its worker stopped"]
        stack.deployment.crash("worker")

    play(scenario)


@pytest.mark.req("CH-34")
def test_a_refused_report_is_logged() -> None:
    """An outcome that the coordinator does not accept is logged with its job."""

    async def scenario(stack: Stack) -> None:
        job_id = await stack.submit_job()

        def plan(exchange: Exchange) -> Any:
            return exchange.method.response() if exchange.name == "ReportWorkOutcome" else None

        stack.fail(plan)
        await stack.world.sleep(1)
        assert stack.anomalies(job_id)[0] == "its outcome was refused"

    play(scenario, WORKER_SLOTS="1")
