"""The guard: who, under which condition, and what, in that order, before a handler is reached."""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest
from google.protobuf.message import Message
from msgspec.structs import replace

from generated.studio import messages as m
from generated.studio.lifecycle import FILM
from generated.studio.system import SYSTEM
from runtime.call.conditions import Condition
from runtime.call.guard import Guard, require_edge
from runtime.model.system import Method, Permission

METHODS = {method.name: method for service in SYSTEM.services.values() for method in service.methods}
STATES = (*FILM.states, m.FILM_STATE_UNSPECIFIED, 99)
PRINCIPALS = tuple(SYSTEM.principals)


def refusal(name: str, caller: str, request: Message) -> Condition:
    with pytest.raises(Condition) as refused:
        Guard(SYSTEM).compile(METHODS[name])(caller, request)
    return refused.value


def store_print(**fields: Any) -> m.StorePrintRequest:
    return m.StorePrintRequest(**{"film_id": "x", "final_state": m.WITHDRAWN, **fields})


@pytest.mark.req("CH-65", "TQ-023")
def test_the_caller_is_checked_before_the_request() -> None:
    """A caller without proof is unauthenticated on an internal method, however wrong its request is."""
    refused = refusal("StorePrint", "visitor", m.StorePrintRequest())
    assert (refused.grpc, refused.code) == ("UNAUTHENTICATED", "stranger")
    assert "StorePrint" in refused.message


@pytest.mark.req("CH-65", "TQ-023")
def test_the_matrix_comes_before_the_rules() -> None:
    """A proven caller outside the matrix is denied, however wrong its request is."""
    refused = refusal("StorePrint", "printer", m.StorePrintRequest())
    assert refused.grpc == "PERMISSION_DENIED"
    assert refused.message == ("ArchiveService.StorePrint is not for printer: it is not in the caller matrix")


@pytest.mark.req("CH-65", "TQ-020")
def test_a_condition_comes_before_the_rules() -> None:
    """A permission needs its condition, however wrong the rest of the request is."""
    refused = refusal("StorePrint", "desk", store_print(film_id="", final_state=m.DEVELOPED))
    assert refused.grpc == "PERMISSION_DENIED"
    assert "final_state" in refused.message


@pytest.mark.req("TQ-147")
def test_a_broken_rule_names_its_field() -> None:
    """The last to speak are the rules: all that are broken, each with its field."""
    refused = refusal("StorePrint", "foreman", m.StorePrintRequest(checksum="x"))
    assert refused.grpc == "INVALID_ARGUMENT"
    assert refused.message == (
        "film_id: must not be empty; final_state: must be one of DEVELOPED, SPOILED, WITHDRAWN; "
        "checksum: must be empty or the lowercase hex SHA-256 of picture"
    )


@pytest.mark.req("CH-54", "CH-55")
def test_an_admitted_request_is_normalized() -> None:
    """A request that passes has its defaults, clamps and cuts when the handler sees it."""
    request = store_print(caption="é" * 1000, picture=b"x")
    Guard(SYSTEM).compile(METHODS["StorePrint"])("desk", request)
    assert request.caption == "é" * 512
    assert request.checksum == "2d711642b726b04401627ca9fbac32f5c8530fb1903cc4db02258717921a4881"


def test_a_refused_request_is_left_as_it_was() -> None:
    """A request that is refused is not put in order first."""
    request = store_print(film_id="", caption="x" * 2000)
    refusal("StorePrint", "desk", request)
    assert len(request.caption) == 2000


@pytest.mark.req("CH-65", "TQ-060")
@pytest.mark.parametrize("actor", ["", "desk", "printer"])
def test_an_actor_must_be_the_caller(actor: str) -> None:
    """A transition under the name of another caller is denied before its edge is checked."""
    request = m.MoveFilmRequest(film_id="x", actor=actor)
    assert refusal("MoveFilm", "foreman", request).grpc == "PERMISSION_DENIED"


@pytest.mark.req("CH-64", "TQ-061", "TQ-062")
@pytest.mark.parametrize(("source", "target"), list(product(STATES, repeat=2)))
def test_an_edge_that_is_not_there_is_refused_before_lookup(source: int, target: int) -> None:
    """The guard lets through the foreman's four edges and refuses every other pair of states."""
    request = m.MoveFilmRequest(
        film_id="x",
        actor="foreman",
        expected_state=m.FilmState.ValueType(source),
        next_state=m.FilmState.ValueType(target),
    )
    edge = FILM.edges.get((source, target))
    if edge is not None and "foreman" in edge.actors:
        Guard(SYSTEM).compile(METHODS["MoveFilm"])("foreman", request)
    else:
        wanted = "INVALID_ARGUMENT" if edge is None else "PERMISSION_DENIED"
        assert refusal("MoveFilm", "foreman", request).grpc == wanted


@pytest.mark.req("CH-64", "TQ-060", "TQ-061")
@pytest.mark.parametrize("actor", PRINCIPALS)
def test_an_edge_is_driven_by_its_actors_only(actor: str) -> None:
    """For every pair of states and every principal, the edge must be there and be this actor's."""
    for source, target in product(STATES, repeat=2):
        edge = FILM.edges.get((source, target))
        try:
            require_edge(SYSTEM.roles, FILM, actor, "Test.Move", source, target)
        except Condition as refused:
            assert edge is None or actor not in edge.actors
            assert refused.code == ("no_such_edge" if edge is None else "not_allowed")
        else:
            assert edge is not None and actor in edge.actors


def test_a_method_in_no_row_is_denied_to_all() -> None:
    """A method outside the caller matrix is denied."""
    system = replace(SYSTEM, matrix={})
    for principal in PRINCIPALS:
        with pytest.raises(Condition) as refused:
            Guard(system).compile(METHODS["GetPrint"])(principal, m.GetPrintRequest(film_id="x"))
        assert refused.value.grpc in ("PERMISSION_DENIED", "UNAUTHENTICATED")


def test_all_conditions_of_a_permission_are_required() -> None:
    """Of two conditions, one that is met is not enough."""
    method: Method = METHODS["StorePrint"]
    only = Permission(only={"final_state": m.WITHDRAWN, "minutes": 0})
    admit = Guard(replace(SYSTEM, matrix={method.path: {"desk": only}})).compile(method)
    admit("desk", store_print())
    for wrong in ({"minutes": 1}, {"final_state": m.DEVELOPED}):
        with pytest.raises(Condition) as refused:
            admit("desk", store_print(**wrong))
        assert refused.value.grpc == "PERMISSION_DENIED"


@pytest.mark.parametrize(
    ("roles", "code"),
    [
        (SYSTEM.roles, "RESOURCE_EXHAUSTED"),
        (
            {role: each for role, each in SYSTEM.roles.items() if role != "body_too_large"},
            "INVALID_ARGUMENT",
        ),
    ],
    ids=["a condition of the spec", "none"],
)
def test_a_request_that_is_too_large_is_refused(roles: Any, code: str) -> None:
    """Each method has a limit of its own; a spec without a condition for that has an invalid request."""
    method = replace(METHODS["StorePrint"], max_request_bytes=100)
    admit = Guard(replace(SYSTEM, roles=roles)).compile(method)
    admit("desk", store_print(picture=b"x" * 50))
    with pytest.raises(Condition, match="at most 100 bytes") as refused:
        admit("desk", store_print(picture=b"x" * 101))
    assert refused.value.grpc == code
