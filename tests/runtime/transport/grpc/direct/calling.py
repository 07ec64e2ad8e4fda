"""gRPC in the process of a test: methods of bytes, a whole server, and clients of both."""

from __future__ import annotations

import struct
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import Any

import grpc
import grpc.aio
from msgspec.structs import replace

from generated.taskqueue import messages as m
from generated.taskqueue.system import SYSTEM
from runtime.call import Call
from runtime.conditions import Condition, Failure
from runtime.dispatch import Endpoint
from runtime.identity import Identity
from runtime.log import Log
from runtime.metrics import Metrics
from runtime.tables import System
from runtime.tls import Credentials
from runtime.transport.grpc.direct.messages import Head, Refused
from runtime.transport.grpc.direct.server_calls import Answer, Calls, Converse
from runtime.transport.grpc.direct.streams import Held, Limits
from runtime.transport.grpc.direct_carrier import Server
from runtime.transport.grpc.metadata import read_metadata
from runtime.transport.grpc.served_methods import ServedMethods
from runtime.world import RealWorld
from tests.runtime.hand_world import Lines
from tests.runtime.transport.grpc.direct import peer as raw
from tests.runtime.transport.grpc.direct.tiny import limits, served

METHOD = next(
    method for service in SYSTEM.services.values() for method in service.methods if method.name == "GetResult"
)
Handle = Callable[[m.GetResultRequest, Call], Awaitable[m.GetResultResponse]]


async def echo(_head: Head, message: bytes, _names: tuple[bytes, ...]) -> bytes:
    """Answers at once."""
    return message


def explain(error: BaseException) -> Refused | None:
    """How a call ends that raises a failure of the engine."""
    if not isinstance(error, Failure):
        return None
    condition = ((b"charter-condition", error.code.encode()),) if isinstance(error, Condition) else ()
    return Refused(error.grpc, error.message, condition)


@asynccontextmanager
async def answering(
    answers: Mapping[str, Answer], talks: Mapping[str, Converse] | None = None, **changed: Any
) -> AsyncIterator[tuple[int, Calls]]:
    """The port of a server of such methods."""
    given: Limits = limits(**changed)
    calls = Calls(
        {path.encode(): each for path, each in answers.items()},
        {path.encode(): each for path, each in (talks or {}).items()},
        lambda _: (),
        lambda *_: None,
        message_bytes=given.message_bytes,
        connections=1000,
        most_held=given.most_held,
        held=Held.of(given),
        read_metadata=read_metadata,
        explain=explain,
    )
    async with served(calls, given) as port:
        yield port, calls
    assert (calls.connections, calls.tasks, calls.talks) == ({}, set(), set())


@asynccontextmanager
async def channel(port: int, **options: Any) -> AsyncIterator[grpc.aio.Channel]:
    """A client of gRPC itself."""
    said = [("grpc.enable_retries", 0), ("grpc.max_receive_message_length", -1)]
    said += [(f"grpc.{name}", value) for name, value in options.items()]
    async with grpc.aio.insecure_channel(f"127.0.0.1:{port}", said) as made:
        yield made


@asynccontextmanager
async def serving(
    handle: Handle,
    system: System = SYSTEM,
    tls: Credentials | None = None,
    anonymous: str | None = "gateway",
    open_to_anyone: bool = False,
    lines: Lines | None = None,
    tokens: Mapping[str, bytes] | None = None,
    metrics: Metrics | None = None,
) -> AsyncIterator[tuple[int, Server]]:
    """A whole server with one method of a system, whose callers are `anonymous` without proof."""
    world = RealWorld()
    handler = SimpleNamespace(**{METHOD.attribute: handle})
    log = Log("test", "INFO", world, lines if lines is not None else Lines())
    endpoint = Endpoint(system, METHOD, handler, world, log, metrics or Metrics())
    identity = Identity(system, tokens, anonymous, has_certificates=tls is not None)
    methods = ServedMethods(system, {METHOD.path: endpoint}, identity, world, log)
    server = Server(methods, tls=tls, open_to_anyone=open_to_anyone)
    port = await server.start("127.0.0.1", 0)
    await server.ready()
    try:
        yield port, server
    finally:
        await server.stop(0)
    assert server._calls.tasks == set()


def small(**changed: Any) -> System:
    """The system with other limits."""
    return replace(SYSTEM, **changed)


def method(client: grpc.aio.Channel, path: str) -> Any:
    """A method of bytes."""
    made: Any = client.unary_unary(path)
    return made


def get_result(client: grpc.aio.Channel) -> Any:
    """The method, as a client has it."""
    return client.unary_unary(
        METHOD.path,
        request_serializer=m.GetResultRequest.SerializeToString,
        response_deserializer=m.GetResultResponse.FromString,
    )


def message(data: bytes, packed: int = 0) -> bytes:
    """A message as it is sent."""
    return struct.pack(">BL", packed, len(data)) + data


class Told:
    """How a call ended, as it was said over the wire."""

    def __init__(self, answer: raw.Answer) -> None:
        said = {**answer.headers, **answer.trailers}
        self.http = answer.headers[b":status"]
        self.status = int(said.get(b"grpc-status", b"-1"))
        self.words = said.get(b"grpc-message", b"").decode()
        self.bare = not answer.trailers
        """Whether there were headers only."""
        self.body = answer.body
        self.said = said


async def told(
    client: raw.Peer, number: int, path: bytes, body: bytes | None, *more: tuple[bytes, bytes]
) -> Told:
    """Calls a method by hand."""
    usual = ((b"content-type", b"application/grpc"), (b"te", b"trailers"), *more)
    flags = raw.END_HEADERS | (raw.END_STREAM if body is None else 0)
    client.say(raw.frame(raw.HEADERS, flags, number, client.block(path, *usual)))
    if body is not None:
        client.say(raw.frame(raw.DATA, raw.END_STREAM, number, body))
    return Told(await client.answer(number))
