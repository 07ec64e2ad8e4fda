"""For producers that share the database: jobs that are submitted by the transaction they belong to.

They are there if the transaction commits, and never were if it does not. What the API checks is checked here.

"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from generated.orchestrator.lifecycle import JOB_ACCEPT
from generated.orchestrator.messages import SubmitJobRequest
from generated.orchestrator.requests import check_submit_job_request
from generated.orchestrator.system import SYSTEM
from runtime.postgres.statements import statements
from runtime.world import RealWorld

if TYPE_CHECKING:
    import asyncpg

_WORLD = RealWorld()
_STATEMENTS = statements(SYSTEM.name, "job")
(_ACTOR,) = JOB_ACCEPT.actors


@dataclass(frozen=True, slots=True)
class Intent:
    """What is to be done, and the key that makes it the same when it is asked for again."""

    job_type: str
    payload: Mapping[str, Any]
    idempotency_key: str


async def enqueue(
    connection: asyncpg.Connection[Any], job_type: str, payload: Mapping[str, Any], idempotency_key: str
) -> str:
    """Submits a job within the connection's transaction, if it is in one; the id of the job."""
    (job_id,) = await enqueue_all(connection, [Intent(job_type, payload, idempotency_key)])
    return job_id


async def enqueue_all(connection: asyncpg.Connection[Any], intents: Sequence[Intent]) -> list[str]:
    """Submits many jobs at once; their ids in the same order. A known key gives the job it already has."""
    requests = [_checked(number, each) for number, each in enumerate(intents)]
    first = {each.idempotency_key: each for each in reversed(requests)}
    made = await connection.fetch(
        _STATEMENTS["create"].text,
        _ACTOR,
        [_WORLD.new_id() for _ in first],
        [each.job_type for each in first.values()],
        [each.payload for each in first.values()],
        list(first),
    )
    found = {row["idempotency_key"]: str(row["job_id"]) for row in made}
    await connection.fetch(_STATEMENTS["move_accept"].text, _ACTOR, list(found.values()))
    if known := [key for key in first if key not in found]:
        rows = await connection.fetch(_STATEMENTS["find_unique"].text, known)
        found |= {row["idempotency_key"]: str(row["job_id"]) for row in rows}
    # The rest of the transaction is the producer's again, who is nobody that the lifecycle knows.
    await connection.execute("SELECT set_config('app.actor', '', true)")
    return [found[each.idempotency_key] for each in requests]


def _checked(number: int, intent: Intent) -> SubmitJobRequest:
    """The intent as the API would take it; ValueError says which field breaks which rule."""
    request = SubmitJobRequest(
        job_type=intent.job_type,
        payload=json.dumps(intent.payload, allow_nan=False),
        idempotency_key=intent.idempotency_key,
    )
    if problems := check_submit_job_request(request):
        raise ValueError(f"job {number}: {'; '.join(map(str, problems))}")
    return request
