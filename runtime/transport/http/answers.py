"""What goes back over HTTP: answers, and the one body that every refusal has."""

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

_USUAL: Mapping[str, tuple[int, str]] = {
    "malformed_body": (400, "the body is no JSON: {problem}"),
    "route_not_found": (404, "nothing is at {path}"),
    "method_not_allowed": (405, "{path} has no {method}; it has {allowed}"),
    "body_too_large": (413, "the body has more than {limit} bytes"),
    "unsupported_media_type": (415, "the body must be application/json, not {media_type}"),
}
"""How a node speaks whose system has no routes, and so no conditions for what can be wrong with them."""
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
"""For what another component answered in words that are not of this system."""


class Answer(NamedTuple):
    """A whole response."""

    status: int
    headers: Headers
    body: bytes = b""
    chunks: AsyncIterator[bytes] | None = None
    """What is sent piece by piece instead."""


Rename = Callable[[str], str]


def answer(status: int, body: bytes, content_type: bytes = JSON_TYPE, *more: tuple[bytes, bytes]) -> Answer:
    """An answer that nobody may keep."""
    length = str(len(body)).encode()
    return Answer(
        status, [(b"content-type", content_type), NO_STORE, (b"content-length", length), *more], body
    )


def refusal(
    status: int,
    code: str,
    message: str,
    known: Mapping[str, str] | None = None,
    *more: tuple[bytes, bytes],
    details: bool = False,
) -> Answer:
    """The documented body of everything that is no success; `known` is told whole, or its `field` alone."""
    told: dict[str, object] = {"code": code, "message": message}
    if details:
        told["details"] = known or {}
    elif known and "field" in known:
        told["field"] = known["field"]
    if status == 401:
        more = (*more, _CHALLENGE)
    return answer(status, orjson.dumps({"error": told}), JSON_TYPE, *more)


def of_failure(failure: Failure, rename: Rename | None = None, *, details: bool = False) -> Answer:
    """A failure as its caller is told over HTTP."""
    if not isinstance(failure, Condition):
        return refusal(_BY_GRPC.get(failure.grpc, 500), failure.grpc, failure.message, None, details=details)
    message = failure.message
    known = {name: str(value) for name, value in failure.fields.items()}
    if "field" in known and rename is not None:
        message, known = rename(message), {name: rename(value) for name, value in known.items()}
    more: Headers = []
    if failure.retry_after_s is not None:
        more.append((b"retry-after", str(failure.retry_after_s).encode()))
    return refusal(failure.http, failure.code.upper(), message, known, *more, details=details)


def renaming(names: Mapping[str, str]) -> Rename | None:
    """Puts the names that JSON has for fields and values in the place of those of the spec.

    What stands between quotes is somebody's data, not a name.
    """
    if not names:
        return None
    words = "|".join(sorted(map(re.escape, names), key=len, reverse=True))
    pattern = re.compile(rf"'[^']*'|\b(?:{words})\b")

    def rename(text: str) -> str:
        return pattern.sub(lambda found: names.get(found[0], found[0]), text)

    return rename


class Refusals:
    """The conditions that a transport raises itself, by their roles."""

    def __init__(self, system: System) -> None:
        self._roles = system.roles
        self._details = system.json_style.details

    def condition(self, role: str, **fields: str) -> Condition:
        """The condition of a role. It is one of the spec wherever the spec has routes."""
        if (found := self._roles.get(role)) is not None:
            make: Callable[..., Condition] = found
            return make(**{name: value for name, value in fields.items() if name in _taken(found)})
        status, message = _USUAL[role]
        return _usual(role, status, message.format(**fields))

    def answer(self, role: str, *more: tuple[bytes, bytes], **fields: str) -> Answer:
        """The same as an answer, with further headers."""
        found = self.of(self.condition(role, **fields))
        return Answer(found.status, [*found.headers, *more], found.body)

    def of(self, failure: Failure, rename: Rename | None = None) -> Answer:
        """A failure as its caller is told over HTTP."""
        return of_failure(failure, rename, details=self._details)

    def plain(self, status: int, code: str, message: str, *more: tuple[bytes, bytes]) -> Answer:
        """What is told of something for which no spec has a condition."""
        return refusal(status, code, message, None, *more, details=self._details)


def _taken(condition: type[Condition]) -> frozenset[str]:
    """What the message of a condition has a place for; a spec need not use all that it is offered."""
    return frozenset(inspect.signature(condition).parameters)


def _usual(role: str, status: int, message: str) -> Condition:
    made: type[Condition] = type(
        role, (Condition,), {"code": role, "grpc": "UNIMPLEMENTED", "http": status, "retry": "never"}
    )
    return made(message)
