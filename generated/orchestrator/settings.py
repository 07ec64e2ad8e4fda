"""Environment of orchestrator: its variables, and the settings that each component reads from them.

Generated from spec/orchestrator (sha256:fdaebfd770cb5849). Do not edit; run `nox -s generate`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from msgspec import Struct

from runtime.model.system import Variable, VariableRule
from runtime.node.settings import read

VARIABLES: Final[Mapping[str, Variable]] = {
    "LOG_LEVEL": Variable(
        name="LOG_LEVEL",
        type="choice",
        meaning="Least level that is logged.",
        default="INFO",
        choices=("DEBUG", "INFO", "WARNING", "ERROR"),
        role="log_level",
    ),
    "DATABASE_URL": Variable(
        name="DATABASE_URL",
        type="url",
        meaning="The PostgreSQL database, as postgresql://user:password@host:port/name.",
        required=True,
    ),
    "DATABASE_PATH": Variable(
        name="DATABASE_PATH",
        type="data_path",
        meaning="The database file, where a deployment keeps its jobs in one.",
        default="orchestrator.db",
    ),
    "REDIS_URL": Variable(
        name="REDIS_URL",
        type="url",
        meaning="The Redis server, where a deployment keeps its jobs in one, as redis://user:password@host:port.",
        required=True,
    ),
    "REDIS_KEY_PREFIX": Variable(
        name="REDIS_KEY_PREFIX",
        type="string",
        meaning="Prefix of every key; with a hash tag, as {name}:, all keys are in one slot of a cluster.",
        default="",
    ),
    "API_PORT": Variable(
        name="API_PORT",
        type="port",
        meaning="Port of the HTTP API.",
        default="8080",
    ),
    "GRPC_PORT": Variable(
        name="GRPC_PORT",
        type="port",
        meaning="Port of the gRPC API.",
        default="50061",
    ),
    "WORKER_PORT": Variable(
        name="WORKER_PORT",
        type="port",
        meaning="Port for the health and metrics of a worker.",
        default="8081",
    ),
    "MAINTENANCE_PORT": Variable(
        name="MAINTENANCE_PORT",
        type="port",
        meaning="Port for the health and metrics of a maintenance node.",
        default="8082",
    ),
    "MAX_PAYLOAD_BYTES": Variable(
        name="MAX_PAYLOAD_BYTES",
        type="int",
        meaning="Largest request of a method that names no other limit, over HTTP and gRPC alike.",
        default="1048576",
        minimum=1,
        maximum=4128768,
        role="max_body_bytes",
    ),
    "IDEMPOTENCY_STRICT": Variable(
        name="IDEMPOTENCY_STRICT",
        type="bool",
        meaning="Whether a known key with another job type or payload is refused.",
        default="false",
    ),
    "CREATED_GRACE_SECONDS": Variable(
        name="CREATED_GRACE_SECONDS",
        type="number",
        meaning="How long a job may be CREATED before the sweeper queues it.",
        default="60",
        minimum=0.1,
    ),
    "CREATED_SWEEP_SECONDS": Variable(
        name="CREATED_SWEEP_SECONDS",
        type="number",
        meaning="Time between two looks for jobs that were left behind.",
        default="5",
        minimum=0.05,
    ),
    "WORKER_ID": Variable(
        name="WORKER_ID",
        type="string",
        meaning="Name of the worker; no two that live have the same.",
        default_from="process",
    ),
    "WORKER_CONCURRENCY": Variable(
        name="WORKER_CONCURRENCY",
        type="int",
        meaning="Jobs a worker runs at a time.",
        default="1",
        minimum=1,
        maximum=1000,
    ),
    "JOB_HANDLERS": Variable(
        name="JOB_HANDLERS",
        type="string",
        meaning="Where the functions are: a module, or module:registry; without it, those that come along.",
    ),
    "POLL_INTERVAL_MS": Variable(
        name="POLL_INTERVAL_MS",
        type="int",
        meaning="How long an idle worker waits before it looks again; a notification wakes it sooner.",
        default="500",
        minimum=10,
    ),
    "LEASE_SECONDS": Variable(
        name="LEASE_SECONDS",
        type="number",
        meaning="How long a worker owns a job without renewing its lease.",
        default="30",
        minimum=0.5,
    ),
    "LEASE_RENEW_SECONDS": Variable(
        name="LEASE_RENEW_SECONDS",
        type="number",
        meaning="Time between two renewals.",
        default="10",
        minimum=0.1,
    ),
    "JOB_TIMEOUT_SECONDS": Variable(
        name="JOB_TIMEOUT_SECONDS",
        type="number",
        meaning="How long a run may take where its job type does not say.",
        default="3600",
        minimum=0.1,
    ),
    "SHUTDOWN_GRACE_SECONDS": Variable(
        name="SHUTDOWN_GRACE_SECONDS",
        type="number",
        meaning="How long a stopped worker lets its jobs go on before it gives them back.",
        default="20",
        minimum=0,
        maximum=20,
    ),
    "MAX_RETRIES": Variable(
        name="MAX_RETRIES",
        type="int",
        meaning="Failures after which a job is still tried again.",
        default="3",
        minimum=0,
    ),
    "BACKOFF_BASE_SECONDS": Variable(
        name="BACKOFF_BASE_SECONDS",
        type="number",
        meaning="Wait after the first failure; it doubles with each.",
        default="2",
        minimum=0,
    ),
    "BACKOFF_MAX_SECONDS": Variable(
        name="BACKOFF_MAX_SECONDS",
        type="number",
        meaning="Longest wait.",
        default="300",
        minimum=0,
    ),
    "REAPER_INTERVAL_SECONDS": Variable(
        name="REAPER_INTERVAL_SECONDS",
        type="number",
        meaning="Time between two looks for expired leases.",
        default="5",
        minimum=0.05,
    ),
    "SCHEDULER_INTERVAL_SECONDS": Variable(
        name="SCHEDULER_INTERVAL_SECONDS",
        type="number",
        meaning="Time between two looks for waits that are over.",
        default="1",
        minimum=0.05,
    ),
    "TLS_CERT_FILE": Variable(
        name="TLS_CERT_FILE",
        type="path",
        meaning="Certificate of this node. Without it callers prove themselves by token.",
        role="tls_certificate",
    ),
    "TLS_KEY_FILE": Variable(
        name="TLS_KEY_FILE",
        type="path",
        meaning="Private key of the certificate.",
        role="tls_key",
    ),
    "TLS_CA_FILE": Variable(
        name="TLS_CA_FILE",
        type="path",
        meaning="Authority that signed the certificates of all callers.",
        role="tls_authority",
    ),
    "ACCEPTED_TOKENS": Variable(
        name="ACCEPTED_TOKENS",
        type="digests",
        meaning="Principals and the SHA-256 of their tokens as name=hex, separated by commas.",
        role="accepted_tokens",
    ),
}

RULES: Final = (
    VariableRule(
        meaning="a lease must be renewed before it ends",
        variable="LEASE_SECONDS",
        greater_than="LEASE_RENEW_SECONDS",
    ),
    VariableRule(
        meaning="a certificate is no use without its key and authority",
        together=("TLS_CERT_FILE", "TLS_KEY_FILE", "TLS_CA_FILE"),
    ),
)


class ApiSettings(Struct, frozen=True):
    """Settings of api."""

    max_payload_bytes: int
    """Largest request of a method that names no other limit, over HTTP and gRPC alike."""

    idempotency_strict: bool
    """Whether a known key with another job type or payload is refused."""

    created_grace_seconds: float
    """How long a job may be CREATED before the sweeper queues it."""

    created_sweep_seconds: float
    """Time between two looks for jobs that were left behind."""

    @classmethod
    def load(cls, environ: Mapping[str, str]) -> ApiSettings:
        """Read the environment; raises SettingsError with every violation."""
        return cls.of(
            read(
                [
                    VARIABLES["MAX_PAYLOAD_BYTES"],
                    VARIABLES["IDEMPOTENCY_STRICT"],
                    VARIABLES["CREATED_GRACE_SECONDS"],
                    VARIABLES["CREATED_SWEEP_SECONDS"],
                ],
                RULES,
                environ,
            )
        )

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> ApiSettings:
        """Select the settings from values that are parsed already."""
        return cls(
            max_payload_bytes=values["MAX_PAYLOAD_BYTES"],
            idempotency_strict=values["IDEMPOTENCY_STRICT"],
            created_grace_seconds=values["CREATED_GRACE_SECONDS"],
            created_sweep_seconds=values["CREATED_SWEEP_SECONDS"],
        )


class WorkerSettings(Struct, frozen=True):
    """Settings of worker."""

    worker_id: str
    """Name of the worker; no two that live have the same."""

    worker_concurrency: int
    """Jobs a worker runs at a time."""

    job_handlers: str | None
    """Where the functions are: a module, or module:registry; without it, those that come along."""

    poll_interval_ms: int
    """How long an idle worker waits before it looks again; a notification wakes it sooner."""

    lease_seconds: float
    """How long a worker owns a job without renewing its lease."""

    lease_renew_seconds: float
    """Time between two renewals."""

    job_timeout_seconds: float
    """How long a run may take where its job type does not say."""

    shutdown_grace_seconds: float
    """How long a stopped worker lets its jobs go on before it gives them back."""

    max_retries: int
    """Failures after which a job is still tried again."""

    backoff_base_seconds: float
    """Wait after the first failure; it doubles with each."""

    backoff_max_seconds: float
    """Longest wait."""

    @classmethod
    def load(cls, environ: Mapping[str, str]) -> WorkerSettings:
        """Read the environment; raises SettingsError with every violation."""
        return cls.of(
            read(
                [
                    VARIABLES["WORKER_ID"],
                    VARIABLES["WORKER_CONCURRENCY"],
                    VARIABLES["JOB_HANDLERS"],
                    VARIABLES["POLL_INTERVAL_MS"],
                    VARIABLES["LEASE_SECONDS"],
                    VARIABLES["LEASE_RENEW_SECONDS"],
                    VARIABLES["JOB_TIMEOUT_SECONDS"],
                    VARIABLES["SHUTDOWN_GRACE_SECONDS"],
                    VARIABLES["MAX_RETRIES"],
                    VARIABLES["BACKOFF_BASE_SECONDS"],
                    VARIABLES["BACKOFF_MAX_SECONDS"],
                ],
                RULES,
                environ,
            )
        )

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> WorkerSettings:
        """Select the settings from values that are parsed already."""
        return cls(
            worker_id=values["WORKER_ID"],
            worker_concurrency=values["WORKER_CONCURRENCY"],
            job_handlers=values["JOB_HANDLERS"],
            poll_interval_ms=values["POLL_INTERVAL_MS"],
            lease_seconds=values["LEASE_SECONDS"],
            lease_renew_seconds=values["LEASE_RENEW_SECONDS"],
            job_timeout_seconds=values["JOB_TIMEOUT_SECONDS"],
            shutdown_grace_seconds=values["SHUTDOWN_GRACE_SECONDS"],
            max_retries=values["MAX_RETRIES"],
            backoff_base_seconds=values["BACKOFF_BASE_SECONDS"],
            backoff_max_seconds=values["BACKOFF_MAX_SECONDS"],
        )


class ReaperSettings(Struct, frozen=True):
    """Settings of reaper."""

    max_retries: int
    """Failures after which a job is still tried again."""

    backoff_base_seconds: float
    """Wait after the first failure; it doubles with each."""

    backoff_max_seconds: float
    """Longest wait."""

    reaper_interval_seconds: float
    """Time between two looks for expired leases."""

    @classmethod
    def load(cls, environ: Mapping[str, str]) -> ReaperSettings:
        """Read the environment; raises SettingsError with every violation."""
        return cls.of(
            read(
                [
                    VARIABLES["MAX_RETRIES"],
                    VARIABLES["BACKOFF_BASE_SECONDS"],
                    VARIABLES["BACKOFF_MAX_SECONDS"],
                    VARIABLES["REAPER_INTERVAL_SECONDS"],
                ],
                RULES,
                environ,
            )
        )

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> ReaperSettings:
        """Select the settings from values that are parsed already."""
        return cls(
            max_retries=values["MAX_RETRIES"],
            backoff_base_seconds=values["BACKOFF_BASE_SECONDS"],
            backoff_max_seconds=values["BACKOFF_MAX_SECONDS"],
            reaper_interval_seconds=values["REAPER_INTERVAL_SECONDS"],
        )


class SchedulerSettings(Struct, frozen=True):
    """Settings of scheduler."""

    max_retries: int
    """Failures after which a job is still tried again."""

    scheduler_interval_seconds: float
    """Time between two looks for waits that are over."""

    @classmethod
    def load(cls, environ: Mapping[str, str]) -> SchedulerSettings:
        """Read the environment; raises SettingsError with every violation."""
        return cls.of(
            read(
                [
                    VARIABLES["MAX_RETRIES"],
                    VARIABLES["SCHEDULER_INTERVAL_SECONDS"],
                ],
                RULES,
                environ,
            )
        )

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> SchedulerSettings:
        """Select the settings from values that are parsed already."""
        return cls(
            max_retries=values["MAX_RETRIES"],
            scheduler_interval_seconds=values["SCHEDULER_INTERVAL_SECONDS"],
        )


SETTINGS: Final[Mapping[str, type[Any]]] = {
    "api": ApiSettings,
    "worker": WorkerSettings,
    "reaper": ReaperSettings,
    "scheduler": SchedulerSettings,
}
