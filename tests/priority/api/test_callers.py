"""Who may do what, over HTTP and over gRPC: every role, every method, as the spec has it."""

from __future__ import annotations

from pathlib import Path

import httpx
import pytest

from tests.support import quick_yaml
from tests.support.orchestrator.grpc_calls import Remote
from tests.support.plain_http import NO_TLS
from tests.support.priority.probes import METHODS, PROBES, path_of
from tests.support.priority.stack import ROLES, TOKENS, Queue, Stack, refused

pytestmark = pytest.mark.req("PQ-122", "PQ-089")

SPEC = quick_yaml.read((Path(__file__).parents[3] / "spec/priority/callers.yaml").read_text())
ALLOWED = {
    (role, f"{service}.{method}")
    for role in ROLES
    for service, methods in SPEC["may_call"][role].items()
    for method in methods
}
WRONG = ("Bearer nobody", "Bearer", "Basic Y2xpZW50", TOKENS["admin"], f"Bearer {TOKENS['admin']}x", "")


def ask(shared: Stack, name: str, authorization: str | None) -> httpx.Response:
    method, probe = METHODS[name], PROBES[name]
    assert method.route is not None
    headers = {} if authorization is None else {"authorization": authorization}
    return httpx.request(
        method.route.method,
        f"{shared.nodes[0].url}{path_of(method)}",
        json=probe.body,
        headers=headers,
        timeout=30,
        verify=NO_TLS,
    )


def test_every_method_is_probed() -> None:
    assert set(PROBES) == set(METHODS)


@pytest.mark.parametrize("role", ROLES)
def test_a_role_may_do_what_the_matrix_says(queue: Queue, shared: Stack, role: str) -> None:
    """What it may not do has no effect, and the refusal says nothing of the request."""
    for name in METHODS:
        queue.redis.flushdb()
        answer = ask(shared, name, f"Bearer {TOKENS[role]}")
        if (role, name) in ALLOWED:
            assert answer.status_code in (200, 201, 404), (name, answer.text)
        else:
            refused(answer, 403, "FORBIDDEN")
            assert queue.stored() == []


@pytest.mark.parametrize("name", METHODS)
def test_nobody_without_proof_is_let_in(queue: Queue, shared: Stack, name: str) -> None:
    """Neither without a token nor with one that is none."""
    for authorization in (None, *WRONG):
        answer = ask(shared, name, authorization)
        refused(answer, 401, "UNAUTHENTICATED")
        assert answer.headers["www-authenticate"] == "Bearer"
    assert queue.stored() == []


@pytest.mark.req("PQ-X14")
def test_the_same_holds_over_grpc(queue: Queue, shared: Stack) -> None:
    """Role by role, and for those who show nothing."""
    address = shared.nodes[0].address
    for role in ROLES:
        with Remote(address, TOKENS[role]) as remote:
            for name, method in METHODS.items():
                queue.redis.flushdb()
                told = remote.call(method, PROBES[name].message)
                if (role, name) in ALLOWED:
                    assert told.code in ("OK", "NOT_FOUND"), (name, told)
                else:
                    assert (told.code, told.condition) == ("PERMISSION_DENIED", "forbidden")
                    assert queue.stored() == []
    with Remote(address) as remote:
        for name, method in METHODS.items():
            assert remote.call(method, PROBES[name].message).code == "UNAUTHENTICATED"
    assert queue.stored() == []
