"""Failures on a command line: a message with advice, and an exit code."""

from __future__ import annotations

import re

from runtime.call.conditions import Condition, Failure

FAILED = 1
UNREACHED = 3
ENDED_IN_FAILURE = 4
"""The watched entity has ended in a failed state."""
_UNREACHED_CODES = ("UNAVAILABLE", "DEADLINE_EXCEEDED")
_UNKNOWN_HOST = (
    "Name or service not known",
    "nodename nor servname",
    "Temporary failure in name resolution",
    "Domain name not found",
    "DNS resolution failed",
)
_ADVICE = {
    "never": "Trying again will not help.",
    "with_backoff": "Try again in a moment.",
    "if_idempotent": "It may have been done all the same; try again only if twice does no harm.",
    "with_care": "Look at what it did before you try again.",
}


def format_failure(failure: Failure, address: str, *, tls: bool) -> tuple[str, int]:
    """Format a failure for the user; return the message and the exit code."""
    code = UNREACHED if failure.grpc in _UNREACHED_CODES else FAILED
    if isinstance(failure, Condition):
        message = failure.message.rstrip(".")
        return f"{failure.code}: {message}. {_ADVICE.get(failure.retry, '')}".rstrip(), code
    if failure.grpc == "UNAVAILABLE":
        return f"UNAVAILABLE: no answer from {address}. {_connection_advice(failure.message, tls=tls)}", code
    if failure.grpc == "DEADLINE_EXCEEDED":
        return f"DEADLINE_EXCEEDED: no answer from {address} in time. {_ADVICE['if_idempotent']}", code
    return f"{failure.grpc}: {failure.message}", code


def _connection_advice(message: str, *, tls: bool) -> str:
    cause = re.sub(r"\[Errno -?[0-9]+\] ", "", message.rpartition("error: ")[2].strip())
    if any(text in message for text in _UNKNOWN_HOST):
        return "There is no host of that name: check --address or CHARTER_ADDRESS."
    if "refused" in message:
        return "Nothing listens there: start it, or say where it is by --address or CHARTER_ADDRESS."
    if tls:
        return (
            f"It may not talk TLS, or not with this authority: check --ca-file or CHARTER_CA_FILE. ({cause})"
        )
    return f"If it talks TLS, name its authority by --ca-file or CHARTER_CA_FILE. ({cause})"
