"""The details of a failed call: google.rpc.ErrorInfo with its condition and fields, and RetryInfo."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

from runtime.call.conditions import Condition
from runtime.model.text import cut

if TYPE_CHECKING:
    from google.rpc import error_details_pb2, status_pb2

DETAILS_HEADER = "grpc-status-details-bin"
_LONGEST_MESSAGE = 1000
_LONGEST_FIELD = 200
_MOST_FIELDS = 16
_MOST_FIELD_BYTES = 2800
"""All in bytes of UTF-8. They travel as headers, of which clients take 8 KiB: a message that is not ASCII has
three times as many bytes there, and details have four thirds."""


def shorten(text: str, most: int = _LONGEST_MESSAGE) -> str:
    """Cut a text to so many bytes of UTF-8, by default to those that the message of a status may have."""
    return cut(text.encode(errors="replace").decode(), most)


def encode_details(condition: Condition, code: int, domain: str) -> bytes:
    """Encode a condition as google.rpc.Status; `domain` is the system whose condition it is."""
    status_messages, detail_messages = _messages()
    # The message is in grpc-message already, and headers are short.
    message = shorten(condition.message, _LONGEST_FIELD)
    status: status_pb2.Status = status_messages.Status(code=code, message=message)
    info = detail_messages.ErrorInfo(reason=condition.code.upper(), domain=domain)
    left = _MOST_FIELD_BYTES
    for name, value in list(condition.fields.items())[:_MOST_FIELDS]:
        shortened = shorten(str(value), _LONGEST_FIELD)
        left -= len(name) + len(shortened.encode())
        if left < 0:
            break
        info.metadata[name] = shortened
    status.details.add().Pack(info)
    if condition.retry_after_s is not None:
        retry: error_details_pb2.RetryInfo = detail_messages.RetryInfo()
        retry.retry_delay.seconds = condition.retry_after_s
        status.details.add().Pack(retry)
    return bytes(status.SerializeToString())


@cache
def _messages() -> tuple[Any, Any]:
    # A node that refuses nothing has no need of them.
    from google.rpc import error_details_pb2, status_pb2

    return status_pb2, error_details_pb2
