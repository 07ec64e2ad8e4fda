"""The OpenAPI description of routes, for every spec that has some."""

from __future__ import annotations

import json
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from codegen.emit.http import openapi
from codegen.emit.http.openapi_schemas import UUID4
from codegen.emit.http.pattern_samples import generate_sample
from tests.support.codegen.specs import FOLDERS, ROOT, change_spec, spec, texts

ROUTED = [
    folder
    for folder in FOLDERS
    if " route: " in (ROOT / folder / "services.yaml").read_text(encoding="utf-8")
]
"""By their text: every process that collects the tests would have to load all specs."""


def test_every_spec_with_routes_is_described() -> None:
    assert [folder for folder in FOLDERS if openapi.list_routed_methods(spec(folder))] == ROUTED


@pytest.mark.parametrize("folder", ROUTED)
def test_it_is_valid_openapi(folder: str) -> None:
    """All schemas are valid, all references resolve, and all operations have a name of their own."""
    emitted = texts(openapi.emit, spec(folder))
    text = emitted[f"generated/{spec(folder).name}/openapi.json"]
    found = json.loads(text)
    assert text == json.dumps(found, indent=2, sort_keys=True, ensure_ascii=False) + "\n"
    for schema in found["components"]["schemas"].values():
        Draft202012Validator.check_schema(schema)
    refs = {each for each in text.split('"') if each.startswith("#/components/schemas/")}
    assert {each.rpartition("/")[2] for each in refs} == set(found["components"]["schemas"])
    ids = [row["operationId"] for path in found["paths"].values() for row in path.values()]
    assert len(ids) == len(set(ids)) == len(openapi.list_routed_methods(spec(folder)))


@pytest.mark.parametrize("folder", ROUTED)
def test_examples_fit_their_schemas(folder: str) -> None:
    """Those of bodies, of answers and of errors."""
    found = openapi.build_document(spec(folder))
    for path in found["paths"].values():
        for row in path.values():
            for holder in (row.get("requestBody", {}), *row["responses"].values()):
                for content in holder.get("content", {}).values():
                    examples = [each["value"] for each in content.get("examples", {}).values()]
                    examples += [content["example"]] if "example" in content else []
                    schema = {**content["schema"], "components": found["components"]}
                    for example in examples:
                        Draft202012Validator(schema).validate(example)


def test_values_of_an_enum_are_spelled_as_in_json() -> None:
    """In bodies, in queries and as defaults."""
    found = openapi.build_document(spec("tests/specs/rental"))
    size = found["components"]["schemas"]["LeaveBikeRequest"]["properties"]["size"]
    assert (size["default"], size["enum"]) == ("small", ["unspecified", "small", "large", "cargo"])
    query = {each["name"]: each["schema"] for each in found["paths"]["/bikes"]["get"]["parameters"]}
    assert "aboard" in query["state"]["enum"]


def test_a_spec_without_routes_has_no_description() -> None:
    """Neither the document nor its page."""

    def remove(services: dict[str, dict[str, dict[str, dict[str, dict[str, object]]]]]) -> None:
        for service in services["services"].values():
            for method in service["methods"].values():
                method.pop("route", None)

    assert texts(openapi.emit, change_spec(spec("tests/specs/locker"), "services", remove)) == {}


def test_the_page_is_of_its_system() -> None:
    """It has the title, says where it comes from, and needs no other host."""
    page = texts(openapi.emit, spec("tests/specs/locker"))["generated/locker/docs.html"]
    assert "<title>Parcel locker</title>" in page
    assert "Generated from tests/specs/locker" in page
    assert "://" not in page


@pytest.mark.parametrize(
    "pattern",
    ["[A-Z]{2}[0-9]{9}", UUID4, "[A-Za-z0-9_.-]+", "a|b", "(?:x[0-9]+)?", r"\d{3}-\w+", "[^a]", "^$"],
)
def test_samples_match_their_patterns(pattern: str) -> None:
    """The sample of a pattern in an example matches it."""
    import re

    assert re.fullmatch(pattern, generate_sample(pattern))


def test_names_are_those_of_protobuf() -> None:
    """As the descriptors have them, from which the served names come."""
    named = spec("tests/specs/locker").json_name
    assert [named(each) for each in ("job_id", "a", "created_at_ms", "sha_256", "a_1b")] == [
        *("jobId", "a", "createdAtMs", "sha256", "a1b")
    ]


def test_names_and_errors_follow_the_style_of_the_spec() -> None:
    """Names as they are in the spec, unset fields as null, and all details of an error."""

    def other_style(system: dict[str, object]) -> None:
        system["json"] = {"names": "snake", "unset": "shown", "details": True}

    found = openapi.build_document(change_spec(spec("spec/orchestrator"), "system", other_style))
    assert "/jobs/{job_id}" in found["paths"]
    assert "job_type" in found["components"]["schemas"]["Job"]["properties"]
    error = found["components"]["schemas"]["Error"]["properties"]["error"]
    assert error["required"] == ["code", "message", "details"]
    refused = found["paths"]["/jobs"]["post"]["responses"]["400"]["content"]["application/json"]["examples"]
    assert refused["VALIDATION_ERROR"]["value"]["error"]["details"] == {
        "field": "<field>",
        "problem": "<problem>",
    }


def test_every_status_of_a_route_is_described() -> None:
    """One without a body, too."""

    def instead(services: dict[str, dict[str, dict[str, dict[str, dict[str, dict[str, object]]]]]]) -> None:
        route = services["services"]["JobsService"]["methods"]["GetJob"]["route"]
        route["instead"] = [{"status": 204, "if_unset": "job_id"}, {"status": 201, "if_set": "status"}]

    found = openapi.build_document(change_spec(spec("spec/orchestrator"), "services", instead))
    answers = found["paths"]["/jobs/{jobId}"]["get"]["responses"]
    assert {"200", "201", "204"} < set(answers)
    assert "content" in answers["201"] and "content" not in answers["204"]


def test_raw_content_has_no_schema_of_a_message() -> None:
    """Raw bodies and answers have no schema of a message; ranges of them can be requested."""
    paths = openapi.build_document(spec("spec/queuey"))["paths"]
    octets = ["application/octet-stream"]
    for upload in (paths["/blobs"]["post"], paths["/blobs/{address}"]["put"]):
        assert list(upload["requestBody"]["content"]) == octets
        assert list(upload["responses"]["201"]["content"]) == ["application/json"]
        assert {"408", "413"} <= set(upload["responses"])
        assert "415" not in upload["responses"]
    download = paths["/blobs/{address}"]["get"]
    assert list(download["responses"]["200"]["content"]) == octets
    assert {"206", "304", "416"} <= set(download["responses"])
    assert {each["name"] for each in download["parameters"]} == {
        "address",
        "Range",
        "If-Range",
        "If-None-Match",
    }


@pytest.mark.parametrize("folder", ROUTED)
def test_a_field_with_a_default_is_never_required(folder: str) -> None:
    """A client may omit every field of a body that has a default."""
    found = openapi.build_document(spec(folder))
    for name, schema in found["components"]["schemas"].items():
        defaults = {field for field, row in schema.get("properties", {}).items() if "default" in row}
        assert defaults.isdisjoint(schema.get("required", ())), name


@pytest.mark.parametrize(
    ("least", "allowed"), [(1, [0, 1, 2, 3, 4]), (3, [0, 3, 4]), (0, [0, 1, 2, 3, 4])], ids=str
)
def test_a_number_with_a_default_may_be_0(least: int, allowed: list[int]) -> None:
    """Its bounds are those of any other number, and 0 stands for the default."""

    def bounded(types: Any) -> None:
        field = types["public"]["messages"]["ReplayDeadLettersRequest"]["fields"]["most"]
        field["rules"] = {"default": 4, "min": least, "max": 4}

    found = openapi.build_document(change_spec(spec("spec/priority"), "types", bounded))
    schema = found["components"]["schemas"]["ReplayDeadLettersRequest"]["properties"]["most"]
    fits = Draft202012Validator(schema)
    assert [number for number in range(-1, 6) if fits.is_valid(number)] == allowed


def test_one_of_several_fields_is_required() -> None:
    """A body says so where a field may be omitted only if another one is there."""
    found = openapi.build_document(spec("spec/priority"))["components"]["schemas"]["PurgeDeadLettersRequest"]
    fits = Draft202012Validator(found)
    valid = ({"all": True}, {"older_than_seconds": 1}, {"older_than_seconds": 1, "all": False})
    assert all(fits.is_valid(body) for body in valid)
    invalid: tuple[dict[str, object], ...] = ({}, {"all": False}, {"older_than_seconds": 0})
    assert not any(fits.is_valid(body) for body in invalid)
