"""The job service: records by guarded transitions, flags, deletes and listings, as its callers see them."""

from __future__ import annotations

from typing import Any

import pytest

from generated.taskqueue.messages import (
    CANCELED,
    CREATED_AT_ASC,
    CREATED_AT_DESC,
    DONE,
    FAILED,
    JOB_SORT_UNSPECIFIED,
    JOB_STATUS_UNSPECIFIED,
    QUEUED,
    RUNNING,
    CreateJobRequest,
    DeleteJobIfStatusRequest,
    DeleteJobIfStatusResponse,
    GetJobRecordRequest,
    JobSort,
    JobStatus,
    ListJobsRequest,
    ListJobsResponse,
    PageRequest,
    PageResponse,
    SetCancelRequestedRequest,
    SetCancelRequestedResponse,
    TransitionJobStatusRequest,
)
from runtime.call.conditions import Failure
from tests.support.taskqueue.stack import NO_WORKER, SPEC, TERMINAL, Stack, play

UNDEFINED = JobStatus.ValueType(99)


async def delete(
    stack: Stack, job_id: str, status: JobStatus.ValueType = QUEUED
) -> DeleteJobIfStatusResponse:
    request = DeleteJobIfStatusRequest(job_id=job_id, expected_status=status)
    return await stack.jobs.delete_job_if_status(request, stack.call("gateway"))


async def flag(stack: Stack, job_id: str, reason: str = "", *, up: bool = True) -> SetCancelRequestedResponse:
    request = SetCancelRequestedRequest(job_id=job_id, cancel_requested=up, reason=reason)
    return await stack.jobs.set_cancel_requested(request, stack.call("gateway"))


async def submit_ended(stack: Stack, status: JobStatus.ValueType = DONE) -> str:
    job_id = await stack.submit_job()
    await stack.transition(job_id, QUEUED, RUNNING)
    await stack.transition(job_id, RUNNING, status)
    return job_id


async def list_page(stack: Stack, **fields: Any) -> ListJobsResponse:
    size, token = fields.pop("page_size", 0), fields.pop("page_token", "")
    request = ListJobsRequest(page=PageRequest(page_size=size, page_token=token), **fields)
    return await stack.public.list_jobs(request, stack.call())


async def expect_failure(call: Any) -> Failure:
    with pytest.raises(Failure) as refused:
        await call
    return refused.value


@pytest.mark.req("TQ-061", "TQ-062", "TQ-167", "CH-64")
def test_an_illegal_pair_is_refused_before_the_job_is_looked_up() -> None:
    """A pair that is no edge is invalid even for a job that does not exist, and is logged."""

    async def scenario(stack: Stack) -> None:
        job_id = await submit_ended(stack)
        before = await stack.status(job_id)
        pairs = [(DONE, RUNNING), (QUEUED, DONE), (QUEUED, QUEUED), (UNDEFINED, DONE)]
        for source, target in [*pairs, (JOB_STATUS_UNSPECIFIED, RUNNING), (RUNNING, JOB_STATUS_UNSPECIFIED)]:
            for known_or_unknown in (job_id, "nobody's"):
                assert (
                    await expect_failure(stack.transition(known_or_unknown, source, target))
                ).grpc == "INVALID_ARGUMENT"
        assert len(stack.log("invalid_transition")) == 12
        assert stack.log("invalid_transition")[0]["job_id"] == job_id
        assert await stack.status(job_id) == before

    play(scenario, without=NO_WORKER)


@pytest.mark.req("TQ-063", "TQ-155", "CH-64")
def test_a_stale_expectation_is_soft() -> None:
    """A legal pair that no longer fits is OK, not applied, and answered with the true state."""

    async def scenario(stack: Stack) -> None:
        job_id = await submit_ended(stack)
        answer = await stack.transition(job_id, RUNNING, FAILED)
        assert (answer.applied, answer.current_status) == (False, DONE)
        assert (await stack.status(job_id)).failure_reason == ""

    play(scenario, without=NO_WORKER)


@pytest.mark.req("CH-65", "TQ-060", "TQ-020")
def test_an_actor_cannot_be_forged() -> None:
    """The channel fills in the principal; the gateway may make one transition only."""

    async def scenario(stack: Stack) -> None:
        job_id = await stack.submit_job()
        request = TransitionJobStatusRequest(
            job_id=job_id, expected_from_status=QUEUED, to_status=RUNNING, actor="coordinator"
        )
        call = stack.jobs.transition_job_status(request, stack.call("gateway"))
        assert (await expect_failure(call)).grpc == "PERMISSION_DENIED"
        assert (await stack.status(job_id)).status == QUEUED

    play(scenario, without=NO_WORKER)


@pytest.mark.req("CH-66", "CH-68", "TQ-148")
@pytest.mark.parametrize("job_id", ["nobody's", "3F2B8C1E-9D4A-4E6B-8F10-2A7C5D9E0B13"])
def test_an_unknown_job_is_not_found(job_id: str) -> None:
    """Reads, transitions and flags of an unknown id are NOT_FOUND; a delete of one is done already."""

    async def scenario(stack: Stack) -> None:
        request = GetJobRecordRequest(job_id=job_id)
        calls = (
            stack.jobs.get_job_record(request, stack.call("gateway")),
            stack.transition(job_id, QUEUED, RUNNING),
            flag(stack, job_id),
            stack.status(job_id),
        )
        for each in calls:
            assert (await expect_failure(each)).grpc == "NOT_FOUND"
        answer = await delete(stack, job_id)
        assert (answer.deleted, answer.current_status) == (False, JOB_STATUS_UNSPECIFIED)

    play(scenario, without=NO_WORKER)


@pytest.mark.req("TQ-115", "TQ-155", "TQ-114")
def test_a_delete_needs_the_expected_state() -> None:
    """A job in another state stays; one in the expected state is deleted, and once more is no error."""

    async def scenario(stack: Stack) -> None:
        running = await stack.submit_and_fetch()
        answer = await delete(stack, running)
        assert (answer.deleted, answer.current_status) == (False, RUNNING)
        job_id = await stack.submit_job()
        assert (await delete(stack, job_id)).deleted
        assert not (await delete(stack, job_id)).deleted
        assert [job.job_id for job in await stack.list()] == [running]

    play(scenario, without=NO_WORKER)


@pytest.mark.req("CH-67", "TQ-147")
@pytest.mark.parametrize("status", [JOB_STATUS_UNSPECIFIED, UNDEFINED])
def test_a_delete_names_a_state(status: JobStatus.ValueType) -> None:
    """An unspecified or undefined state is refused."""

    async def scenario(stack: Stack) -> None:
        assert (await expect_failure(delete(stack, "x", status))).grpc == "INVALID_ARGUMENT"

    play(scenario, without=NO_WORKER)


@pytest.mark.req("TQ-103", "TQ-114", "CH-59", "CH-08")
def test_a_flag_goes_up_and_stays() -> None:
    """Setting it again is the same; the first reason that says something is kept."""

    async def scenario(stack: Stack) -> None:
        job_id = await stack.submit_job()
        for reason in ("", "first", "second"):
            answer = await flag(stack, job_id, reason)
            assert (answer.applied, answer.current_status) == (True, QUEUED)
        record = await stack.record(job_id)
        assert (record.summary.cancel_requested, record.cancel_reason) == (True, "first")
        assert (await expect_failure(flag(stack, job_id, up=False))).grpc == "INVALID_ARGUMENT"

    play(scenario, without=NO_WORKER)


@pytest.mark.req("CH-59", "TQ-123")
@pytest.mark.parametrize("status", [DONE, FAILED])
def test_a_terminal_job_is_not_flagged(status: JobStatus.ValueType) -> None:
    """A terminal job answers its state, not applied, and its flag stays down."""

    async def scenario(stack: Stack) -> None:
        job_id = await submit_ended(stack, status)
        answer = await flag(stack, job_id, "late")
        assert (answer.applied, answer.current_status) == (False, status)
        record = await stack.record(job_id)
        assert (record.summary.cancel_requested, record.cancel_reason) == (False, "")
        assert (record.failure_reason != "") == (status == FAILED)

    play(scenario, without=NO_WORKER)


@pytest.mark.req("CH-03", "TQ-065", "TQ-029", "TQ-123")
def test_a_record_has_the_whole_spec_and_its_times() -> None:
    """The spec comes back as it was submitted; times that are not there yet are 0."""

    async def scenario(stack: Stack) -> None:
        record = await stack.record(await stack.submit_job())
        summary = record.summary
        assert (record.spec, record.failure_reason, record.cancel_reason) == (SPEC, "", "")
        assert (summary.status, summary.job_type, summary.cancel_requested) == (QUEUED, "sleep", False)
        assert summary.created_at_ms > 0 == summary.started_at_ms == summary.finished_at_ms

    play(scenario, without=NO_WORKER)


@pytest.mark.req("TQ-125", "TQ-126", "TQ-026", "TQ-127", "TQ-128")
def test_a_listing_is_by_age_and_status() -> None:
    """Newest first by default, ties by id ascending in both orders, and only the states of the filter."""

    async def scenario(stack: Stack) -> None:
        for _ in range(6):
            await stack.submit_job()
        first = [await submit_ended(stack, status) for status in TERMINAL]
        jobs = await stack.list()
        order = sorted((-job.created_at_ms, job.job_id) for job in jobs)
        assert [job.job_id for job in jobs] == [job_id for _, job_id in order]
        sorts: list[JobSort.ValueType] = [JOB_SORT_UNSPECIFIED, CREATED_AT_DESC]
        assert [(await list_page(stack, sort=sort)).jobs for sort in sorts] == [jobs, jobs]
        ascending = (await list_page(stack, sort=CREATED_AT_ASC)).jobs
        assert [(job.created_at_ms, job.job_id) for job in ascending] == sorted(
            (job.created_at_ms, job.job_id) for job in jobs
        )
        wanted = [DONE, CANCELED, DONE]
        listed = (await list_page(stack, status_filter=wanted)).jobs
        assert {job.job_id for job in listed} == {first[0], first[2]}

    play(scenario, without=NO_WORKER)


@pytest.mark.req("TQ-129", "TQ-130", "CH-70")
def test_pages_cover_everything_once() -> None:
    """Whatever the size, walking by tokens meets every job once, and the last page has no token."""

    async def scenario(stack: Stack) -> None:
        for _ in range(250):
            await stack.jobs.create_job(CreateJobRequest(spec=SPEC), stack.call("gateway"))
        whole = [job.job_id for job in await stack.list()]
        assert len(set(whole)) == 250
        for requested, returned in ((0, 50), (1, 1), (125, 125), (200, 200), (201, 200), (2**32 - 1, 200)):
            answer = await list_page(stack, page_size=requested)
            assert [job.job_id for job in answer.jobs] == whole[:returned]
            assert answer.page.next_page_token == str(returned)
        last = await list_page(stack, page_size=125, page_token="125")
        assert ([job.job_id for job in last.jobs], last.page.next_page_token) == (whole[125:], "")
        for token in ("250", "9223372036854775807", "0000000000000000300"):
            assert await list_page(stack, page_token=token) == ListJobsResponse(page=PageResponse())

    play(scenario, without=NO_WORKER)


@pytest.mark.req("TQ-131", "CH-70", "CH-69", "TQ-147")
@pytest.mark.parametrize(
    "fields",
    [
        *({"page_token": token} for token in ("abc", "-1", "1.5", " 1", "0x1", "\u0661", "1" * 20)),
        {"page_token": str(2**63)},
        {"status_filter": [JOB_STATUS_UNSPECIFIED]},
        {"status_filter": [DONE, UNDEFINED]},
        {"sort": 9},
    ],
)
def test_a_malformed_listing_is_refused(fields: dict[str, Any]) -> None:
    """Tokens that are no offsets, and states and orders that are not there."""

    async def scenario(stack: Stack) -> None:
        assert (await expect_failure(list_page(stack, **fields))).grpc == "INVALID_ARGUMENT"

    play(scenario, without=NO_WORKER)


@pytest.mark.req("TQ-132", "TQ-133", "CH-71")
def test_a_token_is_just_an_offset() -> None:
    """A token used with another filter or after new jobs is that offset, and no error."""

    async def scenario(stack: Stack) -> None:
        for _ in range(3):
            await stack.submit_job()
        token = (await list_page(stack, page_size=1)).page.next_page_token
        await stack.submit_job()
        assert len((await list_page(stack, page_token=token, sort=CREATED_AT_ASC)).jobs) == 3
        assert (await list_page(stack, page_token=token, status_filter=[DONE])).jobs == []

    play(scenario, without=NO_WORKER)
