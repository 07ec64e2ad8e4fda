"""Requests that the public API refuses, and their codes."""

from __future__ import annotations

import pytest

from generated.taskqueue.messages import JobStatus
from tests.support.taskqueue.api import Api, expect_code

pytestmark = pytest.mark.asyncio(loop_scope="session")

UNDEFINED = 99


@pytest.mark.req("TQ-147", "CH-68")
async def test_an_empty_id_is_malformed(api: Api) -> None:
    """Status, result and cancel need an id."""
    for call in (api.status, api.result, api.cancel):
        with expect_code("INVALID_ARGUMENT"):
            await call("")


@pytest.mark.req("TQ-148", "CH-68")
@pytest.mark.parametrize(
    "job_id",
    ["3f2b8c1e-9d4a-4e6b-8f10-2a7c5d9e0b13", "no-uuid", " ", "ü" * 300],
    ids=["uuid", "word", "blank", "long"],
)
async def test_an_unknown_id_is_not_found(api: Api, job_id: str) -> None:
    """Whatever the text, an id that no job has is not found by status, result and cancel."""
    for call in (api.status, api.result, api.cancel):
        with expect_code("NOT_FOUND"):
            await call(job_id)


@pytest.mark.req("CH-68")
async def test_an_id_is_compared_letter_by_letter(api: Api) -> None:
    """The same id in capitals is another id."""
    job_id = (await api.submit()).job_id
    with expect_code("NOT_FOUND"):
        await api.status(job_id.upper() if job_id != job_id.upper() else f" {job_id}")


@pytest.mark.req("TQ-131", "TQ-147", "CH-70")
@pytest.mark.parametrize(
    "token", ["abc", "-1", "1.5", " 1", "1 ", "0x1", "+1", "1_0", "\u0661", "9223372036854775808", "0" * 20]
)
async def test_a_page_token_is_an_offset_in_digits(api: Api, token: str) -> None:
    """Any other text is refused."""
    with expect_code("INVALID_ARGUMENT"):
        await api.list(token=token)


@pytest.mark.req("CH-69", "TQ-147")
@pytest.mark.parametrize("status", [0, UNDEFINED, -1])
async def test_a_filter_names_states_that_there_are(api: Api, status: int) -> None:
    """Unspecified and undefined states are refused, also beside good ones."""
    with expect_code("INVALID_ARGUMENT"):
        await api.list(JobStatus.Value("DONE"), JobStatus.ValueType(status))


@pytest.mark.req("CH-69", "TQ-147")
async def test_an_order_is_one_that_there_is(api: Api) -> None:
    """An undefined sort is refused."""
    with expect_code("INVALID_ARGUMENT"):
        await api.list(sort=UNDEFINED)  # type: ignore[arg-type]
