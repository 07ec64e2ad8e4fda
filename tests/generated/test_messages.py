"""The messages of the taskqueue, field by field."""

from __future__ import annotations

import pytest

from tests.support.generated.descriptors import FILES, format_message, messages

RECORD_ID = "string job_id"
LISTING = "repeated JobStatus status_filter, PageRequest page, JobSort sort"
LISTED = "repeated JobSummary jobs, PageResponse page"
MOVED = "bool applied, JobStatus current_status"
ENVELOPE = (
    "JobStatus terminal_status, uint32 runtime_ms, string output_summary, bytes output_bytes, string checksum"
)
mark = pytest.mark

SHAPES = [
    pytest.param(
        {
            "JobSpec": "string job_type, uint32 work_duration_ms, uint32 payload_size_bytes, "
            "map<string,string> labels"
        },
        marks=mark.req("TQ-027"),
    ),
    pytest.param(
        {
            "JobSummary": "string job_id, JobStatus status, string job_type, int64 created_at_ms, "
            "int64 started_at_ms, int64 finished_at_ms, bool cancel_requested"
        },
        marks=mark.req("TQ-029"),
    ),
    pytest.param(
        {"PageRequest": "uint32 page_size, string page_token", "PageResponse": "string next_page_token"},
        marks=mark.req("TQ-030"),
    ),
    pytest.param(
        {
            "SubmitJobRequest": "JobSpec spec, string client_request_id",
            "SubmitJobResponse": "string job_id, JobStatus initial_status, int64 accepted_at_ms",
        },
        marks=mark.req("TQ-031"),
    ),
    pytest.param(
        {
            "GetJobStatusRequest": RECORD_ID,
            "GetJobStatusResponse": "string job_id, JobStatus status, bool cancel_requested, "
            "int64 created_at_ms, int64 started_at_ms, int64 finished_at_ms, string failure_reason",
        },
        marks=mark.req("TQ-032"),
    ),
    pytest.param(
        {
            "GetJobResultRequest": RECORD_ID,
            "GetJobResultResponse": "string job_id, bool result_ready, JobStatus terminal_status, "
            "bytes output_bytes, string output_summary, uint32 runtime_ms, string checksum",
        },
        marks=mark.req("TQ-033"),
    ),
    pytest.param(
        {
            "CancelJobRequest": "string job_id, string reason",
            "CancelJobResponse": "string job_id, bool accepted, JobStatus current_status, "
            "bool already_terminal",
        },
        marks=mark.req("TQ-034"),
    ),
    pytest.param({"ListJobsRequest": LISTING, "ListJobsResponse": LISTED}, marks=mark.req("TQ-035")),
    pytest.param(
        {
            "CreateJobRequest": "JobSpec spec, string client_request_id",
            "CreateJobResponse": "string job_id, JobStatus status, int64 created_at_ms, bool deduplicated",
        },
        marks=mark.req("TQ-036", "CH-05", "CH-06"),
    ),
    pytest.param(
        {
            "DeleteJobIfStatusRequest": "string job_id, JobStatus expected_status",
            "DeleteJobIfStatusResponse": "bool deleted, JobStatus current_status",
        },
        marks=mark.req("TQ-037"),
    ),
    pytest.param(
        {
            "GetJobRecordRequest": RECORD_ID,
            "GetJobRecordResponse": "JobSummary summary, string failure_reason, JobSpec spec, "
            "string cancel_reason",
        },
        marks=mark.req("TQ-038", "CH-03", "CH-08"),
    ),
    pytest.param(
        {"ListJobRecordsRequest": LISTING, "ListJobRecordsResponse": LISTED}, marks=mark.req("TQ-039")
    ),
    pytest.param(
        {
            "TransitionJobStatusRequest": "string job_id, JobStatus expected_from_status, "
            "JobStatus to_status, string actor, string reason",
            "TransitionJobStatusResponse": MOVED,
        },
        marks=mark.req("TQ-040"),
    ),
    pytest.param(
        {
            "SetCancelRequestedRequest": "string job_id, bool cancel_requested, string reason",
            "SetCancelRequestedResponse": MOVED,
        },
        marks=mark.req("TQ-041"),
    ),
    pytest.param(
        {
            "EnqueueJobRequest": "string job_id, int64 enqueued_at_ms",
            "EnqueueJobResponse": "bool accepted, bool already_waiting",
        },
        marks=mark.req("TQ-042", "CH-94"),
    ),
    pytest.param(
        {"DequeueJobRequest": "string worker_id", "DequeueJobResponse": "bool found, string job_id"},
        marks=mark.req("TQ-043"),
    ),
    pytest.param(
        {"RemoveJobIfPresentRequest": RECORD_ID, "RemoveJobIfPresentResponse": "bool removed"},
        marks=mark.req("TQ-044"),
    ),
    pytest.param(
        {
            "WorkerHeartbeatRequest": "string worker_id, int64 heartbeat_at_ms, uint32 capacity_hint, "
            "repeated string running, bool reports_running",
            "WorkerHeartbeatResponse": "bool accepted, uint32 next_heartbeat_in_ms",
        },
        marks=mark.req("TQ-045", "CH-94"),
    ),
    pytest.param(
        {
            "FetchWorkRequest": "string worker_id",
            "FetchWorkResponse": "bool assigned, string job_id, JobSpec spec, uint32 retry_after_ms",
        },
        marks=mark.req("TQ-046"),
    ),
    pytest.param(
        {
            "ReportWorkOutcomeRequest": "string worker_id, string job_id, JobOutcome outcome, "
            "uint32 runtime_ms, string failure_reason, string output_summary, bytes output_bytes, "
            "string checksum",
            "ReportWorkOutcomeResponse": "bool accepted",
        },
        marks=mark.req("TQ-047"),
    ),
    pytest.param(
        {
            "StoreResultRequest": f"string job_id, {ENVELOPE}",
            "StoreResultResponse": "bool stored, bool already_exists, JobStatus current_terminal_status",
        },
        marks=mark.req("TQ-048"),
    ),
    pytest.param(
        {"GetResultRequest": RECORD_ID, "GetResultResponse": f"bool found, string job_id, {ENVELOPE}"},
        marks=mark.req("TQ-049"),
    ),
]


@pytest.mark.parametrize("expected", SHAPES)
def test_a_message_has_these_fields_and_no_others(expected: dict[str, str]) -> None:
    """Names, types and order of the fields are the ones that the contract lists."""
    known = messages(*FILES)
    assert {name: format_message(known[name]) for name in expected} == expected


def test_the_tables_above_name_every_message() -> None:
    """No message exists that the contract does not list, but for the rows, which are sent to nobody."""
    listed = {name for parameters in SHAPES for table in parameters.values for name in names(table)}
    assert listed == {name for name in messages(*FILES) if not name.endswith("Row")}


def names(table: object) -> list[str]:
    assert isinstance(table, dict)
    return list(table)


@pytest.mark.req("CH-11", "CH-03", "CH-05", "CH-06", "CH-08")
def test_fields_are_numbered_in_their_order() -> None:
    """Numbers run from 1 in the listed order, so an addition has the number after the listed ones."""
    for message in messages(*FILES).values():
        assert [field.number for field in message.fields] == list(range(1, len(message.fields) + 1))
