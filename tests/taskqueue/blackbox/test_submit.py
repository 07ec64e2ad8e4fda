"""Submit: accepted specs, deduplication by key, and refusals."""

from __future__ import annotations

import asyncio
import uuid

import pytest

from generated.taskqueue.messages import DONE, QUEUED, JobSpec, SubmitJobRequest
from tests.support.taskqueue.api import Api, expect_code, new_key

pytestmark = pytest.mark.asyncio(loop_scope="session")

SPEC = JobSpec(job_type="keyed", work_duration_ms=1, payload_size_bytes=2, labels={"a": "1", "b": "2"})
OTHERS = {
    "job_type": JobSpec(job_type="other", work_duration_ms=1, payload_size_bytes=2, labels=SPEC.labels),
    "work_duration_ms": JobSpec(
        job_type="keyed", work_duration_ms=9, payload_size_bytes=2, labels=SPEC.labels
    ),
    "payload_size_bytes": JobSpec(
        job_type="keyed", work_duration_ms=1, payload_size_bytes=9, labels=SPEC.labels
    ),
    "labels": JobSpec(
        job_type="keyed", work_duration_ms=1, payload_size_bytes=2, labels={"a": "1", "b": "9"}
    ),
    "one label less": JobSpec(job_type="keyed", work_duration_ms=1, payload_size_bytes=2, labels={"a": "1"}),
}


@pytest.mark.req("TQ-003", "TQ-052")
async def test_each_accepted_job_has_an_id_of_its_own(api: Api) -> None:
    """Many submits at a time give as many ids, each a version 4 UUID in lowercase text."""
    answers = await asyncio.gather(*(api.submit() for _ in range(40)))
    assert len({answer.job_id for answer in answers}) == len(answers)
    for answer in answers:
        assert uuid.UUID(answer.job_id).version == 4
        assert str(uuid.UUID(answer.job_id)) == answer.job_id
        assert answer.initial_status == QUEUED
        assert answer.accepted_at_ms > 0


@pytest.mark.req("TQ-107", "TQ-113")
async def test_without_a_key_every_submit_makes_a_job(api: Api) -> None:
    """The same spec twice with an empty key is two jobs."""
    first, second = await api.submit("same"), await api.submit("same")
    assert first.job_id != second.job_id


@pytest.mark.req("TQ-105", "TQ-113")
async def test_a_key_creates_one_job_however_often_it_is_submitted(api: Api) -> None:
    """Twenty submits at a time under one key have one answer."""
    request = SubmitJobRequest(spec=SPEC, client_request_id=new_key())
    answers = await asyncio.gather(*(api.send(request) for _ in range(20)))
    assert len({answer.SerializeToString() for answer in answers}) == 1


@pytest.mark.req("TQ-105", "CH-05", "CH-07", "CH-06")
async def test_a_repeat_answers_with_the_first_acceptance(api: Api) -> None:
    """After its end a job is neither run again nor accepted at another time."""
    request = SubmitJobRequest(spec=SPEC, client_request_id=new_key())
    first = await api.send(request)
    before = await api.wait_until_terminal(first.job_id)
    assert await api.send(request) == first
    assert await api.status(first.job_id) == before
    assert before.status == DONE


@pytest.mark.req("TQ-106", "TQ-149")
@pytest.mark.parametrize("other", OTHERS.values(), ids=OTHERS.keys())
async def test_a_key_is_not_for_two_payloads(api: Api, other: JobSpec) -> None:
    """Whichever part of the spec differs, a known key is refused and the first job stays as it is."""
    key = new_key()
    first = await api.send(SubmitJobRequest(spec=SPEC, client_request_id=key))
    with expect_code("FAILED_PRECONDITION"):
        await api.send(SubmitJobRequest(spec=other, client_request_id=key))
    assert await api.send(SubmitJobRequest(spec=SPEC, client_request_id=key)) == first


@pytest.mark.req("TQ-108")
async def test_the_order_of_labels_does_not_matter(api: Api) -> None:
    """Labels in another order are the same payload."""
    key, names = new_key(), [f"label-{number}" for number in range(12)]
    forth = await api.submit(labels=dict.fromkeys(names, "x"), key=key)
    back = await api.submit(labels=dict.fromkeys(reversed(names), "x"), key=key)
    assert forth == back


@pytest.mark.req("CH-25")
async def test_a_blank_key_is_a_key(api: Api) -> None:
    """Spaces are not trimmed: they are a key, and another number of them is another key."""
    blank = " " * (uuid.uuid4().int % 997 + 1)
    first = await api.submit("blank", key=blank)
    assert await api.submit("blank", key=blank) == first
    assert (await api.submit("blank", key=blank + " ")).job_id != first.job_id


@pytest.mark.req("CH-22", "TQ-147")
@pytest.mark.parametrize(
    "request_",
    [
        SubmitJobRequest(),
        SubmitJobRequest(spec=JobSpec()),
        SubmitJobRequest(spec=JobSpec(work_duration_ms=5), client_request_id="any"),
        SubmitJobRequest(spec=JobSpec(job_type="sleep", work_duration_ms=2**32 - 1)),
    ],
    ids=["no spec", "empty spec", "no job type", "49 days"],
)
async def test_a_job_without_a_type_or_an_end_is_refused(api: Api, request_: SubmitJobRequest) -> None:
    """Spec and job type are required, with or without a key, and the work lasts an hour at most."""
    with expect_code("INVALID_ARGUMENT"):
        await api.send(request_)


@pytest.mark.req("CH-22")
async def test_any_text_is_a_job_type_or_a_label(api: Api) -> None:
    """Odd names, empty labels and zero sizes are no reason to refuse a job."""
    accepted = await api.submit("  ü/☃\n", labels={"": "", "naïve ": "\t"})
    ended = await api.wait_until_terminal(accepted.job_id)
    assert ended.status == DONE
