"""How jobs end: the envelope first, then the state, for any report and any number of reports."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from generated.taskqueue.messages import (
    CANCELED,
    DONE,
    FAILED,
    JOB_OUTCOME_CANCELED,
    JOB_OUTCOME_FAILED,
    JOB_OUTCOME_SUCCEEDED,
    JOB_OUTCOME_UNSPECIFIED,
    QUEUED,
    RUNNING,
    JobOutcome,
    TransitionJobStatusRequest,
)
from runtime.call.conditions import Failure
from runtime.model.text import sha256_hex
from runtime.simulation import Fault
from tests.support.taskqueue.fault_plans import before, fail_calls, notify_at, once
from tests.support.taskqueue.stack import NO_WORKER, Stack, play

EMPTY = sha256_hex(b"")


@pytest.mark.req("TQ-084", "TQ-056", "TQ-091", "CH-34")
def test_a_success_stores_then_ends() -> None:
    """The report is read against the record, the envelope is stored, and only then the state changes."""

    async def scenario(stack: Stack) -> None:
        job_id = await stack.submit_and_fetch()
        before = len(stack.exchanges)
        output = bytes(range(256))
        answer = await stack.report(job_id, runtime_ms=12, output_summary="fine", output_bytes=output)
        assert answer.accepted
        assert stack.calls("coordinator", before) == ["GetJobRecord", "StoreResult", "TransitionJobStatus"]
        result = await stack.result(job_id)
        assert await stack.read_outcome(job_id) == (DONE, "", "fine")
        assert (result.output_bytes, result.checksum, result.runtime_ms) == (output, sha256_hex(output), 12)

    play(scenario, without=NO_WORKER)


@pytest.mark.req("TQ-057", "TQ-084", "TQ-091", "TQ-119", "CH-09")
@pytest.mark.parametrize(
    ("reason", "summary", "reason_and_summary"),
    [
        ("broke", "it broke", ("broke", "it broke")),
        ("broke", "", ("broke", "broke")),
        ("", "", ("UNKNOWN_FAILURE", "UNKNOWN_FAILURE")),
    ],
)
def test_a_failure_has_its_reason(reason: str, summary: str, reason_and_summary: tuple[str, str]) -> None:
    """The reason is in the status and in the envelope, even if the worker gave none."""

    async def scenario(stack: Stack) -> None:
        job_id = await stack.submit_and_fetch()
        await stack.report(job_id, JOB_OUTCOME_FAILED, failure_reason=reason, output_summary=summary)
        assert await stack.read_outcome(job_id) == (FAILED, *reason_and_summary)

    play(scenario, without=NO_WORKER)


@pytest.mark.req("CH-47")
@pytest.mark.parametrize("flagged", [True, False])
def test_a_worker_that_cancels_without_a_request(flagged: bool) -> None:
    """With the flag it is a cancel; without it the worker gave up, and the job failed."""

    async def scenario(stack: Stack) -> None:
        job_id = await stack.submit_and_fetch()
        if flagged:
            await stack.cancel(job_id)
        await stack.report(job_id, JOB_OUTCOME_CANCELED)
        wanted = (CANCELED, "", "canceled while running")
        assert await stack.read_outcome(job_id) == (
            wanted if flagged else (FAILED, "WORKER_CANCELED", "WORKER_CANCELED")
        )

    play(scenario, without=NO_WORKER)


@pytest.mark.req("CH-46", "CH-08", "TQ-059", "TQ-104", "TQ-120")
@pytest.mark.parametrize("outcome", [JOB_OUTCOME_SUCCEEDED, JOB_OUTCOME_FAILED])
def test_a_cancel_in_time_wins_over_any_report(outcome: JobOutcome.ValueType) -> None:
    """A flag that is set when the report comes makes the job CANCELED, with the client's reason."""

    async def scenario(stack: Stack) -> None:
        job_id = await stack.submit_and_fetch()
        await stack.cancel(job_id, "changed my mind")
        await stack.report(job_id, outcome, failure_reason="x", output_bytes=b"x", runtime_ms=7)
        assert await stack.read_outcome(job_id) == (CANCELED, "", "changed my mind")
        result = await stack.result(job_id)
        assert (result.output_bytes, result.checksum, result.runtime_ms) == (b"", EMPTY, 7)

    play(scenario, without=NO_WORKER)


@pytest.mark.req("CH-46", "TQ-096")
def test_a_cancel_after_the_read_of_a_report_is_too_late() -> None:
    """A flag that is set between the read and the end does not stop the job from being DONE."""

    async def scenario(stack: Stack) -> None:
        job_id = await stack.submit_and_fetch()
        stored, plan = notify_at("StoreResult")
        stack.fail(plan)
        reporting = asyncio.create_task(stack.report(job_id))
        await stored.wait()
        assert (await stack.cancel(job_id)).accepted
        await reporting
        assert (await stack.status(job_id)).status == DONE

    play(scenario, without=NO_WORKER)


@pytest.mark.req("TQ-094", "TQ-114", "TQ-167", "CH-34", "TQ-221")
def test_the_first_report_decides() -> None:
    """The same report again, and one that says otherwise, are accepted and change nothing."""

    async def scenario(stack: Stack) -> None:
        job_id = await stack.submit_and_fetch()
        await stack.report(job_id, output_bytes=b"first")
        status, result = await stack.status(job_id), await stack.result(job_id)
        before = len(stack.exchanges)
        assert (await stack.report(job_id, output_bytes=b"first")).accepted
        assert (await stack.report(job_id, JOB_OUTCOME_FAILED, failure_reason="late")).accepted
        assert "StoreResult" not in stack.calls("coordinator", before)
        assert (await stack.status(job_id), await stack.result(job_id)) == (status, result)
        assert [line["job_id"] for line in stack.log("terminal_race")] == [job_id, job_id]

    play(scenario, without=NO_WORKER)


@pytest.mark.req("CH-34")
def test_a_report_of_a_job_that_never_started_is_refused() -> None:
    """A job that is QUEUED gets no envelope, and the answer says that the report was not accepted."""

    async def scenario(stack: Stack) -> None:
        job_id = await stack.submit_job()
        assert not (await stack.report(job_id)).accepted
        assert not (await stack.envelope(job_id)).found
        assert (await stack.status(job_id)).status == QUEUED

    play(scenario, without=NO_WORKER)


@pytest.mark.req("CH-34", "CH-55", "CH-66", "TQ-092", "TQ-147", "TQ-148")
@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"job_id": "nobody's"}, "NOT_FOUND"),
        ({"job_id": ""}, "INVALID_ARGUMENT"),
        ({"outcome": JOB_OUTCOME_UNSPECIFIED}, "INVALID_ARGUMENT"),
        ({"outcome": 9}, "INVALID_ARGUMENT"),
        ({"checksum": "00"}, "INVALID_ARGUMENT"),
        ({"checksum": EMPTY.upper()}, "INVALID_ARGUMENT"),
    ],
)
def test_a_wrong_report_is_refused(changes: dict[str, Any], code: str) -> None:
    """A report that is malformed or of an unknown job changes nothing."""

    async def scenario(stack: Stack) -> None:
        running = await stack.submit_and_fetch()
        with pytest.raises(Failure) as refused:
            await stack.report(**{"job_id": running, **changes})
        assert refused.value.grpc == code
        assert (await stack.status(running)).status == RUNNING
        assert not (await stack.envelope(running)).found

    play(scenario, without=NO_WORKER)


@pytest.mark.req("CH-34", "TQ-143")
def test_a_report_by_another_worker_counts_and_is_logged() -> None:
    """A report by a worker that the job is not assigned to is carried out, and logged."""

    async def scenario(stack: Stack) -> None:
        job_id = await stack.submit_and_fetch()
        assert (await stack.report(job_id, worker_id="w9")).accepted
        assert (await stack.status(job_id)).status == DONE
        (line,) = stack.log("foreign_report")
        assert (line["job_id"], line["worker_id"]) == (job_id, "w9")

    play(scenario, without=NO_WORKER)


@pytest.mark.req("CH-35", "TQ-084")
@pytest.mark.parametrize("name", ["StoreResult", "TransitionJobStatus", "GetJobRecord"])
def test_an_interrupted_report_can_be_repeated(name: str) -> None:
    """While a step fails the answer is UNAVAILABLE; no state changes without an envelope."""

    async def scenario(stack: Stack) -> None:
        job_id = await stack.submit_and_fetch()
        stack.fail(fail_calls(name, principal="coordinator"))
        with pytest.raises(Failure) as failed:
            await stack.report(job_id, output_bytes=b"x")
        assert failed.value.grpc == "UNAVAILABLE"
        assert stack.calls("worker").count("ReportWorkOutcome") == 4
        assert (await stack.status(job_id)).status == RUNNING
        stack.heal()
        assert (await stack.report(job_id, output_bytes=b"x")).accepted
        assert (await stack.result(job_id)).output_bytes == b"x"

    play(scenario, without=NO_WORKER)


@pytest.mark.req("CH-36", "TQ-063")
def test_an_end_whose_answer_was_lost_counts() -> None:
    """A swap that did not apply, because the first attempt did, is a success."""

    async def scenario(stack: Stack) -> None:
        job_id = await stack.submit_and_fetch()
        stack.fail(once("TransitionJobStatus", Fault.AFTER))
        assert (await stack.report(job_id)).accepted
        assert (await stack.status(job_id)).status == DONE

    play(scenario, without=NO_WORKER)


@pytest.mark.req("TQ-085", "TQ-064", "TQ-167")
def test_a_terminal_race_is_benign() -> None:
    """If another end was applied before ours, the race is logged and the state stays."""

    async def scenario(stack: Stack) -> None:
        job_id = await stack.submit_and_fetch()
        first = TransitionJobStatusRequest(
            job_id=job_id, expected_from_status=RUNNING, to_status=FAILED, reason="first"
        )
        stack.fail(before("TransitionJobStatus", lambda: stack.call_at_once("transition_job_status", first)))
        assert (await stack.report(job_id)).accepted
        assert (await stack.status(job_id)).failure_reason == "first"
        (race,) = stack.log("terminal_race")
        assert (race["expected_status"], race["current_status"], race["level"]) == ("DONE", "FAILED", "INFO")
        assert len(stack.log("terminal_write_ignored")) == 1

    play(scenario, without=NO_WORKER)
