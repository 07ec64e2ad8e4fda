"""Payloads at their limits: text that cannot be stored, large numbers, depth and size."""

from __future__ import annotations

import json

import pytest

from tests.support.orchestrator.bodies import JSON, make_body, post_refused
from tests.support.orchestrator.sql_session import Sql
from tests.support.orchestrator.stack import Node, Stack, new_key, submit, wait_until_final


@pytest.mark.req("ORC-076")
@pytest.mark.parametrize("payload", [{}, {"": ""}, {"a": None}, {" ": {"": []}}])
def test_a_payload_is_any_object(api: Node, sql: Sql, payload: object) -> None:
    """It may be empty, and may have any names."""
    assert sql.job(submit(api.http, "echo", payload))["payload"] == payload


@pytest.mark.req("ORC-077")
@pytest.mark.usefixtures("nothing_stored")
@pytest.mark.parametrize(
    "bad", [r"\u0000", r"a\u0000b", r"\ud800", r"\udc00", r"\ud800\ud800", r"\udc00\ud800"]
)
@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("payload", '{{"a": "{}"}}'),
        ("payload", '{{"{}": 1}}'),
        ("payload", '{{"a": [[{{"b": "x{}"}}]]}}'),
        ("idempotencyKey", '"key{}"'),
        ("jobType", '"echo{}"'),
    ],
)
def test_text_that_cannot_be_stored_is_refused(api: Node, field: str, value: str, bad: str) -> None:
    """NUL and fresh_crew surrogates are refused with the field, wherever they are; they are never a fault."""
    parts = {name: json.dumps(each) for name, each in make_body().items()} | {field: value.format(bad)}
    found = post_refused(api, "{" + ", ".join(f'"{name}": {text}' for name, text in parts.items()) + "}")
    assert (found["code"], found["field"]) == ("VALIDATION_ERROR", field)


@pytest.mark.req("ORC-077")
@pytest.mark.parametrize(
    "text", [r"\\u0000", r"\\\\u0000", r"\ud83d\ude00", r"\u0001", r"\ufffe\uffff", r"\/"]
)
def test_text_that_looks_like_nul_is_stored(api: Node, sql: Sql, text: str) -> None:
    """An escaped backslash before u0000, a whole surrogate pair, other control characters."""
    key = new_key()
    content = f'{{"jobType": "echo", "payload": {{"a{text}": "{text}"}}, "idempotencyKey": "{key}"}}'
    assert api.http.post("/jobs", content=content, headers=JSON).status_code == 202
    plain = json.loads(f'"{text}"')
    assert sql.jobs(key)[0]["payload"] == {f"a{plain}": plain}


@pytest.mark.req("ORC-076", "ORC-054")
@pytest.mark.parametrize(
    "number",
    [
        "0",
        "-0",
        "9007199254740993",
        "18446744073709551615",
        "123456789012345678901234567890",
        "-" + "9" * 200,
        "0.1",
        "3.141592653589793238462643383279502884197",
        "1e308",
        "1E+2",
        "5e-324",
        "1.0",
    ],
)
def test_numbers_are_stored_as_they_were_written(stack: Stack, number: str) -> None:
    """No digit is lost between the client and the database, and a large number does not hinder the job."""
    key = new_key()
    content = f'{{"jobType": "echo", "payload": {{"n": {number}}}, "idempotencyKey": "{key}"}}'
    answer = stack.api.http.post("/jobs", content=content, headers=JSON)
    assert answer.status_code == 202, answer.text
    text = "SELECT (payload -> 'n')::numeric = $2::text::numeric FROM jobs WHERE idempotency_key = $1"
    assert stack.sql.value(text, key, number)


@pytest.mark.req("ORC-077")
@pytest.mark.usefixtures("nothing_stored")
@pytest.mark.parametrize("number", ["1e309", "-1e400", "1e-400", "1e1000000", "9" * 5000, "0." + "1" * 5000])
def test_numbers_out_of_range_are_refused(api: Node, number: str) -> None:
    """They are refused with the field; neither the database nor a job function gets them."""
    content = f'{{"jobType": "echo", "payload": {{"n": [{number}]}}, "idempotencyKey": "{new_key()}"}}'
    found = post_refused(api, content)
    assert (found["code"], found["field"]) == ("VALIDATION_ERROR", "payload")


@pytest.mark.req("ORC-076")
@pytest.mark.parametrize(("opening", "closing"), [('{"a":', "}"), ("[", "]")])
def test_nesting_has_a_limit(api: Node, sql: Sql, opening: str, closing: str) -> None:
    """A hundred levels are accepted and stored; one more is refused under the name of the field."""

    def nest(levels: int, key: str) -> str:
        inner = opening * (levels - 1) + "1" + closing * (levels - 1)
        return f'{{"jobType": "echo", "payload": {{"a": {inner}}}, "idempotencyKey": "{key}"}}'

    key = new_key()
    assert api.http.post("/jobs", content=nest(100, key), headers=JSON).status_code == 202
    assert len(sql.jobs(key)) == 1
    for levels in (101, 500, 2000):
        key = new_key()
        found = post_refused(api, nest(levels, key))
        assert found["code"] in ("VALIDATION_ERROR", "MALFORMED_JSON")
        assert found.get("field", "payload") == "payload"
        assert sql.jobs(key) == []


@pytest.mark.req("ORC-076")
def test_a_body_is_limited_to_a_mebibyte(api: Node, sql: Sql) -> None:
    """MAX_PAYLOAD_BYTES counts the whole body; the last byte decides, with or without a content length."""
    most, key = 1_048_576, new_key()
    empty = json.dumps(make_body(payload={"a": ""}, idempotencyKey=key))
    content = empty.replace('"a": ""', f'"a": "{"x" * (most - len(empty))}"').encode()
    assert len(content) == most
    before = sql.count()

    for body in (content + b" ", iter([content, b" "])):
        refused = api.http.post("/jobs", content=body, headers=JSON)
        assert refused.status_code == 413
        assert refused.json()["error"]["code"] == "PAYLOAD_TOO_LARGE"
    assert sql.count() == before
    assert (
        api.http.post("/jobs", content=iter([content[:1000], content[1000:]]), headers=JSON).status_code
        == 202
    )
    assert api.http.post("/jobs", content=content, headers=JSON).status_code == 202
    assert len(sql.jobs(key)[0]["payload"]["a"]) == most - len(empty)
    assert sql.count() == before + 1


@pytest.mark.req("ORC-054")
def test_a_large_payload_is_run_like_any_other(stack: Stack) -> None:
    """A payload of almost a mebibyte that hardly compresses comes back as the result."""
    payload = {"rows": [{"n": n, "text": f"{n * 7919 % 100_003:x}" * 4} for n in range(18_000)]}
    job_id = submit(stack.api.http, "echo", payload)
    assert wait_until_final(stack.api.http, job_id) == "COMPLETED"
    assert stack.sql.job(job_id)["result"] == payload
