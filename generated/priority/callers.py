"""Caller matrix of priority: who may call which method. Everything else is denied.

Generated from spec/priority (sha256:5fb02a1f146da16d). Do not edit; run `nox -s generate`.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType as Frozen
from typing import Final

from runtime.model.system import CallerMatrix, Permission, Principal

PRINCIPALS: Final[Mapping[str, Principal]] = Frozen(
    {
        "client": Principal("client", frozenset(("token", "certificate"))),
        "worker": Principal("worker", frozenset(("token", "certificate"))),
        "admin": Principal("admin", frozenset(("token", "certificate"))),
        "manager": Principal("manager", frozenset(("token", "certificate"))),
        "promoter": Principal("promoter", frozenset(("token", "certificate"))),
        "detector": Principal("detector", frozenset(("token", "certificate"))),
        "sweeper": Principal("sweeper", frozenset(("token", "certificate"))),
        "historian": Principal("historian", frozenset(("token", "certificate"))),
    }
)

MATRIX: Final[CallerMatrix] = Frozen(
    {
        "/priority.v1.TasksService/SubmitTask": Frozen(
            {"client": Permission(), "worker": Permission(), "admin": Permission()}
        ),
        "/priority.v1.TasksService/SubmitTasks": Frozen(
            {"client": Permission(), "worker": Permission(), "admin": Permission()}
        ),
        "/priority.v1.TasksService/GetTask": Frozen(
            {"client": Permission(), "worker": Permission(), "admin": Permission()}
        ),
        "/priority.v1.TasksService/ListTasks": Frozen({"client": Permission(), "admin": Permission()}),
        "/priority.v1.TasksService/CancelTask": Frozen({"client": Permission(), "admin": Permission()}),
        "/priority.v1.TasksService/GetQueueStats": Frozen({"client": Permission(), "admin": Permission()}),
        "/priority.v1.WorkersService/RegisterWorker": Frozen({"worker": Permission()}),
        "/priority.v1.WorkersService/PollTasks": Frozen({"worker": Permission()}),
        "/priority.v1.WorkersService/ReportResult": Frozen({"worker": Permission()}),
        "/priority.v1.WorkersService/Heartbeat": Frozen({"worker": Permission()}),
        "/priority.v1.WorkersService/ExtendTask": Frozen({"worker": Permission()}),
        "/priority.v1.WorkersService/ReportProgress": Frozen({"worker": Permission()}),
        "/priority.v1.WorkersService/ExchangeTasks": Frozen({"worker": Permission()}),
        "/priority.v1.WorkersService/DeregisterWorker": Frozen({"worker": Permission()}),
        "/priority.v1.AdminService/ListDeadLetters": Frozen({"admin": Permission()}),
        "/priority.v1.AdminService/ReplayDeadLetter": Frozen({"admin": Permission()}),
        "/priority.v1.AdminService/ReplayDeadLetters": Frozen({"admin": Permission()}),
        "/priority.v1.AdminService/PurgeDeadLetter": Frozen({"admin": Permission()}),
        "/priority.v1.AdminService/PurgeDeadLetters": Frozen({"admin": Permission()}),
        "/priority.v1.AdminService/PauseQueue": Frozen({"admin": Permission()}),
        "/priority.v1.AdminService/ResumeQueue": Frozen({"admin": Permission()}),
        "/priority.v1.AdminService/ListWorkers": Frozen({"admin": Permission()}),
        "/priority.v1.AdminService/GetTaskHistory": Frozen({"admin": Permission()}),
    }
)
