"""Refusals: their codes and messages, and that they change nothing."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from generated.queuey.system import SYSTEM
from handlers.queuey.queue import Queue
from tests.support.queuey.in_process_queue import House

JSON = {"content-type": "application/json"}


def read_code(answer: Any) -> tuple[int, str]:
    """Status and code of a refusal, which has the one form that all have."""
    body = answer.json()
    assert answer.headers["content-type"] == "application/json"
    assert set(body) == {"error"}
    assert {"code", "message"} <= set(body["error"]) <= {"code", "message", "field"}
    assert not any(word in answer.text for word in ("Traceback", "SELECT", "sqlite", "/runtime/"))
    return answer.status_code, body["error"]["code"]


@pytest.mark.req("QQ-056", "QQ-109", "QQ-110")
@pytest.mark.parametrize("path", ["/jobs/create", "/jobs/claim", "/jobs/x/tickle", "/jobs/x/complete"])
@pytest.mark.parametrize("body", [b"{", b"[]", b'"text"', b"\xff\xfe", b"{'a': 1}"])
async def test_a_body_that_is_no_object_is_refused(house: House, path: str, body: bytes) -> None:
    answer = await house.ask("POST", path, content=body, headers=JSON)
    assert read_code(answer) in ((400, "MALFORMED_JSON"), (400, "VALIDATION_ERROR"))
    assert house.rows() == []


@pytest.mark.req("QQ-057")
async def test_the_query_string_is_ignored(house: House) -> None:
    answer = await house.ask("POST", "/jobs/create?binary_addr=b", {})
    assert read_code(answer) == (400, "VALIDATION_ERROR")
    assert (await house.ask("POST", "/jobs/claim?runner_id=r", {})).status_code == 400


@pytest.mark.req("QQ-058")
async def test_fields_of_the_server_cannot_be_set(house: House) -> None:
    job = await house.create(status="completed", run_attempts=7, job_id="X", created_at=1, colour="red")
    assert (job["status"], job["run_attempts"]) == ("pending", 0)
    assert job["job_id"] != "X"
    assert job["created_at"] > 1


@pytest.mark.req("QQ-059")
async def test_success_is_200(house: House) -> None:
    created = await house.ask("POST", "/jobs/create", {"binary_addr": "b"})
    job_id = created.json()["job_id"]
    answers = [
        created,
        await house.ask("POST", "/jobs/claim", {"runner_id": "r"}),
        await house.tickle(job_id),
        await house.complete(job_id),
        await house.ask("GET", f"/jobs/{job_id}"),
    ]
    assert [each.status_code for each in answers] == [200] * 5
    assert {each.headers["content-type"] for each in answers} == {"application/json"}


@pytest.mark.req("QQ-111")
async def test_wrong_paths_and_methods_are_refused(house: House) -> None:
    assert read_code(await house.ask("GET", "/nope")) == (404, "ROUTE_NOT_FOUND")
    job = await house.create()
    for method, path in (("DELETE", f"/jobs/{job['job_id']}"), ("GET", f"/jobs/{job['job_id']}/tickle")):
        answer = await house.ask(method, path)
        assert read_code(answer) == (405, "METHOD_NOT_ALLOWED")
        assert answer.headers["allow"]


@pytest.mark.req("QQ-112")
async def test_a_body_that_is_too_large_is_refused(house: House) -> None:
    body = json.dumps({"binary_addr": "b", "more": "x" * 70_000}).encode()
    answer = await house.ask("POST", "/jobs/create", content=body, headers=JSON)
    assert read_code(answer) == (413, "BODY_TOO_LARGE")
    assert house.rows() == []


@pytest.mark.req("QQ-109")
async def test_a_fault_of_the_queue_reveals_no_details(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def broken(*_: object) -> None:
        raise RuntimeError("SELECT secret FROM /etc/passwd")

    monkeypatch.setattr(Queue, "count_jobs", broken)
    async with House(tmp_path / "q.db") as house:
        answer = await house.ask("GET", "/counts")
        assert read_code(answer) == (500, "INTERNAL_ERROR")
        assert "secret" not in answer.text
        assert "secret" in house.log.getvalue()


@pytest.mark.req("QQ-109", "QQ-114")
async def test_a_refused_request_changes_nothing(house: House) -> None:
    jobs = {
        status: (await house.create_in_status(status))["job_id"]
        for status in ("completed", "failed", "active")
    }
    jobs["pending"] = (await house.create())["job_id"]
    before, changes = house.rows(), house.sql("SELECT count(*) FROM job_changes")
    completed = {"status": "completed", "output_addr": "other"}
    requests_: list[tuple[str, str, Any]] = [
        ("POST", "/jobs/create", {"binary_addr": ""}),
        ("POST", "/jobs/claim", {"runner_id": ""}),
        ("GET", "/jobs/nobody", None),
        ("PUT", "/jobs/create", {}),
        ("POST", f"/jobs/{jobs['active']}/complete", {"status": "pending"}),
        ("POST", f"/jobs/{jobs['active']}/complete", {"status": "completed"}),
        ("POST", f"/jobs/{jobs['active']}/complete", {**completed, "runner_id": "stranger"}),
        ("POST", f"/jobs/{jobs['active']}/complete", {**completed, "run_attempts": 9}),
        ("POST", f"/jobs/{jobs['active']}/tickle", {"runner_id": "stranger"}),
        ("POST", f"/jobs/{jobs['active']}/release", {"runner_id": "stranger"}),
        ("POST", f"/jobs/{jobs['active']}/retry", None),
        *(
            ("POST", f"/jobs/{jobs[status]}/{act}", completed if act == "complete" else None)
            for status in ("pending", "completed", "failed")
            for act in ("tickle", "complete")
        ),
        *(("POST", f"/jobs/{jobs[status]}/cancel", None) for status in ("completed", "failed")),
    ]
    for method, path, body in requests_:
        status, _ = read_code(await house.ask(method, path, body))
        assert 400 <= status < 500, (method, path, body)
        assert house.rows() == before, (method, path, body)
    assert house.sql("SELECT count(*) FROM job_changes") == changes


@pytest.mark.req("QQ-117")
async def test_the_api_is_that_of_the_spec(house: House) -> None:
    described = (await house.ask("GET", "/openapi.json")).json()
    routes = {
        (method.route.method.lower(), method.route.path)
        for method in SYSTEM.services["QueueService"].methods
        if method.route is not None
    }
    assert routes <= {(verb, path) for path, verbs in described["paths"].items() for verb in verbs}
    assert {"abandon", "claim", "complete", "fail"} <= {
        edge.name for edge in SYSTEM.lifecycles["job"].edges.values()
    }
    callers = {path: set(row) for path, row in SYSTEM.matrix.items()}
    assert callers["/queuey.v1.QueueService/CreateJob"] == {"client", "anyone"}
    assert callers["/queuey.v1.QueueService/ClaimJob"] == {"runner", "anyone"}


@pytest.mark.req("QQ-X09", "QQ-X10")
async def test_health_metrics_pages_and_log(house: House) -> None:
    job = await house.create_active("r")
    for path in ("/healthz", "/readyz", "/docs", "/openapi.json"):
        assert (await house.ask("GET", path)).status_code == 200, path
    metrics = (await house.ask("GET", "/metrics")).text
    assert 'charter_entities{entity="job",state="ACTIVE"} 1.0' in metrics
    transitions = [line for line in house.lines() if line["event"] == "transition"]
    assert [(each["transition"], each["job_id"]) for each in transitions] == [
        ("create", job["job_id"]),
        ("claim", job["job_id"]),
    ]
