"""Validation of requests: a refusal names the field and the rule, and nothing is stored."""

from __future__ import annotations

import json

import pytest

from tests.support.orchestrator.bodies import JSON, encode_headers, make_body, post_refused
from tests.support.orchestrator.sql_session import Sql
from tests.support.orchestrator.stack import Node, Stack, new_key, post, submit

FIELDS = ("jobType", "payload", "idempotencyKey")


@pytest.mark.req("ORC-075")
@pytest.mark.usefixtures("nothing_stored")
@pytest.mark.parametrize(
    "content",
    [
        "",
        " ",
        "{",
        '{"jobType":"echo"',
        "hello",
        "{'jobType': 'echo'}",
        '{"jobType": "echo",}',
        "{} {}",
        '{"payload": NaN}',
        '{"payload": {"a": Infinity}}',
        b"\xff\xfe{}",
        b'{"jobType": "\xc3("}',
        '{"a": 01}',
        "[" * 100_000,
        '{"a":' * 100_000,
        b"\x00",
        b"\x1f\x8b\x08\x00",
    ],
)
def test_a_body_that_is_not_json_is_malformed(api: Node, content: str | bytes) -> None:
    """MALFORMED_JSON, whatever it is instead."""
    assert post_refused(api, content)["code"] == "MALFORMED_JSON"


@pytest.mark.req("ORC-075")
@pytest.mark.usefixtures("nothing_stored")
@pytest.mark.parametrize("content", ["[]", "null", "true", "1", '"text"', "[{}]"])
def test_a_body_that_is_not_an_object_is_invalid(api: Node, content: str) -> None:
    """JSON of another kind breaks a rule of the request."""
    found = post_refused(api, content)
    assert found["code"] == "VALIDATION_ERROR"
    assert "object" in found["message"]


@pytest.mark.req("ORC-075")
@pytest.mark.usefixtures("nothing_stored")
@pytest.mark.parametrize("field", FIELDS)
@pytest.mark.parametrize("value", [None, "", 7, -0.5, True, [], ["x"], "MISSING"])
def test_each_field_is_checked_and_named(api: Node, field: str, value: object) -> None:
    """Missing, null, empty and wrongly typed fields are refused under their own names."""
    body = make_body(**{field: value})
    if value == "MISSING":
        del body[field]
    found = post_refused(api, json.dumps(body))
    assert (found["code"], found["field"]) == ("VALIDATION_ERROR", field)
    assert field in found["message"]


@pytest.mark.req("ORC-075")
@pytest.mark.usefixtures("nothing_stored")
@pytest.mark.parametrize("field", ["jobType", "idempotencyKey"])
def test_an_object_is_no_text(api: Node, field: str) -> None:
    assert post_refused(api, json.dumps(make_body(**{field: {"a": 1}})))["field"] == field


@pytest.mark.req("ORC-076")
@pytest.mark.parametrize("job_type", ["a", "A" * 100, "SEND_EMAIL", "a.b-c_D9", ".", "-", "_", "0"])
def test_job_types_within_the_limits_are_accepted(api: Node, sql: Sql, job_type: str) -> None:
    """1 to 100 characters of A-Z a-z 0-9 _ . -"""
    assert sql.job(submit(api.http, job_type))["job_type"] == job_type


@pytest.mark.req("ORC-076")
@pytest.mark.usefixtures("nothing_stored")
@pytest.mark.parametrize(
    "job_type",
    [
        "a" * 101,
        "a b",
        "a/b",
        "é",
        "a\n",
        "\na",
        "a\u0000",
        "a:b",
        "\N{FULLWIDTH LATIN SMALL LETTER A}",
        "٣",
        " a",
    ],
)
def test_job_types_beyond_the_limits_are_refused(api: Node, job_type: str) -> None:
    found = post_refused(api, json.dumps(make_body(jobType=job_type)))
    assert (found["code"], found["field"]) == ("VALIDATION_ERROR", "jobType")


@pytest.mark.req("ORC-076")
@pytest.mark.parametrize(
    "key",
    [
        "k" * 255,
        "\N{GRINNING FACE}" * 255,
        " ",
        " x ",
        "\t",
        "a/b?c#d%00",
        "'; DROP TABLE jobs; --",
        "\u200b",
    ],
)
def test_keys_within_the_limits_are_stored_unchanged(api_only: Stack, key: str) -> None:
    """1 to 255 characters of any kind, neither trimmed nor folded."""
    unique = key if len(key) == 255 else f"{new_key()}{key}"
    job_id = submit(api_only.api.http, "echo", {}, unique)
    assert [str(row["job_id"]) for row in api_only.sql.jobs(unique)] == [job_id]
    assert submit(api_only.api.http, "echo", {}, unique) == job_id


@pytest.mark.req("ORC-076")
@pytest.mark.usefixtures("nothing_stored")
@pytest.mark.parametrize("key", ["k" * 256, "\N{GRINNING FACE}" * 256, "k" * 100_000])
def test_keys_beyond_the_limits_are_refused(api: Node, key: str) -> None:
    found = post_refused(api, json.dumps(make_body(idempotencyKey=key)))
    assert (found["code"], found["field"]) == ("VALIDATION_ERROR", "idempotencyKey")


@pytest.mark.req("ORC-076")
def test_keys_are_compared_exactly(api: Node) -> None:
    """Case, white space and the form of a character make a difference."""
    base = new_key()
    keys = [f"{base}{end}" for end in ("a", "A", "a ", " a", "", "é", "e\N{COMBINING ACUTE ACCENT}", "a\t")]
    assert len({submit(api.http, "echo", {}, key) for key in keys}) == len(keys)


@pytest.mark.req("ORC-075")
@pytest.mark.usefixtures("nothing_stored")
@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"content-type": "text/plain"},
        {"content-type": "application/x-www-form-urlencoded"},
        {"content-type": "application/json; charset=utf-16"},
        {"content-type": "application/jsonp"},
        {"content-type": "application/json", "content-encoding": "gzip"},
        {"content-type": "\u00ff"},
    ],
)
def test_a_body_of_another_type_is_refused(api: Node, headers: dict[str, str]) -> None:
    """415, whatever is in it: a page of another site cannot send JSON without a preflight request."""
    answer = api.http.post("/jobs", content=json.dumps(make_body()), headers=encode_headers(headers))
    assert (answer.status_code, answer.json()["error"]["code"]) == (415, "UNSUPPORTED_MEDIA_TYPE")


@pytest.mark.req("ORC-053")
@pytest.mark.parametrize(
    "media",
    [
        "application/json",
        "APPLICATION/JSON",
        "application/json; charset=utf-8",
        'application/json;charset="UTF-8"',
    ],
)
def test_any_spelling_of_the_json_type_is_accepted(api: Node, media: str) -> None:
    answer = api.http.post("/jobs", content=json.dumps(make_body()), headers={"content-type": media})
    assert answer.status_code == 202


@pytest.mark.req("ORC-075")
def test_the_last_of_two_equal_names_counts(api: Node, sql: Sql) -> None:
    """The last value is the one that is checked and the one that is stored."""
    key = new_key()
    content = (
        f'{{"jobType": "bad type", "jobType": "echo", "payload": 1, "payload": {{"a": 1, "a": 2}},'
        f' "idempotencyKey": "", "idempotencyKey": "{key}"}}'
    )
    assert api.http.post("/jobs", content=content, headers=JSON).status_code == 202
    assert sql.jobs(key)[0]["payload"] == {"a": 2}
    swapped = f'{{"jobType": "echo", "payload": {{}}, "payload": 1, "idempotencyKey": "{new_key()}"}}'
    assert post_refused(api, swapped)["field"] == "payload"


@pytest.mark.req("ORC-089", "ORC-075")
@pytest.mark.parametrize(
    ("method", "path", "status", "code"),
    [
        ("GET", "/", 404, "ROUTE_NOT_FOUND"),
        ("GET", "/job", 404, "ROUTE_NOT_FOUND"),
        ("GET", "/jobs/", 404, "ROUTE_NOT_FOUND"),
        ("GET", "/jobs/a/b", 404, "ROUTE_NOT_FOUND"),
        ("POST", "/JOBS", 404, "ROUTE_NOT_FOUND"),
        ("GET", "/../etc/passwd", 404, "ROUTE_NOT_FOUND"),
        ("PUT", "/jobs", 405, "METHOD_NOT_ALLOWED"),
        ("DELETE", "/jobs/00000000-0000-4000-8000-000000000000", 405, "METHOD_NOT_ALLOWED"),
        ("PATCH", "/jobs/batch", 405, "METHOD_NOT_ALLOWED"),
        ("POST", "/healthz", 405, "METHOD_NOT_ALLOWED"),
    ],
)
def test_wrong_paths_and_methods_are_refused(
    api: Node, method: str, path: str, status: int, code: str
) -> None:
    """Each has its code; a path with other methods names them."""
    answer = api.http.request(method, path)
    assert (answer.status_code, answer.json()["error"]["code"]) == (status, code)
    assert ("allow" in answer.headers) == (status == 405)


@pytest.mark.req("ORC-053")
def test_options_and_head_have_no_body(api: Node) -> None:
    """They list the methods and the headers, and have no effect."""
    allowed = api.http.options("/jobs")
    assert (allowed.status_code, allowed.headers["allow"]) == (204, "GET, HEAD, OPTIONS, POST")
    job_id = submit(api.http)
    head, whole_answer = api.http.head(f"/jobs/{job_id}"), api.http.get(f"/jobs/{job_id}")
    assert (head.status_code, head.content) == (200, b"")
    assert dict(head.headers) == dict(whole_answer.headers)


@pytest.mark.req("ORC-063")
def test_hostile_headers_change_nothing(api: Node, sql: Sql) -> None:
    """No header about the client, its address or its time reaches the answer or the row."""
    hostile = {
        "x-request-id": "x" * 5000,
        "traceparent": "00-zz-zz-01",
        "x-forwarded-for": "10.0.0.1",
        "x-http-method-override": "DELETE",
        "forwarded": "for=evil;proto=https",
        "cookie": "a=" + "b" * 2000,
        "expect": "nothing",
        "te": "trailers",
        "x-caller": "operator",
        "x-odd": "\xff\xe9",
    }
    key = new_key()
    answer = api.http.post("/jobs", json=make_body(idempotencyKey=key), headers=encode_headers(hostile))
    assert answer.status_code == 202
    plain = post(api.http, "echo", {}, key)
    assert (dict(answer.headers), answer.json()) == (dict(plain.headers), plain.json())
    assert "x" * 100 not in answer.text + str(answer.headers)
    assert api.http.get("/jobs", headers={"x-many": "y" * 40_000}).status_code == 431
