"""Who may call what in taskqueue. What is not here is denied.

Generated from spec/taskqueue (sha256:236df950de133a0d). Do not edit; run `nox -s generate`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from generated.taskqueue.messages import CANCELED, QUEUED
from generated.taskqueue.policy import RESCUE
from runtime.tables import CallerMatrix, Permission, Principal

PRINCIPALS: Final[Mapping[str, Principal]] = {
    "client": Principal("client", frozenset(("anonymous",))),
    "gateway": Principal("gateway", frozenset(("certificate", "token"))),
    "job": Principal("job", frozenset(("certificate", "token"))),
    "queue": Principal("queue", frozenset(("certificate", "token"))),
    "coordinator": Principal("coordinator", frozenset(("certificate", "token"))),
    "worker": Principal("worker", frozenset(("certificate", "token"))),
    "result": Principal("result", frozenset(("certificate", "token"))),
}

MATRIX: Final[CallerMatrix] = {
    "/taskqueue.v1.TaskQueuePublicService/SubmitJob": {
        "client": Permission(),
    },
    "/taskqueue.v1.TaskQueuePublicService/GetJobStatus": {
        "client": Permission(),
    },
    "/taskqueue.v1.TaskQueuePublicService/GetJobResult": {
        "client": Permission(),
    },
    "/taskqueue.v1.TaskQueuePublicService/CancelJob": {
        "client": Permission(),
    },
    "/taskqueue.v1.TaskQueuePublicService/ListJobs": {
        "client": Permission(),
    },
    "/taskqueue.internal.v1.JobInternalService/CreateJob": {
        "gateway": Permission(),
    },
    "/taskqueue.internal.v1.JobInternalService/DeleteJobIfStatus": {
        "gateway": Permission(),
    },
    "/taskqueue.internal.v1.JobInternalService/GetJobRecord": {
        "gateway": Permission(),
        "coordinator": Permission(),
    },
    "/taskqueue.internal.v1.JobInternalService/ListJobRecords": {
        "gateway": Permission(),
    },
    "/taskqueue.internal.v1.JobInternalService/TransitionJobStatus": {
        "gateway": Permission(
            only={
                "expected_from_status": QUEUED,
                "to_status": CANCELED,
            },
        ),  # the queued-cancel step
        "coordinator": Permission(),
    },
    "/taskqueue.internal.v1.JobInternalService/SetCancelRequested": {
        "gateway": Permission(),
    },
    "/taskqueue.internal.v1.QueueInternalService/EnqueueJob": {
        "gateway": Permission(),
        "coordinator": Permission(
            mode=RESCUE,
        ),  # rescue of a job whose dispatch failed
    },
    "/taskqueue.internal.v1.QueueInternalService/DequeueJob": {
        "coordinator": Permission(),
    },
    "/taskqueue.internal.v1.QueueInternalService/RemoveJobIfPresent": {
        "gateway": Permission(),
        "coordinator": Permission(),
    },
    "/taskqueue.internal.v1.CoordinatorInternalService/WorkerHeartbeat": {
        "worker": Permission(),
    },
    "/taskqueue.internal.v1.CoordinatorInternalService/FetchWork": {
        "worker": Permission(),
    },
    "/taskqueue.internal.v1.CoordinatorInternalService/ReportWorkOutcome": {
        "worker": Permission(),
    },
    "/taskqueue.internal.v1.ResultInternalService/StoreResult": {
        "gateway": Permission(
            only={
                "terminal_status": CANCELED,
            },
        ),  # the queued-cancel envelope
        "coordinator": Permission(),
    },
    "/taskqueue.internal.v1.ResultInternalService/GetResult": {
        "gateway": Permission(),
    },
}
