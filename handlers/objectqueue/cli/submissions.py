"""Submissions as people write them: a JSON object with the fields of a task."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import orjson

from generated.objectqueue.messages import SubmitTaskRequest, WantedRetryPolicy
from runtime.model import json_text
from runtime.transport.http.codec import Codec
from runtime.transport.http.values import Misread

if TYPE_CHECKING:
    from google.protobuf.descriptor import Descriptor


class NoWish(Exception):
    """Why a text is no submission."""


class Wishes:
    """Reads submissions; what is unknown is told, because it is probably a misspelt name."""

    def __init__(self, codec: Codec, otherwise: dict[str, Any] | None = None) -> None:
        self._read = codec.reader(SubmitTaskRequest)
        self._otherwise = json_text.read(orjson.dumps(otherwise or {}))

    def read(self, text: bytes) -> SubmitTaskRequest:
        """The request that a text stands for."""
        try:
            value = json_text.read(text)
        except json_text.NotJson as problem:
            raise NoWish(f"it is no JSON: {problem}") from None
        if not isinstance(value, dict):
            raise NoWish("it is no JSON object")
        _refuse_unknown(value, SubmitTaskRequest.DESCRIPTOR, "a task")
        if isinstance(policy := value.get("retry_policy"), dict):
            _refuse_unknown(policy, WantedRetryPolicy.DESCRIPTOR, "a retry policy")
        try:
            request = cast("SubmitTaskRequest", self._read({**self._otherwise, **value}))
        except Misread as misread:
            at = f"{misread.path}: " if misread.path else ""
            raise NoWish(f"{at}{misread.problem}") from None
        return request


def _refuse_unknown(value: dict[str, Any], known: Descriptor, what: str) -> None:
    if unknown := sorted(set(value) - set(known.fields_by_name)):
        has = ", ".join(known.fields_by_name)
        raise NoWish(f"{what} has no {', '.join(map(repr, unknown))}; it may have {has}")
