"""Storage of priority by the engines that deployments name, beside the layouts in its lifecycles.

Generated from spec/priority (sha256:5fb02a1f146da16d). Do not edit; run `nox -s generate`.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType as Frozen
from typing import Final

from generated.priority.messages import (
    ACTIVE,
    CANCELLED,
    COMPLETED,
    DEAD,
    DEAD_LETTER,
    DRAINING,
    EXECUTING,
    FAILED,
    QUEUED,
)
from runtime.model.lifecycles import Index, Parts, Storage
from runtime.stores.layouts.postgres import KeptInPostgres
from runtime.stores.layouts.sqlite import KeptInSqlite

STORAGE: Final[Mapping[str, Mapping[str, Storage]]] = Frozen(
    {
        "postgres": Frozen(
            {
                "task": KeptInPostgres(
                    store="postgres",
                    url="DATABASE_URL",
                    table="tasks",
                    history="task_history",
                    unique=(),
                    folder="postgres",
                    unique_for=Frozen({"idempotency_key": "IDEMPOTENCY_TTL_SECONDS"}),
                    indexes=Frozen(
                        {
                            "waiting": Index(
                                key="index:waiting:{effective_priority}",
                                states=frozenset({QUEUED}),
                                score="queued_at",
                                only_unless="available_at",
                                parts=Parts(
                                    by="required_capabilities",
                                    key="parts:waiting:{effective_priority}:{signature}",
                                    known="needs:waiting",
                                ),
                            ),
                            "delayed": Index(
                                key="index:delayed",
                                states=frozenset({QUEUED}),
                                score="available_at",
                                only_if="available_at",
                            ),
                            "running": Index(
                                key="index:running",
                                states=frozenset({EXECUTING}),
                                score="deadline_at",
                            ),
                            "booked": Index(
                                key="index:booked:{assigned_worker_id}",
                                states=frozenset({EXECUTING}),
                            ),
                            "dead": Index(
                                key="index:dead",
                                states=frozenset({DEAD_LETTER}),
                                score="completed_at",
                            ),
                            "listed": Index(
                                key="index:listed:{status}",
                                states=frozenset(
                                    {QUEUED, EXECUTING, COMPLETED, FAILED, CANCELLED, DEAD_LETTER}
                                ),
                                score="updated_at",
                            ),
                        }
                    ),
                    expires="TASK_RETENTION_SECONDS",
                ),
                "worker": KeptInPostgres(
                    store="postgres",
                    url="DATABASE_URL",
                    table="workers",
                    history="worker_history",
                    unique=(),
                    folder="postgres",
                    indexes=Frozen(
                        {
                            "alive": Index(
                                key="index:alive",
                                states=frozenset({ACTIVE, DRAINING}),
                                score="last_heartbeat",
                            ),
                            "listed": Index(
                                key="index:listed:{status}",
                                states=frozenset({ACTIVE, DRAINING, DEAD}),
                                score="updated_at",
                            ),
                        }
                    ),
                    expires="TASK_RETENTION_SECONDS",
                ),
            }
        ),
        "sqlite": Frozen(
            {
                "task": KeptInSqlite(
                    path="DATABASE_PATH",
                    table="tasks",
                    unique=(),
                    words=Frozen(
                        {
                            QUEUED: "queued",
                            EXECUTING: "executing",
                            COMPLETED: "completed",
                            FAILED: "failed",
                            CANCELLED: "cancelled",
                            DEAD_LETTER: "dead_letter",
                        }
                    ),
                    unique_for=Frozen({"idempotency_key": "IDEMPOTENCY_TTL_SECONDS"}),
                    indexes=Frozen(
                        {
                            "waiting": Index(
                                key="index:waiting:{effective_priority}",
                                states=frozenset({QUEUED}),
                                score="queued_at",
                                only_unless="available_at",
                                parts=Parts(
                                    by="required_capabilities",
                                    key="parts:waiting:{effective_priority}:{signature}",
                                    known="needs:waiting",
                                ),
                            ),
                            "delayed": Index(
                                key="index:delayed",
                                states=frozenset({QUEUED}),
                                score="available_at",
                                only_if="available_at",
                            ),
                            "running": Index(
                                key="index:running",
                                states=frozenset({EXECUTING}),
                                score="deadline_at",
                            ),
                            "booked": Index(
                                key="index:booked:{assigned_worker_id}",
                                states=frozenset({EXECUTING}),
                            ),
                            "dead": Index(
                                key="index:dead",
                                states=frozenset({DEAD_LETTER}),
                                score="completed_at",
                            ),
                            "listed": Index(
                                key="index:listed:{status}",
                                states=frozenset(
                                    {QUEUED, EXECUTING, COMPLETED, FAILED, CANCELLED, DEAD_LETTER}
                                ),
                                score="updated_at",
                            ),
                        }
                    ),
                    expires="TASK_RETENTION_SECONDS",
                ),
                "worker": KeptInSqlite(
                    path="DATABASE_PATH",
                    table="workers",
                    unique=(),
                    words=Frozen({ACTIVE: "active", DRAINING: "draining", DEAD: "dead"}),
                    indexes=Frozen(
                        {
                            "alive": Index(
                                key="index:alive",
                                states=frozenset({ACTIVE, DRAINING}),
                                score="last_heartbeat",
                            ),
                            "listed": Index(
                                key="index:listed:{status}",
                                states=frozenset({ACTIVE, DRAINING, DEAD}),
                                score="updated_at",
                            ),
                        }
                    ),
                    expires="TASK_RETENTION_SECONDS",
                ),
            }
        ),
    }
)
