"""Deployments of queuey: the components, command, listeners and healthcheck of each node.

Generated from spec/queuey (sha256:1b3f6742c989844c). Do not edit; run `nox -s generate`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from runtime.model.system import Announced, Deployment, Healthcheck, Listener, Node

LOCAL: Final = Deployment(
    name="local",
    in_process=False,
    ingress=("queue", "store"),
    nodes={
        "queue": Node(
            name="queue",
            hosts=("queue",),
            serves=("QueueService",),
            variables=(
                "LOG_LEVEL",
                "HOST",
                "PORT",
                "GRPC_PORT",
                "DB_PATH",
                "ABANDONED_AGE",
                "MAX_ATTEMPTS",
                "SWEEP_INTERVAL",
                "STARTUP_GRACE",
                "MAX_BODY_BYTES",
                "REQUIRE_RUNNER_ID",
                "MDNS_ENABLED",
                "DEPLOYMENT_NAME",
                "TLS_CERT_FILE",
                "TLS_KEY_FILE",
                "TLS_CA_FILE",
                "ACCEPTED_TOKENS",
            ),
            command="python -m runtime.serve queuey.local.queue",
            healthcheck=Healthcheck("http", "127.0.0.1:${PORT}/readyz", 1000),
            bind_host="${HOST}",
            port_variable="GRPC_PORT",
            http=Listener("${HOST}", "PORT"),
            announced=Announced(
                "_serval:queue._tcp.local.", "_serval-queue._tcp.local.", "MDNS_ENABLED", "DEPLOYMENT_NAME"
            ),
        ),
        "store": Node(
            name="store",
            hosts=("store",),
            serves=("StoreService",),
            variables=(
                "LOG_LEVEL",
                "HOST",
                "MDNS_ENABLED",
                "DEPLOYMENT_NAME",
                "STORE_PORT",
                "STORE_PATH",
                "MAX_BLOB_BYTES",
                "TLS_CERT_FILE",
                "TLS_KEY_FILE",
                "TLS_CA_FILE",
                "ACCEPTED_TOKENS",
            ),
            command="python -m runtime.serve queuey.local.store",
            healthcheck=Healthcheck("http", "127.0.0.1:${STORE_PORT}/readyz", 1000),
            http=Listener("${HOST}", "STORE_PORT"),
            announced=Announced(
                "_serval:storage._tcp.local.",
                "_serval-storage._tcp.local.",
                "MDNS_ENABLED",
                "DEPLOYMENT_NAME",
            ),
        ),
        "runner": Node(
            name="runner",
            hosts=("runner",),
            serves=(),
            variables=(
                "LOG_LEVEL",
                "ABANDONED_AGE",
                "MDNS_ENABLED",
                "DEPLOYMENT_NAME",
                "QUEUE_ADDR",
                "STORE_URL",
                "RUNNER_PORT",
                "RUNNER_ID",
                "RUNNER_CONCURRENCY",
                "RUN_SECONDS",
                "RUN_FUEL",
                "RUN_MEMORY_BYTES",
                "RUN_OUTPUT_BYTES",
                "SHUTDOWN_GRACE_SECONDS",
                "TLS_CERT_FILE",
                "TLS_KEY_FILE",
                "TLS_CA_FILE",
                "CALLER_TOKEN",
                "ACCEPTED_TOKENS",
            ),
            command="python -m runtime.serve queuey.local.runner",
            healthcheck=Healthcheck("http", "127.0.0.1:${RUNNER_PORT}/readyz", 1000),
            http=Listener("127.0.0.1", "RUNNER_PORT"),
            finds={"STORE_URL": "store"},
            upstreams={
                "QUEUE_ADDR": "queue",
            },
        ),
    },
)
"""A queue, a store and a runner that finds both by itself. Whoever can reach them may call them, unless
there are tokens."""

COMPOSE: Final = Deployment(
    name="compose",
    in_process=False,
    ingress=("queue", "store"),
    nodes={
        "queue": Node(
            name="queue",
            hosts=("queue",),
            serves=("QueueService",),
            variables=(
                "LOG_LEVEL",
                "HOST",
                "PORT",
                "GRPC_PORT",
                "DB_PATH",
                "ABANDONED_AGE",
                "MAX_ATTEMPTS",
                "SWEEP_INTERVAL",
                "STARTUP_GRACE",
                "MAX_BODY_BYTES",
                "REQUIRE_RUNNER_ID",
                "MDNS_ENABLED",
                "DEPLOYMENT_NAME",
                "TLS_CERT_FILE",
                "TLS_KEY_FILE",
                "TLS_CA_FILE",
                "ACCEPTED_TOKENS",
            ),
            command="python -m runtime.serve queuey.compose.queue",
            healthcheck=Healthcheck("http", "127.0.0.1:${PORT}/readyz", 1000),
            bind_host="0.0.0.0",
            port_variable="GRPC_PORT",
            http=Listener("0.0.0.0", "PORT"),
            announced=Announced(
                "_serval:queue._tcp.local.", "_serval-queue._tcp.local.", "MDNS_ENABLED", "DEPLOYMENT_NAME"
            ),
            defaults={"HOST": "0.0.0.0", "PORT": "8100", "GRPC_PORT": "50091", "MDNS_ENABLED": "false"},
        ),
        "store": Node(
            name="store",
            hosts=("store",),
            serves=("StoreService",),
            variables=(
                "LOG_LEVEL",
                "HOST",
                "MDNS_ENABLED",
                "DEPLOYMENT_NAME",
                "STORE_PORT",
                "STORE_PATH",
                "MAX_BLOB_BYTES",
                "TLS_CERT_FILE",
                "TLS_KEY_FILE",
                "TLS_CA_FILE",
                "ACCEPTED_TOKENS",
            ),
            command="python -m runtime.serve queuey.compose.store",
            healthcheck=Healthcheck("http", "127.0.0.1:${STORE_PORT}/readyz", 1000),
            http=Listener("0.0.0.0", "STORE_PORT"),
            announced=Announced(
                "_serval:storage._tcp.local.",
                "_serval-storage._tcp.local.",
                "MDNS_ENABLED",
                "DEPLOYMENT_NAME",
            ),
            defaults={"HOST": "0.0.0.0", "STORE_PORT": "8101", "MDNS_ENABLED": "false"},
        ),
        "runner": Node(
            name="runner",
            hosts=("runner",),
            serves=(),
            variables=(
                "LOG_LEVEL",
                "ABANDONED_AGE",
                "MDNS_ENABLED",
                "DEPLOYMENT_NAME",
                "QUEUE_ADDR",
                "STORE_URL",
                "RUNNER_PORT",
                "RUNNER_ID",
                "RUNNER_CONCURRENCY",
                "RUN_SECONDS",
                "RUN_FUEL",
                "RUN_MEMORY_BYTES",
                "RUN_OUTPUT_BYTES",
                "SHUTDOWN_GRACE_SECONDS",
                "TLS_CERT_FILE",
                "TLS_KEY_FILE",
                "TLS_CA_FILE",
                "CALLER_TOKEN",
                "ACCEPTED_TOKENS",
            ),
            command="python -m runtime.serve queuey.compose.runner",
            healthcheck=Healthcheck("http", "127.0.0.1:${RUNNER_PORT}/readyz", 1000),
            replicas=2,
            http=Listener("0.0.0.0", "RUNNER_PORT"),
            finds={"STORE_URL": "store"},
            upstreams={
                "QUEUE_ADDR": "queue",
            },
            defaults={
                "RUNNER_PORT": "8102",
                "RUNNER_CONCURRENCY": "1",
                "RUN_MEMORY_BYTES": "67108864",
                "RUN_OUTPUT_BYTES": "8388608",
                "MDNS_ENABLED": "false",
            },
        ),
    },
)
"""A queue, a store and two runners, each with what it keeps in a volume. They know each other by name, so
nothing is announced. Callers prove themselves."""

DEPLOYMENTS: Final[Mapping[str, Deployment]] = {
    "local": LOCAL,
    "compose": COMPOSE,
}
