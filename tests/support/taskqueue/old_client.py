"""The five public calls by a client that has only stubs of an older proto: `old_client.py <address>`.

It runs in a process of its own, with the stubs on its path, and prints the answers as one JSON object.
"""

import importlib
import json
import sys
import time
import uuid
from typing import Any

import grpc

# On the path that the caller of this file has set up: no type checker knows them.
api: Any = importlib.import_module("taskqueue_public_pb2")
stubs: Any = importlib.import_module("taskqueue_public_pb2_grpc")

TERMINAL = (api.DONE, api.FAILED, api.CANCELED)
PATIENCE = 60.0


def call_with_retries(method: Any, request: Any) -> Any:
    """Call a method, again and again while its node is not available."""
    deadline = time.monotonic() + PATIENCE
    while True:
        try:
            return method(request, timeout=PATIENCE)
        except grpc.RpcError as error:
            if error.code() is not grpc.StatusCode.UNAVAILABLE or time.monotonic() > deadline:
                raise


def main(address: str) -> None:
    """Calls every method once, and status until the job has ended."""
    with grpc.insecure_channel(address) as channel:
        service = stubs.TaskQueuePublicServiceStub(channel)
        spec = api.JobSpec(
            job_type="old", work_duration_ms=5, payload_size_bytes=7, labels={"by": "an old client"}
        )
        # Under a key, so that it can be submitted again where a busy machine does not answer in time.
        wanted = api.SubmitJobRequest(spec=spec, client_request_id=str(uuid.uuid4()))
        submitted = call_with_retries(service.SubmitJob, wanted)
        named = {"job_id": submitted.job_id}
        deadline = time.monotonic() + PATIENCE
        while True:
            status = call_with_retries(service.GetJobStatus, api.GetJobStatusRequest(**named))
            if status.status in TERMINAL or time.monotonic() > deadline:
                break
        result = call_with_retries(service.GetJobResult, api.GetJobResultRequest(**named))
        canceled = call_with_retries(service.CancelJob, api.CancelJobRequest(**named))
        wanted = api.ListJobsRequest(status_filter=[api.DONE], page=api.PageRequest(page_size=200))
        listed = call_with_retries(service.ListJobs, wanted)
    answers = {
        "submitted": [submitted.initial_status, submitted.accepted_at_ms],
        "status": [status.status, status.created_at_ms],
        "result": [result.result_ready, result.terminal_status, len(result.output_bytes)],
        "canceled": [canceled.accepted, canceled.already_terminal, canceled.current_status],
        "listed": [each.job_type for each in listed.jobs if each.job_id == submitted.job_id],
    }
    print(json.dumps(answers))


if __name__ == "__main__":
    main(sys.argv[1])
