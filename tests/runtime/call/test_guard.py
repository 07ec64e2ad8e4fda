"""The guard: who, under which condition, and what, in that order, before a handler is reached."""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest
from google.protobuf.message import Message
from msgspec.structs import replace

from generated.taskqueue import messages as m
from generated.taskqueue.lifecycle import JOB
from generated.taskqueue.system import SYSTEM
from runtime.call.conditions import Condition
from runtime.call.guard import Guard, require_edge
from runtime.model.system import Method, Permission

METHODS = {method.name: method for service in SYSTEM.services.values() for method in service.methods}
STATES = (*JOB.states, m.JOB_STATUS_UNSPECIFIED, 99)
PRINCIPALS = tuple(SYSTEM.principals)


def refusal(name: str, caller: str, request: Message) -> Condition:
    with pytest.raises(Condition) as refused:
        Guard(SYSTEM).compile(METHODS[name])(caller, request)
    return refused.value


def store_result(**fields: Any) -> m.StoreResultRequest:
    return m.StoreResultRequest(**{"job_id": "x", "terminal_status": m.CANCELED, **fields})


@pytest.mark.req("CH-65", "TQ-023")
def test_nobody_is_told_before_anything_is_looked_at() -> None:
    """A caller without proof is unauthenticated on an internal method, however wrong its request is."""
    refused = refusal("StoreResult", "client", m.StoreResultRequest())
    assert (refused.grpc, refused.code) == ("UNAUTHENTICATED", "unauthenticated")
    assert "StoreResult" in refused.message


@pytest.mark.req("CH-65", "TQ-023")
def test_the_matrix_comes_before_the_rules() -> None:
    """A proven caller outside the matrix is denied, however wrong its request is."""
    refused = refusal("StoreResult", "worker", m.StoreResultRequest())
    assert refused.grpc == "PERMISSION_DENIED"
    assert refused.message == (
        "worker may not call ResultInternalService.StoreResult: it is not in the caller matrix"
    )


@pytest.mark.req("CH-65", "TQ-020")
def test_a_condition_comes_before_the_rules() -> None:
    """A permission holds only under its condition, however wrong the rest of the request is."""
    refused = refusal("StoreResult", "gateway", store_result(job_id="", terminal_status=m.DONE))
    assert refused.grpc == "PERMISSION_DENIED"
    assert "terminal_status" in refused.message


@pytest.mark.req("TQ-147")
def test_a_broken_rule_names_its_field() -> None:
    """The last to speak are the rules: all that are broken, each with its field."""
    refused = refusal("StoreResult", "coordinator", m.StoreResultRequest(checksum="x"))
    assert refused.grpc == "INVALID_ARGUMENT"
    assert refused.message == (
        "job_id: must not be empty; terminal_status: must be one of DONE, FAILED, CANCELED; "
        "checksum: must be empty or the lowercase hex SHA-256 of output_bytes"
    )


@pytest.mark.req("CH-54", "CH-55")
def test_what_passes_is_put_in_order() -> None:
    """A request that passes has its defaults, clamps and cuts when the handler sees it."""
    request = store_result(output_summary="é" * 1000, output_bytes=b"x")
    Guard(SYSTEM).compile(METHODS["StoreResult"])("gateway", request)
    assert request.output_summary == "é" * 512
    assert request.checksum == "2d711642b726b04401627ca9fbac32f5c8530fb1903cc4db02258717921a4881"


def test_what_is_refused_is_left_as_it_was() -> None:
    """A request that is refused is not put in order first."""
    request = store_result(job_id="", output_summary="x" * 2000)
    refusal("StoreResult", "gateway", request)
    assert len(request.output_summary) == 2000


@pytest.mark.req("CH-65", "TQ-060")
@pytest.mark.parametrize("actor", ["", "gateway", "worker"])
def test_an_actor_must_be_the_caller(actor: str) -> None:
    """Whoever moves a job under another name is denied, before the edge is looked at."""
    request = m.TransitionJobStatusRequest(job_id="x", actor=actor)
    assert refusal("TransitionJobStatus", "coordinator", request).grpc == "PERMISSION_DENIED"


@pytest.mark.req("CH-64", "TQ-061", "TQ-062")
@pytest.mark.parametrize(("source", "target"), list(product(STATES, repeat=2)))
def test_an_edge_that_is_not_there_is_refused_before_lookup(source: int, target: int) -> None:
    """The guard lets through the coordinator's four edges and refuses every other pair of states."""
    request = m.TransitionJobStatusRequest(
        job_id="x",
        actor="coordinator",
        expected_from_status=m.JobStatus.ValueType(source),
        to_status=m.JobStatus.ValueType(target),
    )
    edge = JOB.edges.get((source, target))
    if edge is not None and "coordinator" in edge.actors:
        Guard(SYSTEM).compile(METHODS["TransitionJobStatus"])("coordinator", request)
    else:
        wanted = "INVALID_ARGUMENT" if edge is None else "PERMISSION_DENIED"
        assert refusal("TransitionJobStatus", "coordinator", request).grpc == wanted


@pytest.mark.req("CH-64", "TQ-060", "TQ-061")
@pytest.mark.parametrize("actor", PRINCIPALS)
def test_an_edge_is_driven_by_its_actors_only(actor: str) -> None:
    """For every pair of states and every principal, the edge must be there and be this actor's."""
    for source, target in product(STATES, repeat=2):
        edge = JOB.edges.get((source, target))
        try:
            require_edge(SYSTEM.roles, JOB, actor, "Test.Move", source, target)
        except Condition as refused:
            assert edge is None or actor not in edge.actors
            assert refused.code == ("illegal_transition" if edge is None else "permission_denied")
        else:
            assert edge is not None and actor in edge.actors


def test_a_method_in_no_row_is_denied_to_all() -> None:
    """What the matrix does not name is denied, not allowed."""
    system = replace(SYSTEM, matrix={})
    for principal in PRINCIPALS:
        with pytest.raises(Condition) as refused:
            Guard(system).compile(METHODS["GetResult"])(principal, m.GetResultRequest(job_id="x"))
        assert refused.value.grpc in ("PERMISSION_DENIED", "UNAUTHENTICATED")


def test_conditions_of_a_permission_all_have_to_hold() -> None:
    """With two conditions, one that holds is not enough."""
    method: Method = METHODS["StoreResult"]
    only = Permission(only={"terminal_status": m.CANCELED, "runtime_ms": 0})
    admit = Guard(replace(SYSTEM, matrix={method.path: {"gateway": only}})).compile(method)
    admit("gateway", store_result())
    for wrong in ({"runtime_ms": 1}, {"terminal_status": m.DONE}):
        with pytest.raises(Condition) as refused:
            admit("gateway", store_result(**wrong))
        assert refused.value.grpc == "PERMISSION_DENIED"


def test_a_request_that_is_too_large_is_refused() -> None:
    """The size of a request has a bound of its own for each method."""
    method = replace(METHODS["StoreResult"], max_request_bytes=100)
    admit = Guard(SYSTEM).compile(method)
    admit("gateway", store_result(output_bytes=b"x" * 50))
    with pytest.raises(Condition, match="at most 100 bytes") as refused:
        admit("gateway", store_result(output_bytes=b"x" * 101))
    assert refused.value.grpc == "INVALID_ARGUMENT"
