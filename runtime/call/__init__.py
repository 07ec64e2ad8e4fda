"""Calls: their context, guard, endpoint, identity, conditions, deadlines and retries."""

from runtime.call.context import (
    LONGEST_REQUEST_ID,
    REQUEST_ID_HEADER,
    Answering,
    Call,
    Channel,
    Invoke,
    Request,
    Response,
)

__all__ = [
    "LONGEST_REQUEST_ID",
    "REQUEST_ID_HEADER",
    "Answering",
    "Call",
    "Channel",
    "Invoke",
    "Request",
    "Response",
]
