"""Listing: order, filter and pages, where one node knows all jobs."""

from __future__ import annotations

import asyncio

import pytest

from generated.taskqueue.messages import (
    CANCELED,
    CREATED_AT_ASC,
    CREATED_AT_DESC,
    DONE,
    FAILED,
    QUEUED,
    RUNNING,
    JobSpec,
    JobSummary,
    SubmitJobRequest,
)
from runtime.node.systems import find_deployment
from tests.support.taskqueue.api import Api, expect_code, new_key
from tests.taskqueue.blackbox.conftest import DEPLOYMENTS

LIST = "/taskqueue.v1.TaskQueuePublicService/ListJobs"


def lists_everything(name: str) -> bool:
    """Whether one call lists the jobs of all nodes; elsewhere only the schema has to be the same."""
    routing = find_deployment(name)[1].routing
    return routing is None or LIST not in routing.per_node


pytestmark = [
    pytest.mark.asyncio(loop_scope="session"),
    pytest.mark.parametrize(
        "deployment", [*filter(lists_everything, DEPLOYMENTS)], indirect=True, scope="package"
    ),
]


async def ensure_terminal_jobs(api: Api, count: int) -> None:
    """Make sure that there are so many jobs, and that all of them are terminal."""
    answers = await asyncio.gather(*(api.submit("listed") for _ in range(count)))
    for answer in answers:
        await api.wait_until_terminal(answer.job_id)
    for each in await api.list_all(QUEUED, RUNNING):
        await api.wait_until_terminal(each.job_id)


@pytest.mark.req("TQ-125", "TQ-126", "TQ-026", "TQ-007")
async def test_a_listing_is_newest_first_by_default(api: Api) -> None:
    """No order and the descending one are the same; the ascending one begins at the other end."""
    await ensure_terminal_jobs(api, 12)
    newest, oldest = await api.list_all(sort=CREATED_AT_DESC), await api.list_all(sort=CREATED_AT_ASC)
    assert newest == await api.list_all()
    assert newest == sorted(newest, key=lambda each: (-each.created_at_ms, each.job_id))
    assert oldest == sorted(newest, key=lambda each: (each.created_at_ms, each.job_id))


@pytest.mark.req("TQ-127", "TQ-128", "TQ-029")
async def test_a_filter_lists_only_its_states(api: Api) -> None:
    """Each state is listed under its own filter, several under a combined one, and all without one."""
    async with api.occupy_slots() as running:
        canceled, waits = [(await api.submit()).job_id for _ in range(2)]
        await api.cancel(canceled)
        found = {each.job_id: each for each in await api.list_all(QUEUED, CANCELED, size=200)}
        assert (found[waits].status, found[canceled].status) == (QUEUED, CANCELED)
        assert (found[waits].started_at_ms, found[waits].finished_at_ms) == (0, 0)
        assert found[canceled].cancel_requested
        assert {each.status for each in found.values()} == {QUEUED, CANCELED}
        runs = await api.list_all(RUNNING)
        assert {each.status for each in runs} == {RUNNING}
        assert {each.job_id for each in runs} == set(running)

    failed, completed = (await api.submit("fail")).job_id, (await api.submit()).job_id
    await ensure_terminal_jobs(api, 0)
    everything = {each.job_id: each.status for each in await api.list_all()}
    assert (everything[failed], everything[completed]) == (FAILED, DONE)
    assert everything[canceled] == CANCELED
    for status in (DONE, FAILED, CANCELED):
        alone = await api.list_all(status, status)
        assert {each.job_id for each in alone} == {
            key for key, value in everything.items() if value == status
        }


@pytest.mark.req("TQ-004", "TQ-029")
async def test_a_summary_agrees_with_the_status(api: Api) -> None:
    """The summary of a job in a listing equals its status."""
    await ensure_terminal_jobs(api, 3)
    for each in (await api.list(size=20)).jobs:
        status = await api.status(each.job_id)
        assert each == JobSummary(
            job_id=status.job_id,
            status=status.status,
            job_type=each.job_type,
            created_at_ms=status.created_at_ms,
            started_at_ms=status.started_at_ms,
            finished_at_ms=status.finished_at_ms,
            cancel_requested=status.cancel_requested,
        )


@pytest.mark.req("TQ-130", "TQ-113", "CH-70")
async def test_pages_follow_each_other_without_gap_or_repeat(api: Api) -> None:
    """Without new jobs, all pages of any size make up the listing, and the last has no next token."""
    await ensure_terminal_jobs(api, 10)
    everything = await api.list_all(size=200)
    assert len({each.job_id for each in everything}) == len(everything)
    assert await api.list_all(size=7) == everything
    first = await api.list(size=4)
    assert first == await api.list(size=4)
    assert first.page.next_page_token == "4"
    assert (await api.list(size=4, token="0004")).jobs == everything[4:8]
    count = len(everything)
    last = await api.list(size=5, token=str(count - 5))
    assert (last.jobs, last.page.next_page_token) == (everything[-5:], "")
    for beyond in (str(count), str(count + 7), "9223372036854775807"):
        empty = await api.list(token=beyond)
        assert (len(empty.jobs), empty.page.next_page_token) == (0, "")


@pytest.mark.req("TQ-129")
async def test_a_page_has_fifty_jobs_by_default_and_two_hundred_at_most(api: Api) -> None:
    """A size of 0 is the default, a larger one than the maximum is the maximum, any other is as requested."""
    await ensure_terminal_jobs(api, max(0, 205 - len(await api.list_all(size=200))))
    for size, wanted in ((0, 50), (1, 1), (200, 200), (201, 200), (4294967295, 200)):
        assert len((await api.list(size=size)).jobs) == wanted


@pytest.mark.req("TQ-132", "TQ-133", "CH-71")
async def test_jobs_that_come_between_two_pages_are_no_error(api: Api) -> None:
    """A token of an earlier listing, or of another filter, still gives an answer."""
    await ensure_terminal_jobs(api, 8)
    first = await api.list(size=3)
    await api.submit()
    token = first.page.next_page_token
    assert len((await api.list(size=3, token=token)).jobs) == 3
    assert len((await api.list(DONE, sort=CREATED_AT_ASC, size=3, token=token)).jobs) == 3


@pytest.mark.req("TQ-105", "TQ-106")
async def test_a_key_has_one_entry_in_the_listing(api: Api) -> None:
    """Repeats and refused payloads under one key create one job only."""
    name, key = f"only-{new_key()}", new_key()
    request = SubmitJobRequest(spec=JobSpec(job_type=name), client_request_id=key)
    await asyncio.gather(*(api.send(request) for _ in range(20)))
    request.spec.payload_size_bytes = 1
    with expect_code("FAILED_PRECONDITION"):
        await api.send(request)
    assert len([each for each in await api.list_all(size=200) if each.job_type == name]) == 1
