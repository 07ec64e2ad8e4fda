"""Results: the first envelope stays, large outputs are refused, and when a client gets a result."""

from __future__ import annotations

from typing import Any

import pytest

from generated.taskqueue.errors import ResultMissing
from generated.taskqueue.messages import (
    CANCELED,
    DONE,
    FAILED,
    JOB_OUTCOME_FAILED,
    JOB_STATUS_UNSPECIFIED,
    QUEUED,
    RUNNING,
    GetJobResultResponse,
    JobStatus,
)
from runtime.call.conditions import Failure
from runtime.model.text import sha256_hex
from runtime.simulation import Fault
from tests.support.taskqueue.fault_plans import once
from tests.support.taskqueue.stack import NO_WORKER, Stack, play

CAP = 16
EMPTY = sha256_hex(b"")


@pytest.mark.req("TQ-089", "TQ-090", "CH-52", "TQ-114")
@pytest.mark.parametrize(
    ("status", "output", "stored"),
    [(DONE, b"x", True), (DONE, b"y", False), (FAILED, b"x", False), (CANCELED, b"", False)],
)
def test_the_first_envelope_stays(status: JobStatus.ValueType, output: bytes, stored: bool) -> None:
    """The same envelope again is confirmed, another is answered with the stored one, and none changes it."""

    async def scenario(stack: Stack) -> None:
        first = await stack.store("x", DONE, output_bytes=b"x", output_summary="s", runtime_ms=3)
        assert (first.stored, first.already_exists, first.current_terminal_status) == (True, False, DONE)
        before = await stack.envelope("x")
        again = await stack.store("x", status, output_bytes=output)
        assert (again.stored, again.already_exists, again.current_terminal_status) == (stored, True, DONE)
        assert await stack.envelope("x") == before

    play(scenario, without=NO_WORKER)


@pytest.mark.req("TQ-088", "CH-52", "CH-55", "TQ-092")
@pytest.mark.parametrize(
    ("status", "fields"),
    [
        (JOB_STATUS_UNSPECIFIED, {}),
        (QUEUED, {}),
        (RUNNING, {}),
        (JobStatus.ValueType(77), {}),
        (DONE, {"checksum": "wrong"}),
        (DONE, {"checksum": EMPTY.upper()}),
    ],
)
def test_a_malformed_envelope_is_refused(status: JobStatus.ValueType, fields: dict[str, Any]) -> None:
    """Only the three terminal states, and only a checksum that is right."""

    async def scenario(stack: Stack) -> None:
        with pytest.raises(Failure) as refused:
            await stack.store("x", status, **fields)
        assert refused.value.grpc == "INVALID_ARGUMENT"
        assert not (await stack.envelope("x")).found

    play(scenario, without=NO_WORKER)


@pytest.mark.req("TQ-124", "TQ-092")
def test_an_envelope_is_returned_as_it_was_stored() -> None:
    """Bytes, summary, runtime and checksum are those that were stored; a missing checksum is computed."""
    output = bytes(range(256)) * 4

    async def scenario(stack: Stack) -> None:
        await stack.store("x", FAILED, output_bytes=output, output_summary="é", runtime_ms=2**32 - 1)
        stored = await stack.envelope("x")
        assert (stored.found, stored.job_id, stored.terminal_status) == (True, "x", FAILED)
        assert (stored.output_bytes, stored.output_summary, stored.runtime_ms) == (output, "é", 2**32 - 1)
        assert stored.checksum == sha256_hex(output)

    play(scenario, without=NO_WORKER)


@pytest.mark.req("CH-54", "TQ-093")
def test_long_texts_are_cut_at_a_character() -> None:
    """Summaries and reasons are kept up to 1024 bytes, without half characters."""
    long = "a" + "é" * 1000

    async def scenario(stack: Stack) -> None:
        job_id = await stack.submit_and_fetch()
        await stack.report(job_id, JOB_OUTCOME_FAILED, failure_reason=long, output_summary=long)
        cut = "a" + "é" * 511
        assert await stack.read_outcome(job_id) == (FAILED, cut, cut)

    play(scenario, without=NO_WORKER)


@pytest.mark.req("CH-53", "TQ-093", "TQ-175")
def test_an_output_that_is_too_large_fails_its_job() -> None:
    """Exactly the cap is kept; one byte more turns a success into a failure without bytes."""

    async def scenario(stack: Stack) -> None:
        fits, exceeds = await stack.submit_and_fetch(), await stack.submit_and_fetch()
        await stack.report(fits, output_bytes=b"x" * CAP)
        assert (await stack.result(fits)).output_bytes == b"x" * CAP
        await stack.report(exceeds, output_bytes=b"x" * (CAP + 1))
        status, reason, summary = await stack.read_outcome(exceeds)
        assert (status, reason) == (FAILED, "OUTPUT_TOO_LARGE")
        assert summary.startswith("OUTPUT_TOO_LARGE")
        result = await stack.result(exceeds)
        assert (result.output_bytes, result.checksum) == (b"", EMPTY)
        assert stack.log("terminal_race") == []

    play(scenario, without=NO_WORKER, MAX_OUTPUT_BYTES=str(CAP))


@pytest.mark.req("CH-53")
@pytest.mark.parametrize("status", [FAILED, CANCELED])
def test_oversized_bytes_of_another_end_are_dropped(status: JobStatus.ValueType) -> None:
    """A failure or a cancel keeps its status and summary, and loses its bytes."""

    async def scenario(stack: Stack) -> None:
        answer = await stack.store("x", status, output_bytes=b"x" * (CAP + 1), output_summary="why")
        assert (answer.stored, answer.current_terminal_status) == (True, status)
        stored = await stack.envelope("x")
        assert (stored.output_bytes, stored.checksum, stored.output_summary) == (b"", EMPTY, "why")

    play(scenario, without=NO_WORKER, MAX_OUTPUT_BYTES=str(CAP))


@pytest.mark.req("CH-53")
def test_a_lost_answer_does_not_hide_that_the_output_was_too_large() -> None:
    """A repeated store of the same oversized output finds the failure it made, with the same reason."""

    async def scenario(stack: Stack) -> None:
        job_id = await stack.submit_and_fetch()
        stack.fail(once("StoreResult", Fault.AFTER))
        await stack.report(job_id, output_bytes=b"x" * (CAP + 1))
        assert (await stack.status(job_id)).failure_reason == "OUTPUT_TOO_LARGE"

    play(scenario, without=NO_WORKER, MAX_OUTPUT_BYTES=str(CAP))


@pytest.mark.req("CH-50", "TQ-090")
@pytest.mark.parametrize(
    ("stored", "reason"), [(FAILED, "ADOPTED_STORED_RESULT"), (CANCELED, ""), (DONE, "")]
)
def test_a_job_ends_by_the_envelope_that_is_stored(stored: JobStatus.ValueType, reason: str) -> None:
    """Whatever is reported, the state follows the envelope that was stored first, and the race is logged."""

    async def scenario(stack: Stack) -> None:
        job_id = await stack.submit_and_fetch()
        await stack.store(job_id, stored, output_bytes=b"other", output_summary="the first")
        await stack.report(job_id, JOB_OUTCOME_FAILED, failure_reason="the second")
        assert await stack.read_outcome(job_id) == (stored, reason, "the first")
        assert len(stack.log("terminal_race")) == 1
        assert (await stack.record(job_id)).cancel_reason == ""

    play(scenario, without=NO_WORKER)


@pytest.mark.req("TQ-117", "TQ-121", "CH-56", "CH-61")
def test_a_job_that_is_not_terminal_has_no_result() -> None:
    """Until the state is terminal the answer is not ready and empty, envelope or not, Result or not."""

    async def scenario(stack: Stack) -> None:
        queued = await stack.submit_job()
        assert await stack.result(queued) == GetJobResultResponse(job_id=queued)
        await stack.beat()
        await stack.fetch()
        await stack.store(queued, DONE, output_bytes=b"x")
        assert await stack.result(queued) == GetJobResultResponse(job_id=queued)
        stack.deployment.crash("result")
        assert not (await stack.result(queued)).result_ready

    play(scenario, without=NO_WORKER)


@pytest.mark.req("TQ-122", "TQ-152", "TQ-087", "TQ-166", "CH-51", "CH-63")
@pytest.mark.parametrize("stored", [None, FAILED, CANCELED])
def test_a_terminal_job_without_its_envelope_is_an_anomaly(stored: JobStatus.ValueType | None) -> None:
    """No envelope, or one of another state, is UNAVAILABLE, retried, and logged with the job's id."""

    async def scenario(stack: Stack) -> None:
        job_id = await stack.submit_and_fetch()
        await stack.report(job_id)
        stack.deployment.crash("result")
        stack.deployment.start("result")
        if stored is not None:
            await stack.store(job_id, stored)
        with pytest.raises(ResultMissing) as missing:
            await stack.result(job_id)
        assert missing.value.grpc == "UNAVAILABLE"
        assert stack.calls("client").count("GetJobResult") == 4
        assert set(stack.anomalies(job_id)) == {"a terminal job has no matching result"}

    play(scenario, without=NO_WORKER)


@pytest.mark.req("CH-61", "TQ-148", "CH-68")
def test_an_id_without_a_job() -> None:
    """Result answers that it has none; the gateway knows from the job service that there is no such job."""

    async def scenario(stack: Stack) -> None:
        stored = await stack.envelope("nobody's")
        assert (stored.found, stored.job_id) == (False, "nobody's")
        with pytest.raises(Failure) as missing:
            await stack.result("nobody's")
        assert missing.value.grpc == "NOT_FOUND"

    play(scenario, without=NO_WORKER)


@pytest.mark.req("CH-72")
def test_stored_envelopes_are_bounded_by_their_bytes() -> None:
    """Beyond the bound the oldest envelopes are evicted."""

    async def scenario(stack: Stack) -> None:
        for number in range(4):
            await stack.store(f"job-{number}", DONE, output_bytes=b"x" * 1000)
        stored = [(await stack.envelope(f"job-{number}")).found for number in range(4)]
        assert stored == [False, False, True, True]

    play(scenario, without=NO_WORKER, MAX_RETAINED_OUTPUT_BYTES="2500")
