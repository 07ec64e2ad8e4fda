"""Deployments of orchestrator: the components, command, listeners and healthcheck of each node.

Generated from spec/orchestrator (sha256:159d75815b2c6e54). Do not edit; run `nox -s generate`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from runtime.model.system import Deployment, Healthcheck, Listener, Node

LOCAL: Final = Deployment(
    name="local",
    in_process=True,
    ingress=("api",),
    nodes={
        "api": Node(
            name="api",
            hosts=("api",),
            serves=("JobsService", "OperatorService"),
            variables=(
                "LOG_LEVEL",
                "DATABASE_URL",
                "API_PORT",
                "GRPC_PORT",
                "MAX_PAYLOAD_BYTES",
                "IDEMPOTENCY_STRICT",
                "CREATED_GRACE_SECONDS",
                "CREATED_SWEEP_SECONDS",
                "TLS_CERT_FILE",
                "TLS_KEY_FILE",
                "TLS_CA_FILE",
                "ACCEPTED_TOKENS",
            ),
            command="python -m runtime.serve orchestrator.local.api",
            healthcheck=Healthcheck("http", "127.0.0.1:${API_PORT}/readyz", 1000),
            bind_host="127.0.0.1",
            port_variable="GRPC_PORT",
            anonymous="client",
            http=Listener("127.0.0.1", "API_PORT", anonymous="client"),
        ),
        "worker": Node(
            name="worker",
            hosts=("worker", "reaper", "scheduler"),
            serves=(),
            variables=(
                "LOG_LEVEL",
                "DATABASE_URL",
                "WORKER_PORT",
                "WORKER_ID",
                "WORKER_CONCURRENCY",
                "JOB_HANDLERS",
                "POLL_INTERVAL_MS",
                "LEASE_SECONDS",
                "LEASE_RENEW_SECONDS",
                "JOB_TIMEOUT_SECONDS",
                "SHUTDOWN_GRACE_SECONDS",
                "MAX_RETRIES",
                "BACKOFF_BASE_SECONDS",
                "BACKOFF_MAX_SECONDS",
                "REAPER_INTERVAL_SECONDS",
                "SCHEDULER_INTERVAL_SECONDS",
                "TLS_CERT_FILE",
                "TLS_KEY_FILE",
                "TLS_CA_FILE",
                "ACCEPTED_TOKENS",
            ),
            command="python -m runtime.serve orchestrator.local.worker",
            healthcheck=Healthcheck("http", "127.0.0.1:${WORKER_PORT}/readyz", 1000),
            http=Listener("127.0.0.1", "WORKER_PORT"),
        ),
    },
    servers={"postgres": "DATABASE_URL"},
)
"""An API and a worker for one person, with a PostgreSQL of its own unless DATABASE_URL names one. Clients
on the same machine need no proof."""

COMPOSE: Final = Deployment(
    name="compose",
    in_process=True,
    ingress=("api",),
    nodes={
        "api": Node(
            name="api",
            hosts=("api",),
            serves=("JobsService", "OperatorService"),
            variables=(
                "LOG_LEVEL",
                "DATABASE_URL",
                "API_PORT",
                "GRPC_PORT",
                "MAX_PAYLOAD_BYTES",
                "IDEMPOTENCY_STRICT",
                "CREATED_GRACE_SECONDS",
                "CREATED_SWEEP_SECONDS",
                "TLS_CERT_FILE",
                "TLS_KEY_FILE",
                "TLS_CA_FILE",
                "ACCEPTED_TOKENS",
            ),
            command="python -m runtime.serve orchestrator.compose.api",
            healthcheck=Healthcheck("http", "127.0.0.1:${API_PORT}/readyz", 1000),
            bind_host="0.0.0.0",
            port_variable="GRPC_PORT",
            http=Listener("0.0.0.0", "API_PORT"),
        ),
        "worker": Node(
            name="worker",
            hosts=("worker", "reaper", "scheduler"),
            serves=(),
            variables=(
                "LOG_LEVEL",
                "DATABASE_URL",
                "WORKER_PORT",
                "WORKER_ID",
                "WORKER_CONCURRENCY",
                "JOB_HANDLERS",
                "POLL_INTERVAL_MS",
                "LEASE_SECONDS",
                "LEASE_RENEW_SECONDS",
                "JOB_TIMEOUT_SECONDS",
                "SHUTDOWN_GRACE_SECONDS",
                "MAX_RETRIES",
                "BACKOFF_BASE_SECONDS",
                "BACKOFF_MAX_SECONDS",
                "REAPER_INTERVAL_SECONDS",
                "SCHEDULER_INTERVAL_SECONDS",
                "TLS_CERT_FILE",
                "TLS_KEY_FILE",
                "TLS_CA_FILE",
                "ACCEPTED_TOKENS",
            ),
            command="python -m runtime.serve orchestrator.compose.worker",
            healthcheck=Healthcheck("http", "127.0.0.1:${WORKER_PORT}/readyz", 1000),
            replicas=2,
            http=Listener("0.0.0.0", "WORKER_PORT"),
            defaults={"WORKER_CONCURRENCY": "4"},
        ),
        "maintenance": Node(
            name="maintenance",
            hosts=("reaper", "scheduler"),
            serves=(),
            variables=(
                "LOG_LEVEL",
                "DATABASE_URL",
                "MAINTENANCE_PORT",
                "MAX_RETRIES",
                "BACKOFF_BASE_SECONDS",
                "BACKOFF_MAX_SECONDS",
                "REAPER_INTERVAL_SECONDS",
                "SCHEDULER_INTERVAL_SECONDS",
                "TLS_CERT_FILE",
                "TLS_KEY_FILE",
                "TLS_CA_FILE",
                "ACCEPTED_TOKENS",
            ),
            command="python -m runtime.serve orchestrator.compose.maintenance",
            healthcheck=Healthcheck("http", "127.0.0.1:${MAINTENANCE_PORT}/readyz", 1000),
            http=Listener("0.0.0.0", "MAINTENANCE_PORT"),
        ),
    },
    servers={"postgres": "DATABASE_URL"},
)
"""API, workers and maintenance apart, each in any number, around one PostgreSQL. Callers prove themselves."""

DEPLOYMENTS: Final[Mapping[str, Deployment]] = {
    "local": LOCAL,
    "compose": COMPOSE,
}
