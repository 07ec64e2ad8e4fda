"""Health and reflection for the carrier `grpcio`, and how its calls end without an answer."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable
from typing import Any, TypeAlias

import grpc
import grpc.aio
from google.protobuf.message import DecodeError
from grpc_health.v1 import health_pb2

from runtime.transport.grpc.status_details import shorten

HEALTH = "grpc.health.v1.Health"
REFLECTION = ("grpc.reflection.v1.ServerReflection", "grpc.reflection.v1alpha.ServerReflection")
"""Both versions: their messages are the same on the wire."""
_Question, _Status = health_pb2.HealthCheckRequest, health_pb2.HealthCheckResponse
_CODES = {code.name: code for code in grpc.StatusCode}
_STOPS = "the server stops"

Context: TypeAlias = "grpc.aio.ServicerContext[Any, Any]"


def end_call(
    context: Context,
    status: str,
    message: str,
    trailers: tuple[tuple[str, str | bytes], ...] = (),
) -> bytes:
    """End a call without an answer."""
    context.set_code(_CODES[status])
    context.set_details(shorten(message))
    if trailers:
        context.set_trailing_metadata(trailers)
    return b""


class Health:
    """The health service: whether calls are welcome, by question or whenever that changes.

    That of the library ends a watch of a server that stops only with the server, whose stop would wait for
    it, and logs a traceback for each message that it cannot read.
    """

    def __init__(self, services: Iterable[str]) -> None:
        self._services = frozenset(("", *services))
        self._is_serving = False
        self._is_stopping = False
        self._changed = asyncio.Event()

    def set_serving(self) -> None:
        """Say that calls are welcome."""
        self._is_serving = True
        self._notify()

    def stop(self) -> None:
        """Say for good that calls are not welcome, and end all watches."""
        self._is_serving, self._is_stopping = False, True
        self._notify()

    async def check(self, message: bytes, context: Context) -> bytes:
        """Answer how a service is now."""
        if (service := _read_service(message, context)) is None:
            return b""
        if service not in self._services:
            return end_call(context, "NOT_FOUND", f"no service {service}")
        return self._answer(service)

    async def watch(self, message: bytes, context: Context) -> AsyncIterator[bytes]:
        """Answer how a service is, now and after each change."""
        if (service := _read_service(message, context)) is None:
            return
        while True:
            # Both from before the answer: a change while it is sent has to be sent as well.
            changed, is_last = self._changed, self._is_stopping
            yield self._answer(service)
            if is_last:
                end_call(context, "UNAVAILABLE", _STOPS)
                return
            await changed.wait()

    def _notify(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()

    def _answer(self, service: str) -> bytes:
        if service not in self._services:
            return _Status(status=_Status.SERVICE_UNKNOWN).SerializeToString()
        status = _Status.SERVING if self._is_serving else _Status.NOT_SERVING
        return _Status(status=status).SerializeToString()


def _read_service(message: bytes, context: Context) -> str | None:
    """Find the requested service; None where it is unknown and the call has been ended."""
    try:
        return _Question.FromString(message).service
    except DecodeError:
        end_call(context, "INVALID_ARGUMENT", "the message is no question about health")
        return None


class Reflection:
    """The reflection service: which methods and messages there are."""

    def __init__(self, services: Iterable[str]) -> None:
        self._services = (*services, HEALTH, *REFLECTION)

    async def answer(self, questions: AsyncIterator[bytes], context: Context) -> AsyncIterator[bytes]:
        """Answer one question after the other."""
        # Few ever ask, and what answers them is slow to load.
        from grpc_reflection.v1alpha import reflection, reflection_pb2

        servicer: Any = reflection.aio.ReflectionServicer(self._services)
        async for question in questions:
            try:
                asked = reflection_pb2.ServerReflectionRequest.FromString(question)
            except DecodeError:
                end_call(context, "INVALID_ARGUMENT", "the message is no question about methods")
                return
            async for answer in servicer.ServerReflectionInfo(_alone(asked), context):
                yield answer.SerializeToString()


async def _alone(question: Any) -> AsyncIterator[Any]:
    yield question
