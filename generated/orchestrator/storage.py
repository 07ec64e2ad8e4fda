"""Storage of orchestrator by the engines that a deployment names instead of those in its lifecycle.

Generated from spec/orchestrator (sha256:2ccd8c42651808d5). Do not edit; run `nox -s generate`.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType as Frozen
from typing import Final

from generated.orchestrator.messages import (
    CREATED,
    DEAD,
    QUEUED,
    RETRY,
    RUNNING,
    SUCCESS,
)
from runtime.model.lifecycles import KeptInSqlite, Storage

STORAGE: Final[Mapping[str, Mapping[str, Storage]]] = Frozen(
    {
        "sqlite": Frozen(
            {
                "job": KeptInSqlite(
                    path="DATABASE_PATH",
                    table="jobs",
                    unique=("idempotency_key",),
                    words=Frozen(
                        {
                            CREATED: "CREATED",
                            QUEUED: "QUEUED",
                            RUNNING: "RUNNING",
                            SUCCESS: "SUCCESS",
                            RETRY: "RETRY",
                            DEAD: "DEAD",
                        }
                    ),
                ),
            }
        ),
    }
)
