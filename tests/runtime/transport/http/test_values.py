"""JSON and messages: nothing is lost in the conversion, and both transports agree."""

from __future__ import annotations

import importlib
import json
from typing import Any

import httpx
import pytest
from google.protobuf.json_format import MessageToDict

from runtime.client import Client
from runtime.model.system import System
from tests.runtime.transport.http.counter import TOKENS, Served

FORM = "/forms/p1/fill"
FULL: dict[str, Any] = {
    "answers": {"z": 1, "a": [1, {"b": None}], "ü": "\U0001f4e6", "": True},
    "anything": [1, "two", None],
    "shortNote": "bréve",
    "seenAt": "2026-11-16T07:00:00.123456Z",
    "dueAt": "2026-11-16T07:00:00.000000Z",
    "mood": "GOOD",
    "allMoods": ["BAD", "GOOD"],
    "small": -5,
    "count": -(2**63),
    "total": 2**64 - 1,
    "weight": 0.1,
    "paid": True,
    "stamp": "AAEC/w==",
    "items": {"book": {"grams": 300, "note": "n"}},
    "first": {"grams": 1, "note": ""},
    "names": ["", "b"],
}
EMPTY: dict[str, Any] = {
    "formName": "p1",
    "answers": {},
    "dueAt": "1970-01-01T00:00:00.000000Z",
    "mood": "UNSPECIFIED",
    "allMoods": [],
    "small": 0,
    "count": 0,
    "total": 0,
    "weight": 0.0,
    "paid": False,
    "stamp": "",
    "items": {},
    "first": {"grams": 0, "note": ""},
    "names": [],
}


def fill_form(http: httpx.Client, text: str) -> httpx.Response:
    return http.post(FORM, content=text.encode(), headers={"content-type": "application/json"})


@pytest.mark.req("ORC-045", "ORC-054", "ORC-083")
def test_every_kind_of_field_comes_back_as_it_went(http: httpx.Client) -> None:
    """Names in camel case, times in RFC 3339, numbers of 64 bits as numbers, bytes in base64."""
    assert http.post(FORM, json=FULL).json() == {"formName": "p1", **FULL}


def test_absent_fields(http: httpx.Client) -> None:
    """Optional fields are absent from the response, too; all others have their values."""
    assert http.post(FORM, json={"answers": {}}).json() == EMPTY
    nulls = {"anything": None, "shortNote": None, "seenAt": None}
    assert http.post(FORM, json={"answers": {}, **nulls}).json() == EMPTY
    there = {"anything": False, "shortNote": "", "seenAt": "1970-01-01T00:00:00.000000Z"}
    assert http.post(FORM, json={"answers": {}, **there}).json() == EMPTY | there


@pytest.mark.req("ORC-054")
@pytest.mark.parametrize(
    "text",
    [
        '{"b":1,"a":2}',
        '{"n":123456789012345678901234567890}',
        '{"n":0.1000000000000000055511151231257827}',
        '{"n":1.0,"m":1E5,"k":-0,"l":1e-7}',
        '{"n":9223372036854775808,"m":-9223372036854775808,"o":18446744073709551616}',
        '{"t":"\U0001f4e6 \u00e9 \\" \\\\ \\n"}',
        '{"d":' + "[" * 98 + "]" * 98 + "}",
        '{"e":{},"f":[],"g":null}',
    ],
)
def test_json_inside_json_is_kept_as_it_is(http: httpx.Client, text: str) -> None:
    """Order, nesting, and numbers to the last digit, also those that no float can represent."""
    response = fill_form(http, f'{{"answers":{text}}}')
    assert response.status_code == 202, response.text
    assert f'"answers":{text},' in response.text


@pytest.mark.req("ORC-077")
@pytest.mark.parametrize(
    ("text", "field", "words"),
    [
        (r'{"answers":{"a":"\ud800"}}', "answers", "half of a surrogate pair"),
        (r'{"answers":{"\udc00":1}}', "answers", "half of a surrogate pair"),
        (r'{"answers":{},"shortNote":"\ud800"}', "shortNote", "half of a surrogate pair"),
        (r'{"answers":{},"items":{"\ud800":{"grams":1}}}', "items", "half of a surrogate pair"),
        (r'{"answers":{"a":"\u0000"}}', "answers", "NUL"),
        (r'{"answers":{},"shortNote":"\u0000"}', "shortNote", "NUL"),
        ('{"answers":{"a":1e400}}', "answers", "range of a double"),
        ('{"answers":{"a":-1e400}}', "answers", "range of a double"),
        ('{"answers":{"a":1e-99999}}', "answers", "range of a double"),
        ('{"answers":{"a":' + "9" * 5000 + "}}", "answers", "1000 digits"),
        ('{"answers":{"a":0.' + "9" * 5000 + "}}", "answers", "1000 digits"),
        ('{"answers":{"d":' + "[" * 100 + "]" * 100 + "}}", "answers", "deeper than 100"),
        ('{"answers":' + '{"a":' * 300 + "1" + "}" * 300 + "}", "answers", "deeper than 100"),
        ('{"answers":{},"weight":1e400}', "weight", "number"),
        ('{"answers":{},"count":1e400}', "count", "whole number"),
        ('{"answers":{},"count":9223372036854775808}', "count", "whole number"),
    ],
)
def test_what_cannot_be_kept_is_refused_by_the_name_of_its_field(
    http: httpx.Client, text: str, field: str, words: str
) -> None:
    """No rounding, no loss and no fault: the response names the field and the reason."""
    response = fill_form(http, text)
    assert response.status_code == 422, response.text
    error = response.json()["error"]
    assert error["field"].startswith(field)
    assert words in error["message"]


def test_an_escaped_backslash_is_no_nul(http: httpx.Client) -> None:
    """Only the escape for NUL is one, not the text that looks like it."""
    text = r'{"answers":{"a":"\\u0000"}}'
    assert fill_form(http, text).json()["answers"] == {"a": "\\u0000"}
    assert fill_form(http, r'{"answers":{"a":"\ud83d\udce6"}}').json()["answers"] == {"a": "\U0001f4e6"}


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        ("2026-11-16T08:00:00+01:00", "2026-11-16T07:00:00.000000Z"),
        ("2026-11-16t07:00:00.5z", "2026-11-16T07:00:00.500000Z"),
        ("1969-12-31T23:59:59.999999Z", "1969-12-31T23:59:59.999999Z"),
        ("0001-01-01T00:00:00Z", "0001-01-01T00:00:00.000000Z"),
        ("9999-12-31T23:59:59.999999999Z", "9999-12-31T23:59:59.999999Z"),
    ],
)
def test_times_are_shown_in_utc(http: httpx.Client, given: str, shown: str) -> None:
    """With microseconds and a Z, whatever zone they came in."""
    assert http.post(FORM, json={"answers": {}, "dueAt": given}).json()["dueAt"] == shown


def test_whole_numbers_may_be_written_with_a_point(http: httpx.Client) -> None:
    """JSON knows one kind of number: 3.0 is 3."""
    assert fill_form(http, '{"answers":{},"small":3.0,"count":1e3}').json()["small"] == 3


def test_queries(http: httpx.Client) -> None:
    """Lists by repetition; everything else as in a body, but as text."""
    response = http.get(
        "/forms?shortNote=a+b%26c&allMoods=GOOD&allMoods=BAD&seenAt=2026-11-16T07:00:00Z"
        "&count=-9223372036854775808&paid=true&weight=1e3&pageSize=500&pageToken=12"
    )
    assert response.json() == {
        "shortNote": "a b&c",
        "allMoods": ["GOOD", "BAD"],
        "seenAt": "2026-11-16T07:00:00.000000Z",
        "count": -(2**63),
        "paid": True,
        "weight": 1000.0,
        "pageSize": 50,
        "pageToken": "12",
    }
    assert http.get("/forms").json()["pageSize"] == 20


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ("count=1&count=2", "count"),
        ("count=1.5", "count"),
        ("count=1_000", "count"),
        ("count=", "count"),
        ("paid=yes", "paid"),
        ("weight=nan", "weight"),
        ("weight=inf", "weight"),
        ("allMoods=SAD", "allMoods[0]"),
        ("allMoods=GOOD&allMoods=GOOD&allMoods=GOOD&allMoods=GOOD", "allMoods"),
        ("seenAt=now", "seenAt"),
        ("pageSize=-1", "pageSize"),
        ("pageToken=x", "pageToken"),
        ("shortNote=%FF", "query"),
        ("&".join(["a=1"] * 101), "query"),
    ],
)
def test_a_wrong_parameter_is_named(http: httpx.Client, query: str, field: str) -> None:
    """As a wrong field of a body is."""
    response = http.get(f"/forms?{query}")
    assert (response.status_code, response.json()["error"]["field"]) == (422, field), response.text


async def test_both_transports_give_the_same_answer(
    kiosk: Served, counter: System, http: httpx.Client
) -> None:
    """The same request over gRPC gives the same message, and its refusals the same condition and words."""
    messages = importlib.import_module("generated.counter.messages")
    over_http = http.post(FORM, json=FULL).json()
    async with Client(
        counter, lambda _component: [f"127.0.0.1:{kiosk.node.port}"], principal="clerk", token=TOKENS["clerk"]
    ) as client:
        desk = client.service("DeskService")
        request = messages.FillFormRequest(
            form_name="p1", answers=json.dumps(FULL["answers"]), anything="[1]"
        )
        answer = await desk.fill_form(request, client.call())
        assert json.loads(answer.answers) == over_http["answers"]
        wrong = messages.FillFormRequest(form_name="p1", answers="[]", small=1001)
        with pytest.raises(Exception, match="answers: must be a JSON object; small: must be at most 1000"):
            await desk.fill_form(wrong, client.call())
        for text in ("", "{", '{"a":NaN}', r'{"a":"\ud800"}', r'{"a":"\u0000"}', '{"a":1e999}'):
            with pytest.raises(Exception, match="answers: must "):
                await desk.fill_form(messages.FillFormRequest(form_name="p1", answers=text), client.call())
        asked = await desk.ask_form(messages.AskFormRequest(all_moods=[1, 2], count=5), client.call())
        over = http.get("/forms?allMoods=GOOD&allMoods=BAD&count=5").json()
        plain = MessageToDict(asked, always_print_fields_with_no_presence=True)
        assert (over["count"], over["pageSize"]) == (int(plain["count"]), plain["pageSize"])
