"""Caller matrix of orchestrator: who may call which method. Everything else is denied.

Generated from spec/orchestrator (sha256:fdaebfd770cb5849). Do not edit; run `nox -s generate`.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType as Frozen
from typing import Final

from runtime.model.system import CallerMatrix, Permission, Principal

PRINCIPALS: Final[Mapping[str, Principal]] = Frozen(
    {
        "client": Principal("client", frozenset(("token", "certificate"))),
        "operator": Principal("operator", frozenset(("token", "certificate"))),
        "worker": Principal("worker", frozenset(("token", "certificate"))),
        "api": Principal("api", frozenset(("token", "certificate"))),
        "reaper": Principal("reaper", frozenset(("token", "certificate"))),
        "scheduler": Principal("scheduler", frozenset(("token", "certificate"))),
    }
)

MATRIX: Final[CallerMatrix] = Frozen(
    {
        "/orchestrator.v1.JobsService/SubmitJob": Frozen(
            {"client": Permission(), "worker": Permission(), "operator": Permission()}
        ),
        "/orchestrator.v1.JobsService/SubmitJobs": Frozen(
            {"client": Permission(), "worker": Permission(), "operator": Permission()}
        ),
        "/orchestrator.v1.JobsService/GetJob": Frozen(
            {"client": Permission(), "worker": Permission(), "operator": Permission()}
        ),
        "/orchestrator.v1.JobsService/ListJobs": Frozen({"client": Permission(), "operator": Permission()}),
        "/orchestrator.v1.JobsService/RetryJob": Frozen({"client": Permission(), "operator": Permission()}),
        "/orchestrator.v1.OperatorService/GetJobHistory": Frozen({"operator": Permission()}),
        "/orchestrator.v1.OperatorService/PurgeJobs": Frozen({"operator": Permission()}),
    }
)
