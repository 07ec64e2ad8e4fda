"""gRPC servers and clients in the process of a test: methods of bytes, a whole server, and raw calls."""

from __future__ import annotations

import struct
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import Any

import grpc
import grpc.aio
from msgspec.structs import replace

from generated.studio import messages as m
from generated.studio.system import SYSTEM
from runtime.call import Call
from runtime.call.conditions import Condition, Failure
from runtime.call.endpoint import Endpoint
from runtime.call.identity import Authenticator
from runtime.model.system import System
from runtime.observe.log import Log
from runtime.observe.metrics import Metrics
from runtime.transport.grpc.direct.http2.streams import BufferBudget, Limits
from runtime.transport.grpc.direct.messages import GrpcStatusError, RequestHeaders
from runtime.transport.grpc.direct.server_calls import ServerCalls, StreamingMethod, UnaryMethod
from runtime.transport.grpc.direct_carrier import Server
from runtime.transport.grpc.served_methods import ServedMethods, read_metadata
from runtime.transport.tls import Credentials
from runtime.world import RealWorld
from tests.runtime.hand_world import Lines
from tests.runtime.transport.grpc.direct.support import raw_peer as raw
from tests.runtime.transport.grpc.direct.support.echo_application import limits, start_server

METHOD = next(
    method for service in SYSTEM.services.values() for method in service.methods if method.name == "GetPrint"
)
Handle = Callable[[m.GetPrintRequest, Call], Awaitable[m.GetPrintResponse]]


async def echo(_headers: RequestHeaders, message: bytes, _names: tuple[bytes, ...]) -> bytes:
    """Return the message."""
    return message


def explain_error(error: BaseException) -> GrpcStatusError | None:
    """The status of a call that raises a failure of the engine."""
    if not isinstance(error, Failure):
        return None
    condition = ((b"charter-condition", error.code.encode()),) if isinstance(error, Condition) else ()
    return GrpcStatusError(error.grpc, error.message, condition)


@asynccontextmanager
async def serve_methods(
    unary: Mapping[str, UnaryMethod], streaming: Mapping[str, StreamingMethod] | None = None, **changed: Any
) -> AsyncIterator[tuple[int, ServerCalls]]:
    """The port of a server with such methods, and its calls."""
    given: Limits = limits(**changed)
    calls = ServerCalls(
        {path.encode(): each for path, each in unary.items()},
        {path.encode(): each for path, each in (streaming or {}).items()},
        lambda _: (),
        lambda *_: None,
        message_bytes=given.message_bytes,
        connections=1000,
        max_buffered_bytes=given.max_buffered_bytes,
        buffer_budget=BufferBudget.for_server(given),
        parse_metadata=read_metadata,
        explain_error=explain_error,
    )
    async with start_server(calls, given) as port:
        yield port, calls
    assert (calls.connections, calls.tasks, calls.streaming_tasks) == ({}, set(), set())


@asynccontextmanager
async def grpc_channel(port: int, **options: Any) -> AsyncIterator[grpc.aio.Channel]:
    """A channel of grpcio."""
    settings = [("grpc.enable_retries", 0), ("grpc.max_receive_message_length", -1)]
    settings += [(f"grpc.{name}", value) for name, value in options.items()]
    async with grpc.aio.insecure_channel(f"127.0.0.1:{port}", settings) as made:
        yield made


@asynccontextmanager
async def serve_system(
    handle: Handle,
    system: System = SYSTEM,
    tls: Credentials | None = None,
    anonymous: str | None = "desk",
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
    authenticator = Authenticator(system, tokens, anonymous, has_certificates=tls is not None)
    methods = ServedMethods(system, {METHOD.path: endpoint}, authenticator, world, log)
    server = Server(methods, tls=tls, open_to_anyone=open_to_anyone)
    port = await server.start("127.0.0.1", 0)
    await server.ready()
    try:
        yield port, server
    finally:
        await server.stop(0)
    assert server._calls.tasks == set()


def system_with(**changed: Any) -> System:
    """The system with other limits."""
    changed_system: System = replace(SYSTEM, **changed)
    return changed_system


def method(client: grpc.aio.Channel, path: str) -> Any:
    """A method of bytes."""
    made: Any = client.unary_unary(path)
    return made


def get_print(client: grpc.aio.Channel) -> Any:
    """The method, as a client has it."""
    return client.unary_unary(
        METHOD.path,
        request_serializer=m.GetPrintRequest.SerializeToString,
        response_deserializer=m.GetPrintResponse.FromString,
    )


def frame_message(data: bytes, compressed: int = 0) -> bytes:
    """Encode a message with its prefix."""
    return struct.pack(">BL", compressed, len(data)) + data


class GrpcResponse:
    """The response to a raw call."""

    def __init__(self, response: raw.RawResponse) -> None:
        fields = {**response.headers, **response.trailers}
        self.http = response.headers[b":status"]
        self.status = int(fields.get(b"grpc-status", b"-1"))
        self.message = fields.get(b"grpc-message", b"").decode()
        self.is_trailers_only = not response.trailers
        """Whether it was Trailers-Only."""
        self.body = response.body
        self.fields = fields


async def call_raw(
    client: raw.RawPeer, number: int, path: bytes, body: bytes | None, *more: tuple[bytes, bytes]
) -> GrpcResponse:
    """Call a method with raw frames."""
    usual = ((b"content-type", b"application/grpc"), (b"te", b"trailers"), *more)
    flags = raw.END_HEADERS | (raw.END_STREAM if body is None else 0)
    client.send(raw.frame(raw.HEADERS, flags, number, client.encode(path, *usual)))
    if body is not None:
        client.send(raw.frame(raw.DATA, raw.END_STREAM, number, body))
    return GrpcResponse(await client.read_response(number))
