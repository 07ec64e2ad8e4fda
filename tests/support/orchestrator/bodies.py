"""Bodies of submits, right and wrong, and what is said about the wrong ones."""

from __future__ import annotations

from typing import Any

from tests.support.orchestrator.stack import Node, new_key

JSON = {"content-type": "application/json"}


def whole(**other: object) -> dict[str, Any]:
    """A request that is right but for what is given."""
    return {"jobType": "echo", "payload": {}, "idempotencyKey": new_key(), **other}


def encoded(headers: dict[str, str]) -> list[tuple[bytes, bytes]]:
    """Headers with bytes that are no ASCII, as a client that knows no better sends them."""
    return [(name.encode(), value.encode("latin-1")) for name, value in headers.items()]


def error(api: Node, content: str | bytes, headers: dict[str, str] | None = None) -> dict[str, Any]:
    """The error of a request that is refused with 400."""
    answer = api.http.post("/jobs", content=content, headers=headers or JSON)
    assert answer.status_code == 400, answer.text
    assert answer.headers["content-type"] == "application/json"
    assert answer.json().keys() == {"error"}
    found: dict[str, Any] = answer.json()["error"]
    assert found.keys() - {"field"} == {"code", "message"}
    return found
