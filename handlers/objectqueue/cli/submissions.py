"""Parse submissions: JSON objects with the fields of a task."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import orjson

from generated.objectqueue.messages import SubmitTaskRequest, WantedRetryPolicy
from runtime.model import json_text
from runtime.transport.http.codec import Codec
from runtime.transport.http.values import InvalidValue

if TYPE_CHECKING:
    from google.protobuf.descriptor import Descriptor


class InvalidSubmission(Exception):
    """A text is no submission; the message says why."""


class SubmissionParser:
    """Parse submissions, and refuse unknown fields, which are probably misspelt."""

    def __init__(self, codec: Codec, defaults: dict[str, Any] | None = None) -> None:
        self._read = codec.reader(SubmitTaskRequest)
        self._defaults = json_text.decode_json(orjson.dumps(defaults or {}))

    def parse(self, text: bytes) -> SubmitTaskRequest:
        """Parse a text to a request."""
        try:
            value = json_text.decode_json(text)
        except json_text.NotJson as problem:
            raise InvalidSubmission(f"it is no JSON: {problem}") from None
        if not isinstance(value, dict):
            raise InvalidSubmission("it is no JSON object")
        _refuse_unknown(value, SubmitTaskRequest.DESCRIPTOR, "a task")
        if isinstance(policy := value.get("retry_policy"), dict):
            _refuse_unknown(policy, WantedRetryPolicy.DESCRIPTOR, "a retry policy")
        try:
            request = cast("SubmitTaskRequest", self._read({**self._defaults, **value}))
        except InvalidValue as misread:
            at = f"{misread.path}: " if misread.path else ""
            raise InvalidSubmission(f"{at}{misread.problem}") from None
        return request


def _refuse_unknown(value: dict[str, Any], known: Descriptor, what: str) -> None:
    if unknown := sorted(set(value) - set(known.fields_by_name)):
        allowed = ", ".join(known.fields_by_name)
        raise InvalidSubmission(f"{what} has no {', '.join(map(repr, unknown))}; it may have {allowed}")
