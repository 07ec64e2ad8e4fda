"""Bodies of submits, valid and invalid, and the errors of the invalid ones."""

from __future__ import annotations

from typing import Any

from tests.support.orchestrator.stack import Node, new_key

JSON = {"content-type": "application/json"}


def make_body(**other: object) -> dict[str, Any]:
    """A valid request, except for the fields that are passed."""
    return {"jobType": "echo", "payload": {}, "idempotencyKey": new_key(), **other}


def encode_headers(headers: dict[str, str]) -> list[tuple[bytes, bytes]]:
    """Headers with bytes that are not ASCII, as a careless client sends them."""
    return [(name.encode(), value.encode("latin-1")) for name, value in headers.items()]


def post_refused(api: Node, content: str | bytes, headers: dict[str, str] | None = None) -> dict[str, Any]:
    """The error of a request that is refused with 400."""
    answer = api.http.post("/jobs", content=content, headers=headers or JSON)
    assert answer.status_code == 400, answer.text
    assert answer.headers["content-type"] == "application/json"
    assert answer.json().keys() == {"error"}
    found: dict[str, Any] = answer.json()["error"]
    assert found.keys() - {"field"} == {"code", "message"}
    return found
