"""Storage of queuey by the engines that a deployment names instead of those in its lifecycle.

Generated from spec/queuey (sha256:65eead736a25b8d5). Do not edit; run `nox -s generate`.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType as Frozen
from typing import Final

from runtime.model.lifecycles import Kept, Storage

STORAGE: Final[Mapping[str, Mapping[str, Storage]]] = Frozen(
    {
        "postgres": Frozen(
            {
                "job": Kept(
                    store="postgres",
                    url="DATABASE_URL",
                    table="jobs",
                    history="job_history",
                    unique=("idempotency_key",),
                    folder="postgres",
                ),
            }
        ),
    }
)
