"""JSON as another system may want it: names of the spec, nulls, milliseconds, details, statuses by answer."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from msgspec.structs import replace

from generated.studio.messages import DEVELOPING, WAITING, Film
from generated.studio.system import SYSTEM
from runtime.model.system import Instead, JsonStyle, Method, System
from runtime.transport.http.codec import Codec, descriptor_of
from runtime.transport.http.values import InvalidValue
from tests.runtime.transport.http.counter import Served
from tests.support.plain_http import NO_TLS

FORM = "/forms/p1/fill"


@pytest.fixture(scope="module")
def styled(counter: System) -> Iterator[Served]:
    """The same node in another style."""
    instead = (Instead(204, "paid", is_set=True), Instead(203, "short_note", is_set=True))

    def other(method: Method) -> Method:
        route = method.route
        if route is None or not route.path.endswith("/fill"):
            return method
        return replace(method, route=replace(route, instead=instead))

    services = {
        name: replace(service, methods=tuple(map(other, service.methods)))
        for name, service in counter.services.items()
    }
    style = JsonStyle(snake=True, shows_unset=True, milliseconds=True, details=True)
    system = replace(counter, services=services, json_style=style)
    with Served(system, "kiosk", "kiosk") as served:
        yield served


def fill_form(styled: Served, body: dict[str, Any]) -> httpx.Response:
    return httpx.post(f"{styled.url}{FORM}", json=body, timeout=60, verify=NO_TLS)


@pytest.mark.req("PQ-055", "PQ-101")
def test_fields_have_their_names_of_the_spec(styled: Served) -> None:
    """Times end at the millisecond, and unset fields are null."""
    answer = fill_form(styled, {"answers": {}, "seen_at": "2026-11-16T07:00:00.123456Z"})
    assert answer.status_code == 202
    body = answer.json()
    assert (body["form_name"], body["seen_at"], body["short_note"]) == (
        "p1",
        "2026-11-16T07:00:00.123Z",
        None,
    )
    assert all(name == name.lower() for name in body)


def test_the_status_depends_on_the_answer(styled: Served) -> None:
    """The first that fits is answered; one of them has no body."""
    assert fill_form(styled, {"answers": {}, "short_note": "x"}).status_code == 203
    empty = fill_form(styled, {"answers": {}, "short_note": "x", "paid": True})
    assert (empty.status_code, empty.content) == (204, b"")


@pytest.mark.req("PQ-123")
def test_refusals_have_details(styled: Served) -> None:
    """Every refusal has the three words; the problem of a field is in the details."""
    wrong = fill_form(styled, {"answers": 3})
    assert wrong.status_code == 422
    error = wrong.json()["error"]
    assert set(error) == {"code", "message", "details"}
    assert error["details"]["field"] == "answers"
    nowhere = httpx.get(f"{styled.url}/nowhere", timeout=60, verify=NO_TLS).json()["error"]
    assert set(nowhere) == {"code", "message", "details"}


def test_values_of_an_enum_may_be_in_lower_case() -> None:
    """They are parsed and formatted so, and not otherwise."""
    enum = descriptor_of(Film).fields_by_name["state"].enum_type
    assert enum is not None
    codec = Codec(replace(SYSTEM, enum_spelling={enum.full_name: "lower"}))
    assert json.loads(codec.writer(Film)(Film(state=WAITING)))["state"] == "waiting"
    assert codec.reader(Film)({"state": "developing"}) == Film(state=DEVELOPING)
    with pytest.raises(InvalidValue, match="waiting, developing"):
        codec.reader(Film)({"state": "DEVELOPING"})
    assert codec.renames(Film)["DEVELOPING"] == "developing"
