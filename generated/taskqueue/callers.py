"""Caller matrix of taskqueue: who may call which method. Everything else is denied.

Generated from spec/taskqueue (sha256:2c9462dde7cbf380). Do not edit; run `nox -s generate`.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType as Frozen
from typing import Final

from generated.taskqueue.messages import CANCELED, QUEUED
from generated.taskqueue.policy import RESCUE
from runtime.model.system import CallerMatrix, Permission, Principal

PRINCIPALS: Final[Mapping[str, Principal]] = Frozen(
    {
        "client": Principal("client", frozenset(("anonymous",))),
        "gateway": Principal("gateway", frozenset(("certificate", "token"))),
        "job": Principal("job", frozenset(("certificate", "token"))),
        "queue": Principal("queue", frozenset(("certificate", "token"))),
        "coordinator": Principal("coordinator", frozenset(("certificate", "token"))),
        "worker": Principal("worker", frozenset(("certificate", "token"))),
        "result": Principal("result", frozenset(("certificate", "token"))),
    }
)

MATRIX: Final[CallerMatrix] = Frozen(
    {
        "/taskqueue.v1.TaskQueuePublicService/SubmitJob": Frozen({"client": Permission()}),
        "/taskqueue.v1.TaskQueuePublicService/GetJobStatus": Frozen({"client": Permission()}),
        "/taskqueue.v1.TaskQueuePublicService/GetJobResult": Frozen({"client": Permission()}),
        "/taskqueue.v1.TaskQueuePublicService/CancelJob": Frozen({"client": Permission()}),
        "/taskqueue.v1.TaskQueuePublicService/ListJobs": Frozen({"client": Permission()}),
        "/taskqueue.internal.v1.JobInternalService/CreateJob": Frozen({"gateway": Permission()}),
        "/taskqueue.internal.v1.JobInternalService/DeleteJobIfStatus": Frozen({"gateway": Permission()}),
        "/taskqueue.internal.v1.JobInternalService/GetJobRecord": Frozen(
            {"gateway": Permission(), "coordinator": Permission()}
        ),
        "/taskqueue.internal.v1.JobInternalService/ListJobRecords": Frozen(
            {"gateway": Permission(), "coordinator": Permission()}
        ),
        "/taskqueue.internal.v1.JobInternalService/TransitionJobStatus": Frozen(
            {
                # the queued-cancel step
                "gateway": Permission(only=Frozen({"expected_from_status": QUEUED, "to_status": CANCELED})),
                "coordinator": Permission(),
            }
        ),
        "/taskqueue.internal.v1.JobInternalService/SetCancelRequested": Frozen({"gateway": Permission()}),
        "/taskqueue.internal.v1.QueueInternalService/EnqueueJob": Frozen(
            {
                "gateway": Permission(),
                # rescue of a job whose dispatch failed or that is stranded
                "coordinator": Permission(mode=RESCUE),
            }
        ),
        "/taskqueue.internal.v1.QueueInternalService/DequeueJob": Frozen({"coordinator": Permission()}),
        "/taskqueue.internal.v1.QueueInternalService/RemoveJobIfPresent": Frozen(
            {"gateway": Permission(), "coordinator": Permission()}
        ),
        "/taskqueue.internal.v1.CoordinatorInternalService/WorkerHeartbeat": Frozen({"worker": Permission()}),
        "/taskqueue.internal.v1.CoordinatorInternalService/FetchWork": Frozen({"worker": Permission()}),
        "/taskqueue.internal.v1.CoordinatorInternalService/ReportWorkOutcome": Frozen(
            {"worker": Permission()}
        ),
        "/taskqueue.internal.v1.ResultInternalService/StoreResult": Frozen(
            {
                # the queued-cancel envelope
                "gateway": Permission(only=Frozen({"terminal_status": CANCELED})),
                "coordinator": Permission(),
            }
        ),
        "/taskqueue.internal.v1.ResultInternalService/GetResult": Frozen({"gateway": Permission()}),
    }
)
