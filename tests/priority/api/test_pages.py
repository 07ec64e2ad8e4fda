"""The OpenAPI description of the API, and whether the API conforms to it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from tests.priority.conftest import NewServers
from tests.support.deep import DEEP
from tests.support.priority.metrics_scrape import scrape
from tests.support.priority.probes import METHODS
from tests.support.priority.stack import ROLES, TOKENS, Queue, Stack, expect_success
from tests.support.schemathesis_check import check_description


@pytest.fixture(scope="module")
def probed_stack(new_servers: NewServers, logs: Path) -> Iterator[Stack]:
    """An API of its own, which tests may fill with anything."""
    with Stack(new_servers(), logs) as stack:
        stack.add("api")
        yield stack


@pytest.fixture
def description(queue: Queue) -> dict[str, Any]:
    return expect_success(queue.client.get("/openapi.json"))


@pytest.mark.req("PQ-X10", "PQ-100", "PQ-092")
def test_every_method_is_described(description: dict[str, Any]) -> None:
    """With its statuses, and names as in the spec."""
    operations = {row["operationId"] for path in description["paths"].values() for row in path.values()}
    assert operations == {method.name for method in METHODS.values()}
    submitted = description["paths"]["/api/v1/tasks"]["post"]["responses"]
    assert {"200", "201", "400", "401", "403", "409", "413", "429", "503"} <= set(submitted)
    assert "/api/v1/tasks/{task_id}" in description["paths"]
    error = description["components"]["schemas"]["Error"]["properties"]["error"]
    assert error["required"] == ["code", "message", "details"]


@pytest.mark.req("PQ-123", "PQ-145", "PQ-112", "PQ-124", "PQ-132")
def test_answers_fit_their_schemas(description: dict[str, Any], queue: Queue) -> None:
    """The bodies of the main answers fit their schemas."""
    components = {"components": description["components"]}

    def check(name: str, body: Any) -> None:
        Draft202012Validator({"$ref": f"#/components/schemas/{name}", **components}).validate(body)

    submitted = queue.post(task_type="t").json()
    check("SubmitTaskResponse", submitted)
    check("Task", queue.get(submitted["task_id"]))
    check("GetQueueStatsResponse", queue.stats())
    worker = queue.register()
    check("PollTasksResponse", {"tasks": queue.poll(worker)})
    check("ListWorkersResponse", expect_success(queue.admin.get("/api/v1/admin/workers")))
    check("Error", queue.client.get("/api/v1/tasks/x").json())
    check("Error", queue.client.get("/nowhere").json())


@pytest.mark.req("PQ-X10", "PQ-121")
def test_health_and_metrics(queue: Queue) -> None:
    """Without any credentials, and without any details of the implementation."""
    assert queue.client.get("/healthz").status_code == 200
    assert expect_success(queue.client.get("/readyz")) == {"ready": True}
    queue.stats()
    assert "charter_calls_total" in scrape(queue.client).names()
    assert queue.client.get("/docs").status_code == 200


@pytest.mark.req("PQ-123", "PQ-104", "PQ-096")
@pytest.mark.parametrize("role", ROLES if DEEP else ("admin",))
def test_the_api_conforms_to_its_description(probed_stack: Stack, tmp_path: Path, role: str) -> None:
    """Schemathesis looks for a request on which the two differ, also along the links.

    The bounds of values are tried with `--deep`, and in every run in tests/runtime/transport/http.
    """
    # A read may wait for the end of a task, and no task ends here.
    without = () if DEEP or role == "worker" else ("--exclude-operation-id", "GetTask")
    header = ("--header", f"Authorization: Bearer {TOKENS[role]}")
    check_description(probed_stack.nodes[0].url, tmp_path, *header, *without, bounds=DEEP)
    faults = [line for line in probed_stack.nodes[0].lines() if line["event"] == "rpc_fault"]
    assert faults == []
