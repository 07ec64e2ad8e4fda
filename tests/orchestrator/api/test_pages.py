"""The pages of the API beside its methods: health, readiness, metrics, and a valid OpenAPI description."""

from __future__ import annotations

import hashlib
import json
import secrets
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from generated.orchestrator.system import SYSTEM
from tests.orchestrator.conftest import NewDatabase
from tests.support.deep import DEEP
from tests.support.orchestrator.stack import Node, Stack, get, new_key, post, submit
from tests.support.schemathesis_check import check_description

TOKEN = secrets.token_urlsafe(32)


@pytest.fixture(scope="module")
def description(api_only: Stack) -> dict[str, Any]:
    """The OpenAPI description as it is served."""
    answer = api_only.api.http.get("/openapi.json")
    assert (answer.status_code, answer.headers["content-type"]) == (200, "application/json")
    found: dict[str, Any] = answer.json()
    return found


@pytest.fixture(scope="module")
def probed_stack(new_database: NewDatabase, logs: Path) -> Iterator[Stack]:
    """An API with a worker, where the operator may call every method."""
    with Stack(new_database(), logs) as stack:
        digest = hashlib.sha256(TOKEN.encode()).hexdigest()
        stack.node("api", ACCEPTED_TOKENS=f"operator={digest}").begin()
        stack.node("worker").begin()
        for node in stack.nodes:
            node.wait()
        yield stack


@pytest.mark.req("ORC-X07")
def test_health_and_readiness_reveal_nothing_else(api: Node) -> None:
    """One word each, for any caller; nothing of the implementation."""
    assert api.http.get("/healthz").json() == {"alive": True}
    assert api.http.get("/readyz").json() == {"ready": True}


@pytest.mark.req("ORC-X07", "ORC-051")
def test_an_api_is_ready_only_with_the_schema_of_its_release(fresh: Stack) -> None:
    """A database without its schema makes the API not ready, without naming a table."""
    api = fresh.add("api")
    fresh.sql.run("ALTER SCHEMA public RENAME TO elsewhere; CREATE SCHEMA public")
    ready = api.http.get("/readyz")
    assert (ready.status_code, ready.json().keys()) == (503, {"ready", "problem"})
    for word in ("jobs", "public", "relation", "SELECT", "postgres"):
        assert word not in ready.text
    assert api.http.get("/healthz").status_code == 200
    refused = post(api.http, "echo", {}, new_key())
    assert (refused.status_code, refused.json()["error"]["code"]) == (503, "SERVICE_UNAVAILABLE")


@pytest.mark.req("ORC-X08")
def test_metrics_count_calls_and_states(api: Node) -> None:
    """In the text format of Prometheus, without any key, id or payload."""
    secret = new_key("mark")
    submit(api.http, "echo", {"mark": secret}, secret)
    text = api.http.get("/metrics").text
    assert "charter_calls_total{" in text
    assert secret not in text


@pytest.mark.req("ORC-X09")
def test_the_description_is_complete(description: dict[str, Any]) -> None:
    """OpenAPI 3.1 with every route and its statuses; schemas are schemas; links lead from submit to get."""
    assert description["openapi"].startswith("3.1")
    routes = {
        (row.route.method.lower(), row.name)
        for service in SYSTEM.services.values()
        for row in service.methods
        if row.route
    }
    operations = {
        (verb, row["operationId"]) for path in description["paths"].values() for verb, row in path.items()
    }
    assert operations == routes
    for schema in description["components"]["schemas"].values():
        Draft202012Validator.check_schema(schema)
    submitted = description["paths"]["/jobs"]["post"]["responses"]
    assert {"202", "400", "413", "415", "503"} <= submitted.keys()
    assert "GetJob" in submitted["202"]["links"]


@pytest.mark.req("ORC-X09", "ORC-056", "ORC-081")
def test_answers_fit_their_schemas(description: dict[str, Any], api: Node) -> None:
    """The bodies of the main answers fit their schemas, which allow no further fields."""
    job_id = submit(api.http)
    components = {"components": description["components"]}

    def check(name: str, body: Any) -> None:
        Draft202012Validator({"$ref": f"#/components/schemas/{name}", **components}).validate(body)

    check("Job", get(api.http, job_id))
    check("SubmitJobResponse", post(api.http, "echo", {}, new_key()).json())
    check("ListJobsResponse", api.http.get("/jobs").json())
    check("Error", api.http.get("/jobs/abc").json())
    check("Error", api.http.post("/jobs", json={}).json())


@pytest.mark.req("ORC-X09")
def test_the_page_loads_nothing_from_other_hosts(api: Node) -> None:
    """It works offline: no script, style, font or picture of another host."""
    page = api.http.get("/docs")
    assert page.status_code == 200
    assert page.headers["content-type"].startswith("text/html")
    assert "http://" not in page.text.replace("http://www.w3.org/", "")
    assert "https://" not in page.text
    assert "default-src 'none'" in page.headers["content-security-policy"]


@pytest.mark.req("ORC-X09", "ORC-075", "ORC-089", "ORC-096")
def test_the_api_conforms_to_its_description(probed_stack: Stack, tmp_path: Path) -> None:
    """Schemathesis looks for a request on which the two differ, also along the links.

    The bounds of values are tried with `--deep`, and in every run in tests/runtime/transport/http.
    """
    header = ("--header", f"Authorization: Bearer {TOKEN}")
    check_description(probed_stack.api.url, tmp_path, *header, bounds=DEEP)
    faults = [line for line in probed_stack.api.lines() if line["event"] == "rpc_fault"]
    assert faults == []
    assert json.loads(probed_stack.api.http.get("/readyz").text) == {"ready": True}
