"""Environment of taskqueue: its variables, and the settings that each component reads from them.

Generated from spec/taskqueue (sha256:2c9462dde7cbf380). Do not edit; run `nox -s generate`.
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
    "PYTHONUNBUFFERED": Variable(
        name="PYTHONUNBUFFERED",
        type="constant",
        meaning="What is printed leaves the process at once; log lines below WARNING do so within 5 ms.",
        default="1",
    ),
    "DATABASE_PATH": Variable(
        name="DATABASE_PATH",
        type="data_path",
        meaning="The database file of a node, where a deployment keeps what it has in one.",
        default="taskqueue.db",
    ),
    "DATABASE_URL": Variable(
        name="DATABASE_URL",
        type="url",
        meaning="The PostgreSQL database, where a deployment keeps what it has in one, as postgresql://user:password@host:port/name.",
        required=True,
    ),
    "GATEWAY_PORT": Variable(
        name="GATEWAY_PORT",
        type="port",
        meaning="Port of the public API.",
        default="50051",
    ),
    "JOB_PORT": Variable(
        name="JOB_PORT",
        type="port",
        meaning="Port of the job service.",
        default="50052",
    ),
    "QUEUE_PORT": Variable(
        name="QUEUE_PORT",
        type="port",
        meaning="Port of the queue service.",
        default="50053",
    ),
    "COORDINATOR_PORT": Variable(
        name="COORDINATOR_PORT",
        type="port",
        meaning="Port of the coordinator.",
        default="50054",
    ),
    "RESULT_PORT": Variable(
        name="RESULT_PORT",
        type="port",
        meaning="Port of the result service.",
        default="50055",
    ),
    "NODE_PORT": Variable(
        name="NODE_PORT",
        type="port",
        meaning="Port of the public API of a monolith node.",
        default="50051",
    ),
    "JOB_SERVICE_ADDR": Variable(
        name="JOB_SERVICE_ADDR",
        type="address",
        meaning="Where the job service listens.",
        required=True,
    ),
    "QUEUE_SERVICE_ADDR": Variable(
        name="QUEUE_SERVICE_ADDR",
        type="address",
        meaning="Where the queue service listens.",
        required=True,
    ),
    "RESULT_SERVICE_ADDR": Variable(
        name="RESULT_SERVICE_ADDR",
        type="address",
        meaning="Where the result service listens.",
        required=True,
    ),
    "COORDINATOR_ADDR": Variable(
        name="COORDINATOR_ADDR",
        type="address",
        meaning="Where the coordinator listens.",
        required=True,
    ),
    "MAX_DEDUP_KEYS": Variable(
        name="MAX_DEDUP_KEYS",
        type="int",
        meaning="Submit keys remembered; the oldest is forgotten first.",
        default="10000",
        minimum=1,
    ),
    "MAX_RETAINED_JOBS": Variable(
        name="MAX_RETAINED_JOBS",
        type="int",
        meaning="Terminal records kept; 0 keeps all.",
        default="1000000",
        minimum=0,
    ),
    "MAX_OUTPUT_BYTES": Variable(
        name="MAX_OUTPUT_BYTES",
        type="int",
        meaning="Largest output of a job; a larger one fails it.",
        default="262144",
        minimum=0,
        maximum=4128768,
    ),
    "MAX_RETAINED_OUTPUT_BYTES": Variable(
        name="MAX_RETAINED_OUTPUT_BYTES",
        type="int",
        meaning="Bytes of envelopes kept; 0 keeps all.",
        default="1073741824",
        minimum=0,
    ),
    "HEARTBEAT_INTERVAL_MS": Variable(
        name="HEARTBEAT_INTERVAL_MS",
        type="int",
        meaning="Time between two heartbeats of a worker.",
        default="1000",
        minimum=1,
    ),
    "WORKER_TIMEOUT_MS": Variable(
        name="WORKER_TIMEOUT_MS",
        type="int",
        meaning="Silence after which a worker counts as unavailable.",
        default="4000",
        minimum=1,
    ),
    "FETCH_RETRY_AFTER_MS": Variable(
        name="FETCH_RETRY_AFTER_MS",
        type="int",
        meaning="Hint to an idle worker on when to ask again.",
        default="200",
        minimum=0,
        clamp=(50, 1000),
    ),
    "WORKER_ID": Variable(
        name="WORKER_ID",
        type="string",
        meaning="Name of the worker for its lifetime.",
        default_from="hostname",
    ),
    "WORKER_SLOTS": Variable(
        name="WORKER_SLOTS",
        type="int",
        meaning="Jobs a worker runs at a time.",
        default="6",
        minimum=1,
    ),
    "JOB_HANDLERS": Variable(
        name="JOB_HANDLERS",
        type="string",
        meaning="Where the functions are: a module, or module:registry; without it, those that come along.",
    ),
    "NODE_INDEX": Variable(
        name="NODE_INDEX",
        type="int",
        meaning="Place of this node in NODE_ADDRS, from 0.",
        required=True,
        minimum=0,
    ),
    "NODE_ADDRS": Variable(
        name="NODE_ADDRS",
        type="addresses",
        meaning="All nodes in their fixed order, separated by commas.",
        required=True,
    ),
    "TLS_CERT_FILE": Variable(
        name="TLS_CERT_FILE",
        type="path",
        meaning="Certificate that proves this node. Without it callers prove themselves by token.",
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
        meaning="Authority that signed the certificates of all nodes.",
        role="tls_authority",
    ),
    "CALLER_TOKEN": Variable(
        name="CALLER_TOKEN",
        type="secret",
        meaning="Proof of this node to others where TLS is off.",
        role="caller_token",
    ),
    "ACCEPTED_TOKENS": Variable(
        name="ACCEPTED_TOKENS",
        type="digests",
        meaning="Principals and the SHA-256 of their tokens as name=hex, separated by commas.",
        role="accepted_tokens",
    ),
    "METRICS_PORT": Variable(
        name="METRICS_PORT",
        type="int",
        meaning="Port for Prometheus; 0 is off.",
        default="0",
        minimum=0,
        maximum=65535,
        role="metrics_port",
    ),
}

RULES: Final = (
    VariableRule(
        meaning="a worker must be able to miss a beat",
        variable="WORKER_TIMEOUT_MS",
        greater_than="HEARTBEAT_INTERVAL_MS",
    ),
    VariableRule(
        meaning="a node must be in its own list",
        variable="NODE_INDEX",
        less_than_count_of="NODE_ADDRS",
    ),
    VariableRule(
        meaning="a certificate is no use without its key and authority",
        together=("TLS_CERT_FILE", "TLS_KEY_FILE", "TLS_CA_FILE"),
    ),
)


class GatewaySettings(Struct, frozen=True):
    """Settings of gateway."""

    @classmethod
    def load(cls, environ: Mapping[str, str]) -> GatewaySettings:
        """Read the environment; raises SettingsError with every violation."""
        return cls.of(read([], RULES, environ))

    @classmethod
    def of(cls, _values: Mapping[str, Any]) -> GatewaySettings:
        """Select the settings from values that are parsed already."""
        return cls()


class JobSettings(Struct, frozen=True):
    """Settings of job."""

    max_dedup_keys: int
    """Submit keys remembered; the oldest is forgotten first."""

    max_retained_jobs: int
    """Terminal records kept; 0 keeps all."""

    @classmethod
    def load(cls, environ: Mapping[str, str]) -> JobSettings:
        """Read the environment; raises SettingsError with every violation."""
        return cls.of(
            read(
                [
                    VARIABLES["MAX_DEDUP_KEYS"],
                    VARIABLES["MAX_RETAINED_JOBS"],
                ],
                RULES,
                environ,
            )
        )

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> JobSettings:
        """Select the settings from values that are parsed already."""
        return cls(
            max_dedup_keys=values["MAX_DEDUP_KEYS"],
            max_retained_jobs=values["MAX_RETAINED_JOBS"],
        )


class QueueSettings(Struct, frozen=True):
    """Settings of queue."""

    @classmethod
    def load(cls, environ: Mapping[str, str]) -> QueueSettings:
        """Read the environment; raises SettingsError with every violation."""
        return cls.of(read([], RULES, environ))

    @classmethod
    def of(cls, _values: Mapping[str, Any]) -> QueueSettings:
        """Select the settings from values that are parsed already."""
        return cls()


class CoordinatorSettings(Struct, frozen=True):
    """Settings of coordinator."""

    heartbeat_interval_ms: int
    """Time between two heartbeats of a worker."""

    worker_timeout_ms: int
    """Silence after which a worker counts as unavailable."""

    fetch_retry_after_ms: int
    """Hint to an idle worker on when to ask again."""

    @classmethod
    def load(cls, environ: Mapping[str, str]) -> CoordinatorSettings:
        """Read the environment; raises SettingsError with every violation."""
        return cls.of(
            read(
                [
                    VARIABLES["HEARTBEAT_INTERVAL_MS"],
                    VARIABLES["WORKER_TIMEOUT_MS"],
                    VARIABLES["FETCH_RETRY_AFTER_MS"],
                ],
                RULES,
                environ,
            )
        )

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> CoordinatorSettings:
        """Select the settings from values that are parsed already."""
        return cls(
            heartbeat_interval_ms=values["HEARTBEAT_INTERVAL_MS"],
            worker_timeout_ms=values["WORKER_TIMEOUT_MS"],
            fetch_retry_after_ms=values["FETCH_RETRY_AFTER_MS"],
        )


class WorkerSettings(Struct, frozen=True):
    """Settings of worker."""

    max_output_bytes: int
    """Largest output of a job; a larger one fails it."""

    heartbeat_interval_ms: int
    """Time between two heartbeats of a worker."""

    worker_id: str
    """Name of the worker for its lifetime."""

    worker_slots: int
    """Jobs a worker runs at a time."""

    job_handlers: str | None
    """Where the functions are: a module, or module:registry; without it, those that come along."""

    @classmethod
    def load(cls, environ: Mapping[str, str]) -> WorkerSettings:
        """Read the environment; raises SettingsError with every violation."""
        return cls.of(
            read(
                [
                    VARIABLES["MAX_OUTPUT_BYTES"],
                    VARIABLES["HEARTBEAT_INTERVAL_MS"],
                    VARIABLES["WORKER_ID"],
                    VARIABLES["WORKER_SLOTS"],
                    VARIABLES["JOB_HANDLERS"],
                ],
                RULES,
                environ,
            )
        )

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> WorkerSettings:
        """Select the settings from values that are parsed already."""
        return cls(
            max_output_bytes=values["MAX_OUTPUT_BYTES"],
            heartbeat_interval_ms=values["HEARTBEAT_INTERVAL_MS"],
            worker_id=values["WORKER_ID"],
            worker_slots=values["WORKER_SLOTS"],
            job_handlers=values["JOB_HANDLERS"],
        )


class ResultSettings(Struct, frozen=True):
    """Settings of result."""

    max_output_bytes: int
    """Largest output of a job; a larger one fails it."""

    max_retained_output_bytes: int
    """Bytes of envelopes kept; 0 keeps all."""

    @classmethod
    def load(cls, environ: Mapping[str, str]) -> ResultSettings:
        """Read the environment; raises SettingsError with every violation."""
        return cls.of(
            read(
                [
                    VARIABLES["MAX_OUTPUT_BYTES"],
                    VARIABLES["MAX_RETAINED_OUTPUT_BYTES"],
                ],
                RULES,
                environ,
            )
        )

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> ResultSettings:
        """Select the settings from values that are parsed already."""
        return cls(
            max_output_bytes=values["MAX_OUTPUT_BYTES"],
            max_retained_output_bytes=values["MAX_RETAINED_OUTPUT_BYTES"],
        )


SETTINGS: Final[Mapping[str, type[Any]]] = {
    "gateway": GatewaySettings,
    "job": JobSettings,
    "queue": QueueSettings,
    "coordinator": CoordinatorSettings,
    "worker": WorkerSettings,
    "result": ResultSettings,
}
