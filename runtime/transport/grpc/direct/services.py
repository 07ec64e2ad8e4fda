"""The standard gRPC services beside a server's own: health checking and server reflection."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Iterable, Mapping
from typing import Any

from google.protobuf.message import DecodeError
from grpc_health.v1 import health_pb2

from runtime.transport.grpc.direct.messages import GrpcStatusError, RequestHeaders
from runtime.transport.grpc.direct.server_calls import StreamingMethod, UnaryMethod

HEALTH = "grpc.health.v1.Health"
REFLECTION = ("grpc.reflection.v1.ServerReflection", "grpc.reflection.v1alpha.ServerReflection")
"""Both versions: their messages are the same on the wire."""
_Request, _Response = health_pb2.HealthCheckRequest, health_pb2.HealthCheckResponse


class Health:
    """The service grpc.health.v1.Health: whether the services of a server may be called."""

    def __init__(self, services: Iterable[str]) -> None:
        self._services = frozenset(("", *services))
        self._is_serving = False
        self._changed = asyncio.Event()

    def set_serving(self, is_serving: bool) -> None:
        """Change the status of all services, and notify those who watch it."""
        self._is_serving = is_serving
        self._changed.set()
        self._changed = asyncio.Event()

    @property
    def unary_methods(self) -> Mapping[bytes, UnaryMethod]:
        """The method Check, by its path."""
        return {f"/{HEALTH}/Check".encode(): self._check}

    @property
    def streaming_methods(self) -> Mapping[bytes, StreamingMethod]:
        """The method Watch, by its path."""
        return {f"/{HEALTH}/Watch".encode(): self._watch}

    async def _check(self, _headers: RequestHeaders, message: bytes, _names: tuple[bytes, ...]) -> bytes:
        service = _parse_service(message)
        if service not in self._services:
            raise GrpcStatusError("NOT_FOUND", f"no service {service}")
        return self._make_response(service)

    async def _watch(self, messages: AsyncIterator[bytes]) -> AsyncGenerator[bytes, None]:
        async for message in messages:
            service = _parse_service(message)
            while True:
                changed = self._changed
                yield self._make_response(service)
                await changed.wait()

    def _make_response(self, service: str) -> bytes:
        if service not in self._services:
            return _Response(status=_Response.SERVICE_UNKNOWN).SerializeToString()
        status = _Response.SERVING if self._is_serving else _Response.NOT_SERVING
        return _Response(status=status).SerializeToString()


def _parse_service(message: bytes) -> str:
    try:
        return _Request.FromString(message).service
    except DecodeError:
        raise GrpcStatusError("INVALID_ARGUMENT", "the message is no HealthCheckRequest") from None


class Reflection:
    """The service ServerReflection: the descriptors of all methods, for tools."""

    def __init__(self, services: Iterable[str]) -> None:
        self._services = (*services, HEALTH, *REFLECTION)

    @property
    def streaming_methods(self) -> Mapping[bytes, StreamingMethod]:
        """The one method, in both versions, by its path."""
        return {f"/{version}/ServerReflectionInfo".encode(): self._reflect for version in REFLECTION}

    async def _reflect(self, messages: AsyncIterator[bytes]) -> AsyncGenerator[bytes, None]:
        # Rarely used, and slow to import.
        from grpc_reflection.v1alpha import reflection, reflection_pb2

        async def parse_requests() -> AsyncIterator[Any]:
            async for message in messages:
                try:
                    yield reflection_pb2.ServerReflectionRequest.FromString(message)
                except DecodeError:
                    reason = "the message is no ServerReflectionRequest"
                    raise GrpcStatusError("INVALID_ARGUMENT", reason) from None

        servicer: Any = reflection.aio.ReflectionServicer(self._services)
        async for response in servicer.ServerReflectionInfo(parse_requests(), None):
            yield response.SerializeToString()
