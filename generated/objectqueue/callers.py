"""Caller matrix of objectqueue: who may call which method. Everything else is denied.

Generated from spec/objectqueue (sha256:bf30565a014f0db2). Do not edit; run `nox -s generate`.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType as Frozen
from typing import Final

from runtime.model.system import CallerMatrix, Permission, Principal

PRINCIPALS: Final[Mapping[str, Principal]] = Frozen(
    {
        "client": Principal("client", frozenset(("store",))),
        "page": Principal("page", frozenset(("store",))),
        "worker": Principal("worker", frozenset(("store",))),
        "monitor": Principal("monitor", frozenset(("store",))),
        "queue": Principal("queue", frozenset(("store",))),
    }
)

MATRIX: Final[CallerMatrix] = Frozen(
    {
        "/objectqueue.v1.QueueService/SubmitTask": Frozen({"client": Permission()}),
        "/objectqueue.v1.QueueService/GetTask": Frozen({"client": Permission()}),
        "/objectqueue.v1.QueueService/GetHistory": Frozen({"client": Permission()}),
        "/objectqueue.v1.QueueService/ListTasks": Frozen({"client": Permission()}),
        "/objectqueue.v1.QueueService/ReplayTask": Frozen({"client": Permission()}),
        "/objectqueue.v1.QueueService/ArchiveTask": Frozen({"client": Permission()}),
        "/objectqueue.v1.QueueService/UnarchiveTask": Frozen({"client": Permission()}),
        "/objectqueue.v1.QueueService/CancelTask": Frozen({"client": Permission()}),
        "/objectqueue.v1.QueueService/ListWorkers": Frozen({"client": Permission()}),
        "/objectqueue.v1.QueueService/GetStats": Frozen({"client": Permission()}),
    }
)
