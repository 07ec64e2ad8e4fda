"""Storage of taskqueue by the engines that deployments name, beside the layouts in its lifecycles.

Generated from spec/taskqueue (sha256:2c9462dde7cbf380). Do not edit; run `nox -s generate`.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType as Frozen
from typing import Final

from generated.taskqueue.messages import (
    CANCELED,
    DONE,
    FAILED,
    PRESENCE_PRESENT,
    QUEUED,
    RUNNING,
)
from runtime.model.lifecycles import Storage
from runtime.stores.layouts.postgres import KeptInPostgres
from runtime.stores.layouts.sqlite import KeptInSqlite

STORAGE: Final[Mapping[str, Mapping[str, Storage]]] = Frozen(
    {
        "postgres": Frozen(
            {
                "job": KeptInPostgres(
                    store="postgres",
                    url="DATABASE_URL",
                    table="jobs",
                    history="job_history",
                    unique=(),
                    folder="postgres",
                ),
                "submit_key": KeptInPostgres(
                    store="postgres",
                    url="DATABASE_URL",
                    table="submit_keys",
                    history="submit_key_history",
                    unique=(),
                    folder="postgres",
                ),
                "entry": KeptInPostgres(
                    store="postgres",
                    url="DATABASE_URL",
                    table="entrys",
                    history="entry_history",
                    unique=(),
                    folder="postgres",
                ),
                "envelope": KeptInPostgres(
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
                    words=Frozen({PRESENCE_PRESENT: "PRESENT"}),
                ),
                "entry": KeptInSqlite(
                    path="DATABASE_PATH",
                    table="entrys",
                    unique=(),
                    words=Frozen({PRESENCE_PRESENT: "PRESENT"}),
                ),
                "envelope": KeptInSqlite(
                    path="DATABASE_PATH",
                    table="envelopes",
                    unique=(),
                    words=Frozen({PRESENCE_PRESENT: "PRESENT"}),
                ),
            }
        ),
    }
)
