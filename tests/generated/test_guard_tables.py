"""The guard tables of the taskqueue: the caller matrix, and the drivers of each edge."""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest
from google.protobuf.message import Message

from generated.taskqueue import messages as m
from generated.taskqueue.callers import MATRIX, PRINCIPALS
from generated.taskqueue.lifecycle import JOB, LIFECYCLES
from generated.taskqueue.policy import RESCUE
from generated.taskqueue.system import SYSTEM
from runtime.call.conditions import Condition
from runtime.call.guard import Guard
from runtime.model.lifecycles import Take
from runtime.model.system import Method, Permission

METHODS = {method.name: method for service in SYSTEM.services.values() for method in service.methods}
TRANSITION = METHODS["TransitionJobStatus"]
OTHERS = ("job", "queue", "worker", "result")
EDGES = {
    ("QUEUED", "RUNNING"): "coordinator",
    ("RUNNING", "DONE"): "coordinator",
    ("RUNNING", "FAILED"): "coordinator",
    ("QUEUED", "CANCELED"): "gateway",
    ("RUNNING", "CANCELED"): "coordinator",
}
"""The legal pairs of states, and the one who may drive each."""


def may_call(principal: str) -> dict[str, Permission]:
    """List the row of a principal in the matrix, by method."""
    return {
        path.rpartition("/")[2]: permissions[principal]
        for path, permissions in MATRIX.items()
        if principal in permissions
    }


def admit_call(method: Method, caller: str, request: Message) -> str:
    """Pass a call through the guard; return nothing, or the code of its refusal."""
    try:
        Guard(SYSTEM).compile(method)(caller, request)
    except Condition as refusal:
        return refusal.grpc
    return "OK"


@pytest.mark.req("TQ-019")
def test_clients_have_the_five_public_methods_only() -> None:
    """The row of external clients has the public methods, without conditions, and nothing internal."""
    plain = Permission()
    assert may_call("client") == {
        "SubmitJob": plain,
        "GetJobStatus": plain,
        "GetJobResult": plain,
        "CancelJob": plain,
        "ListJobs": plain,
    }


@pytest.mark.req("TQ-020")
def test_the_row_of_the_gateway() -> None:
    """The gateway has ten methods, two of them for a queued cancel only."""
    cancel = {"expected_from_status": m.QUEUED, "to_status": m.CANCELED}
    assert {name: dict(permission.only) for name, permission in may_call("gateway").items()} == {
        "CreateJob": {},
        "DeleteJobIfStatus": {},
        "GetJobRecord": {},
        "ListJobRecords": {},
        "SetCancelRequested": {},
        "TransitionJobStatus": cancel,
        "EnqueueJob": {},
        "RemoveJobIfPresent": {},
        "GetResult": {},
        "StoreResult": {"terminal_status": m.CANCELED},
    }


@pytest.mark.req("TQ-021", "CH-01", "CH-02", "CH-94")
def test_the_row_of_the_coordinator() -> None:
    """The coordinator may enqueue for a rescue only, and keeps a removal that no flow uses."""
    row = may_call("coordinator")
    assert set(row) == {
        *("DequeueJob", "RemoveJobIfPresent", "EnqueueJob"),
        *("TransitionJobStatus", "GetJobRecord", "ListJobRecords", "StoreResult"),
    }
    assert {name: permission.mode for name, permission in row.items() if permission.mode} == {
        "EnqueueJob": RESCUE
    }
    assert not any(permission.only for permission in row.values())


@pytest.mark.req("TQ-022", "CH-02")
def test_the_row_of_the_worker() -> None:
    """A worker has the three methods of its control plane and nothing else."""
    assert set(may_call("worker")) == {"WorkerHeartbeat", "FetchWork", "ReportWorkOutcome"}


@pytest.mark.req("TQ-023")
def test_the_matrix_has_no_other_row() -> None:
    """Job, queue and result make no calls, and every method is in the matrix under its full name."""
    assert {name for permissions in MATRIX.values() for name in permissions} == {
        *("client", "gateway", "coordinator", "worker")
    }
    assert set(MATRIX) == {method.path for method in METHODS.values()}


@pytest.mark.req("TQ-023", "CH-65")
@pytest.mark.parametrize("name", sorted(METHODS))
def test_who_is_not_in_the_row_of_a_method_is_refused(name: str) -> None:
    """A call outside the matrix is denied to the proven and needs proof from the others, whatever it asks."""
    method = METHODS[name]
    for caller in PRINCIPALS:
        if caller not in MATRIX[method.path]:
            expected = "UNAUTHENTICATED" if caller == "client" else "PERMISSION_DENIED"
            assert admit_call(method, caller, method.request()) == expected


@pytest.mark.req("CH-65")
def test_only_external_clients_need_no_proof() -> None:
    """Components prove themselves by certificate or token; a client is anonymous."""
    proven = frozenset({"certificate", "token"})
    assert {name: row.proofs for name, row in PRINCIPALS.items()} == {
        "client": frozenset({"anonymous"}),
        **dict.fromkeys(("gateway", "coordinator", *OTHERS), proven),
    }


@pytest.mark.req("TQ-053")
def test_a_job_has_five_states_and_three_are_final() -> None:
    """The states are the five of the contract without the unspecified one, and no edge leaves a final one."""
    assert set(JOB.states.values()) == {"QUEUED", "RUNNING", "DONE", "FAILED", "CANCELED"}
    assert {JOB.states[state] for state in JOB.terminal} == {"DONE", "FAILED", "CANCELED"}
    assert not {source for source, _ in JOB.edges} & JOB.terminal
    assert {number: m.JobStatus.Name(number) for number in m.JobStatus.values() if number} == JOB.states


@pytest.mark.req("TQ-054", "TQ-060")
def test_a_job_starts_queued_at_the_job_service() -> None:
    """The gateway creates a job, it is queued then, and the job service alone stores its status."""
    assert JOB.initial == m.QUEUED
    assert (set(JOB.creators), JOB.creation_stamps) == ({"gateway"}, ("created_at_ms",))
    assert (JOB.holder, JOB.key, JOB.status) == ("job", "job_id", "status")
    assert (set(JOB.deletable), set(JOB.deleters)) == ({int(m.QUEUED)}, {"gateway"})


@pytest.mark.parametrize(
    ("source", "target", "stamp"),
    [
        pytest.param("QUEUED", "RUNNING", "started_at_ms", marks=pytest.mark.req("TQ-055")),
        pytest.param("RUNNING", "DONE", "finished_at_ms", marks=pytest.mark.req("TQ-056")),
        pytest.param("RUNNING", "FAILED", "finished_at_ms", marks=pytest.mark.req("TQ-057")),
        pytest.param("QUEUED", "CANCELED", "finished_at_ms", marks=pytest.mark.req("TQ-058")),
        pytest.param("RUNNING", "CANCELED", "finished_at_ms", marks=pytest.mark.req("TQ-059")),
    ],
)
def test_an_edge_has_one_driver_and_one_stamp(source: str, target: str, stamp: str) -> None:
    """Each legal pair names who may drive it and which time it stamps."""
    edge = JOB.edges[m.JobStatus.Value(source), m.JobStatus.Value(target)]
    assert edge.actors == {EDGES[source, target]}
    assert edge.stamps == (stamp,)


@pytest.mark.req("CH-09", "CH-58")
def test_a_record_keeps_why_it_ended() -> None:
    """A failure always has a reason, and every canceled job shows the flag and the first reason given."""
    ends = {JOB.states[target]: edge for (_, target), edge in JOB.edges.items() if target in JOB.terminal}
    assert ends["FAILED"].from_request == {"failure_reason": Take("reason", default="UNKNOWN_FAILURE")}
    assert not ends["DONE"].from_request
    for source in (m.QUEUED, m.RUNNING):
        canceled = JOB.edges[source, m.CANCELED]
        assert canceled.sets == {"cancel_requested": True}
        assert canceled.from_request == {"cancel_reason": Take("reason", keep_first=True)}


@pytest.mark.req("TQ-060", "TQ-061")
def test_there_are_no_other_edges() -> None:
    """Five pairs are legal; queue, worker, job and result drive none of them."""
    assert {(JOB.states[source], JOB.states[target]) for source, target in JOB.edges} == set(EDGES)
    assert [name for name, each in LIFECYCLES.items() if each.edges] == ["job"]


def expected_outcome(caller: str, source: str, target: str) -> str:
    """Compute the outcome of a transition by the contract."""
    if caller == "client":
        return "UNAUTHENTICATED"
    if caller == "coordinator" and (source, target) not in EDGES:
        return "INVALID_ARGUMENT"
    return "OK" if EDGES.get((source, target)) == caller else "PERMISSION_DENIED"


@pytest.mark.req("TQ-061", "TQ-060", "CH-64", "CH-65")
@pytest.mark.parametrize("caller", list(PRINCIPALS))
def test_the_guard_admits_only_legal_transitions(caller: str) -> None:
    """Of all pairs of states, self loops and unspecified included, a caller gets its own edges only."""
    for source, target in product(m.JobStatus.keys(), repeat=2):
        request = m.TransitionJobStatusRequest(
            job_id="a",
            actor=caller,
            expected_from_status=m.JobStatus.Value(source),
            to_status=m.JobStatus.Value(target),
        )
        said = admit_call(TRANSITION, caller, request)
        assert said == expected_outcome(caller, source, target), (source, target)


@pytest.mark.req("TQ-062", "CH-64")
@pytest.mark.parametrize("wrong", [0, 6, -1, 2**31 - 1])
@pytest.mark.parametrize("field", ["expected_from_status", "to_status"])
def test_a_status_that_is_none_makes_a_transition_invalid(field: str, wrong: int) -> None:
    """An unspecified or unknown status on either side is refused before anything is looked up."""
    request = m.TransitionJobStatusRequest(
        job_id="a", actor="coordinator", expected_from_status=m.RUNNING, to_status=m.DONE
    )
    setattr(request, field, wrong)
    assert admit_call(TRANSITION, "coordinator", request) == "INVALID_ARGUMENT"


@pytest.mark.req("CH-64")
def test_an_illegal_edge_is_refused_as_one() -> None:
    """The refusal is the condition for illegal transitions and names both states."""
    request = m.TransitionJobStatusRequest(
        job_id="a", actor="coordinator", expected_from_status=m.DONE, to_status=m.RUNNING
    )
    with pytest.raises(Condition, match="from DONE to RUNNING") as refusal:
        Guard(SYSTEM).compile(TRANSITION)("coordinator", request)
    assert refusal.value.code == "illegal_transition"


@pytest.mark.req("CH-65")
@pytest.mark.parametrize("actor", ["", "gateway", "Coordinator"])
def test_the_actor_must_be_the_proven_caller(actor: str) -> None:
    """A request that names another actor than its caller is denied."""
    request = m.TransitionJobStatusRequest(
        job_id="a", actor=actor, expected_from_status=m.RUNNING, to_status=m.DONE
    )
    assert admit_call(TRANSITION, "coordinator", request) == "PERMISSION_DENIED"


@pytest.mark.req("TQ-020")
@pytest.mark.parametrize("status", m.JobStatus.values())
def test_the_gateway_stores_only_canceled_envelopes(status: m.JobStatus.ValueType) -> None:
    """The condition on the gateway's permission lets one terminal status through."""
    request = m.StoreResultRequest(job_id="a", terminal_status=status)
    expected = "OK" if status == m.CANCELED else "PERMISSION_DENIED"
    assert admit_call(METHODS["StoreResult"], "gateway", request) == expected


@pytest.mark.parametrize(
    "table",
    [
        pytest.param(MATRIX, id="matrix"),
        pytest.param(MATRIX[TRANSITION.path], id="row"),
        pytest.param(MATRIX[TRANSITION.path]["gateway"].only, id="condition"),
        pytest.param(PRINCIPALS, id="principals"),
        pytest.param(LIFECYCLES, id="lifecycles"),
        pytest.param(JOB.states, id="states"),
        pytest.param(JOB.edges, id="edges"),
        pytest.param(JOB.edges[m.RUNNING, m.FAILED].from_request, id="takes"),
        pytest.param(JOB.edges[m.QUEUED, m.CANCELED].sets, id="sets"),
    ],
)
def test_a_table_cannot_be_changed(table: Any) -> None:
    """A running service gets no other permission or edge."""
    with pytest.raises(TypeError, match="does not support item assignment"):
        table[next(iter(table))] = None


@pytest.mark.parametrize(
    ("record", "field"),
    [
        (MATRIX[TRANSITION.path]["gateway"], "only"),
        (JOB, "edges"),
        (JOB.edges[m.QUEUED, m.RUNNING], "actors"),
    ],
)
def test_a_record_cannot_be_changed(record: object, field: str) -> None:
    """The records in the tables are as frozen as the tables."""
    with pytest.raises(AttributeError):
        setattr(record, field, {})
