"""Storage of orchestrator by the engines that deployments name, beside the layouts in its lifecycles.

Generated from spec/orchestrator (sha256:fdaebfd770cb5849). Do not edit; run `nox -s generate`.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType as Frozen
from typing import Final

from generated.orchestrator.messages import (
    CREATED,
    DEAD,
    JOB_STATE_UNSPECIFIED,
    QUEUED,
    RETRY,
    RUNNING,
    SUCCESS,
)
from runtime.model.lifecycles import Storage
from runtime.stores.layouts.redis import KeptInRedis, Remembered
from runtime.stores.layouts.sqlite import KeptInSqlite

STORAGE: Final[Mapping[str, Mapping[str, Storage]]] = Frozen(
    {
        "redis": Frozen(
            {
                "job": KeptInRedis(
                    url="REDIS_URL",
                    prefix="REDIS_KEY_PREFIX",
                    words=Frozen(
                        {
                            "state": Frozen(
                                {
                                    JOB_STATE_UNSPECIFIED: "JOB_STATE_UNSPECIFIED",
                                    CREATED: "CREATED",
                                    QUEUED: "QUEUED",
                                    RUNNING: "RUNNING",
                                    SUCCESS: "SUCCESS",
                                    RETRY: "RETRY",
                                    DEAD: "DEAD",
                                }
                            ),
                        }
                    ),
                    unique=Frozen(
                        {
                            "idempotency_key": Remembered(),
                        }
                    ),
                ),
            }
        ),
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
