"""The log: every submit can be traced, and no payload is ever in it."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import httpx
import pytest

from tests.orchestrator.conftest import NewDatabase
from tests.support.orchestrator.stack import Node, Stack, new_key, post, submit, wait_until, wait_until_final

pytestmark = pytest.mark.req("ORC-X10")


@pytest.fixture(scope="module")
def verbose_stack(new_database: NewDatabase, logs: Path) -> Iterator[Stack]:
    """An API and a worker at the lowest log level."""
    with Stack(new_database(), logs) as stack:
        for name in ("api", "worker"):
            stack.node(name, LOG_LEVEL="DEBUG", MAX_RETRIES="0").begin()
        for node in stack.nodes:
            node.wait()
        yield stack


def read_output(node: Node) -> str:
    return node.log.read_text() + node.errors.read_text()


def wait_until_logged(stack: Stack) -> None:
    """Wait until both have written the line of a later job."""
    job_id = submit(stack.api.http)
    assert wait_until_final(stack.api.http, job_id) == "COMPLETED"
    for node, step in ((stack.api, "accept"), (stack.worker, "complete")):
        wait_until(partial(has_logged, node, job_id, step), "it is logged")


def has_logged(node: Node, job_id: str, step: str) -> bool:
    return step in list_transitions(node, job_id)


def list_transitions(node: Node, job_id: str) -> list[str]:
    """The transitions of a job that a node has logged."""
    found = [line for line in node.lines() if line.get("job_id") == job_id and "transition" in line]
    return [line["transition"] for line in found]


def test_no_payload_is_ever_logged(verbose_stack: Stack) -> None:
    """For jobs that are accepted, refused, repeated, run, failed, or refused by the database."""
    http, secret = verbose_stack.api.http, uuid.uuid4().hex
    payload = {"secret": secret, secret: [secret]}
    headers = {"content-type": "application/json"}
    key = new_key()
    accepted = submit(http, "echo", payload, key)
    assert wait_until_final(http, accepted) == "COMPLETED"
    assert post(http, "echo", {"other": secret}, key).status_code == 202
    assert wait_until_final(http, submit(http, "fatal", payload)) == "FAILED"
    failed = submit(http, "fail", payload)
    assert wait_until_final(http, failed) == "FAILED"
    assert wait_until_final(http, submit(http, "no-such-type", payload)) == "FAILED"
    batch = [{"jobType": "echo", "payload": payload, "idempotencyKey": new_key()}]
    assert http.post("/jobs/batch", json={"jobs": batch}).status_code == 202
    assert http.post(f"/jobs/{failed}/retry", json={"idempotencyKey": new_key()}).status_code == 202
    refused = [
        post(http, "", payload, new_key()),
        post(http, "echo", [secret], new_key()),
        post(http, "echo", {**payload, "bad": "\0"}, new_key()),
        post(http, "echo", payload, ""),
        http.post("/jobs", content=f'{{"payload": {{"a": "{secret}"', headers=headers),
        http.post("/jobs", content=f'{{"payload": {{"a": "{secret}", "n": 1e999}}}}', headers=headers),
        http.post("/jobs", content=json.dumps({"payload": secret * 60_000}), headers=headers),
        http.post("/jobs", content=f"payload={secret}"),
        http.get("/jobs", params={"pageToken": "x"}),
    ]
    assert {answer.status_code for answer in refused} == {400, 413, 415}
    assert all(secret not in answer.text for answer in refused)
    verbose_stack.sql.run(
        "ALTER TABLE jobs ADD CONSTRAINT odd CHECK (payload <> '{\"odd\": true}') NOT VALID"
    )
    verbose_stack.sql.run(f"ALTER TABLE jobs ADD CONSTRAINT odder CHECK (NOT payload ? '{secret}') NOT VALID")
    assert post(http, "echo", payload, new_key()).status_code in (400, 500)
    verbose_stack.sql.run("ALTER TABLE jobs DROP CONSTRAINT odd, DROP CONSTRAINT odder")

    wait_until_logged(verbose_stack)
    for node in verbose_stack.nodes:
        assert secret not in read_output(node)


@pytest.mark.req("ORC-064")
def test_every_transition_can_be_traced_by_the_id_of_the_job(verbose_stack: Stack) -> None:
    """Each line is one JSON object; those of transitions name the job, the transition and the actor."""
    api, worker = verbose_stack.api, verbose_stack.worker
    job_id = submit(api.http)
    assert wait_until_final(api.http, job_id) == "COMPLETED"
    wait_until(
        lambda: list_transitions(api, job_id) == ["create", "accept"], "the API has logged its transitions"
    )
    wait_until(
        lambda: list_transitions(worker, job_id) == ["acquire", "complete"],
        "the worker has logged its transitions",
    )
    for node in verbose_stack.nodes:
        assert all({"level", "event"} <= line.keys() for line in node.lines())


def test_a_request_can_be_traced_by_the_id_of_its_client(verbose_stack: Stack) -> None:
    """The id is in the lines of the call, cut where it is too long, and cannot forge a line."""
    api, secret = verbose_stack.api, uuid.uuid4().hex
    forged = f'{secret}","event":"forged" {"x" * 200}'
    api.http.get("/jobs/abc", headers={"x-request-id": forged})
    logged = wait_until(
        lambda: [line for line in api.lines() if str(line.get("request_id", "")).startswith(secret)],
        "it is logged",
    )
    assert all(len(line["request_id"]) <= 64 for line in logged)
    assert all(line["event"] != "forged" for line in logged)


def test_no_token_and_no_password_is_ever_logged(verbose_stack: Stack) -> None:
    """Neither the address of the database with its password, nor a caller's credentials."""
    api = verbose_stack.api
    token = uuid.uuid4().hex
    refused = api.http.get("/jobs", headers={"authorization": f"Bearer {token}"})
    assert refused.status_code == 401
    password = httpx.URL(verbose_stack.database).password
    assert password
    wait_until_logged(verbose_stack)
    for node in verbose_stack.nodes:
        text = read_output(node)
        assert token not in text
        assert password not in text
