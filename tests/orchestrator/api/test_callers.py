"""The caller matrix over HTTP and gRPC: every principal, every method, as in the spec."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NamedTuple

import httpx
import psutil
import pytest

from generated.orchestrator.messages import (
    GetJobHistoryRequest,
    GetJobRequest,
    ListJobsRequest,
    PurgeJobsRequest,
    RetryJobRequest,
    SubmitJobRequest,
    SubmitJobsRequest,
)
from tests.orchestrator.conftest import NewDatabase
from tests.support import quick_yaml
from tests.support.orchestrator.grpc_calls import METHODS, Remote
from tests.support.orchestrator.stack import Node, Stack, new_key, submit, wait_until
from tests.support.plain_http import NO_TLS

pytestmark = pytest.mark.req("ORC-032")

SPEC = quick_yaml.read((Path(__file__).parents[3] / "spec/orchestrator/callers.yaml").read_text())
TOKENS = {name: secrets.token_urlsafe(32) for name in SPEC["principals"]}
ACCEPTED = ",".join(f"{name}={hashlib.sha256(token.encode()).hexdigest()}" for name, token in TOKENS.items())
ABSENT = "00000000-0000-4000-8000-000000000000"
WRONG = {
    "an unknown token": "Bearer " + "x" * 43,
    "a token in part": f"Bearer {TOKENS['operator'][:-1]}",
    "a token and more": f"Bearer {TOKENS['operator']}=",
    "the digest of a token": f"Bearer {hashlib.sha256(TOKENS['operator'].encode()).hexdigest()}",
    "no token behind the word": "Bearer",
    "another word": f"Token {TOKENS['operator']}",
    "no word": TOKENS["operator"],
    "a password": "Basic b3BlcmF0b3I6b3BlcmF0b3I=",
    "nothing": "",
}
"""Credentials that are not valid."""


class Probe(NamedTuple):
    """A request that reaches its handler if the caller may, over both transports."""

    verb: str
    path: str
    body: Any
    request: Any


def probes() -> dict[str, Probe]:
    """One for each method."""
    key = new_key()
    job = {"jobType": "echo", "payload": {}, "idempotencyKey": key}
    request_ = SubmitJobRequest(job_type="echo", payload="{}", idempotency_key=key)
    return {
        "JobsService.SubmitJob": Probe("POST", "/jobs", job, request_),
        "JobsService.SubmitJobs": Probe(
            "POST", "/jobs/batch", {"jobs": [job]}, SubmitJobsRequest(jobs=[request_])
        ),
        "JobsService.GetJob": Probe("GET", f"/jobs/{ABSENT}", None, GetJobRequest(job_id=ABSENT)),
        "JobsService.ListJobs": Probe("GET", "/jobs?pageSize=1", None, ListJobsRequest(page_size=1)),
        "JobsService.RetryJob": Probe(
            "POST",
            f"/jobs/{ABSENT}/retry",
            {"idempotencyKey": key},
            RetryJobRequest(job_id=ABSENT, idempotency_key=key),
        ),
        "OperatorService.GetJobHistory": Probe(
            "GET", f"/operator/jobs/{ABSENT}/history", None, GetJobHistoryRequest(job_id=ABSENT)
        ),
        "OperatorService.PurgeJobs": Probe(
            "POST", "/operator/purge", {"olderThanDays": 3650}, PurgeJobsRequest(older_than_days=3650)
        ),
    }


@pytest.fixture(scope="module")
def two_apis(new_database: NewDatabase, logs: Path) -> Iterator[Stack]:
    """An API as in containers, which requires credentials of all callers, and one as on a single machine."""
    with Stack(new_database(), logs) as stack:
        stack.node("api", deployment="compose", ACCEPTED_TOKENS=ACCEPTED).begin()
        stack.node("api", deployment="local", ACCEPTED_TOKENS=ACCEPTED).begin()
        for node in stack.nodes:
            node.wait()
        yield stack


@pytest.fixture
def guarded(two_apis: Stack) -> Node:
    return two_apis.nodes[0]


@pytest.fixture
def local(two_apis: Stack) -> Node:
    return two_apis.nodes[1]


@pytest.fixture
def clients(guarded: Node) -> Iterator[dict[str, httpx.Client]]:
    """Clients of every principal, with their credentials, at the API that requires them."""
    with ExitStack() as open_ones:
        yield {
            name: open_ones.enter_context(
                httpx.Client(
                    base_url=guarded.url,
                    headers={"authorization": f"Bearer {TOKENS[name]}"},
                    timeout=60,
                    verify=NO_TLS,
                )
            )
            for name in ("client", "operator")
        }


def ask(node: Node, probe: Probe, authorization: str | None, **headers: str) -> httpx.Response:
    proof = {} if authorization is None else {"authorization": authorization}
    return node.http.request(probe.verb, probe.path, json=probe.body, headers={**proof, **headers})


def is_permitted(principal: str, method: str) -> bool:
    service, _, name = method.partition(".")
    return name in SPEC["may_call"].get(principal, {}).get(service, [])


@pytest.mark.parametrize("principal", SPEC["principals"])
@pytest.mark.parametrize("where", ["guarded", "local"])
def test_each_principal_may_call_what_the_spec_permits(two_apis: Stack, principal: str, where: str) -> None:
    """All other methods are refused with 403 and PERMISSION_DENIED; no method is omitted."""
    node, token = two_apis.nodes[where == "local"], TOKENS[principal]
    assert probes().keys() == METHODS.keys()
    with Remote(node.address, token) as remote:
        for name, probe in probes().items():
            answer = ask(node, probe, f"Bearer {token}")
            outcome = remote.call(METHODS[name], probe.request)
            if is_permitted(principal, name):
                assert answer.status_code in (200, 202, 404), (name, answer.text)
                assert outcome.code in ("OK", "NOT_FOUND"), (name, outcome)
            else:
                assert (answer.status_code, answer.json()["error"]["code"]) == (403, "ACTOR_NOT_ALLOWED"), (
                    name
                )
                assert (outcome.code, outcome.condition) == ("PERMISSION_DENIED", "actor_not_allowed"), name


@pytest.mark.parametrize("method", METHODS)
def test_missing_credentials_are_refused_where_they_are_required(guarded: Node, method: str) -> None:
    """401 with the authentication scheme, and UNAUTHENTICATED; the path and the body do not matter."""
    probe = probes()[method]
    answer = ask(guarded, probe, None)
    assert (answer.status_code, answer.json()["error"]["code"]) == (401, "UNAUTHENTICATED")
    assert answer.headers["www-authenticate"] == "Bearer"
    with Remote(guarded.address) as remote:
        outcome = remote.call(METHODS[method], probe.request)
    assert (outcome.code, outcome.condition) == ("UNAUTHENTICATED", "unauthenticated")


@pytest.mark.parametrize("method", METHODS)
def test_on_one_machine_a_caller_without_credentials_is_a_client(local: Node, method: str) -> None:
    """Clients need no credentials there; methods for operators only do."""
    probe = probes()[method]
    answer = ask(local, probe, None)
    with Remote(local.address) as remote:
        outcome = remote.call(METHODS[method], probe.request)
    if is_permitted("client", method):
        assert answer.status_code in (200, 202, 404)
        assert outcome.code in ("OK", "NOT_FOUND")
    else:
        assert (answer.status_code, outcome.code) == (401, "UNAUTHENTICATED")


@pytest.mark.parametrize("where", ["guarded", "local"])
@pytest.mark.parametrize("wrong", WRONG)
def test_wrong_credentials_are_refused_where_none_are_required(
    two_apis: Stack, where: str, wrong: str
) -> None:
    """Invalid credentials are refused, also where none would have been enough."""
    probe = probes()["JobsService.ListJobs"]
    answer = ask(two_apis.nodes[where == "local"], probe, WRONG[wrong])
    assert (answer.status_code, answer.json()["error"]["code"]) == (401, "UNAUTHENTICATED")
    assert TOKENS["operator"] not in answer.text


def test_a_name_in_a_header_is_no_credential(guarded: Node) -> None:
    """A caller does not become a principal by naming it."""
    probe = probes()["OperatorService.PurgeJobs"]
    claims = {
        "x-caller": "operator",
        "x-spiffe-id": "spiffe://orchestrator/operator",
        "x-forwarded-client-cert": "URI=spiffe://orchestrator/operator",
        "x-forwarded-for": "127.0.0.1",
        "forwarded": "for=127.0.0.1",
    }
    assert ask(guarded, probe, None, **claims).status_code == 401
    assert ask(guarded, probe, f"Bearer {TOKENS['client']}", **claims).status_code == 403


def test_another_host_name_has_no_access_without_credentials(local: Node) -> None:
    """A foreign name that resolves to this machine gives no access without credentials (DNS rebinding)."""
    probe = probes()["JobsService.ListJobs"]
    for host in ("evil.example", "evil.example:8080", "127.0.0.1.evil.example", "0.0.0.0", "10.0.0.1"):
        assert ask(local, probe, None, host=host).status_code == 401, host
    for host in ("127.0.0.1", "localhost:1", "LOCALHOST", "[::1]:80", "127.8.8.8"):
        assert ask(local, probe, None, host=host).status_code == 200, host
    assert ask(local, probe, f"Bearer {TOKENS['client']}", host="evil.example").status_code == 200


def test_access_without_credentials_is_from_this_machine_only(local: Node) -> None:
    """Both ports are bound to loopback and to nothing else."""
    listening = [
        each.laddr.ip.removeprefix("::ffff:")
        for each in psutil.Process(local.pid).net_connections("inet")
        if each.status == psutil.CONN_LISTEN
    ]
    assert listening == ["127.0.0.1"] * 2


@pytest.mark.req("ORC-089")
def test_a_caller_without_permission_learns_nothing_of_the_request(
    guarded: Node, clients: dict[str, httpx.Client]
) -> None:
    """Neither whether the request is valid nor whether the job exists."""
    existing = submit(clients["client"])
    for authorization, status in ((None, 401), (f"Bearer {TOKENS['reaper']}", 403)):
        answers = [
            ask(guarded, Probe("GET", f"/jobs/{job_id}", None, None), authorization)
            for job_id in (existing, ABSENT, "no-id")
        ]
        proof = {} if authorization is None else {"authorization": authorization}
        bodies = (b"{", b'{"jobType": 1}', b"x" * 2_000_000)
        answers += [
            guarded.http.post("/jobs", content=body, headers={"content-type": "text/plain", **proof})
            for body in bodies
        ]
        assert {answer.status_code for answer in answers} == {status}
        assert len({answer.text for answer in answers[:3]}) == 1


@pytest.mark.req("ORC-046", "ORC-154", "ORC-X11")
def test_an_operator_sees_the_history_of_a_job(two_apis: Stack, clients: dict[str, httpx.Client]) -> None:
    """Counters, the last error and every transition with its actor; clients see none of it."""
    job_id = submit(clients["client"], "echo", {"secret": "payload-mark"})
    two_apis.sql.transition(job_id, "RUNNING", "RETRY", "QUEUED", "RUNNING", "RETRY", "DEAD")
    two_apis.sql.run(f"UPDATE jobs SET last_error = 'why it failed' WHERE job_id = '{job_id}'")

    answer = clients["operator"].get(f"/operator/jobs/{job_id}/history")

    assert answer.status_code == 200
    outcome = answer.json()
    assert outcome.keys() == {"job", "retryCount", "attempt", "lastError", "transitions"}
    assert outcome["job"] == clients["client"].get(f"/jobs/{job_id}").json()
    assert (outcome["retryCount"], outcome["attempt"], outcome["lastError"]) == (2, 2, "why it failed")
    steps = [
        (each["fromState"], each["toState"], each["actor"], each["attempt"])
        for each in outcome["transitions"]
    ]
    assert steps == [
        ("", "CREATED", "api", 0),
        ("CREATED", "QUEUED", "api", 0),
        ("QUEUED", "RUNNING", "", 1),
        ("RUNNING", "RETRY", "", 1),
        ("RETRY", "QUEUED", "", 1),
        ("QUEUED", "RUNNING", "", 2),
        ("RUNNING", "RETRY", "", 2),
        ("RETRY", "DEAD", "", 2),
    ]
    assert "payload-mark" not in answer.text


@pytest.mark.req("ORC-X11", "ORC-103")
def test_an_operator_purges_old_terminal_jobs(two_apis: Stack, clients: dict[str, httpx.Client]) -> None:
    """Only jobs that have ended and are old are deleted, with their history; their keys are free again."""
    client, operator = clients["client"], clients["operator"]
    key = new_key()
    old, young, waiting = submit(client, "echo", {}, key), submit(client), submit(client)
    for job_id in (old, young):
        two_apis.sql.transition(job_id, "RUNNING", "SUCCESS")
    for job_id in (old, waiting):
        two_apis.sql.run(f"UPDATE jobs SET updated_at = now() - interval '40 days' WHERE job_id = '{job_id}'")

    for wrong in ({"olderThanDays": 0}, {}, {"olderThanDays": -1}, {"olderThanDays": "1"}):
        refused = operator.post("/operator/purge", json=wrong)
        assert (refused.status_code, refused.json()["error"]["field"]) == (400, "olderThanDays")
    # A row that another session has locked at the moment stays until the next purge.
    purged = wait_until(
        lambda: operator.post("/operator/purge", json={"olderThanDays": 30}).json()["purged"], "it is purged"
    )
    assert purged == 1

    assert client.get(f"/jobs/{old}").status_code == 404
    assert two_apis.sql.history(old) == []
    assert client.get(f"/jobs/{young}").status_code == 200
    assert client.get(f"/jobs/{waiting}").status_code == 200
    assert submit(client, "echo", {}, key) != old
