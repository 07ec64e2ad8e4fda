"""Caller matrix of queuey: who may call which method. Everything else is denied.

Generated from spec/queuey (sha256:77d78c72842295af). Do not edit; run `nox -s generate`.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType as Frozen
from typing import Final

from runtime.model.system import CallerMatrix, Permission, Principal

PRINCIPALS: Final[Mapping[str, Principal]] = Frozen(
    {
        "client": Principal("client", frozenset(("token", "certificate"))),
        "runner": Principal("runner", frozenset(("token", "certificate"))),
        "anyone": Principal("anyone", frozenset(("anonymous",)), without_tokens=True),
        "queue": Principal("queue", frozenset(("token", "certificate"))),
        "store": Principal("store", frozenset(("token", "certificate"))),
    }
)

MATRIX: Final[CallerMatrix] = Frozen(
    {
        "/queuey.v1.QueueService/CreateJob": Frozen({"client": Permission(), "anyone": Permission()}),
        "/queuey.v1.QueueService/GetJob": Frozen(
            {"client": Permission(), "runner": Permission(), "anyone": Permission()}
        ),
        "/queuey.v1.QueueService/ListJobs": Frozen({"client": Permission(), "anyone": Permission()}),
        "/queuey.v1.QueueService/CountJobs": Frozen({"client": Permission(), "anyone": Permission()}),
        "/queuey.v1.QueueService/ClaimJob": Frozen({"runner": Permission(), "anyone": Permission()}),
        "/queuey.v1.QueueService/TickleJob": Frozen({"runner": Permission(), "anyone": Permission()}),
        "/queuey.v1.QueueService/CompleteJob": Frozen({"runner": Permission(), "anyone": Permission()}),
        "/queuey.v1.QueueService/ReleaseJob": Frozen({"runner": Permission(), "anyone": Permission()}),
        "/queuey.v1.QueueService/CancelJob": Frozen({"client": Permission(), "anyone": Permission()}),
        "/queuey.v1.QueueService/RetryJob": Frozen({"client": Permission(), "anyone": Permission()}),
        "/queuey.v1.QueueService/GetReport": Frozen({"client": Permission(), "anyone": Permission()}),
        "/queuey.v1.StoreService/PutBlob": Frozen(
            {"client": Permission(), "runner": Permission(), "anyone": Permission()}
        ),
        "/queuey.v1.StoreService/PutBlobAt": Frozen(
            {"client": Permission(), "runner": Permission(), "anyone": Permission()}
        ),
        "/queuey.v1.StoreService/GetBlob": Frozen(
            {"client": Permission(), "runner": Permission(), "anyone": Permission()}
        ),
    }
)
