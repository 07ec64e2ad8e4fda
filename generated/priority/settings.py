"""Environment of priority: its variables, and the settings that each component reads from them.

Generated from spec/priority (sha256:5fb02a1f146da16d). Do not edit; run `nox -s generate`.
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
    "REDIS_URL": Variable(
        name="REDIS_URL",
        type="url",
        meaning="The Redis server: redis://…, or redis+sentinel://host:port,host:port/name to ask Sentinels.",
        required=True,
    ),
    "REDIS_KEY_PREFIX": Variable(
        name="REDIS_KEY_PREFIX",
        type="string",
        meaning="What every key begins with; one such as {pq}: keeps all of them on one node of a cluster.",
        default="",
    ),
    "REDIS_WAIT_REPLICAS": Variable(
        name="REDIS_WAIT_REPLICAS",
        type="int",
        meaning="How many replicas must have a new task before its submission is acknowledged.",
        default="0",
        minimum=0,
        maximum=10,
    ),
    "DATABASE_URL": Variable(
        name="DATABASE_URL",
        type="url",
        meaning="The PostgreSQL database of the history, or of all tasks, as postgresql://user:password@host:port/name.",
        required=True,
    ),
    "DATABASE_PATH": Variable(
        name="DATABASE_PATH",
        type="data_path",
        meaning="The database file, where a deployment keeps its tasks in one.",
        default="priority.db",
    ),
    "API_PORT": Variable(
        name="API_PORT",
        type="port",
        meaning="Port of the HTTP API.",
        default="8090",
    ),
    "GRPC_PORT": Variable(
        name="GRPC_PORT",
        type="port",
        meaning="Port of the gRPC API.",
        default="50071",
    ),
    "WORKER_PORT": Variable(
        name="WORKER_PORT",
        type="port",
        meaning="Port for the health and metrics of a worker.",
        default="8091",
    ),
    "SCHEDULER_PORT": Variable(
        name="SCHEDULER_PORT",
        type="port",
        meaning="Port for the health and metrics of a scheduler.",
        default="8092",
    ),
    "MANAGER_ADDR": Variable(
        name="MANAGER_ADDR",
        type="address",
        meaning="Where the manager takes gRPC calls.",
        required=True,
    ),
    "MAX_BODY_BYTES": Variable(
        name="MAX_BODY_BYTES",
        type="int",
        meaning="Largest request of a method that names no other limit, over HTTP and gRPC alike.",
        default="262144",
        minimum=1,
        maximum=4128768,
        role="max_body_bytes",
    ),
    "MAX_QUEUE_DEPTH": Variable(
        name="MAX_QUEUE_DEPTH",
        type="int",
        meaning="Most tasks that may wait before no more are accepted; 0 is no limit.",
        default="0",
        minimum=0,
    ),
    "HIGH_MAX_RETRIES": Variable(
        name="HIGH_MAX_RETRIES",
        type="int",
        meaning="How often a task of high priority is tried again.",
        default="5",
        minimum=0,
        maximum=100,
    ),
    "MEDIUM_MAX_RETRIES": Variable(
        name="MEDIUM_MAX_RETRIES",
        type="int",
        meaning="How often a task of medium priority is tried again.",
        default="3",
        minimum=0,
        maximum=100,
    ),
    "LOW_MAX_RETRIES": Variable(
        name="LOW_MAX_RETRIES",
        type="int",
        meaning="How often a task of low priority is tried again.",
        default="2",
        minimum=0,
        maximum=100,
    ),
    "HIGH_TIMEOUT_SECONDS": Variable(
        name="HIGH_TIMEOUT_SECONDS",
        type="int",
        meaning="How long a run of a task of high priority may take.",
        default="300",
        minimum=1,
        maximum=86400,
    ),
    "MEDIUM_TIMEOUT_SECONDS": Variable(
        name="MEDIUM_TIMEOUT_SECONDS",
        type="int",
        meaning="How long a run of a task of medium priority may take.",
        default="600",
        minimum=1,
        maximum=86400,
    ),
    "LOW_TIMEOUT_SECONDS": Variable(
        name="LOW_TIMEOUT_SECONDS",
        type="int",
        meaning="How long a run of a task of low priority may take.",
        default="900",
        minimum=1,
        maximum=86400,
    ),
    "MAX_TIMEOUT_SECONDS": Variable(
        name="MAX_TIMEOUT_SECONDS",
        type="int",
        meaning="What the time limit of a task grows to at most; it grows by half with each retry.",
        default="86400",
        minimum=1,
    ),
    "RETRY_BACKOFF_SECONDS": Variable(
        name="RETRY_BACKOFF_SECONDS",
        type="number",
        meaning="How long a task waits after its first failure; twice as long after each further one.",
        default="0",
        minimum=0,
    ),
    "RETRY_BACKOFF_MAX_SECONDS": Variable(
        name="RETRY_BACKOFF_MAX_SECONDS",
        type="number",
        meaning="Longest wait.",
        default="300",
        minimum=0,
    ),
    "IDEMPOTENCY_TTL_SECONDS": Variable(
        name="IDEMPOTENCY_TTL_SECONDS",
        type="int",
        meaning="For how long a key is known.",
        default="86400",
        minimum=1,
    ),
    "TASK_RETENTION_SECONDS": Variable(
        name="TASK_RETENTION_SECONDS",
        type="int",
        meaning="For how long a task that ended stays in Redis. Its history remains.",
        default="86400",
        minimum=1,
    ),
    "HISTORY_RETENTION_SECONDS": Variable(
        name="HISTORY_RETENTION_SECONDS",
        type="int",
        meaning="For how long the history of a task is kept after its end; 0 is for ever.",
        default="0",
        minimum=0,
    ),
    "STATS_WINDOW_SECONDS": Variable(
        name="STATS_WINDOW_SECONDS",
        type="int",
        meaning="How far back the throughput of the statistics goes.",
        default="60",
        minimum=1,
        maximum=120,
    ),
    "LOW_TO_MEDIUM_SECONDS": Variable(
        name="LOW_TO_MEDIUM_SECONDS",
        type="number",
        meaning="How long a task waits before it is treated as medium, if it was low.",
        default="600",
        minimum=0,
    ),
    "MEDIUM_TO_HIGH_SECONDS": Variable(
        name="MEDIUM_TO_HIGH_SECONDS",
        type="number",
        meaning="How long a task waits before it is treated as high, if it was medium.",
        default="1200",
        minimum=0,
    ),
    "PROMOTION_INTERVAL_SECONDS": Variable(
        name="PROMOTION_INTERVAL_SECONDS",
        type="number",
        meaning="Time between two looks for tasks to be raised.",
        default="60",
        minimum=0.05,
    ),
    "PROMOTION_BATCH_SIZE": Variable(
        name="PROMOTION_BATCH_SIZE",
        type="int",
        meaning="Most tasks that are raised in one step.",
        default="100",
        minimum=1,
        maximum=10000,
    ),
    "WORKER_DEAD_SECONDS": Variable(
        name="WORKER_DEAD_SECONDS",
        type="number",
        meaning="Silence after which a worker is given up.",
        default="90",
        minimum=0.1,
    ),
    "WORKER_CHECK_INTERVAL_SECONDS": Variable(
        name="WORKER_CHECK_INTERVAL_SECONDS",
        type="number",
        meaning="Time between two looks for silent workers.",
        default="30",
        minimum=0.05,
    ),
    "TIMEOUT_CHECK_INTERVAL_SECONDS": Variable(
        name="TIMEOUT_CHECK_INTERVAL_SECONDS",
        type="number",
        meaning="Time between two looks for runs that are out of time.",
        default="30",
        minimum=0.05,
    ),
    "DELAY_CHECK_INTERVAL_SECONDS": Variable(
        name="DELAY_CHECK_INTERVAL_SECONDS",
        type="number",
        meaning="Time between two looks for tasks whose time has come.",
        default="1",
        minimum=0.05,
    ),
    "DLQ_RETENTION_SECONDS": Variable(
        name="DLQ_RETENTION_SECONDS",
        type="number",
        meaning="For how long a dead letter is kept.",
        default="2592000",
        minimum=1,
    ),
    "DLQ_SWEEP_INTERVAL_SECONDS": Variable(
        name="DLQ_SWEEP_INTERVAL_SECONDS",
        type="number",
        meaning="Time between two looks for old dead letters.",
        default="3600",
        minimum=0.05,
    ),
    "POLL_INTERVAL_MS": Variable(
        name="POLL_INTERVAL_MS",
        type="int",
        meaning="How often workers are told to look for tasks.",
        default="1000",
        minimum=10,
    ),
    "DEFAULT_CAPACITY": Variable(
        name="DEFAULT_CAPACITY",
        type="int",
        meaning="How many tasks a worker runs at a time if it does not say.",
        default="5",
        minimum=1,
        maximum=1000,
    ),
    "HEARTBEAT_INTERVAL_SECONDS": Variable(
        name="HEARTBEAT_INTERVAL_SECONDS",
        type="number",
        meaning="How often workers are told to be heard of.",
        default="30",
        minimum=0.05,
    ),
    "WORKER_CAPACITY": Variable(
        name="WORKER_CAPACITY",
        type="int",
        meaning="Tasks a worker runs at a time.",
        default="5",
        minimum=1,
        maximum=1000,
    ),
    "WORKER_CAPABILITIES": Variable(
        name="WORKER_CAPABILITIES",
        type="string",
        meaning="What a worker is able to do, separated by commas.",
    ),
    "WORKER_VERSION": Variable(
        name="WORKER_VERSION",
        type="string",
        meaning="Shown to administrators.",
    ),
    "JOB_HANDLERS": Variable(
        name="JOB_HANDLERS",
        type="string",
        meaning="Where the functions are: a module, or module:registry; without it, those that come along.",
    ),
    "POLL_WAIT_MS": Variable(
        name="POLL_WAIT_MS",
        type="int",
        meaning="How long a poll of an idle worker waits for a task.",
        default="10000",
        minimum=0,
        maximum=20000,
    ),
    "SHUTDOWN_GRACE_SECONDS": Variable(
        name="SHUTDOWN_GRACE_SECONDS",
        type="number",
        meaning="How long a stopped worker lets its tasks go on before it gives them back.",
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
        meaning="Proof of this node to others where TLS is off.",
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


class ManagerSettings(Struct, frozen=True):
    """Settings of manager."""

    redis_url: str
    """The Redis server: redis://…, or redis+sentinel://host:port,host:port/name to ask Sentinels."""

    redis_key_prefix: str
    """What every key begins with; one such as {pq}: keeps all of them on one node of a cluster."""

    redis_wait_replicas: int
    """How many replicas must have a new task before its submission is acknowledged."""

    database_url: str
    """The PostgreSQL database of the history, or of all tasks, as
    postgresql://user:password@host:port/name."""

    max_body_bytes: int
    """Largest request of a method that names no other limit, over HTTP and gRPC alike."""

    max_queue_depth: int
    """Most tasks that may wait before no more are accepted; 0 is no limit."""

    high_max_retries: int
    """How often a task of high priority is tried again."""

    medium_max_retries: int
    """How often a task of medium priority is tried again."""

    low_max_retries: int
    """How often a task of low priority is tried again."""

    high_timeout_seconds: int
    """How long a run of a task of high priority may take."""

    medium_timeout_seconds: int
    """How long a run of a task of medium priority may take."""

    low_timeout_seconds: int
    """How long a run of a task of low priority may take."""

    max_timeout_seconds: int
    """What the time limit of a task grows to at most; it grows by half with each retry."""

    retry_backoff_seconds: float
    """How long a task waits after its first failure; twice as long after each further one."""

    retry_backoff_max_seconds: float
    """Longest wait."""

    idempotency_ttl_seconds: int
    """For how long a key is known."""

    task_retention_seconds: int
    """For how long a task that ended stays in Redis. Its history remains."""

    stats_window_seconds: int
    """How far back the throughput of the statistics goes."""

    poll_interval_ms: int
    """How often workers are told to look for tasks."""

    default_capacity: int
    """How many tasks a worker runs at a time if it does not say."""

    heartbeat_interval_seconds: float
    """How often workers are told to be heard of."""

    @classmethod
    def load(cls, environ: Mapping[str, str]) -> ManagerSettings:
        """Read the environment; raises SettingsError with every violation."""
        return cls.of(
            read(
                [
                    VARIABLES["REDIS_URL"],
                    VARIABLES["REDIS_KEY_PREFIX"],
                    VARIABLES["REDIS_WAIT_REPLICAS"],
                    VARIABLES["DATABASE_URL"],
                    VARIABLES["MAX_BODY_BYTES"],
                    VARIABLES["MAX_QUEUE_DEPTH"],
                    VARIABLES["HIGH_MAX_RETRIES"],
                    VARIABLES["MEDIUM_MAX_RETRIES"],
                    VARIABLES["LOW_MAX_RETRIES"],
                    VARIABLES["HIGH_TIMEOUT_SECONDS"],
                    VARIABLES["MEDIUM_TIMEOUT_SECONDS"],
                    VARIABLES["LOW_TIMEOUT_SECONDS"],
                    VARIABLES["MAX_TIMEOUT_SECONDS"],
                    VARIABLES["RETRY_BACKOFF_SECONDS"],
                    VARIABLES["RETRY_BACKOFF_MAX_SECONDS"],
                    VARIABLES["IDEMPOTENCY_TTL_SECONDS"],
                    VARIABLES["TASK_RETENTION_SECONDS"],
                    VARIABLES["STATS_WINDOW_SECONDS"],
                    VARIABLES["POLL_INTERVAL_MS"],
                    VARIABLES["DEFAULT_CAPACITY"],
                    VARIABLES["HEARTBEAT_INTERVAL_SECONDS"],
                ],
                RULES,
                environ,
            )
        )

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> ManagerSettings:
        """Select the settings from values that are parsed already."""
        return cls(
            redis_url=values["REDIS_URL"],
            redis_key_prefix=values["REDIS_KEY_PREFIX"],
            redis_wait_replicas=values["REDIS_WAIT_REPLICAS"],
            database_url=values["DATABASE_URL"],
            max_body_bytes=values["MAX_BODY_BYTES"],
            max_queue_depth=values["MAX_QUEUE_DEPTH"],
            high_max_retries=values["HIGH_MAX_RETRIES"],
            medium_max_retries=values["MEDIUM_MAX_RETRIES"],
            low_max_retries=values["LOW_MAX_RETRIES"],
            high_timeout_seconds=values["HIGH_TIMEOUT_SECONDS"],
            medium_timeout_seconds=values["MEDIUM_TIMEOUT_SECONDS"],
            low_timeout_seconds=values["LOW_TIMEOUT_SECONDS"],
            max_timeout_seconds=values["MAX_TIMEOUT_SECONDS"],
            retry_backoff_seconds=values["RETRY_BACKOFF_SECONDS"],
            retry_backoff_max_seconds=values["RETRY_BACKOFF_MAX_SECONDS"],
            idempotency_ttl_seconds=values["IDEMPOTENCY_TTL_SECONDS"],
            task_retention_seconds=values["TASK_RETENTION_SECONDS"],
            stats_window_seconds=values["STATS_WINDOW_SECONDS"],
            poll_interval_ms=values["POLL_INTERVAL_MS"],
            default_capacity=values["DEFAULT_CAPACITY"],
            heartbeat_interval_seconds=values["HEARTBEAT_INTERVAL_SECONDS"],
        )


class WorkerSettings(Struct, frozen=True):
    """Settings of worker."""

    worker_capacity: int
    """Tasks a worker runs at a time."""

    worker_capabilities: str | None
    """What a worker is able to do, separated by commas."""

    worker_version: str | None
    """Shown to administrators."""

    job_handlers: str | None
    """Where the functions are: a module, or module:registry; without it, those that come along."""

    poll_wait_ms: int
    """How long a poll of an idle worker waits for a task."""

    shutdown_grace_seconds: float
    """How long a stopped worker lets its tasks go on before it gives them back."""

    @classmethod
    def load(cls, environ: Mapping[str, str]) -> WorkerSettings:
        """Read the environment; raises SettingsError with every violation."""
        return cls.of(
            read(
                [
                    VARIABLES["WORKER_CAPACITY"],
                    VARIABLES["WORKER_CAPABILITIES"],
                    VARIABLES["WORKER_VERSION"],
                    VARIABLES["JOB_HANDLERS"],
                    VARIABLES["POLL_WAIT_MS"],
                    VARIABLES["SHUTDOWN_GRACE_SECONDS"],
                ],
                RULES,
                environ,
            )
        )

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> WorkerSettings:
        """Select the settings from values that are parsed already."""
        return cls(
            worker_capacity=values["WORKER_CAPACITY"],
            worker_capabilities=values["WORKER_CAPABILITIES"],
            worker_version=values["WORKER_VERSION"],
            job_handlers=values["JOB_HANDLERS"],
            poll_wait_ms=values["POLL_WAIT_MS"],
            shutdown_grace_seconds=values["SHUTDOWN_GRACE_SECONDS"],
        )


class PromoterSettings(Struct, frozen=True):
    """Settings of promoter."""

    redis_url: str
    """The Redis server: redis://…, or redis+sentinel://host:port,host:port/name to ask Sentinels."""

    redis_key_prefix: str
    """What every key begins with; one such as {pq}: keeps all of them on one node of a cluster."""

    database_url: str
    """The PostgreSQL database of the history, or of all tasks, as
    postgresql://user:password@host:port/name."""

    task_retention_seconds: int
    """For how long a task that ended stays in Redis. Its history remains."""

    low_to_medium_seconds: float
    """How long a task waits before it is treated as medium, if it was low."""

    medium_to_high_seconds: float
    """How long a task waits before it is treated as high, if it was medium."""

    promotion_interval_seconds: float
    """Time between two looks for tasks to be raised."""

    promotion_batch_size: int
    """Most tasks that are raised in one step."""

    @classmethod
    def load(cls, environ: Mapping[str, str]) -> PromoterSettings:
        """Read the environment; raises SettingsError with every violation."""
        return cls.of(
            read(
                [
                    VARIABLES["REDIS_URL"],
                    VARIABLES["REDIS_KEY_PREFIX"],
                    VARIABLES["DATABASE_URL"],
                    VARIABLES["TASK_RETENTION_SECONDS"],
                    VARIABLES["LOW_TO_MEDIUM_SECONDS"],
                    VARIABLES["MEDIUM_TO_HIGH_SECONDS"],
                    VARIABLES["PROMOTION_INTERVAL_SECONDS"],
                    VARIABLES["PROMOTION_BATCH_SIZE"],
                ],
                RULES,
                environ,
            )
        )

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> PromoterSettings:
        """Select the settings from values that are parsed already."""
        return cls(
            redis_url=values["REDIS_URL"],
            redis_key_prefix=values["REDIS_KEY_PREFIX"],
            database_url=values["DATABASE_URL"],
            task_retention_seconds=values["TASK_RETENTION_SECONDS"],
            low_to_medium_seconds=values["LOW_TO_MEDIUM_SECONDS"],
            medium_to_high_seconds=values["MEDIUM_TO_HIGH_SECONDS"],
            promotion_interval_seconds=values["PROMOTION_INTERVAL_SECONDS"],
            promotion_batch_size=values["PROMOTION_BATCH_SIZE"],
        )


class DetectorSettings(Struct, frozen=True):
    """Settings of detector."""

    redis_url: str
    """The Redis server: redis://…, or redis+sentinel://host:port,host:port/name to ask Sentinels."""

    redis_key_prefix: str
    """What every key begins with; one such as {pq}: keeps all of them on one node of a cluster."""

    database_url: str
    """The PostgreSQL database of the history, or of all tasks, as
    postgresql://user:password@host:port/name."""

    max_timeout_seconds: int
    """What the time limit of a task grows to at most; it grows by half with each retry."""

    retry_backoff_seconds: float
    """How long a task waits after its first failure; twice as long after each further one."""

    retry_backoff_max_seconds: float
    """Longest wait."""

    task_retention_seconds: int
    """For how long a task that ended stays in Redis. Its history remains."""

    worker_dead_seconds: float
    """Silence after which a worker is given up."""

    worker_check_interval_seconds: float
    """Time between two looks for silent workers."""

    timeout_check_interval_seconds: float
    """Time between two looks for runs that are out of time."""

    @classmethod
    def load(cls, environ: Mapping[str, str]) -> DetectorSettings:
        """Read the environment; raises SettingsError with every violation."""
        return cls.of(
            read(
                [
                    VARIABLES["REDIS_URL"],
                    VARIABLES["REDIS_KEY_PREFIX"],
                    VARIABLES["DATABASE_URL"],
                    VARIABLES["MAX_TIMEOUT_SECONDS"],
                    VARIABLES["RETRY_BACKOFF_SECONDS"],
                    VARIABLES["RETRY_BACKOFF_MAX_SECONDS"],
                    VARIABLES["TASK_RETENTION_SECONDS"],
                    VARIABLES["WORKER_DEAD_SECONDS"],
                    VARIABLES["WORKER_CHECK_INTERVAL_SECONDS"],
                    VARIABLES["TIMEOUT_CHECK_INTERVAL_SECONDS"],
                ],
                RULES,
                environ,
            )
        )

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> DetectorSettings:
        """Select the settings from values that are parsed already."""
        return cls(
            redis_url=values["REDIS_URL"],
            redis_key_prefix=values["REDIS_KEY_PREFIX"],
            database_url=values["DATABASE_URL"],
            max_timeout_seconds=values["MAX_TIMEOUT_SECONDS"],
            retry_backoff_seconds=values["RETRY_BACKOFF_SECONDS"],
            retry_backoff_max_seconds=values["RETRY_BACKOFF_MAX_SECONDS"],
            task_retention_seconds=values["TASK_RETENTION_SECONDS"],
            worker_dead_seconds=values["WORKER_DEAD_SECONDS"],
            worker_check_interval_seconds=values["WORKER_CHECK_INTERVAL_SECONDS"],
            timeout_check_interval_seconds=values["TIMEOUT_CHECK_INTERVAL_SECONDS"],
        )


class SweeperSettings(Struct, frozen=True):
    """Settings of sweeper."""

    redis_url: str
    """The Redis server: redis://…, or redis+sentinel://host:port,host:port/name to ask Sentinels."""

    redis_key_prefix: str
    """What every key begins with; one such as {pq}: keeps all of them on one node of a cluster."""

    database_url: str
    """The PostgreSQL database of the history, or of all tasks, as
    postgresql://user:password@host:port/name."""

    task_retention_seconds: int
    """For how long a task that ended stays in Redis. Its history remains."""

    delay_check_interval_seconds: float
    """Time between two looks for tasks whose time has come."""

    dlq_retention_seconds: float
    """For how long a dead letter is kept."""

    dlq_sweep_interval_seconds: float
    """Time between two looks for old dead letters."""

    @classmethod
    def load(cls, environ: Mapping[str, str]) -> SweeperSettings:
        """Read the environment; raises SettingsError with every violation."""
        return cls.of(
            read(
                [
                    VARIABLES["REDIS_URL"],
                    VARIABLES["REDIS_KEY_PREFIX"],
                    VARIABLES["DATABASE_URL"],
                    VARIABLES["TASK_RETENTION_SECONDS"],
                    VARIABLES["DELAY_CHECK_INTERVAL_SECONDS"],
                    VARIABLES["DLQ_RETENTION_SECONDS"],
                    VARIABLES["DLQ_SWEEP_INTERVAL_SECONDS"],
                ],
                RULES,
                environ,
            )
        )

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> SweeperSettings:
        """Select the settings from values that are parsed already."""
        return cls(
            redis_url=values["REDIS_URL"],
            redis_key_prefix=values["REDIS_KEY_PREFIX"],
            database_url=values["DATABASE_URL"],
            task_retention_seconds=values["TASK_RETENTION_SECONDS"],
            delay_check_interval_seconds=values["DELAY_CHECK_INTERVAL_SECONDS"],
            dlq_retention_seconds=values["DLQ_RETENTION_SECONDS"],
            dlq_sweep_interval_seconds=values["DLQ_SWEEP_INTERVAL_SECONDS"],
        )


class HistorianSettings(Struct, frozen=True):
    """Settings of historian."""

    redis_url: str
    """The Redis server: redis://…, or redis+sentinel://host:port,host:port/name to ask Sentinels."""

    redis_key_prefix: str
    """What every key begins with; one such as {pq}: keeps all of them on one node of a cluster."""

    database_url: str
    """The PostgreSQL database of the history, or of all tasks, as
    postgresql://user:password@host:port/name."""

    task_retention_seconds: int
    """For how long a task that ended stays in Redis. Its history remains."""

    history_retention_seconds: int
    """For how long the history of a task is kept after its end; 0 is for ever."""

    @classmethod
    def load(cls, environ: Mapping[str, str]) -> HistorianSettings:
        """Read the environment; raises SettingsError with every violation."""
        return cls.of(
            read(
                [
                    VARIABLES["REDIS_URL"],
                    VARIABLES["REDIS_KEY_PREFIX"],
                    VARIABLES["DATABASE_URL"],
                    VARIABLES["TASK_RETENTION_SECONDS"],
                    VARIABLES["HISTORY_RETENTION_SECONDS"],
                ],
                RULES,
                environ,
            )
        )

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> HistorianSettings:
        """Select the settings from values that are parsed already."""
        return cls(
            redis_url=values["REDIS_URL"],
            redis_key_prefix=values["REDIS_KEY_PREFIX"],
            database_url=values["DATABASE_URL"],
            task_retention_seconds=values["TASK_RETENTION_SECONDS"],
            history_retention_seconds=values["HISTORY_RETENTION_SECONDS"],
        )


SETTINGS: Final[Mapping[str, type[Any]]] = {
    "manager": ManagerSettings,
    "worker": WorkerSettings,
    "promoter": PromoterSettings,
    "detector": DetectorSettings,
    "sweeper": SweeperSettings,
    "historian": HistorianSettings,
}
