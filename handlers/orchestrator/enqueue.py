"""For producers that share the database: jobs that are submitted by the transaction they belong to.

They are there if the transaction commits, and never were if it does not. What the API checks is checked here.
The jobs go to the database in one round trip, in which each is created and accepted.
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
from runtime.stores.postgres.statements import statements
from runtime.world import RealWorld

_WORLD = RealWorld()
SUBMIT = statements(SYSTEM.name, "job")["create_accept"].text
(_ACTOR,) = JOB_ACCEPT.actors


class Connection(Protocol):
    """A connection of asyncpg, also one that a pool has lent, or the pool where no transaction is wanted."""

    async def fetchval(self, query: str, /, *args: Any) -> Any: ...


class Intent(NamedTuple):
    """What is to be done, and the key that makes it the same when it is asked for again.

    Without a key it is never the same: its key is then the id of its job.
    """

    job_type: str
    payload: Mapping[str, Any]
    idempotency_key: str | None = None


class Prepared(NamedTuple):
    """A job that has its id and obeys all rules, so that it can be submitted, and submitted again."""

    job_id: str
    job_type: str
    payload: str
    idempotency_key: str


async def enqueue(
    connection: Connection, job_type: str, payload: Mapping[str, Any], idempotency_key: str | None = None
) -> str:
    """Submits a job within the connection's transaction, if it is in one; the id of the job."""
    (job_id,) = await enqueue_all(connection, [Intent(job_type, payload, idempotency_key)])
    return job_id


async def enqueue_all(connection: Connection, intents: Sequence[Intent]) -> list[str]:
    """Submits many jobs at once; their ids in the same order. A known key gives the job it already has."""
    if not intents:
        return []
    jobs = prepared(intents)
    return answered(jobs, await connection.fetchval(SUBMIT, *arguments(jobs)))


def prepared(intents: Sequence[Intent]) -> list[Prepared]:
    """The intents as the API would take them; ValueError says which field of which job breaks which rule."""
    request = SubmitJobRequest()
    jobs: list[Prepared] = []
    for number, (job_id, intent) in enumerate(zip(_WORLD.new_keys(len(intents)), intents, strict=True)):
        job_type, payload, key = intent
        request.job_type = job_type
        request.payload = text = _text(payload)
        request.idempotency_key = known_by = job_id if key is None else key
        if problems := check_submit_job_request(request):
            raise ValueError(f"job {number}: {'; '.join(map(str, problems))}")
        jobs.append(Prepared(job_id, job_type, text, known_by))
    return jobs


def arguments(jobs: Sequence[Prepared]) -> tuple[Any, ...]:
    """What the statement takes: who accepts the jobs, and their columns."""
    return (_ACTOR, *zip(*jobs, strict=True))


def answered(jobs: Sequence[Prepared], known: Sequence[Any] | None) -> list[str]:
    """The ids of the jobs that hold now; the statement names them only where some were there already."""
    return [job.job_id for job in jobs] if known is None else [*map(str, known)]


def _text(payload: Mapping[str, Any]) -> str:
    """The payload as JSON, by the fast writer unless it refuses: the usual one takes more."""
    try:
        text = orjson.dumps(payload, option=_NOTHING_MORE).decode()
    except TypeError:
        return _write(payload)
    # The fast one writes null for a float that is no number, which the usual one refuses.
    return _write(payload) if "null" in text else text


def _plain(value: object) -> object:
    """What the fast writer takes and the usual one does not."""
    if isinstance(value, UUID):
        return str(value)
    if isinstance(value, Enum):
        return value.value
    raise TypeError(f"a payload cannot hold a {type(value).__name__}")


_NOTHING_MORE = (
    orjson.OPT_PASSTHROUGH_DATACLASS | orjson.OPT_PASSTHROUGH_DATETIME | orjson.OPT_PASSTHROUGH_SUBCLASS
)
_write = json.JSONEncoder(allow_nan=False, default=_plain).encode
