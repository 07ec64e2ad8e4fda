"""What every gRPC server answers beside its own methods: whether it serves, and which methods it has."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Iterable, Mapping
from typing import Any

from google.protobuf.message import DecodeError
from grpc_health.v1 import health_pb2

from runtime.transport.grpc.direct.messages import Head, Refused
from runtime.transport.grpc.direct.server_calls import Answer, Converse

HEALTH = "grpc.health.v1.Health"
REFLECTION = ("grpc.reflection.v1.ServerReflection", "grpc.reflection.v1alpha.ServerReflection")
"""Both versions: their messages are the same on the wire."""
_Question, _Status = health_pb2.HealthCheckRequest, health_pb2.HealthCheckResponse


class Health:
    """Whether the services of a server may be called: by a question, or whenever it changes."""

    def __init__(self, services: Iterable[str]) -> None:
        self._services = frozenset(("", *services))
        self._serving = False
        self._changed = asyncio.Event()

    def say(self, serving: bool) -> None:
        """Changes what is answered."""
        self._serving = serving
        self._changed.set()
        self._changed = asyncio.Event()

    @property
    def answers(self) -> Mapping[bytes, Answer]:
        """Its methods that take a message and answer with one."""
        return {f"/{HEALTH}/Check".encode(): self._check}

    @property
    def conversations(self) -> Mapping[bytes, Converse]:
        """Its methods that go on."""
        return {f"/{HEALTH}/Watch".encode(): self._watch}

    async def _check(self, _head: Head, message: bytes, _names: tuple[bytes, ...]) -> bytes:
        service = _asked(message)
        if service not in self._services:
            raise Refused("NOT_FOUND", f"no service {service}")
        return self._answer(service)

    async def _watch(self, messages: AsyncIterator[bytes]) -> AsyncGenerator[bytes, None]:
        async for message in messages:
            service = _asked(message)
            while True:
                changed = self._changed
                yield self._answer(service)
                await changed.wait()

    def _answer(self, service: str) -> bytes:
        if service not in self._services:
            return _Status(status=_Status.SERVICE_UNKNOWN).SerializeToString()
        return _Status(status=_Status.SERVING if self._serving else _Status.NOT_SERVING).SerializeToString()


def _asked(message: bytes) -> str:
    try:
        return _Question.FromString(message).service
    except DecodeError:
        raise Refused("INVALID_ARGUMENT", "the message is no question about health") from None


class Reflection:
    """What methods and messages there are, for tools that know nothing of them."""

    def __init__(self, services: Iterable[str]) -> None:
        self._services = (*services, HEALTH, *REFLECTION)

    @property
    def conversations(self) -> Mapping[bytes, Converse]:
        """Its one method, in both versions."""
        return {f"/{version}/ServerReflectionInfo".encode(): self._tell for version in REFLECTION}

    async def _tell(self, messages: AsyncIterator[bytes]) -> AsyncGenerator[bytes, None]:
        # Few ever ask, and what answers them is slow to load.
        from grpc_reflection.v1alpha import reflection, reflection_pb2

        async def questions() -> AsyncIterator[Any]:
            async for message in messages:
                try:
                    yield reflection_pb2.ServerReflectionRequest.FromString(message)
                except DecodeError:
                    raise Refused("INVALID_ARGUMENT", "the message is no question about methods") from None

        servicer: Any = reflection.aio.ReflectionServicer(self._services)
        async for answer in servicer.ServerReflectionInfo(questions(), None):
            yield answer.SerializeToString()
