"""Calls over gRPC without any code of the project, and the methods as both transports have them."""

from __future__ import annotations

from types import TracebackType
from typing import Any, NamedTuple, Self

import grpc

from generated.orchestrator.system import SYSTEM
from runtime.call.conditions import CONDITION_HEADER
from runtime.model.system import Method

PATIENCE = 60.0
METHODS: dict[str, Method] = {
    f"{name}.{method.name}": method for name, service in SYSTEM.services.items() for method in service.methods
}
"""Every method by its service and name."""


class Outcome(NamedTuple):
    """How a call ended: the name of the code, and the answer or the error."""

    code: str
    answer: Any = None
    condition: str = ""
    message: str = ""


class Remote:
    """A connection to the gRPC port of a node, with or without a token."""

    def __init__(self, address: str, token: str | None = None) -> None:
        self._channel = grpc.insecure_channel(address, [("grpc.enable_retries", 0)])
        self._metadata = () if token is None else (("authorization", f"Bearer {token}"),)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._channel.close()

    def call(self, method: Method, request: Any) -> Outcome:
        """Make one call and return how it ended."""
        made: Any = self._channel.unary_unary(
            method.path,
            request_serializer=lambda message: message.SerializeToString(),
            response_deserializer=method.response.FromString,
        )
        try:
            return Outcome("OK", made(request, timeout=PATIENCE, metadata=self._metadata))
        except grpc.RpcError as error:
            ended: Any = error
            trailing = dict(ended.trailing_metadata() or ())
            return Outcome(ended.code().name, None, trailing.get(CONDITION_HEADER, ""), ended.details())
