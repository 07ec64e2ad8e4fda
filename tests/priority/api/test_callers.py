"""The caller matrix over HTTP and over gRPC: every role, every method, as in the spec."""

from __future__ import annotations

from pathlib import Path

import httpx
import pytest

from tests.support import quick_yaml
from tests.support.orchestrator.grpc_calls import Remote
from tests.support.plain_http import NO_TLS
from tests.support.priority.probes import METHODS, PROBES, format_path
from tests.support.priority.stack import ROLES, TOKENS, Queue, Stack, expect_refusal

pytestmark = pytest.mark.req("PQ-122", "PQ-089")

SPEC = quick_yaml.read((Path(__file__).parents[3] / "spec/priority/callers.yaml").read_text())
ALLOWED = {
    (role, f"{service}.{method}")
    for role in ROLES
    for service, methods in SPEC["may_call"][role].items()
    for method in methods
}
WRONG = ("Bearer nobody", "Bearer", "Basic Y2xpZW50", TOKENS["admin"], f"Bearer {TOKENS['admin']}x", "")


def ask(shared_stack: Stack, name: str, authorization: str | None) -> httpx.Response:
    method, probe = METHODS[name], PROBES[name]
    assert method.route is not None
    headers = {} if authorization is None else {"authorization": authorization}
    return httpx.request(
        method.route.method,
        f"{shared_stack.nodes[0].url}{format_path(method)}",
        json=probe.body,
        headers=headers,
        timeout=30,
        verify=NO_TLS,
    )


def test_every_method_is_probed() -> None:
    assert set(PROBES) == set(METHODS)


@pytest.mark.parametrize("role", ROLES)
def test_a_role_may_call_what_the_matrix_permits(queue: Queue, shared_stack: Stack, role: str) -> None:
    """A refused call has no effect, and the refusal reveals nothing of the request."""
    for name in METHODS:
        queue.redis.flushdb()
        answer = ask(shared_stack, name, f"Bearer {TOKENS[role]}")
        if (role, name) in ALLOWED:
            assert answer.status_code in (200, 201, 404), (name, answer.text)
        else:
            expect_refusal(answer, 403, "FORBIDDEN")
            assert queue.list_keys() == []


@pytest.mark.parametrize("name", METHODS)
def test_missing_or_wrong_credentials_are_refused(queue: Queue, shared_stack: Stack, name: str) -> None:
    """Neither without a token nor with an invalid one."""
    for authorization in (None, *WRONG):
        answer = ask(shared_stack, name, authorization)
        expect_refusal(answer, 401, "UNAUTHENTICATED")
        assert answer.headers["www-authenticate"] == "Bearer"
    assert queue.list_keys() == []


@pytest.mark.req("PQ-X14")
def test_the_matrix_applies_to_grpc(queue: Queue, shared_stack: Stack) -> None:
    """Role by role, and for callers without credentials."""
    address = shared_stack.nodes[0].address
    for role in ROLES:
        with Remote(address, TOKENS[role]) as remote:
            for name, method in METHODS.items():
                queue.redis.flushdb()
                outcome = remote.call(method, PROBES[name].message)
                if (role, name) in ALLOWED:
                    assert outcome.code in ("OK", "NOT_FOUND"), (name, outcome)
                else:
                    assert (outcome.code, outcome.condition) == ("PERMISSION_DENIED", "forbidden")
                    assert queue.list_keys() == []
    with Remote(address) as remote:
        for name, method in METHODS.items():
            assert remote.call(method, PROBES[name].message).code == "UNAUTHENTICATED"
    assert queue.list_keys() == []
