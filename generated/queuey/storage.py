"""Storage of queuey by the engines that deployments name, beside the layouts in its lifecycles.

Generated from spec/queuey (sha256:77d78c72842295af). Do not edit; run `nox -s generate`.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType as Frozen
from typing import Final

from generated.queuey.messages import ACTIVE, COMPLETED, FAILED, JOB_STATUS_UNSPECIFIED, PENDING
from runtime.model.lifecycles import Storage
from runtime.stores.layouts.postgres import KeptInPostgres
from runtime.stores.layouts.redis import KeptInRedis, Remembered

STORAGE: Final[Mapping[str, Mapping[str, Storage]]] = Frozen(
    {
        "postgres": Frozen(
            {
                "job": KeptInPostgres(
                    store="postgres",
                    url="DATABASE_URL",
                    table="jobs",
                    history="job_history",
                    unique=("idempotency_key",),
                    folder="postgres",
                ),
            }
        ),
        "redis": Frozen(
            {
                "job": KeptInRedis(
                    url="REDIS_URL",
                    prefix="REDIS_KEY_PREFIX",
                    words=Frozen(
                        {
                            "status": Frozen(
                                {
                                    JOB_STATUS_UNSPECIFIED: "job_status_unspecified",
                                    PENDING: "pending",
                                    ACTIVE: "active",
                                    COMPLETED: "completed",
                                    FAILED: "failed",
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
    }
)
