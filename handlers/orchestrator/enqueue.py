"""Submit jobs within a transaction of the producer, which shares the database.

The jobs exist if the transaction commits, and not otherwise. The requests are validated as by the API. The
jobs go to the database in one round trip, in which each is created and accepted.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from enum import Enum
from typing import Any, NamedTuple, Protocol
from uuid import UUID

import orjson

from generated.orchestrator.lifecycle import JOB_ACCEPT
from generated.orchestrator.messages import SubmitJobRequest
from generated.orchestrator.requests import check_submit_job_request
from generated.orchestrator.system import SYSTEM
from runtime.stores.postgres.statements import load_statements
from runtime.world import RealWorld

_WORLD = RealWorld()
SUBMIT = load_statements(SYSTEM.name, "job")["create_accept"].text
(_ACTOR,) = JOB_ACCEPT.actors


class Connection(Protocol):
    """An asyncpg connection, also one of a pool, or the pool itself where no transaction is needed."""

    async def fetchval(self, query: str, /, *args: Any) -> Any: ...


class Intent(NamedTuple):
    """A job to submit, and the idempotency key that makes a repeated submit find the same job.

    Without a key every submit is a new job: its key is then the id of the job.
    """

    job_type: str
    payload: Mapping[str, Any]
    idempotency_key: str | None = None


class PreparedJob(NamedTuple):
    """A validated job that has its id, so that submitting it is idempotent."""

    job_id: str
    job_type: str
    payload: str
    idempotency_key: str


async def enqueue(
    connection: Connection, job_type: str, payload: Mapping[str, Any], idempotency_key: str | None = None
) -> str:
    """Submit a job within the connection's transaction, if it is in one; return the id of the job."""
    (job_id,) = await enqueue_all(connection, [Intent(job_type, payload, idempotency_key)])
    return job_id


async def enqueue_all(connection: Connection, intents: Sequence[Intent]) -> list[str]:
    """Submit a batch of jobs; return their ids in the same order. A known key returns its existing job."""
    if not intents:
        return []
    jobs = prepare_jobs(intents)
    return resolve_ids(jobs, await connection.fetchval(SUBMIT, *build_arguments(jobs)))


def prepare_jobs(intents: Sequence[Intent]) -> list[PreparedJob]:
    """Validate intents as the API does; ValueError says which field of which job breaks which rule."""
    request = SubmitJobRequest()
    jobs: list[PreparedJob] = []
    for number, (job_id, intent) in enumerate(zip(_WORLD.new_keys(len(intents)), intents, strict=True)):
        job_type, payload, key = intent
        request.job_type = job_type
        request.payload = text = _encode_payload(payload)
        request.idempotency_key = idempotency_key = job_id if key is None else key
        if problems := check_submit_job_request(request):
            raise ValueError(f"job {number}: {'; '.join(map(str, problems))}")
        jobs.append(PreparedJob(job_id, job_type, text, idempotency_key))
    return jobs


def build_arguments(jobs: Sequence[PreparedJob]) -> tuple[Any, ...]:
    """Build the arguments of the statement: the actor that accepts the jobs, and their columns."""
    return (_ACTOR, *zip(*jobs, strict=True))


def resolve_ids(jobs: Sequence[PreparedJob], existing_ids: Sequence[Any] | None) -> list[str]:
    """Resolve the ids of the jobs; the statement returns ids only where some of the jobs existed already."""
    return [job.job_id for job in jobs] if existing_ids is None else [*map(str, existing_ids)]


def _encode_payload(payload: Mapping[str, Any]) -> str:
    """Encode a payload as JSON, with orjson unless it refuses: the json module takes more types."""
    try:
        text = orjson.dumps(payload, option=_STRICT_OPTIONS).decode()
    except TypeError:
        return _encode_any(payload)
    # orjson writes null for NaN and infinity, which the json module refuses here.
    return _encode_any(payload) if "null" in text else text


def _encode_value(value: object) -> object:
    """Encode the types that orjson takes and the json module does not."""
    if isinstance(value, UUID):
        return str(value)
    if isinstance(value, Enum):
        return value.value
    raise TypeError(f"a payload cannot hold a {type(value).__name__}")


_STRICT_OPTIONS = (
    orjson.OPT_PASSTHROUGH_DATACLASS | orjson.OPT_PASSTHROUGH_DATETIME | orjson.OPT_PASSTHROUGH_SUBCLASS
)
_encode_any = json.JSONEncoder(allow_nan=False, default=_encode_value).encode
