"""Storage of taskqueue by the engines that a deployment names instead of those in its lifecycle.

Generated from spec/taskqueue (sha256:5dc1bc31b081eb9a). Do not edit; run `nox -s generate`.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType as Frozen
from typing import Final

from generated.taskqueue.messages import (
    CANCELED,
    DONE,
    FAILED,
    PRESENT,
    QUEUED,
    RUNNING,
)
from runtime.model.lifecycles import Kept, KeptInSqlite, Storage

STORAGE: Final[Mapping[str, Mapping[str, Storage]]] = Frozen(
    {
        "postgres": Frozen(
            {
                "job": Kept(
                    store="postgres",
                    url="DATABASE_URL",
                    table="jobs",
                    history="job_history",
                    unique=(),
                    folder="postgres",
                ),
                "submit_key": Kept(
                    store="postgres",
                    url="DATABASE_URL",
                    table="submit_keys",
                    history="submit_key_history",
                    unique=(),
                    folder="postgres",
                ),
                "entry": Kept(
                    store="postgres",
                    url="DATABASE_URL",
                    table="entrys",
                    history="entry_history",
                    unique=(),
                    folder="postgres",
                ),
                "envelope": Kept(
                    store="postgres",
                    url="DATABASE_URL",
                    table="envelopes",
                    history="envelope_history",
                    unique=(),
                    folder="postgres",
                ),
            }
        ),
        "sqlite": Frozen(
            {
                "job": KeptInSqlite(
                    path="DATABASE_PATH",
                    table="jobs",
                    unique=(),
                    words=Frozen(
                        {
                            QUEUED: "QUEUED",
                            RUNNING: "RUNNING",
                            DONE: "DONE",
                            FAILED: "FAILED",
                            CANCELED: "CANCELED",
                        }
                    ),
                ),
                "submit_key": KeptInSqlite(
                    path="DATABASE_PATH",
                    table="submit_keys",
                    unique=(),
                    words=Frozen({PRESENT: "PRESENT"}),
                ),
                "entry": KeptInSqlite(
                    path="DATABASE_PATH",
                    table="entrys",
                    unique=(),
                    words=Frozen({PRESENT: "PRESENT"}),
                ),
                "envelope": KeptInSqlite(
                    path="DATABASE_PATH",
                    table="envelopes",
                    unique=(),
                    words=Frozen({PRESENT: "PRESENT"}),
                ),
            }
        ),
    }
)
