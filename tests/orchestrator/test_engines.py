"""Deployments on other engines: the same handlers, lifecycle and interfaces without PostgreSQL."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from generated.orchestrator.system import SYSTEM
from tests.support.orchestrator.stack import SHORT, Node, new_key, post, submit, wait_until_final

ENGINES = ("memory", "redis", "sqlite")
SETTINGS = {**SHORT, "MAX_RETRIES": "1"}


def make_node(engine: str, folder: Path, name: str = "api", **settings: str) -> Node:
    """A node that is not started yet. There is no database server that it could use."""
    path = {"DATABASE_PATH": str(folder / "jobs.db")} if engine == "sqlite" else {}
    return Node(name, "", folder, {**SETTINGS, **path, **settings}, deployment=engine)


@pytest.fixture(scope="module", params=ENGINES)
def node(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Node]:
    """The API of each engine, with all other nodes that it has."""
    folder, settings = tmp_path_factory.mktemp(request.param), {}
    if request.param == "redis":
        url = request.getfixturevalue("redis_server").url
        settings = {"REDIS_URL": url, "REDIS_KEY_PREFIX": f"{folder.name}:"}
    names = SYSTEM.deployments[request.param].nodes
    nodes = [make_node(request.param, folder, name, **settings).begin() for name in names]
    for each in nodes:
        each.wait()
    yield next(each for each in nodes if each.name == "api")
    for each in nodes:
        each.discard()


def list_ids(node: Node, **query: Any) -> list[str]:
    answer = node.http.get("/jobs", params=query)
    assert answer.status_code == 200, answer.text
    return [each["jobId"] for each in answer.json()["jobs"]]


def test_the_interfaces_are_those_of_the_system() -> None:
    """Each has the endpoints and listeners of the deployment with PostgreSQL."""
    own = SYSTEM.deployments["local"].nodes["api"]
    for engine in ENGINES:
        other = SYSTEM.deployments[engine].nodes["api"]
        assert (other.serves, other.http, other.port_variable) == (own.serves, own.http, own.port_variable)


def test_jobs_run_to_their_ends(node: Node) -> None:
    """One succeeds, one fails as often as it may, and one fails for good."""
    done, failed, fatal = (submit(node.http, kind, {"a": 1}) for kind in ("echo", "fail", "fatal"))
    assert [wait_until_final(node.http, each) for each in (done, failed, fatal)] == [
        "COMPLETED",
        "FAILED",
        "FAILED",
    ]


def test_a_key_names_one_job(node: Node) -> None:
    key = new_key()
    first, second = (post(node.http, "echo", {}, key).json()["jobId"] for _ in range(2))
    assert first == second


def test_a_batch_is_accepted_as_a_whole(node: Node) -> None:
    keys = [new_key() for _ in range(20)]
    jobs = [{"jobType": "echo", "payload": {}, "idempotencyKey": key} for key in [*keys, keys[0]]]
    answer = node.http.post("/jobs/batch", json={"jobs": jobs})
    assert answer.status_code == 202, answer.text
    ids = [each["jobId"] for each in answer.json()["jobs"]]
    assert ids[0] == ids[-1] and len(set(ids)) == 20
    assert {wait_until_final(node.http, each) for each in ids} == {"COMPLETED"}


def test_a_listing_has_what_is_there(node: Node) -> None:
    failed = submit(node.http, "fatal")
    wait_until_final(node.http, failed)
    assert failed in list_ids(node, status="FAILED") and failed not in list_ids(node, status="COMPLETED")


def test_a_job_that_failed_can_be_submitted_again(node: Node) -> None:
    failed = submit(node.http, "fatal")
    wait_until_final(node.http, failed)
    answer = node.http.post(f"/jobs/{failed}/retry", json={"idempotencyKey": new_key()})
    assert answer.status_code == 202, answer.text
    assert wait_until_final(node.http, answer.json()["jobId"]) == "FAILED"


def test_accepted_jobs_outlive_the_process_in_a_file(tmp_path: Path) -> None:
    """Killed while jobs wait and run; the next process ends all of them."""
    node = make_node("sqlite", tmp_path, WORKER_CONCURRENCY="1", LEASE_SECONDS="1", LEASE_RENEW_SECONDS="0.3")
    try:
        node.start()
        ids = [submit(node.http, "sleep", {"seconds": 0.2}) for _ in range(8)]
        node.kill()
        node.start()
        assert {wait_until_final(node.http, each) for each in ids} == {"COMPLETED"}
    finally:
        node.discard()
