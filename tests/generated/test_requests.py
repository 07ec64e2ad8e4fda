"""The request rules of the taskqueue: which requests are refused, and how the others are normalized."""

from __future__ import annotations

import hashlib
import re
from typing import Any

import pytest
from google.protobuf.message import Message
from hypothesis import given
from hypothesis import strategies as st

from generated.taskqueue import messages as m
from generated.taskqueue.system import SYSTEM
from runtime.call.conditions import Condition
from runtime.call.guard import Guard
from runtime.model.system import Method
from tests.support.generated.strategies import messages

METHODS = {method.request: method for service in SYSTEM.services.values() for method in service.methods}
EMPTY_SHA256 = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
SPEC = m.JobSpec(job_type="sleep")
STATES = (m.QUEUED, m.RUNNING, m.DONE, m.FAILED, m.CANCELED)


def find_wrong_fields(request: Message) -> list[str]:
    """List the fields that break a rule of a request."""
    check = METHODS[type(request)].check
    return [violation.field for violation in check(request)] if check else []


def settle_request(request: Any) -> Any:
    """Normalize a request to the form that a handler sees."""
    settle = METHODS[type(request)].settle
    if settle:
        settle(request)
    return request


ONLY_ID = (
    *(m.GetJobStatusRequest, m.GetJobResultRequest, m.CancelJobRequest, m.GetJobRecordRequest),
    *(m.EnqueueJobRequest, m.RemoveJobIfPresentRequest, m.GetResultRequest),
)
WRONG = [
    *((kind(), ["job_id"]) for kind in ONLY_ID),
    (m.SubmitJobRequest(), ["spec"]),
    (m.SubmitJobRequest(spec=m.JobSpec()), ["spec.job_type"]),
    (m.CreateJobRequest(), ["spec"]),
    (m.CreateJobRequest(spec=m.JobSpec(work_duration_ms=1)), ["spec.job_type"]),
    (m.DequeueJobRequest(), ["worker_id"]),
    (m.WorkerHeartbeatRequest(), ["worker_id"]),
    (m.FetchWorkRequest(), ["worker_id"]),
    (m.ReportWorkOutcomeRequest(), ["worker_id", "job_id", "outcome"]),
    (m.StoreResultRequest(), ["job_id", "terminal_status"]),
    (m.DeleteJobIfStatusRequest(), ["job_id", "expected_status"]),
    (m.TransitionJobStatusRequest(), ["job_id", "expected_from_status", "to_status"]),
    (m.SetCancelRequestedRequest(), ["job_id", "cancel_requested"]),
    (m.ListJobsRequest(page=m.PageRequest(page_token="x")), ["page.page_token"]),
]


@pytest.mark.req("TQ-147", "CH-22", "CH-68")
@pytest.mark.parametrize(("request_", "fields"), WRONG, ids=lambda each: type(each).__name__)
def test_every_wrong_field_is_named_at_once(request_: Message, fields: list[str]) -> None:
    """A request that breaks several rules is answered with all of them, each by its path."""
    assert find_wrong_fields(request_) == fields


@pytest.mark.req("TQ-147")
@pytest.mark.parametrize(("request_", "fields"), WRONG, ids=lambda each: type(each).__name__)
def test_a_wrong_request_gets_an_invalid_argument(request_: Message, fields: list[str]) -> None:
    """The guard answers a broken rule with INVALID_ARGUMENT, which is never retried."""
    method = METHODS[type(request_)]
    with pytest.raises(Condition) as refusal:
        admit_request(method, request_)
    assert (refusal.value.grpc, refusal.value.retry) == ("INVALID_ARGUMENT", "never")


def admit_request(method: Method, request: Any) -> None:
    """Pass a request through the guard as the caller with the fewest conditions."""
    row = SYSTEM.matrix[method.path]
    caller = min(row, key=lambda principal: len(row[principal].only))
    if method.names_caller:
        setattr(request, method.names_caller, caller)
    Guard(SYSTEM).compile(method)(caller, request)


@pytest.mark.req("CH-22")
@pytest.mark.parametrize(
    "spec",
    [
        m.JobSpec(job_type="sleep", work_duration_ms=0, payload_size_bytes=0),
        m.JobSpec(job_type=" ", work_duration_ms=3_600_000, payload_size_bytes=2**32 - 1),
        m.JobSpec(job_type="любой/тип", labels={"": "", "a b": "\u0000", "é" * 999: "x"}),
    ],
)
def test_a_spec_needs_a_job_type_and_no_more(spec: m.JobSpec) -> None:
    """Zero, an hour of work, a huge output, any label and any non-empty job type are fine."""
    assert find_wrong_fields(m.SubmitJobRequest(spec=spec)) == []
    assert find_wrong_fields(m.CreateJobRequest(spec=spec)) == []


@pytest.mark.req("CH-22")
@pytest.mark.parametrize("milliseconds", [3_600_001, 2**32 - 1])
def test_a_job_works_for_an_hour_at_most(milliseconds: int) -> None:
    """-1 as an unsigned number would occupy a slot for 49 days, and no cancel frees it."""
    spec = m.JobSpec(job_type="sleep", work_duration_ms=milliseconds)
    assert find_wrong_fields(m.SubmitJobRequest(spec=spec)) == ["spec.work_duration_ms"]


@pytest.mark.req("CH-68")
@pytest.mark.parametrize("job_id", ["x", " ", "0", "3F2B8C1E-9D4A-4E6B-8F10-2A7C5D9E0B13", "é" * 500])
def test_any_text_but_none_is_an_id_to_look_up(job_id: str) -> None:
    """An id that no job can have is not malformed; the lookup decides."""
    for kind in ONLY_ID:
        assert find_wrong_fields(kind(job_id=job_id)) == []


@pytest.mark.req("TQ-088")
@pytest.mark.parametrize("status", range(-1, 8))
def test_only_final_states_are_stored(status: m.JobStatus.ValueType) -> None:
    """An envelope is for DONE, FAILED or CANCELED; every other number is refused."""
    final = status in (m.DONE, m.FAILED, m.CANCELED)
    request = m.StoreResultRequest(job_id="a", terminal_status=status)
    assert find_wrong_fields(request) == ([] if final else ["terminal_status"])


@pytest.mark.req("CH-67")
@pytest.mark.parametrize("status", range(-1, 8))
def test_a_conditional_delete_needs_a_real_status(status: m.JobStatus.ValueType) -> None:
    """Deleting under an unspecified or unknown status is refused, as for a transition."""
    request = m.DeleteJobIfStatusRequest(job_id="a", expected_status=status)
    assert find_wrong_fields(request) == ([] if status in STATES else ["expected_status"])


@pytest.mark.req("CH-59")
def test_the_cancel_flag_is_only_ever_raised() -> None:
    """Asking to take the flag back is refused."""
    assert find_wrong_fields(m.SetCancelRequestedRequest(job_id="a", cancel_requested=False)) == [
        "cancel_requested"
    ]
    assert find_wrong_fields(m.SetCancelRequestedRequest(job_id="a", cancel_requested=True)) == []


LISTINGS = (m.ListJobsRequest, m.ListJobRecordsRequest)


@pytest.mark.req("CH-69")
@pytest.mark.parametrize("kind", LISTINGS)
def test_a_filter_holds_real_states_and_may_repeat_them(kind: Any) -> None:
    """Zero or an unknown number in the filter is refused by its place; repeats are harmless."""
    assert find_wrong_fields(kind(status_filter=[m.DONE, m.DONE, *STATES])) == []
    assert find_wrong_fields(kind(status_filter=[m.DONE, 0, 6, -1])) == [
        f"status_filter[{at}]" for at in (1, 2, 3)
    ]


@pytest.mark.req("CH-69")
@pytest.mark.parametrize("kind", LISTINGS)
def test_an_unknown_sort_is_refused(kind: Any) -> None:
    """Only the three numbers of the enum are an order."""
    assert find_wrong_fields(kind(sort=3)) == ["sort"]
    assert not any(find_wrong_fields(kind(sort=sort)) for sort in m.JobSort.values())


@pytest.mark.req("TQ-129")
@pytest.mark.parametrize(
    ("asked", "used"), [(0, 50), (1, 1), (199, 199), (200, 200), (201, 200), (2**32 - 1, 200)]
)
def test_a_page_has_fifty_jobs_or_up_to_two_hundred(asked: int, used: int) -> None:
    """Zero means the default, and more than the maximum is the maximum."""
    for kind in LISTINGS:
        assert settle_request(kind(page=m.PageRequest(page_size=asked))).page.page_size == used
    assert settle_request(m.ListJobsRequest()).page.page_size == 50


@pytest.mark.req("TQ-131", "CH-70")
@pytest.mark.parametrize(
    "token",
    [
        *("abc", "-1", "+1", "1.5", " 1", "1 ", "0x1", "1_000", "1e3", "\u0661", "²", "\n1"),
        *("9223372036854775808", "99999999999999999999", "00000000000000000001"),
    ],
)
def test_a_token_of_another_form_is_refused(token: str) -> None:
    """Anything but up to 19 ASCII digits within 63 bits is no offset."""
    for kind in LISTINGS:
        assert find_wrong_fields(kind(page=m.PageRequest(page_token=token))) == ["page.page_token"]


@pytest.mark.req("CH-70")
@pytest.mark.parametrize("token", ["", "0", "7", "0007", "9223372036854775807", "0000000000000000001"])
def test_an_offset_may_have_leading_zeros(token: str) -> None:
    """An empty token, and digits up to the largest 63-bit number, are fine."""
    for kind in LISTINGS:
        assert find_wrong_fields(kind(page=m.PageRequest(page_token=token))) == []


TEXTS: list[tuple[Any, str]] = [
    (m.CancelJobRequest, "reason"),
    (m.SetCancelRequestedRequest, "reason"),
    (m.TransitionJobStatusRequest, "reason"),
    (m.ReportWorkOutcomeRequest, "failure_reason"),
    (m.ReportWorkOutcomeRequest, "output_summary"),
    (m.StoreResultRequest, "output_summary"),
]


@pytest.mark.req("CH-54")
@pytest.mark.parametrize(("kind", "field"), TEXTS)
@pytest.mark.parametrize(
    ("text", "kept"), [("a" * 1024, 1024), ("a" * 1025, 1024), ("x" + "é" * 600, 1023), ("€" * 400, 1023)]
)
def test_stored_text_is_cut_between_characters(kind: Any, field: str, text: str, kept: int) -> None:
    """Reasons and summaries keep as many whole characters as fit into 1024 bytes."""
    found = getattr(settle_request(kind(**{field: text})), field)
    assert len(found.encode()) == kept
    assert text.startswith(found)


CHECKED: list[Any] = [
    m.ReportWorkOutcomeRequest(worker_id="w", job_id="a", outcome=m.JOB_OUTCOME_SUCCEEDED),
    m.StoreResultRequest(job_id="a", terminal_status=m.DONE),
]


@pytest.mark.req("CH-55")
@pytest.mark.parametrize("request_", CHECKED, ids=lambda each: type(each).__name__)
@pytest.mark.parametrize("output", [b"", b"\x00\xff"])
def test_a_checksum_is_right_or_left_to_the_server(request_: Any, output: bytes) -> None:
    """An empty checksum is computed, the right one stands, and a wrong or uppercase one is refused."""
    right = hashlib.sha256(output).hexdigest()
    request_.output_bytes, request_.checksum = output, ""
    assert find_wrong_fields(request_) == []
    assert settle_request(request_).checksum == right
    assert find_wrong_fields(request_) == []
    for wrong in (right.upper(), right[:-1], hashlib.sha256(b"other").hexdigest()):
        request_.checksum = wrong
        assert find_wrong_fields(request_) == ["checksum"]


def test_the_checksum_of_nothing_is_the_known_one() -> None:
    """An envelope without output has the SHA-256 of no bytes."""
    assert (
        settle_request(m.StoreResultRequest(job_id="a", terminal_status=m.CANCELED)).checksum == EMPTY_SHA256
    )


requests_of_any_method = st.sampled_from(list(METHODS)).flatmap(messages)


@given(requests_of_any_method)
def test_any_request_is_judged_by_fields_it_has(request: Message) -> None:
    """Whatever comes in, the rules give an answer, and it names existing fields."""
    for path in find_wrong_fields(request):
        assert has_field(request.DESCRIPTOR, path), path


def has_field(descriptor: Any, path: str) -> bool:
    """Whether a path such as `page.page_token` or `status_filter[0]` leads to a field."""
    for step in re.sub(r"\[\d+\]", "", path).split("."):
        if descriptor is None or step not in descriptor.fields_by_name:
            return False
        descriptor = descriptor.fields_by_name[step].message_type
    return True


@given(requests_of_any_method)
def test_settling_twice_is_settling_once(request: Message) -> None:
    """Defaults, clamps and cuts leave a settled request as it is, and break no rule."""
    before = find_wrong_fields(request)
    once = type(request).FromString(settle_request(request).SerializeToString())
    assert settle_request(request) == once
    assert find_wrong_fields(request) == before
