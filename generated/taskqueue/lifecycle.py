"""Lifecycles of taskqueue: the states and edges of each entity, and who may drive each edge.

Generated from spec/taskqueue (sha256:e1282110c775c774). Do not edit; run `nox -s generate`.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType as Frozen
from typing import Final

from generated.taskqueue.messages import CANCELED, DONE, FAILED, QUEUED, RUNNING
from runtime.model.lifecycles import Lifecycle, Take, Transition

JOB_DISPATCH: Final = Transition(
    name="dispatch",
    source=QUEUED,
    target=RUNNING,
    actors=frozenset(("coordinator",)),
    via="JobInternalService.TransitionJobStatus",
    after=("QueueInternalService.DequeueJob", "JobInternalService.GetJobRecord"),
    stamps=("started_at_ms",),
)
"""A worker fetches work and the job leaves the queue."""

JOB_COMPLETE: Final = Transition(
    name="complete",
    source=RUNNING,
    target=DONE,
    actors=frozenset(("coordinator",)),
    via="JobInternalService.TransitionJobStatus",
    after=("ResultInternalService.StoreResult",),
    stamps=("finished_at_ms",),
)
"""The worker reports success."""

JOB_FAIL: Final = Transition(
    name="fail",
    source=RUNNING,
    target=FAILED,
    actors=frozenset(("coordinator",)),
    via="JobInternalService.TransitionJobStatus",
    after=("ResultInternalService.StoreResult",),
    stamps=("finished_at_ms",),
    from_request=Frozen({"failure_reason": Take("reason", default="UNKNOWN_FAILURE")}),
)
"""The worker reports a failure, or is lost."""

JOB_WITHDRAW: Final = Transition(
    name="withdraw",
    source=QUEUED,
    target=CANCELED,
    actors=frozenset(("gateway",)),
    via="JobInternalService.TransitionJobStatus",
    after=("QueueInternalService.RemoveJobIfPresent", "ResultInternalService.StoreResult"),
    stamps=("finished_at_ms",),
    sets=Frozen({"cancel_requested": True}),
    from_request=Frozen({"cancel_reason": Take("reason", keep_first=True)}),
)
"""A client cancels a job that still waits."""

JOB_ABANDON: Final = Transition(
    name="abandon",
    source=RUNNING,
    target=CANCELED,
    actors=frozenset(("coordinator",)),
    via="JobInternalService.TransitionJobStatus",
    after=("ResultInternalService.StoreResult",),
    stamps=("finished_at_ms",),
    sets=Frozen({"cancel_requested": True}),
    from_request=Frozen({"cancel_reason": Take("reason", keep_first=True)}),
)
"""A client asked to cancel a job that had left the queue, and the request came first."""

JOB: Final = Lifecycle(
    entity="job",
    holder="job",
    key="job_id",
    status="status",
    states=Frozen(
        {QUEUED: "QUEUED", RUNNING: "RUNNING", DONE: "DONE", FAILED: "FAILED", CANCELED: "CANCELED"}
    ),
    initial=QUEUED,
    terminal=frozenset({DONE, FAILED, CANCELED}),
    failed=frozenset({FAILED, CANCELED}),
    creators=frozenset(("gateway",)),
    creation_stamps=("created_at_ms",),
    listed_by="created_at_ms",
    retained_by="MAX_RETAINED_JOBS",
    deletable=frozenset({QUEUED}),
    deleters=frozenset(("gateway",)),
    edges=Frozen(
        {
            (QUEUED, RUNNING): JOB_DISPATCH,
            (RUNNING, DONE): JOB_COMPLETE,
            (RUNNING, FAILED): JOB_FAIL,
            (QUEUED, CANCELED): JOB_WITHDRAW,
            (RUNNING, CANCELED): JOB_ABANDON,
        }
    ),
    holders=frozenset(("job",)),
)
"""One piece of work, from its acceptance to its result."""

LIFECYCLES: Final[Mapping[str, Lifecycle]] = Frozen(
    {
        "job": JOB,
    }
)
