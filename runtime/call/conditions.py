"""Failures of calls: the named conditions of a spec, and calls without a response."""

from __future__ import annotations

from typing import ClassVar, Self

CONDITION_HEADER = "charter-condition"
"""The gRPC trailer with the name of the condition."""


class Failure(Exception):
    """Any failure of a call. Handlers catch it to compensate."""

    grpc: str
    message: str
    origin: str | None = None
    """The service of another component that failed; None where the failure was raised here."""


class Condition(Failure):
    """A named condition with its gRPC and HTTP codes. Handlers raise the generated subclasses."""

    code: ClassVar[str]
    http: ClassVar[int]
    retry: ClassVar[str]
    retry_after_s: ClassVar[int | None] = None

    def __init__(self, message: str, /, **fields: object) -> None:
        super().__init__(message)
        self.message = message
        self.fields = fields

    @classmethod
    def from_remote(cls, message: str, origin: str) -> Self:
        """Make the condition that another component responded with."""
        condition = cls.__new__(cls)
        Condition.__init__(condition, message)
        condition.origin = origin
        return condition


class TransportRefusal(Failure):
    """A call that its transport refused: its request or its response cannot be carried."""

    def __init__(self, grpc: str, message: str) -> None:
        super().__init__(message)
        self.grpc = grpc
        self.message = message


class CallFailed(Failure):
    """A call to another component that failed without a condition known here."""

    def __init__(self, grpc: str, message: str, origin: str) -> None:
        super().__init__(f"{origin}: {grpc}: {message}")
        self.grpc = grpc
        self.message = message
        self.origin = origin
