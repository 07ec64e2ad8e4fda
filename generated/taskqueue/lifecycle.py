"""Lifecycles of taskqueue: the states and edges of each entity, and who may drive each edge.

Generated from spec/taskqueue (sha256:2c9462dde7cbf380). Do not edit; run `nox -s generate`.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType as Frozen
from typing import Final

from generated.taskqueue.messages import (
    CANCELED,
    DONE,
    FAILED,
    PRESENCE_PRESENT,
    QUEUED,
    RUNNING,
)
from generated.taskqueue.records import EntryRecord, EnvelopeRecord, JobRecord, SubmitKeyRecord
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
    record=JobRecord,
)
"""One piece of work, from its acceptance to its result."""

SUBMIT_KEY: Final = Lifecycle(
    entity="submit_key",
    holder="job",
    key="client_request_id",
    status="presence",
    states=Frozen({PRESENCE_PRESENT: "PRESENCE_PRESENT"}),
    initial=PRESENCE_PRESENT,
    terminal=frozenset({}),
    creators=frozenset(("gateway",)),
    creation_stamps=(),
    listed_by="remembered_at_ms",
    retained_by=None,
    deletable=frozenset({PRESENCE_PRESENT}),
    deleters=frozenset(("gateway",)),
    edges=Frozen({}),
    holders=frozenset(("job",)),
    record=SubmitKeyRecord,
    logged=False,
)
"""The memory of a submit, so that its repetition finds the job that there is."""

ENTRY: Final = Lifecycle(
    entity="entry",
    holder="queue",
    key="job_id",
    status="presence",
    states=Frozen({PRESENCE_PRESENT: "PRESENCE_PRESENT"}),
    initial=PRESENCE_PRESENT,
    terminal=frozenset({}),
    creators=frozenset(("gateway", "coordinator")),
    creation_stamps=(),
    listed_by="enqueued_at_ms",
    retained_by=None,
    deletable=frozenset({PRESENCE_PRESENT}),
    deleters=frozenset(("gateway", "coordinator")),
    edges=Frozen({}),
    holders=frozenset(("queue",)),
    record=EntryRecord,
    logged=False,
)
"""The place of a waiting job in the queue."""

ENVELOPE: Final = Lifecycle(
    entity="envelope",
    holder="result",
    key="job_id",
    status="presence",
    states=Frozen({PRESENCE_PRESENT: "PRESENCE_PRESENT"}),
    initial=PRESENCE_PRESENT,
    terminal=frozenset({}),
    creators=frozenset(("gateway", "coordinator")),
    creation_stamps=(),
    listed_by="stored_at_ms",
    retained_by=None,
    deletable=frozenset({PRESENCE_PRESENT}),
    deleters=frozenset(("gateway", "coordinator")),
    edges=Frozen({}),
    holders=frozenset(("result",)),
    record=EnvelopeRecord,
    logged=False,
)
"""The result of a terminal job."""

LIFECYCLES: Final[Mapping[str, Lifecycle]] = Frozen(
    {
        "job": JOB,
        "submit_key": SUBMIT_KEY,
        "entry": ENTRY,
        "envelope": ENVELOPE,
    }
)
