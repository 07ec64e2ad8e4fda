"""Lifecycles of queuey: the states and edges of each entity, and who may drive each edge.

Generated from spec/queuey (sha256:77d78c72842295af). Do not edit; run `nox -s generate`.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType as Frozen
from typing import Final

from generated.queuey.messages import ACTIVE, COMPLETED, FAILED, PENDING
from generated.queuey.records import JobRecord
from runtime.model.lifecycles import DeadLetter, Due, Lease, Lifecycle, Take, Transition
from runtime.stores.layouts.sqlite import KeptInSqlite

JOB_CLAIM: Final = Transition(
    name="claim",
    source=PENDING,
    target=ACTIVE,
    actors=frozenset(("runner", "anyone", "queue")),
    via=None,
    stamps=("updated_at",),
)
"""A runner takes the job."""

JOB_COMPLETE: Final = Transition(
    name="complete",
    source=ACTIVE,
    target=COMPLETED,
    actors=frozenset(("runner", "anyone")),
    via=None,
    stamps=("updated_at", "completed_at"),
    from_request=Frozen(
        {
            "output_addr": Take("output_addr"),
            "stderr_addr": Take("stderr_addr"),
            "exit_code": Take("exit_code"),
            "reason": Take("reason"),
        }
    ),
)
"""The runner says that the binary ran to its end."""

JOB_FAIL: Final = Transition(
    name="fail",
    source=ACTIVE,
    target=FAILED,
    actors=frozenset(("runner", "client", "anyone")),
    via=None,
    stamps=("updated_at", "completed_at"),
    from_request=Frozen(
        {
            "output_addr": Take("output_addr"),
            "stderr_addr": Take("stderr_addr"),
            "exit_code": Take("exit_code"),
            "reason": Take("reason"),
        }
    ),
)
"""The runner says that the binary failed, or a client no longer wants it."""

JOB_ABANDON: Final = Transition(
    name="abandon",
    source=ACTIVE,
    target=PENDING,
    actors=frozenset(("queue", "runner", "anyone")),
    via=None,
    stamps=("updated_at",),
    increment="run_attempts",
    dead_letter=DeadLetter("write_off", count="run_attempts", limit="MAX_ATTEMPTS", less="releases"),
    dues=(
        Due(
            at="updated_at",
            by="queue",
            every="SWEEP_INTERVAL",
            after="ABANDONED_AGE",
            grace="STARTUP_GRACE",
            on_access=True,
        ),
    ),
)
"""The runner was not heard of for too long, or cannot run the job where it is."""

JOB_RELEASE: Final = Transition(
    name="release",
    source=ACTIVE,
    target=PENDING,
    actors=frozenset(("runner", "anyone")),
    via=None,
    by_name=True,
    stamps=("updated_at",),
    increment="releases",
)
"""The runner is stopped and gives the job back undone. That is no failure, so its taking does not count
either."""

JOB_WRITE_OFF: Final = Transition(
    name="write_off",
    source=ACTIVE,
    target=FAILED,
    actors=frozenset(("queue", "runner", "anyone")),
    via=None,
    stamps=("updated_at",),
    from_request=Frozen({"reason": Take("reason", default="ABANDONED")}),
    clear=("runner_id",),
    increment="run_attempts",
)
"""It was abandoned as often as it may be."""

JOB: Final = Lifecycle(
    entity="job",
    holder="queue",
    key="job_id",
    status="status",
    states=Frozen({PENDING: "PENDING", ACTIVE: "ACTIVE", COMPLETED: "COMPLETED", FAILED: "FAILED"}),
    initial=PENDING,
    terminal=frozenset({COMPLETED, FAILED}),
    failed=frozenset({FAILED}),
    creators=frozenset(("client", "anyone")),
    creation_stamps=("created_at", "updated_at"),
    listed_by="created_at",
    retained_by=None,
    deletable=frozenset(),
    deleters=frozenset(),
    edges=Frozen(
        {
            (PENDING, ACTIVE): JOB_CLAIM,
            (ACTIVE, COMPLETED): JOB_COMPLETE,
            (ACTIVE, FAILED): JOB_FAIL,
            (ACTIVE, PENDING): JOB_ABANDON,
        }
    ),
    by_name=(
        JOB_RELEASE,
        JOB_WRITE_OFF,
    ),
    holders=frozenset(("queue",)),
    record=JobRecord,
    storage=KeptInSqlite(
        path="DB_PATH",
        table="jobs",
        unique=("idempotency_key",),
        words=Frozen({PENDING: "pending", ACTIVE: "active", COMPLETED: "completed", FAILED: "failed"}),
    ),
    lease=Lease(
        state=ACTIVE,
        owner="runner_id",
        expires="",
        fence="run_attempts",
        seconds="ABANDONED_AGE",
        oldest_by="created_at",
        keeps_owner=True,
        renewed="updated_at",
    ),
)
"""One run of a WASI binary, from the wish to have it run to its end."""

LIFECYCLES: Final[Mapping[str, Lifecycle]] = Frozen(
    {
        "job": JOB,
    }
)
