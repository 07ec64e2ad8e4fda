"""How things fail: named conditions of a spec, and calls that ended without an answer."""

from __future__ import annotations

from typing import ClassVar, Self

CONDITION_HEADER = "charter-condition"
"""Where an answer over gRPC names the condition that it stands for."""


class Failure(Exception):
    """Anything a call can end with instead of an answer. Handlers catch it to compensate."""

    grpc: str
    message: str
    origin: str | None = None
    """The service that another component's failure came from; None where it was raised here."""


class Condition(Failure):
    """A named condition with its codes. Handlers raise the generated subclasses."""

    code: ClassVar[str]
    http: ClassVar[int]
    retry: ClassVar[str]
    retry_after_s: ClassVar[int | None] = None

    def __init__(self, message: str, /, **fields: object) -> None:
        super().__init__(message)
        self.message = message
        self.fields = fields

    @classmethod
    def received(cls, message: str, origin: str) -> Self:
        """The condition as another component answered it."""
        condition = cls.__new__(cls)
        Condition.__init__(condition, message)
        condition.origin = origin
        return condition


class TransportRefusal(Failure):
    """A call that its transport ended: no handler saw its message, or no client can be sent its answer."""

    def __init__(self, grpc: str, message: str) -> None:
        super().__init__(message)
        self.grpc = grpc
        self.message = message


class CallFailed(Failure):
    """A call to another component that ended without an answer or a condition known here."""

    def __init__(self, grpc: str, message: str, origin: str) -> None:
        super().__init__(f"{origin}: {grpc}: {message}")
        self.grpc = grpc
        self.message = message
        self.origin = origin
