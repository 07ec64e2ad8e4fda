"""Environment of queuey: its variables, and the settings that each component reads from them.

Generated from spec/queuey (sha256:77d78c72842295af). Do not edit; run `nox -s generate`.
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
    "HOST": Variable(
        name="HOST",
        type="string",
        meaning="Where the queue and the store are reached; 0.0.0.0 is everywhere.",
        default="127.0.0.1",
    ),
    "PORT": Variable(
        name="PORT",
        type="port",
        meaning="Port of the HTTP API of the queue; 0 takes any that is free.",
        default="0",
        minimum=0,
    ),
    "GRPC_PORT": Variable(
        name="GRPC_PORT",
        type="port",
        meaning="Port of the gRPC API of the queue; 0 takes any that is free.",
        default="0",
        minimum=0,
    ),
    "DB_PATH": Variable(
        name="DB_PATH",
        type="data_path",
        meaning="The database file.",
        default="queuey.db",
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
    "DATABASE_URL": Variable(
        name="DATABASE_URL",
        type="url",
        meaning="The PostgreSQL database, where a deployment keeps its jobs in one, as postgresql://user:password@host:port/name.",
        required=True,
    ),
    "ABANDONED_AGE": Variable(
        name="ABANDONED_AGE",
        type="number",
        meaning="How long after a runner was last heard of its job counts as abandoned.",
        default="300",
        minimum=0.001,
    ),
    "MAX_ATTEMPTS": Variable(
        name="MAX_ATTEMPTS",
        type="int",
        meaning="Attempts, takings and abandonments together, after which an abandoned job still waits.",
        default="3",
        minimum=1,
    ),
    "SWEEP_INTERVAL": Variable(
        name="SWEEP_INTERVAL",
        type="number",
        meaning="Time between two looks for abandoned jobs.",
        default="5",
        minimum=0.05,
    ),
    "STARTUP_GRACE": Variable(
        name="STARTUP_GRACE",
        type="number",
        meaning="How long after its start the queue calls no job abandoned.",
        default="0",
        minimum=0,
    ),
    "MAX_BODY_BYTES": Variable(
        name="MAX_BODY_BYTES",
        type="int",
        meaning="Largest request of a method that names no other limit, over HTTP and gRPC alike.",
        default="65536",
        minimum=1,
        maximum=4128768,
        role="max_body_bytes",
    ),
    "REQUIRE_RUNNER_ID": Variable(
        name="REQUIRE_RUNNER_ID",
        type="bool",
        meaning="Whether runners must say who they are when they tickle or complete.",
        default="false",
    ),
    "MDNS_ENABLED": Variable(
        name="MDNS_ENABLED",
        type="bool",
        meaning="Whether nodes announce themselves and look for each other on the network.",
        default="true",
    ),
    "DEPLOYMENT_NAME": Variable(
        name="DEPLOYMENT_NAME",
        type="string",
        meaning="Name of the deployment that nodes announce and look for, where a network has several.",
    ),
    "STORE_PORT": Variable(
        name="STORE_PORT",
        type="port",
        meaning="Port of the store; 0 takes any that is free.",
        default="0",
        minimum=0,
    ),
    "STORE_PATH": Variable(
        name="STORE_PATH",
        type="data_path",
        meaning="The folder of the store.",
        default="blobs",
    ),
    "MAX_BLOB_BYTES": Variable(
        name="MAX_BLOB_BYTES",
        type="int",
        meaning="Largest content that is stored.",
        default="268435456",
        minimum=1,
    ),
    "QUEUE_ADDR": Variable(
        name="QUEUE_ADDR",
        type="address",
        meaning="gRPC address of the queue; without it the runner looks for one on the network.",
    ),
    "STORE_URL": Variable(
        name="STORE_URL",
        type="url",
        meaning="Address of the store; without it the runner looks for one on the network.",
    ),
    "RUNNER_PORT": Variable(
        name="RUNNER_PORT",
        type="port",
        meaning="Port for the health and metrics of a runner; 0 takes any that is free.",
        default="0",
        minimum=0,
    ),
    "RUNNER_ID": Variable(
        name="RUNNER_ID",
        type="string",
        meaning="Name of the runner; no two that live have the same.",
        default_from="process",
    ),
    "RUNNER_CONCURRENCY": Variable(
        name="RUNNER_CONCURRENCY",
        type="int",
        meaning="Jobs a runner runs at a time.",
        default="2",
        minimum=1,
        maximum=256,
    ),
    "RUN_SECONDS": Variable(
        name="RUN_SECONDS",
        type="number",
        meaning="How long a binary may run.",
        default="60",
        minimum=0.01,
    ),
    "RUN_FUEL": Variable(
        name="RUN_FUEL",
        type="int",
        meaning="How many instructions a binary may execute; 0 is no limit.",
        default="0",
        minimum=0,
    ),
    "RUN_MEMORY_BYTES": Variable(
        name="RUN_MEMORY_BYTES",
        type="int",
        meaning="Most memory that a binary may have.",
        default="268435456",
        minimum=65536,
    ),
    "RUN_OUTPUT_BYTES": Variable(
        name="RUN_OUTPUT_BYTES",
        type="int",
        meaning="Most that a binary may write.",
        default="67108864",
        minimum=1,
    ),
    "SHUTDOWN_GRACE_SECONDS": Variable(
        name="SHUTDOWN_GRACE_SECONDS",
        type="number",
        meaning="How long a stopped runner lets its jobs go on before it gives them back.",
        default="20",
        minimum=0,
        maximum=20,
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
    "CALLER_TOKEN": Variable(
        name="CALLER_TOKEN",
        type="secret",
        meaning="What a runner proves itself with.",
        role="caller_token",
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
        meaning="a certificate is no use without its key and authority",
        together=("TLS_CERT_FILE", "TLS_KEY_FILE", "TLS_CA_FILE"),
    ),
)


class QueueSettings(Struct, frozen=True):
    """Settings of queue."""

    host: str
    """Where the queue and the store are reached; 0.0.0.0 is everywhere."""

    db_path: str
    """The database file."""

    abandoned_age: float
    """How long after a runner was last heard of its job counts as abandoned."""

    max_attempts: int
    """Attempts, takings and abandonments together, after which an abandoned job still waits."""

    sweep_interval: float
    """Time between two looks for abandoned jobs."""

    startup_grace: float
    """How long after its start the queue calls no job abandoned."""

    max_body_bytes: int
    """Largest request of a method that names no other limit, over HTTP and gRPC alike."""

    require_runner_id: bool
    """Whether runners must say who they are when they tickle or complete."""

    @classmethod
    def load(cls, environ: Mapping[str, str]) -> QueueSettings:
        """Read the environment; raises SettingsError with every violation."""
        return cls.of(
            read(
                [
                    VARIABLES["HOST"],
                    VARIABLES["DB_PATH"],
                    VARIABLES["ABANDONED_AGE"],
                    VARIABLES["MAX_ATTEMPTS"],
                    VARIABLES["SWEEP_INTERVAL"],
                    VARIABLES["STARTUP_GRACE"],
                    VARIABLES["MAX_BODY_BYTES"],
                    VARIABLES["REQUIRE_RUNNER_ID"],
                ],
                RULES,
                environ,
            )
        )

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> QueueSettings:
        """Select the settings from values that are parsed already."""
        return cls(
            host=values["HOST"],
            db_path=values["DB_PATH"],
            abandoned_age=values["ABANDONED_AGE"],
            max_attempts=values["MAX_ATTEMPTS"],
            sweep_interval=values["SWEEP_INTERVAL"],
            startup_grace=values["STARTUP_GRACE"],
            max_body_bytes=values["MAX_BODY_BYTES"],
            require_runner_id=values["REQUIRE_RUNNER_ID"],
        )


class StoreSettings(Struct, frozen=True):
    """Settings of store."""

    host: str
    """Where the queue and the store are reached; 0.0.0.0 is everywhere."""

    store_path: str
    """The folder of the store."""

    max_blob_bytes: int
    """Largest content that is stored."""

    @classmethod
    def load(cls, environ: Mapping[str, str]) -> StoreSettings:
        """Read the environment; raises SettingsError with every violation."""
        return cls.of(
            read(
                [
                    VARIABLES["HOST"],
                    VARIABLES["STORE_PATH"],
                    VARIABLES["MAX_BLOB_BYTES"],
                ],
                RULES,
                environ,
            )
        )

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> StoreSettings:
        """Select the settings from values that are parsed already."""
        return cls(
            host=values["HOST"],
            store_path=values["STORE_PATH"],
            max_blob_bytes=values["MAX_BLOB_BYTES"],
        )


class RunnerSettings(Struct, frozen=True):
    """Settings of runner."""

    abandoned_age: float
    """How long after a runner was last heard of its job counts as abandoned."""

    store_url: str | None
    """Address of the store; without it the runner looks for one on the network."""

    runner_id: str
    """Name of the runner; no two that live have the same."""

    runner_concurrency: int
    """Jobs a runner runs at a time."""

    run_seconds: float
    """How long a binary may run."""

    run_fuel: int
    """How many instructions a binary may execute; 0 is no limit."""

    run_memory_bytes: int
    """Most memory that a binary may have."""

    run_output_bytes: int
    """Most that a binary may write."""

    shutdown_grace_seconds: float
    """How long a stopped runner lets its jobs go on before it gives them back."""

    caller_token: str | None
    """What a runner proves itself with."""

    @classmethod
    def load(cls, environ: Mapping[str, str]) -> RunnerSettings:
        """Read the environment; raises SettingsError with every violation."""
        return cls.of(
            read(
                [
                    VARIABLES["ABANDONED_AGE"],
                    VARIABLES["STORE_URL"],
                    VARIABLES["RUNNER_ID"],
                    VARIABLES["RUNNER_CONCURRENCY"],
                    VARIABLES["RUN_SECONDS"],
                    VARIABLES["RUN_FUEL"],
                    VARIABLES["RUN_MEMORY_BYTES"],
                    VARIABLES["RUN_OUTPUT_BYTES"],
                    VARIABLES["SHUTDOWN_GRACE_SECONDS"],
                    VARIABLES["CALLER_TOKEN"],
                ],
                RULES,
                environ,
            )
        )

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> RunnerSettings:
        """Select the settings from values that are parsed already."""
        return cls(
            abandoned_age=values["ABANDONED_AGE"],
            store_url=values["STORE_URL"],
            runner_id=values["RUNNER_ID"],
            runner_concurrency=values["RUNNER_CONCURRENCY"],
            run_seconds=values["RUN_SECONDS"],
            run_fuel=values["RUN_FUEL"],
            run_memory_bytes=values["RUN_MEMORY_BYTES"],
            run_output_bytes=values["RUN_OUTPUT_BYTES"],
            shutdown_grace_seconds=values["SHUTDOWN_GRACE_SECONDS"],
            caller_token=values["CALLER_TOKEN"],
        )


SETTINGS: Final[Mapping[str, type[Any]]] = {
    "queue": QueueSettings,
    "store": StoreSettings,
    "runner": RunnerSettings,
}
