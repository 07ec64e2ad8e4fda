"""Every status that a request can be answered with, and the one body that all refusals have."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from runtime.model.system import System
from tests.runtime.transport.http.counter import Served

FORM = "/forms/p1/fill"
NOBODY = "00000000-0000-4000-8000-000000000000"
PARCEL = {"waybill": "DE123456789", "code": "123456", "items": {"book": {"grams": 300}}}


def error(response: httpx.Response, status: int, code: str) -> dict[str, Any]:
    """The refusal in a response, which has the documented shape and nothing more."""
    assert response.status_code == status, response.text
    assert response.headers["content-type"] == "application/json"
    assert response.headers["cache-control"] == "no-store"
    body = response.json()
    assert list(body) == ["error"]
    assert {"code", "message"} <= set(body["error"]) <= {"code", "message", "field"}
    assert body["error"]["code"] == code
    found: dict[str, Any] = body["error"]
    return found


@pytest.mark.req("ORC-053", "ORC-055")
def test_a_success_has_the_status_of_its_route(http: httpx.Client) -> None:
    """One route says 202, another 204 without a body, the others 200."""
    filled = http.post(FORM, json={"answers": {}})
    assert (filled.status_code, filled.json()["formName"]) == (202, "p1")
    assert http.post("/parcels", json={**PARCEL, "waybill": "DE000000001"}).status_code == 200
    dropped = http.delete("/forms/7", params={"really": "true"})
    assert (dropped.status_code, dropped.content) == (204, b"")
    assert "content-length" not in dropped.headers


@pytest.mark.req("ORC-063")
def test_equal_calls_have_equal_headers(http: httpx.Client) -> None:
    """No date, no server, no id of the request: equal responses are equal bytes."""
    first, second = (http.post(FORM, json={"answers": {}}) for _ in range(2))
    assert first.headers.multi_items() == second.headers.multi_items()
    assert set(first.headers) == {"content-type", "cache-control", "content-length"}


@pytest.mark.req("ORC-075")
@pytest.mark.parametrize(
    ("body", "words"),
    [
        (b"", "empty"),
        (b"{", "expecting"),
        (b"nothing", "expecting value"),
        (b'{"answers": {}} more', "extra data"),
        (b'{"answers": NaN}', "NaN"),
        (b"\xff\xfe", "UTF-8"),
        (b'\xef\xbb\xbf{"answers": {}}', "expecting value"),
        (b'{"answers": {"a": 1,}}', ""),
        (b"[" * 100_000, "nested"),
    ],
)
def test_a_body_that_is_no_json_is_refused_with_the_reason(
    http: httpx.Client, body: bytes, words: str
) -> None:
    """The problem is in the message, in the words of the spec's condition."""
    response = http.post(FORM, content=body, headers={"content-type": "application/json"})
    assert words in error(response, 400, "UNREADABLE")["message"]


@pytest.mark.req("ORC-075", "ORC-076")
@pytest.mark.parametrize(
    ("field", "value", "words"),
    [
        ("answers", None, "must be a JSON object"),
        ("answers", [], "must be a JSON object"),
        ("answers", "{}", "must be a JSON object"),
        ("answers", {"a": "\0"}, "NUL"),
        ("shortNote", 5, "must be text, not a number"),
        ("shortNote", "x" * 141, "at most 140 characters"),
        ("shortNote", "a\0b", "NUL"),
        ("dueAt", "yesterday", "RFC 3339"),
        ("dueAt", "2026-02-30T00:00:00Z", "RFC 3339"),
        ("dueAt", "2026-01-01T00:00:00", "RFC 3339"),
        ("dueAt", "0001-01-01T00:00:00+01:00", "RFC 3339"),
        ("dueAt", "9999-12-31T23:59:59-01:00", "RFC 3339"),
        ("dueAt", "2026-01-01T24:00:00Z", "RFC 3339"),
        ("dueAt", None, "RFC 3339"),
        ("dueAt", 5, "RFC 3339"),
        ("mood", "MOOD_GOOD", "must be one of UNSPECIFIED, GOOD, BAD"),
        ("mood", 1, "must be one of"),
        ("mood", None, "must be one of"),
        ("allMoods", "GOOD", "must be a list, not text"),
        ("allMoods", ["GOOD"] * 4, "at most 3 elements"),
        ("small", 1001, "at most 1000"),
        ("small", 2**31, "whole number from -2147483648 to 2147483647"),
        ("small", 1.5, "whole number"),
        ("small", "1", "whole number"),
        ("small", True, "whole number"),
        ("total", -1, "whole number from 0 to 18446744073709551615"),
        ("total", 2**64, "whole number from 0"),
        ("weight", "1.5", "must be a number"),
        ("paid", "true", "must be true or false, not text"),
        ("paid", None, "must be true or false, not null"),
        ("stamp", "====", "base64"),
        ("stamp", "é", "base64"),
        ("items", [], "must be an object, not a list"),
        ("first", "x", "must be an object, not text"),
        ("names", {"a": "b"}, "must be a list, not an object"),
    ],
)
def test_a_wrong_field_is_named(http: httpx.Client, field: str, value: object, words: str) -> None:
    """By its name in JSON, with the rule; rules and types look alike."""
    found = error(http.post(FORM, json={"answers": {}, field: value}), 422, "FORM_INVALID")
    assert found["field"] == field
    assert words in found["message"]
    assert found["message"].startswith(f"{field}: ")


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"allMoods": ["GOOD", "SAD"]}, "allMoods[1]"),
        ({"allMoods": ["GOOD", "UNSPECIFIED"]}, "allMoods[1]"),
        ({"items": {"a b": {"grams": "1"}}}, "items['a b'].grams"),
        ({"items": {"short_note": {"grams": 30_001}}}, "items['short_note'].grams"),
        ({"first": {"grams": 1, "note": 7}}, "first.note"),
        ({"names": ["a", None]}, "names[1]"),
    ],
)
def test_a_wrong_nested_field_is_named_with_its_path(
    http: httpx.Client, body: dict[str, object], field: str
) -> None:
    """Lists by index, maps by key; a key that looks like the name of a field stays as it is."""
    assert error(http.post(FORM, json={"answers": {}, **body}), 422, "FORM_INVALID")["field"] == field


def test_all_broken_rules_are_named_by_their_json_fields(http: httpx.Client) -> None:
    """Not only the first field is called as it is in JSON."""
    body = {"shortNote": "x" * 141, "allMoods": ["UNSPECIFIED"]}
    message = error(http.post(FORM, json=body), 422, "FORM_INVALID")["message"]
    assert message.startswith("answers: must be a JSON object; shortNote: must have at most 140 characters")
    assert message.endswith("allMoods[0]: must be one of GOOD, BAD")


@pytest.mark.req("ORC-078")
def test_unknown_fields_are_ignored(http: httpx.Client) -> None:
    """Also those of the path, which are said there and nowhere else."""
    response = http.post(FORM, json={"answers": {}, "nobodyKnows": {"a": [1]}, "formName": "other"})
    assert (response.status_code, response.json()["formName"]) == (202, "p1")
    assert "nobodyKnows" not in response.json()
    assert http.get("/forms", params={"nobodyKnows": "1"}).status_code == 200


@pytest.mark.parametrize(
    "media",
    [None, "text/plain", "application/xml", "application/json; charset=latin-1", "application/jsonx", ""],
)
def test_a_body_of_another_type_is_refused(http: httpx.Client, media: str | None) -> None:
    """A body of another media type or charset is not parsed."""
    headers = {} if media is None else {"content-type": media}
    error(http.post(FORM, content=b'{"answers": {}}', headers=headers), 415, "WRONG_PAPER")


@pytest.mark.parametrize(
    "media", ["application/json; charset=utf-8", "Application/JSON", 'application/json;charset="UTF-8"']
)
def test_a_media_type_may_have_other_spellings(http: httpx.Client, media: str) -> None:
    """Case and charset do not matter."""
    response = http.post(FORM, content=b'{"answers": {}}', headers={"content-type": media})
    assert response.status_code == 202


def test_a_packed_body_is_refused(http: httpx.Client) -> None:
    """Nothing is unpacked, so nothing grows."""
    headers = {"content-type": "application/json", "content-encoding": "gzip"}
    assert "gzip" in error(http.post(FORM, content=b"x", headers=headers), 415, "WRONG_PAPER")["message"]


@pytest.mark.req("ORC-076")
def test_a_body_that_is_too_large_is_refused(http: httpx.Client) -> None:
    """The limit is the one of the variable, to the byte, whether the length is announced or not."""
    frame = b'{"answers": {"a": "%s"}}'
    fits = frame % (b"x" * (200_000 - len(frame) + 2))
    assert len(fits) == 200_000
    headers = {"content-type": "application/json"}
    assert http.post(FORM, content=fits, headers=headers).status_code == 202
    assert http.post(FORM, content=iter([fits]), headers=headers).status_code == 202
    for body in (fits + b" ", iter([fits, b" "])):
        assert "200000" in error(http.post(FORM, content=body, headers=headers), 413, "TOO_THICK")["message"]


def test_a_method_without_fields_needs_no_body(clerk: httpx.Client, http: httpx.Client) -> None:
    """Neither a body nor a type; one that is there is read all the same."""
    assert http.post("/forms:close").status_code == 503
    assert http.post("/forms:close", json={"a": 1}).status_code == 503
    error(http.post("/forms:close", json=[]), 422, "FORM_INVALID")


@pytest.mark.parametrize(
    "path", ["/", "/nothing", "/parcels/", "/forms//fill", "/forms/7/stamp/", "/FORMS", "//"]
)
def test_a_path_that_is_not_there(http: httpx.Client, path: str) -> None:
    """An empty part is no value, and a slash at the end makes another path."""
    assert path in error(http.get(f"{http.base_url}{path}"), 404, "NO_WINDOW")["message"]


def test_another_method_gets_the_allowed_ones(http: httpx.Client) -> None:
    """In the message and in the header that is for it."""
    response = http.patch("/forms")
    assert "GET, HEAD, OPTIONS" in error(response, 405, "OTHER_WINDOW")["message"]
    assert response.headers["allow"] == "GET, HEAD, OPTIONS"
    assert http.request("BREW", "/parcels").status_code in (400, 405)
    assert error(http.get("/forms/wait"), 405, "OTHER_WINDOW")


def test_options_and_head(http: httpx.Client) -> None:
    """OPTIONS says what there is and HEAD what GET would, without the body."""
    options = http.options("/forms")
    assert (options.status_code, options.headers["allow"], options.content) == (
        204,
        "GET, HEAD, OPTIONS",
        b"",
    )
    assert error(http.options("/nothing"), 404, "NO_WINDOW")
    got, head = http.get("/forms"), http.head("/forms")
    assert (head.status_code, head.content) == (200, b"")
    assert head.headers.multi_items() == got.headers.multi_items()


@pytest.mark.req("ORC-089")
def test_a_fault_reveals_its_correlation_id_alone(http: httpx.Client, kiosk: Served) -> None:
    """The details are in the log, under the id in the response."""
    response = http.post("/forms/break", headers={"x-request-id": "my-own-id"})
    assert error(response, 500, "BROKEN")["message"] == "call the technician and say my-own-id"
    fault = [line for line in kiosk.log if line["event"] == "rpc_fault"][-1]
    assert fault["correlation_id"] == "my-own-id"
    assert "SELECT secret" in fault["detail"]


@pytest.mark.req("ORC-089")
def test_a_fault_of_the_transport_looks_alike(http: httpx.Client, kiosk: Served) -> None:
    """An answer that JSON cannot have, such as a time beyond all calendars, is a fault like any other."""
    response = http.post("/forms/far/fill", json={"answers": {}}, headers={"x-request-id": "far-away"})
    assert error(response, 500, "BROKEN")["message"] == "call the technician and say far-away"
    assert "OverflowError" in [line for line in kiosk.log if line["event"] == "rpc_fault"][-1]["detail"]


def test_a_call_that_takes_too_long(http: httpx.Client, kiosk: Served) -> None:
    """The deadline of the method applies over HTTP as well, and the handler is cancelled."""
    assert "WaitForm" in error(http.post("/forms/wait"), 504, "TOO_SLOW")["message"]
    assert kiosk.log[-1]["grpc_code"] == "DEADLINE_EXCEEDED"


@pytest.mark.req("ORC-079")
def test_a_condition_says_when_to_try_again(http: httpx.Client) -> None:
    """A condition with a time has the header for it; another has none."""
    response = http.post("/forms:close")
    error(response, 503, "LUNCH_BREAK")
    assert response.headers["retry-after"] == "7"
    assert "retry-after" not in http.post("/forms/break").headers


def test_conditions_of_other_components_keep_their_names(http: httpx.Client) -> None:
    """A condition of the vault passes through the desk as it is."""
    message = error(http.get(f"/parcels/{NOBODY}"), 404, "PARCEL_UNKNOWN")["message"]
    assert message == f"no parcel {NOBODY}"
    parcel = http.post("/parcels", json={**PARCEL, "waybill": "DE000000002"}).json()["parcel"]
    path = f"/parcels/{parcel['parcelId']}"
    assert http.post(f"{path}/store", json={"door": 7}).json()["parcel"]["state"] == "STORED"
    error(http.post(f"{path}/store", json={"door": 7}), 409, "PARCEL_ELSEWHERE")


def test_refusals_are_counted_and_logged_as_others_are(http: httpx.Client, kiosk: Served) -> None:
    """A request that cannot be read is a call that failed, with its caller, its method and its id."""
    http.post(FORM, content=b"{", headers={"content-type": "application/json", "x-request-id": "unread"})
    line = next(line for line in reversed(kiosk.log) if line.get("request_id") == "unread")
    assert (line["event"], line["method"], line["condition"]) == (
        "rpc_error",
        "DeskService.FillForm",
        "unreadable",
    )
    counted = 'charter_calls_total{caller="courier",code="INVALID_ARGUMENT",method="DeskService.FillForm"}'
    assert counted in http.get("/metrics").text


def test_a_request_for_which_there_is_no_method_is_one_line(http: httpx.Client, kiosk: Served) -> None:
    http.get("/nothing", headers={"x-request-id": "no route"})
    http.patch("/forms", headers={"x-request-id": "no method"})
    for name, method, status in (("no route", "GET /nothing", 404), ("no method", "PATCH /forms", 405)):
        (line,) = (line for line in kiosk.log if line.get("request_id") == name)
        assert (line["event"], line["method"], line["http_status"]) == ("rpc_error", method, status)
        assert line["grpc_code"] != "OK"


def test_path_parameters_are_taken_as_they_were_sent(http: httpx.Client) -> None:
    """Percent signs are resolved inside a part, so that a slash in a value does not make two of it."""
    for sent, meant in (("a%2Fb", "a/b"), ("%C3%A9", "é"), ("a+b", "a+b"), ("%00", "\0"), ("%FF", "\ufffd")):
        response = http.post(f"/forms/{sent}/fill", json={"answers": {}})
        assert response.json().get("formName") == meant, response.text
    assert error(http.delete("/forms/seven?really=true"), 422, "FORM_INVALID")["field"] == "formNumber"


def test_routes_are_those_of_the_tables(counter: System) -> None:
    """Methods without a route are not to be had over HTTP."""
    assert {method.route is None for method in counter.services["VaultService"].methods} == {True}
