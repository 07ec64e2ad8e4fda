"""Environment of objectqueue: its variables, and the settings that each component reads from them.

Generated from spec/objectqueue (sha256:bf30565a014f0db2). Do not edit; run `nox -s generate`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from msgspec import Struct

from runtime.model.system import Variable
from runtime.node.settings import read

VARIABLES: Final[Mapping[str, Variable]] = {
    "S3_ENDPOINT": Variable(
        name="S3_ENDPOINT",
        type="url",
        meaning="Where the store is; without it where the provider has it.",
    ),
    "S3_BUCKET": Variable(
        name="S3_BUCKET",
        type="string",
        meaning="The bucket that is the queue: 3 to 63 lower-case letters, digits, dots and hyphens.",
        default="task-queue",
        pattern="(?!.*\\.\\.)[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]",
    ),
    "S3_REGION": Variable(
        name="S3_REGION",
        type="string",
        meaning="The region of the bucket.",
        default="us-east-1",
        pattern="[A-Za-z0-9_][A-Za-z0-9._-]*",
    ),
    "AWS_ACCESS_KEY_ID": Variable(
        name="AWS_ACCESS_KEY_ID",
        type="secret",
        meaning="Name of the key; without it the usual places are asked, such as profiles and roles.",
    ),
    "AWS_SECRET_ACCESS_KEY": Variable(
        name="AWS_SECRET_ACCESS_KEY",
        type="secret",
        meaning="The secret of the key.",
    ),
    "AWS_SESSION_TOKEN": Variable(
        name="AWS_SESSION_TOKEN",
        type="secret",
        meaning="What belongs to a key that is lent for some time.",
    ),
    "QO_QUEUE": Variable(
        name="QO_QUEUE",
        type="string",
        meaning="Name of the queue where a bucket has several, or names with / between; keys begin with it.",
        pattern="(?!\\.{1,2}(/|$))[^/\\x00-\\x1f\\x7f]+(/(?!\\.{1,2}(/|$))[^/\\x00-\\x1f\\x7f]+)*",
    ),
    "QO_LOG": Variable(
        name="QO_LOG",
        type="choice",
        meaning="Least level that is logged.",
        default="info",
        choices=("trace", "debug", "info", "warn", "error"),
        role="log_level",
        also_named=("RUST_LOG",),
    ),
    "QO_ALLOW_NO_VERSIONING": Variable(
        name="QO_ALLOW_NO_VERSIONING",
        type="bool",
        meaning="Whether a bucket without versions will do. Then there is no history.",
        default="false",
    ),
    "QO_MAX_CLOCK_SKEW_MS": Variable(
        name="QO_MAX_CLOCK_SKEW_MS",
        type="int",
        meaning="How much clocks may differ.",
        default="2000",
        minimum=0,
        maximum=3600000,
        also_named=("MAX_CLOCK_SKEW_MS",),
    ),
    "QO_ARCHIVE_DAYS": Variable(
        name="QO_ARCHIVE_DAYS",
        type="int",
        meaning="After how many days the bucket removes archived tasks; unset is never.",
        minimum=1,
        maximum=36500,
    ),
    "QO_INDEX_MODE": Variable(
        name="QO_INDEX_MODE",
        type="choice",
        meaning="Where workers look for tasks: at the index, at both, or at the tasks themselves.",
        default="hybrid",
        choices=("index-only", "hybrid", "log-scan"),
    ),
    "QO_READY_PAGE_SIZE": Variable(
        name="QO_READY_PAGE_SIZE",
        type="int",
        meaning="How many entries of the index a listing has.",
        default="100",
        minimum=1,
        maximum=1000,
    ),
    "QO_LOG_SCAN_PAGE_SIZE": Variable(
        name="QO_LOG_SCAN_PAGE_SIZE",
        type="int",
        meaning="How many tasks a listing of a scan has.",
        default="50",
        minimum=1,
        maximum=1000,
    ),
    "QO_NO_MONITOR": Variable(
        name="QO_NO_MONITOR",
        type="bool",
        meaning="Whether a worker leaves the monitor out.",
        default="false",
    ),
    "QO_MONITOR_CHECK_INTERVAL": Variable(
        name="QO_MONITOR_CHECK_INTERVAL",
        type="number",
        meaning="Time between two looks for leases that have ended.",
        default="30",
        minimum=0.05,
    ),
    "QO_MONITOR_GRACE": Variable(
        name="QO_MONITOR_GRACE",
        type="number",
        meaning="How long after the end of a lease the monitor waits, so that a worker can report first.",
        default="5",
        minimum=0,
    ),
    "QO_MONITOR_WORKER_HEALTH_THRESHOLD": Variable(
        name="QO_MONITOR_WORKER_HEALTH_THRESHOLD",
        type="number",
        meaning="How long a worker may be silent before it counts as dead.",
        default="60",
        minimum=0.05,
    ),
    "QO_MONITOR_SWEEP_INTERVAL": Variable(
        name="QO_MONITOR_SWEEP_INTERVAL",
        type="number",
        meaning="Time between two repairs of the indexes; 0 is never.",
        default="300",
        minimum=0,
    ),
    "QO_MONITOR_SWEEP_PAGE_SIZE": Variable(
        name="QO_MONITOR_SWEEP_PAGE_SIZE",
        type="int",
        meaning="How many tasks a listing of a repair has.",
        default="1000",
        minimum=1,
        maximum=1000,
    ),
    "QO_WORKER_ID": Variable(
        name="QO_WORKER_ID",
        type="string",
        meaning="Name of the worker, up to 200 letters, digits and ._@:+-; no two that live have the same.",
        default_from="process",
        pattern="[A-Za-z0-9_][A-Za-z0-9._@:+-]{0,199}",
    ),
    "QO_HANDLERS": Variable(
        name="QO_HANDLERS",
        type="string",
        meaning="Where the handlers are: a module, or module:registry; without it, those that come along.",
    ),
    "QO_SHARDS": Variable(
        name="QO_SHARDS",
        type="string",
        meaning="The shards that the worker looks after, as 0,1,a; without it all.",
    ),
    "QO_CONCURRENCY": Variable(
        name="QO_CONCURRENCY",
        type="int",
        meaning="Tasks that a worker does at a time.",
        default="1",
        minimum=1,
        maximum=256,
    ),
    "QO_FAIL_UNKNOWN_TYPES": Variable(
        name="QO_FAIL_UNKNOWN_TYPES",
        type="bool",
        meaning="Whether a worker fails tasks that it has no handler for; else it leaves them to others.",
        default="false",
    ),
    "QO_RENEW_LEASES": Variable(
        name="QO_RENEW_LEASES",
        type="bool",
        meaning="Whether a worker renews its leases, so that an attempt may take longer than its time-out.",
        default="false",
    ),
    "QO_HEARTBEAT_SECONDS": Variable(
        name="QO_HEARTBEAT_SECONDS",
        type="number",
        meaning="Longest time between two signs of life of a worker.",
        default="15",
        minimum=0.05,
        maximum=30,
    ),
    "QO_SHUTDOWN_GRACE": Variable(
        name="QO_SHUTDOWN_GRACE",
        type="number",
        meaning="How long a stopped worker lets its tasks go on before it gives them back.",
        default="30",
        minimum=0,
        maximum=30,
    ),
    "GRPC_PORT": Variable(
        name="GRPC_PORT",
        type="port",
        meaning="Port of the queue where it listens at all.",
        default="50071",
        minimum=0,
    ),
    "METRICS_PORT": Variable(
        name="METRICS_PORT",
        type="port",
        meaning="Port for health and metrics; without it nothing listens.",
        minimum=0,
    ),
}

RULES: Final = ()


class QueueSettings(Struct, frozen=True):
    """Settings of queue."""

    qo_index_mode: str
    """Where workers look for tasks: at the index, at both, or at the tasks themselves."""

    qo_ready_page_size: int
    """How many entries of the index a listing has."""

    qo_log_scan_page_size: int
    """How many tasks a listing of a scan has."""

    qo_monitor_worker_health_threshold: float
    """How long a worker may be silent before it counts as dead."""

    @classmethod
    def load(cls, environ: Mapping[str, str]) -> QueueSettings:
        """Read the environment; raises SettingsError with every violation."""
        return cls.of(
            read(
                [
                    VARIABLES["QO_INDEX_MODE"],
                    VARIABLES["QO_READY_PAGE_SIZE"],
                    VARIABLES["QO_LOG_SCAN_PAGE_SIZE"],
                    VARIABLES["QO_MONITOR_WORKER_HEALTH_THRESHOLD"],
                ],
                RULES,
                environ,
            )
        )

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> QueueSettings:
        """Select the settings from values that are parsed already."""
        return cls(
            qo_index_mode=values["QO_INDEX_MODE"],
            qo_ready_page_size=values["QO_READY_PAGE_SIZE"],
            qo_log_scan_page_size=values["QO_LOG_SCAN_PAGE_SIZE"],
            qo_monitor_worker_health_threshold=values["QO_MONITOR_WORKER_HEALTH_THRESHOLD"],
        )


class WorkerSettings(Struct, frozen=True):
    """Settings of worker."""

    qo_index_mode: str
    """Where workers look for tasks: at the index, at both, or at the tasks themselves."""

    qo_ready_page_size: int
    """How many entries of the index a listing has."""

    qo_log_scan_page_size: int
    """How many tasks a listing of a scan has."""

    qo_no_monitor: bool
    """Whether a worker leaves the monitor out."""

    qo_monitor_worker_health_threshold: float
    """How long a worker may be silent before it counts as dead."""

    qo_monitor_sweep_interval: float
    """Time between two repairs of the indexes; 0 is never."""

    qo_worker_id: str
    """Name of the worker, up to 200 letters, digits and ._@:+-; no two that live have the same."""

    qo_handlers: str | None
    """Where the handlers are: a module, or module:registry; without it, those that come along."""

    qo_shards: str | None
    """The shards that the worker looks after, as 0,1,a; without it all."""

    qo_concurrency: int
    """Tasks that a worker does at a time."""

    qo_fail_unknown_types: bool
    """Whether a worker fails tasks that it has no handler for; else it leaves them to others."""

    qo_renew_leases: bool
    """Whether a worker renews its leases, so that an attempt may take longer than its time-out."""

    qo_heartbeat_seconds: float
    """Longest time between two signs of life of a worker."""

    qo_shutdown_grace: float
    """How long a stopped worker lets its tasks go on before it gives them back."""

    @classmethod
    def load(cls, environ: Mapping[str, str]) -> WorkerSettings:
        """Read the environment; raises SettingsError with every violation."""
        return cls.of(
            read(
                [
                    VARIABLES["QO_INDEX_MODE"],
                    VARIABLES["QO_READY_PAGE_SIZE"],
                    VARIABLES["QO_LOG_SCAN_PAGE_SIZE"],
                    VARIABLES["QO_NO_MONITOR"],
                    VARIABLES["QO_MONITOR_WORKER_HEALTH_THRESHOLD"],
                    VARIABLES["QO_MONITOR_SWEEP_INTERVAL"],
                    VARIABLES["QO_WORKER_ID"],
                    VARIABLES["QO_HANDLERS"],
                    VARIABLES["QO_SHARDS"],
                    VARIABLES["QO_CONCURRENCY"],
                    VARIABLES["QO_FAIL_UNKNOWN_TYPES"],
                    VARIABLES["QO_RENEW_LEASES"],
                    VARIABLES["QO_HEARTBEAT_SECONDS"],
                    VARIABLES["QO_SHUTDOWN_GRACE"],
                ],
                RULES,
                environ,
            )
        )

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> WorkerSettings:
        """Select the settings from values that are parsed already."""
        return cls(
            qo_index_mode=values["QO_INDEX_MODE"],
            qo_ready_page_size=values["QO_READY_PAGE_SIZE"],
            qo_log_scan_page_size=values["QO_LOG_SCAN_PAGE_SIZE"],
            qo_no_monitor=values["QO_NO_MONITOR"],
            qo_monitor_worker_health_threshold=values["QO_MONITOR_WORKER_HEALTH_THRESHOLD"],
            qo_monitor_sweep_interval=values["QO_MONITOR_SWEEP_INTERVAL"],
            qo_worker_id=values["QO_WORKER_ID"],
            qo_handlers=values["QO_HANDLERS"],
            qo_shards=values["QO_SHARDS"],
            qo_concurrency=values["QO_CONCURRENCY"],
            qo_fail_unknown_types=values["QO_FAIL_UNKNOWN_TYPES"],
            qo_renew_leases=values["QO_RENEW_LEASES"],
            qo_heartbeat_seconds=values["QO_HEARTBEAT_SECONDS"],
            qo_shutdown_grace=values["QO_SHUTDOWN_GRACE"],
        )


class MonitorSettings(Struct, frozen=True):
    """Settings of monitor."""

    qo_monitor_check_interval: float
    """Time between two looks for leases that have ended."""

    qo_monitor_grace: float
    """How long after the end of a lease the monitor waits, so that a worker can report first."""

    qo_monitor_worker_health_threshold: float
    """How long a worker may be silent before it counts as dead."""

    qo_monitor_sweep_interval: float
    """Time between two repairs of the indexes; 0 is never."""

    qo_monitor_sweep_page_size: int
    """How many tasks a listing of a repair has."""

    @classmethod
    def load(cls, environ: Mapping[str, str]) -> MonitorSettings:
        """Read the environment; raises SettingsError with every violation."""
        return cls.of(
            read(
                [
                    VARIABLES["QO_MONITOR_CHECK_INTERVAL"],
                    VARIABLES["QO_MONITOR_GRACE"],
                    VARIABLES["QO_MONITOR_WORKER_HEALTH_THRESHOLD"],
                    VARIABLES["QO_MONITOR_SWEEP_INTERVAL"],
                    VARIABLES["QO_MONITOR_SWEEP_PAGE_SIZE"],
                ],
                RULES,
                environ,
            )
        )

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> MonitorSettings:
        """Select the settings from values that are parsed already."""
        return cls(
            qo_monitor_check_interval=values["QO_MONITOR_CHECK_INTERVAL"],
            qo_monitor_grace=values["QO_MONITOR_GRACE"],
            qo_monitor_worker_health_threshold=values["QO_MONITOR_WORKER_HEALTH_THRESHOLD"],
            qo_monitor_sweep_interval=values["QO_MONITOR_SWEEP_INTERVAL"],
            qo_monitor_sweep_page_size=values["QO_MONITOR_SWEEP_PAGE_SIZE"],
        )


SETTINGS: Final[Mapping[str, type[Any]]] = {
    "queue": QueueSettings,
    "worker": WorkerSettings,
    "monitor": MonitorSettings,
}
