"""The environment of queuey: its variables, and the settings that each component takes from them.

Generated from spec/queuey (sha256:aae65c91f93c4e6a). Do not edit; run `nox -s generate`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from runtime.settings import read
from runtime.tables import Variable, VariableRule

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
        meaning="Attempts after which an abandoned job is still handed out. Taking a job counts, and so does abandoning it: a job is run MAX_ATTEMPTS / 2 + 1 times, rounded down.",
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
        meaning="Largest body of a request.",
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
        meaning="Principals and the SHA-256 of their tokens as name=hex, separated by commas. Without any, whoever can reach a node may call it.",
        role="accepted_tokens",
    ),
}

RULES: Final = (
    VariableRule(
        meaning="a certificate is no use without its key and authority",
        together=("TLS_CERT_FILE", "TLS_KEY_FILE", "TLS_CA_FILE"),
    ),
)


@dataclass(frozen=True, slots=True)
class QueueSettings:
    """What queue takes from its environment."""

    host: str
    """Where the queue and the store are reached; 0.0.0.0 is everywhere."""

    db_path: str
    """The database file."""

    abandoned_age: float
    """How long after a runner was last heard of its job counts as abandoned."""

    max_attempts: int
    """Attempts after which an abandoned job is still handed out. Taking a job counts, and so does
    abandoning it: a job is run MAX_ATTEMPTS / 2 + 1 times, rounded down."""

    sweep_interval: float
    """Time between two looks for abandoned jobs."""

    startup_grace: float
    """How long after its start the queue calls no job abandoned."""

    max_body_bytes: int
    """Largest body of a request."""

    require_runner_id: bool
    """Whether runners must say who they are when they tickle or complete."""

    @classmethod
    def load(cls, environ: Mapping[str, str]) -> QueueSettings:
        """Reads the environment; raises SettingsError with everything that is wrong."""
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
        """Takes what it needs from values that were read before."""
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


SETTINGS: Final[Mapping[str, type[Any]]] = {
    "queue": QueueSettings,
}
