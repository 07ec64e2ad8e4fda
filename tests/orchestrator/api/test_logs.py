"""The log: every submit can be followed, and no payload is ever in it."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import httpx
import pytest

from tests.orchestrator.conftest import NewDatabase
from tests.support.orchestrator.stack import Node, Stack, final, new_key, post, submit, wait_until

pytestmark = pytest.mark.req("ORC-X10")


@pytest.fixture(scope="module")
def talkative(new_database: NewDatabase, logs: Path) -> Iterator[Stack]:
    """An API and a worker that log all they can."""
    with Stack(new_database(), logs) as made:
        for name in ("api", "worker"):
            made.node(name, LOG_LEVEL="DEBUG", MAX_RETRIES="0").begin()
        for node in made.nodes:
            node.wait()
        yield made


def everything(node: Node) -> str:
    return node.log.read_text() + node.errors.read_text()


def all_is_told(stack: Stack) -> None:
    """Waits until both have written the line of something that comes after all else."""
    job_id = submit(stack.api.http)
    assert final(stack.api.http, job_id) == "COMPLETED"
    for node, step in ((stack.api, "accept"), (stack.worker, "complete")):
        wait_until(partial(told, node, job_id, step), "it is told")


def told(node: Node, job_id: str, step: str) -> bool:
    return step in steps_of(node, job_id)


def steps_of(node: Node, job_id: str) -> list[str]:
    """What a node has told of a job."""
    found = [line for line in node.lines() if line.get("job_id") == job_id and "transition" in line]
    return [line["transition"] for line in found]


def test_no_payload_is_ever_logged(talkative: Stack) -> None:
    """Neither of what is accepted, refused, repeated, run or failed, nor of what the database refuses."""
    http, mark = talkative.api.http, uuid.uuid4().hex
    payload = {"secret": mark, mark: [mark]}
    headers = {"content-type": "application/json"}
    key = new_key()
    done = submit(http, "echo", payload, key)
    assert final(http, done) == "COMPLETED"
    assert post(http, "echo", {"other": mark}, key).status_code == 202
    assert final(http, submit(http, "fatal", payload)) == "FAILED"
    failed = submit(http, "fail", payload)
    assert final(http, failed) == "FAILED"
    assert final(http, submit(http, "no-such-type", payload)) == "FAILED"
    batch = [{"jobType": "echo", "payload": payload, "idempotencyKey": new_key()}]
    assert http.post("/jobs/batch", json={"jobs": batch}).status_code == 202
    assert http.post(f"/jobs/{failed}/retry", json={"idempotencyKey": new_key()}).status_code == 202
    refused = [
        post(http, "", payload, new_key()),
        post(http, "echo", [mark], new_key()),
        post(http, "echo", {**payload, "bad": "\0"}, new_key()),
        post(http, "echo", payload, ""),
        http.post("/jobs", content=f'{{"payload": {{"a": "{mark}"', headers=headers),
        http.post("/jobs", content=f'{{"payload": {{"a": "{mark}", "n": 1e999}}}}', headers=headers),
        http.post("/jobs", content=json.dumps({"payload": mark * 60_000}), headers=headers),
        http.post("/jobs", content=f"payload={mark}"),
        http.get("/jobs", params={"pageToken": "x"}),
    ]
    assert {answer.status_code for answer in refused} == {400, 413, 415}
    assert all(mark not in answer.text for answer in refused)
    talkative.sql.run("ALTER TABLE jobs ADD CONSTRAINT odd CHECK (payload <> '{\"odd\": true}') NOT VALID")
    talkative.sql.run(f"ALTER TABLE jobs ADD CONSTRAINT odder CHECK (NOT payload ? '{mark}') NOT VALID")
    assert post(http, "echo", payload, new_key()).status_code in (400, 500)
    talkative.sql.run("ALTER TABLE jobs DROP CONSTRAINT odd, DROP CONSTRAINT odder")

    all_is_told(talkative)
    for node in talkative.nodes:
        assert mark not in everything(node)


@pytest.mark.req("ORC-064")
def test_every_step_can_be_followed_by_the_id_of_the_job(talkative: Stack) -> None:
    """Each line is one JSON object; those of the steps name the job, the step and who did it."""
    api, worker = talkative.api, talkative.worker
    job_id = submit(api.http)
    assert final(api.http, job_id) == "COMPLETED"
    wait_until(lambda: steps_of(api, job_id) == ["create", "accept"], "the API has told its steps")
    wait_until(lambda: steps_of(worker, job_id) == ["acquire", "complete"], "the worker has told its steps")
    for node in talkative.nodes:
        assert all({"level", "event"} <= line.keys() for line in node.lines())


def test_a_request_can_be_followed_by_the_id_its_client_gave(talkative: Stack) -> None:
    """The id is in the lines of the call, cut where it is too long, and cannot forge a line."""
    api, mark = talkative.api, uuid.uuid4().hex
    forged = f'{mark}","event":"forged" {"x" * 200}'
    api.http.get("/jobs/abc", headers={"x-request-id": forged})
    told = wait_until(
        lambda: [line for line in api.lines() if str(line.get("request_id", "")).startswith(mark)],
        "it is told",
    )
    assert all(len(line["request_id"]) <= 64 for line in told)
    assert all(line["event"] != "forged" for line in told)


def test_no_token_and_no_password_is_ever_logged(talkative: Stack) -> None:
    """Neither the address of the database with its password, nor what somebody shows as proof."""
    api = talkative.api
    token = uuid.uuid4().hex
    refused = api.http.get("/jobs", headers={"authorization": f"Bearer {token}"})
    assert refused.status_code == 401
    password = httpx.URL(talkative.database).password
    assert password
    all_is_told(talkative)
    for node in talkative.nodes:
        text = everything(node)
        assert token not in text
        assert password not in text
