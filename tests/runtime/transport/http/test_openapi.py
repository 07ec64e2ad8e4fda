"""The description of the routes: it is OpenAPI, it has the rules, and the served node agrees."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import httpx
import pytest
from jsonschema import Draft202012Validator

from runtime.model.system import System
from tests.runtime.transport.http.counter import Served
from tests.runtime.transport.http.test_values import EMPTY, FULL
from tests.support.plain_http import NO_TLS
from tests.support.schemathesis_check import check_description

ALWAYS_FAIL = ("BreakForm", "CloseForm", "WaitForm")
"""Methods of the counter that always fail, for other tests."""


@pytest.fixture(scope="module")
def described(kiosk: Served) -> dict[str, Any]:
    found: dict[str, Any] = httpx.get(f"{kiosk.url}/openapi.json", timeout=60, verify=NO_TLS).json()
    return found


def operations(described: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {row["operationId"]: row for path in described["paths"].values() for row in path.values()}


def validator(described: dict[str, Any], schema: dict[str, Any]) -> Draft202012Validator:
    return Draft202012Validator({**schema, "components": described["components"]})


def test_every_route_is_described(described: dict[str, Any], counter: System) -> None:
    """And nothing else is; placeholders have the names of JSON."""
    methods = [method for service in counter.services.values() for method in service.methods if method.route]
    assert set(operations(described)) == {method.name for method in methods}
    assert set(described["paths"]["/parcels/{parcelId}"]) == {"get"}
    assert next(iter(operations(described)["FillForm"]["responses"])) == "202"


def test_all_schemas_are_schemas(described: dict[str, Any]) -> None:
    """JSON Schema of 2020-12, as OpenAPI 3.1 has it, with references that lead somewhere."""
    assert described["openapi"] == "3.1.0"
    for schema in described["components"]["schemas"].values():
        Draft202012Validator.check_schema(schema)
    names = {
        each.rpartition("/")[2]
        for each in json.dumps(described).split('"')
        if each.startswith("#/components/schemas/")
    }
    assert names == set(described["components"]["schemas"])


def test_examples_are_valid(described: dict[str, Any], http: httpx.Client) -> None:
    """Each is allowed by its own schema, and those of requests are taken by the node."""
    for name, row in operations(described).items():
        for holder in (row.get("requestBody"), *row["responses"].values()):
            for content in ((holder or {}).get("content") or {}).values():
                examples = [each["value"] for each in content.get("examples", {}).values()]
                for example in [*examples, *([content["example"]] if "example" in content else [])]:
                    validator(described, content["schema"]).validate(example)
        assert name
    body = operations(described)["AnnounceParcel"]["requestBody"]["content"]["application/json"]["example"]
    assert http.post("/parcels", json=body).status_code == 200


def test_rules_are_in_the_schemas(described: dict[str, Any]) -> None:
    """Lengths, patterns, ranges, choices, JSON objects; a field is needed where its rules refuse nothing."""
    body = operations(described)["FillForm"]["requestBody"]["content"]["application/json"]["schema"]
    form = body["properties"]
    assert body["required"] == ["answers"]
    assert "formName" not in form
    assert form["shortNote"]["type"] == ["string", "null"]
    assert form["shortNote"]["maxLength"] == 140
    assert form["allMoods"]["items"]["enum"] == ["GOOD", "BAD"]
    assert form["allMoods"]["maxItems"] == 3
    assert (form["small"]["minimum"], form["small"]["maximum"]) == (-(2**31), 1000)
    assert form["answers"]["type"] == "object"
    check = validator(described, body)
    assert check.is_valid(FULL)
    wrong: dict[str, Any]
    for wrong in ({"answers": []}, {}, {"answers": {"a": "\0"}}, {"answers": {}, "stamp": "=="}):
        assert not check.is_valid(wrong), wrong


def test_answers_are_as_described(described: dict[str, Any]) -> None:
    """All fields that are not optional are promised."""
    schema = operations(described)["FillForm"]["responses"]["202"]["content"]["application/json"]["schema"]
    check = validator(described, schema)
    check.validate(EMPTY)
    check.validate({"formName": "p1", **FULL})
    assert not check.is_valid({name: value for name, value in EMPTY.items() if name != "dueAt"})


def test_refusals_are_described_with_their_codes(described: dict[str, Any]) -> None:
    """Those of the method, of its callers, of its body, and those that come through from other components."""
    responses = operations(described)["StoreParcel"]["responses"]

    def codes(status: str) -> list[str]:
        narrowed = responses[status]["content"]["application/json"]["schema"]["allOf"][1]
        found: list[str] = narrowed["properties"]["error"]["properties"]["code"]["enum"]
        return found

    statuses = "200 400 401 403 404 408 409 413 415 422 431 500 503 504"
    assert sorted(responses) == statuses.split()
    assert codes("409") == ["PARCEL_ELSEWHERE", "WAY_CLOSED"]
    assert codes("404") == ["PARCEL_UNKNOWN"]
    closed = operations(described)["CloseForm"]["responses"]
    assert "Retry-After" in closed["503"]["headers"]
    assert not {"408", "413", "415"} & set(closed)


def test_proofs_are_described(described: dict[str, Any]) -> None:
    """One proof suffices; a method without a need of one has the empty one, too."""
    assert set(described["components"]["securitySchemes"]) == {"token", "certificate"}
    assert operations(described)["StampForm"]["security"] == [{"token": []}, {"certificate": []}]
    assert {} in operations(described)["AskForm"]["security"]


def test_links_lead_from_a_response_to_its_entity(described: dict[str, Any]) -> None:
    """From the announcement of a parcel to everything that can be done with it."""
    links = operations(described)["AnnounceParcel"]["responses"]["200"]["links"]
    assert set(links) == {"CollectParcel", "FindParcel", "ReturnParcel", "StoreParcel"}
    assert links["FindParcel"]["parameters"] == {"path.parcelId": "$response.body#/parcel/parcelId"}


def test_the_served_node_is_as_described(kiosk: Served, tmp_path: Path) -> None:
    """Schemathesis looks for a request on which the two differ, step by step along the links as well."""
    excluded = [word for name in ALWAYS_FAIL for word in ("--exclude-operation-id", name)]
    check_description(kiosk.url, tmp_path, *excluded)
