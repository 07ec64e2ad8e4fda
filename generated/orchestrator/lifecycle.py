"""Lifecycles of orchestrator: the states and edges of each entity, and who may drive each edge.

Generated from spec/orchestrator (sha256:fdaebfd770cb5849). Do not edit; run `nox -s generate`.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType as Frozen
from typing import Final

from generated.orchestrator.messages import (
    CREATED,
    DEAD,
    QUEUED,
    RETRY,
    RUNNING,
    STATUS_COMPLETED,
    STATUS_FAILED,
    STATUS_PENDING,
    STATUS_RUNNING,
    SUCCESS,
)
from generated.orchestrator.records import JobRecord
from runtime.model.lifecycles import Backoff, DeadLetter, Due, Lease, Lifecycle, Overrides, Take, Transition
from runtime.stores.layouts.postgres import KeptInPostgres

JOB_ACCEPT: Final = Transition(
    name="accept",
    source=CREATED,
    target=QUEUED,
    actors=frozenset(("api",)),
    via=None,
    stamps=("updated_at",),
    dues=(Due(at="created_at", by="api", every="CREATED_SWEEP_SECONDS", after="CREATED_GRACE_SECONDS"),),
)
"""The API accepts the job; its sweeper does so for one that was left behind."""

JOB_ACQUIRE: Final = Transition(
    name="acquire",
    source=QUEUED,
    target=RUNNING,
    actors=frozenset(("worker",)),
    via=None,
    stamps=("updated_at",),
)
"""A worker takes the job."""

JOB_COMPLETE: Final = Transition(
    name="complete",
    source=RUNNING,
    target=SUCCESS,
    actors=frozenset(("worker",)),
    via=None,
    stamps=("updated_at",),
    from_request=Frozen({"result": Take("result")}),
)
"""The job function returned."""

JOB_FAIL: Final = Transition(
    name="fail",
    source=RUNNING,
    target=RETRY,
    actors=frozenset(("worker", "reaper")),
    via=None,
    stamps=("updated_at",),
    from_request=Frozen({"last_error": Take("error", default="LEASE_EXPIRED")}),
    increment="retry_count",
    backoff=Backoff(
        until="next_attempt_at", count="retry_count", base="BACKOFF_BASE_SECONDS", max="BACKOFF_MAX_SECONDS"
    ),
    dead_letter=DeadLetter("bury", count="retry_count", limit="MAX_RETRIES"),
    dues=(Due(at="lease_expiry", by="reaper", every="REAPER_INTERVAL_SECONDS"),),
)
"""The run failed, or its worker was not heard of until its lease ended."""

JOB_RELEASE: Final = Transition(
    name="release",
    source=RUNNING,
    target=RETRY,
    actors=frozenset(("worker",)),
    via=None,
    by_name=True,
    stamps=("updated_at",),
    from_request=Frozen({"last_error": Take("error", default="GIVEN_BACK")}),
)
"""The worker is stopped and gives back what it has not done. That is no failure, and the wait is over at
once."""

JOB_REQUEUE: Final = Transition(
    name="requeue",
    source=RETRY,
    target=QUEUED,
    actors=frozenset(("scheduler",)),
    via=None,
    stamps=("updated_at",),
    dead_letter=DeadLetter("bury", count="retry_count", limit="MAX_RETRIES"),
    dues=(Due(at="next_attempt_at", by="scheduler", every="SCHEDULER_INTERVAL_SECONDS"),),
)
"""The wait is over."""

JOB_BURY: Final = Transition(
    name="bury",
    source=RETRY,
    target=DEAD,
    actors=frozenset(("worker", "reaper", "scheduler")),
    via=None,
    stamps=("updated_at",),
)
"""It failed more often than allowed, or for good."""

JOB: Final = Lifecycle(
    entity="job",
    holder="api",
    key="job_id",
    status="state",
    states=Frozen(
        {
            CREATED: "CREATED",
            QUEUED: "QUEUED",
            RUNNING: "RUNNING",
            SUCCESS: "SUCCESS",
            RETRY: "RETRY",
            DEAD: "DEAD",
        }
    ),
    initial=CREATED,
    terminal=frozenset({SUCCESS, DEAD}),
    failed=frozenset({DEAD}),
    creators=frozenset(("api",)),
    creation_stamps=("created_at", "updated_at"),
    listed_by="created_at",
    retained_by=None,
    deletable=frozenset({SUCCESS, DEAD}),
    deleters=frozenset(("operator",)),
    edges=Frozen(
        {
            (CREATED, QUEUED): JOB_ACCEPT,
            (QUEUED, RUNNING): JOB_ACQUIRE,
            (RUNNING, SUCCESS): JOB_COMPLETE,
            (RUNNING, RETRY): JOB_FAIL,
            (RETRY, QUEUED): JOB_REQUEUE,
            (RETRY, DEAD): JOB_BURY,
        }
    ),
    by_name=(JOB_RELEASE,),
    holders=frozenset(("api", "worker", "reaper", "scheduler")),
    record=JobRecord,
    storage=KeptInPostgres(
        store="postgres",
        url="DATABASE_URL",
        table="jobs",
        history="job_transitions",
        unique=("idempotency_key",),
    ),
    lease=Lease(
        state=RUNNING,
        owner="lease_owner",
        expires="lease_expiry",
        fence="attempt",
        seconds="LEASE_SECONDS",
        oldest_by="created_at",
    ),
    overrides=Overrides("job_type", Frozen({"SEND_EMAIL": {"MAX_RETRIES": 5, "BACKOFF_BASE_SECONDS": 10}})),
    public_status=Frozen(
        {
            CREATED: STATUS_PENDING,
            QUEUED: STATUS_PENDING,
            RETRY: STATUS_PENDING,
            RUNNING: STATUS_RUNNING,
            SUCCESS: STATUS_COMPLETED,
            DEAD: STATUS_FAILED,
        }
    ),
)
"""One piece of work, from the wish to have it done to its end."""

LIFECYCLES: Final[Mapping[str, Lifecycle]] = Frozen(
    {
        "job": JOB,
    }
)
