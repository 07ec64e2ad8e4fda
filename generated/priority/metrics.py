"""Metrics of priority, over all processes.

Generated from spec/priority (sha256:5fb02a1f146da16d). Do not edit; run `nox -s generate`.
"""

from __future__ import annotations

from typing import Final

from runtime.model.measuring import Ages, Counts, IndexSizes, Measured, States, Used

MEASURED: Final[tuple[Measured, ...]] = (
    Measured(
        "queue_depth",
        "gauge",
        "Tasks that wait.",
        "task",
        IndexSizes({"high": "queue:high", "medium": "queue:medium", "low": "queue:low"}, "priority", True),
    ),
    Measured(
        "queue_age_seconds",
        "gauge",
        "How long the tasks that wait now have done so.",
        "task",
        Ages({"high": "queue:high", "medium": "queue:medium", "low": "queue:low"}, "priority", (50, 95, 99)),
    ),
    Measured(
        "queue_oldest_seconds",
        "gauge",
        "How long the oldest task that waits has done so.",
        "task",
        Ages({"high": "queue:high", "medium": "queue:medium", "low": "queue:low"}, "priority", (100,)),
    ),
    Measured(
        "tasks_promoted_total",
        "counter",
        "Tasks that were raised because they had waited for long.",
        "task",
        Counts(
            "metrics",
            ("from", "to"),
            (("low", "medium"), ("medium", "high")),
            (),
            None,
            None,
            {"raise_low": ("low", "medium"), "raise_medium": ("medium", "high")},
        ),
    ),
    Measured(
        "task_duration_seconds",
        "histogram",
        "Time from the submission of a task to its end.",
        "task",
        Counts(
            "metrics",
            ("priority", "status"),
            (
                ("high", "completed"),
                ("medium", "completed"),
                ("low", "completed"),
                ("high", "failed"),
                ("medium", "failed"),
                ("low", "failed"),
                ("high", "cancelled"),
                ("medium", "cancelled"),
                ("low", "cancelled"),
                ("high", "dead_letter"),
                ("medium", "dead_letter"),
                ("low", "dead_letter"),
            ),
            ("0.1", "0.5", "1", "5", "10", "30", "60", "300", "600", "1800", "3600", "21600", "86400"),
            None,
            "created_at",
            {
                "complete": ("{priority}", "completed"),
                "fail": ("{priority}", "failed"),
                "cancel": ("{priority}", "cancelled"),
                "abort": ("{priority}", "cancelled"),
                "bury": ("{priority}", "dead_letter"),
            },
        ),
    ),
    Measured(
        "task_retries_total",
        "counter",
        "Tasks that were queued again after a run that failed.",
        "task",
        Counts(
            "metrics",
            ("priority", "reason"),
            (
                ("high", "timeout"),
                ("high", "worker_lost"),
                ("high", "reported"),
                ("medium", "timeout"),
                ("medium", "worker_lost"),
                ("medium", "reported"),
                ("low", "timeout"),
                ("low", "worker_lost"),
                ("low", "reported"),
            ),
            (),
            None,
            None,
            {"retry": ("{priority}", "<reason>")},
        ),
    ),
    Measured(
        "task_state_total",
        "gauge",
        "Tasks in each state now.",
        "task",
        States(
            {
                "queued": "tasks:status:queued",
                "executing": "tasks:status:executing",
                "completed": "tasks:status:completed",
                "failed": "tasks:status:failed",
                "cancelled": "tasks:status:cancelled",
                "dead_letter": "tasks:status:dead_letter",
            },
            "status",
            frozenset(["cancelled", "completed", "failed"]),
            "TASK_RETENTION_SECONDS",
        ),
    ),
    Measured(
        "workers_total",
        "gauge",
        "Workers in each state now.",
        "worker",
        States(
            {
                "active": "workers:status:active",
                "draining": "workers:status:draining",
                "dead": "workers:status:dead",
            },
            "status",
            frozenset(["dead"]),
            "TASK_RETENTION_SECONDS",
        ),
    ),
    Measured(
        "worker_capacity_used_ratio",
        "gauge",
        "The part of all capacity that is in use.",
        "task",
        Used(
            "tasks:status:executing",
            ("workers:status:active", "workers:status:draining"),
            "workers:{}",
            "capacity",
        ),
    ),
    Measured(
        "worker_heartbeat_failures_total",
        "counter",
        "Workers that were given up because they were not heard of.",
        "worker",
        Counts("metrics", (), ((),), (), None, None, {"lose": (), "lose_draining": ()}),
    ),
    Measured(
        "tasks_failed_total",
        "counter",
        "Runs that failed, by cause, and tasks that were given up.",
        "task",
        Counts(
            "metrics",
            ("reason",),
            (("timeout",), ("worker_lost",), ("reported",), ("non_retriable",), ("max_retries_exceeded",)),
            (),
            None,
            None,
            {"retry": ("<reason>",), "fail": ("non_retriable",), "bury": ("max_retries_exceeded",)},
        ),
    ),
    Measured(
        "tasks_dlq_total",
        "counter",
        "Tasks that became dead letters.",
        "task",
        Counts("metrics", (), ((),), (), None, None, {"bury": ()}),
    ),
    Measured(
        "tasks_ended_recently",
        "window",
        "Tasks that ended within the window of the statistics.",
        "task",
        Counts(
            "metrics",
            ("status",),
            (("completed",), ("failed",), ("dead_letter",)),
            (),
            "STATS_WINDOW_SECONDS",
            None,
            {"complete": ("completed",), "fail": ("failed",), "bury": ("dead_letter",)},
        ),
    ),
)
