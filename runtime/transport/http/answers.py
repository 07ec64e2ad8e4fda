"""HTTP responses: answers, and the error body that every refusal has."""

from __future__ import annotations

import inspect
import re
from collections.abc import AsyncIterator, Callable, Mapping
from typing import NamedTuple

import orjson

from runtime.call.conditions import Condition, Failure
from runtime.model.system import System

Headers = list[tuple[bytes, bytes]]
JSON_TYPE = b"application/json"
NO_STORE = (b"cache-control", b"no-store")
CLOSE = (b"connection", b"close")
_CHALLENGE = (b"www-authenticate", b"Bearer")

_DEFAULTS: Mapping[str, tuple[int, str]] = {
    "malformed_body": (400, "the body is no JSON: {problem}"),
    "route_not_found": (404, "nothing is at {path}"),
    "method_not_allowed": (405, "{path} has no {method}; it has {allowed}"),
    "body_too_large": (413, "the body has more than {limit} bytes"),
    "unsupported_media_type": (415, "the body must be application/json, not {media_type}"),
}
"""Status and message where a system has no routes, and so no conditions for requests without one."""
_BY_GRPC: Mapping[str, int] = {
    "INVALID_ARGUMENT": 400,
    "FAILED_PRECONDITION": 409,
    "OUT_OF_RANGE": 400,
    "UNAUTHENTICATED": 401,
    "PERMISSION_DENIED": 403,
    "NOT_FOUND": 404,
    "ALREADY_EXISTS": 409,
    "ABORTED": 409,
    "RESOURCE_EXHAUSTED": 429,
    "CANCELLED": 499,
    "UNIMPLEMENTED": 501,
    "UNAVAILABLE": 503,
    "DEADLINE_EXCEEDED": 504,
}
"""HTTP status of a failure that is no condition of this system."""


class HttpAnswer(NamedTuple):
    """An HTTP response."""

    status: int
    headers: Headers
    body: bytes = b""
    chunks: AsyncIterator[bytes] | None = None
    """A streamed body instead."""


Rename = Callable[[str], str]


def answer(
    status: int, body: bytes, content_type: bytes = JSON_TYPE, *more: tuple[bytes, bytes]
) -> HttpAnswer:
    """Make a response that must not be cached."""
    length = str(len(body)).encode()
    return HttpAnswer(
        status, [(b"content-type", content_type), NO_STORE, (b"content-length", length), *more], body
    )


def make_refusal(
    status: int,
    code: str,
    message: str,
    known: Mapping[str, str] | None = None,
    *more: tuple[bytes, bytes],
    details: bool = False,
) -> HttpAnswer:
    """Make the documented error body; it has all of `known`, or its `field` alone."""
    error: dict[str, object] = {"code": code, "message": message}
    if details:
        error["details"] = known or {}
    elif known and "field" in known:
        error["field"] = known["field"]
    if status == 401:
        more = (*more, _CHALLENGE)
    return answer(status, orjson.dumps({"error": error}), JSON_TYPE, *more)


def failure_to_answer(failure: Failure, rename: Rename | None = None, *, details: bool = False) -> HttpAnswer:
    """Convert a failure to a response."""
    if not isinstance(failure, Condition):
        return make_refusal(
            _BY_GRPC.get(failure.grpc, 500), failure.grpc, failure.message, None, details=details
        )
    message = failure.message
    known = {name: str(value) for name, value in failure.fields.items()}
    if "field" in known and rename is not None:
        message, known = rename(message), {name: rename(value) for name, value in known.items()}
    more: Headers = []
    if failure.retry_after_s is not None:
        more.append((b"retry-after", str(failure.retry_after_s).encode()))
    return make_refusal(failure.http, failure.code.upper(), message, known, *more, details=details)


def make_renamer(names: Mapping[str, str]) -> Rename | None:
    """Make a function that replaces the names of the spec for fields and values by their JSON names.

    Text in quotes is data, not a name.
    """
    if not names:
        return None
    words = "|".join(sorted(map(re.escape, names), key=len, reverse=True))
    pattern = re.compile(rf"'[^']*'|\b(?:{words})\b")

    def rename(text: str) -> str:
        return pattern.sub(lambda found: names.get(found[0], found[0]), text)

    return rename


class Refusals:
    """The conditions that the transport raises itself, by their roles."""

    def __init__(self, system: System) -> None:
        self._roles = system.roles
        self._details = system.json_style.details

    def condition(self, role: str, **fields: str) -> Condition:
        """Make the condition of a role. It is one of the spec wherever the spec has routes."""
        if (found := self._roles.get(role)) is not None:
            make: Callable[..., Condition] = found
            return make(**{name: value for name, value in fields.items() if name in _accepted_fields(found)})
        status, message = _DEFAULTS[role]
        return _make_default_condition(role, status, message.format(**fields))

    def answer(self, role: str, *more: tuple[bytes, bytes], **fields: str) -> HttpAnswer:
        """Make the response for the condition of a role, with further headers."""
        found = self.of(self.condition(role, **fields))
        return HttpAnswer(found.status, [*found.headers, *more], found.body)

    def of(self, failure: Failure, rename: Rename | None = None) -> HttpAnswer:
        """Convert a failure to a response."""
        return failure_to_answer(failure, rename, details=self._details)

    def plain(self, status: int, code: str, message: str, *more: tuple[bytes, bytes]) -> HttpAnswer:
        """Make an error response for which no spec has a condition."""
        return make_refusal(status, code, message, None, *more, details=self._details)


def _accepted_fields(condition: type[Condition]) -> frozenset[str]:
    """Return the fields that a condition takes; a spec need not use all of them."""
    return frozenset(inspect.signature(condition).parameters)


def _make_default_condition(role: str, status: int, message: str) -> Condition:
    made: type[Condition] = type(
        role, (Condition,), {"code": role, "grpc": "UNIMPLEMENTED", "http": status, "retry": "never"}
    )
    return made(message)
