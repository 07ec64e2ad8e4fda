"""Servers and clients of every carrier, and of gRPC's own library, in the process of a test."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from types import SimpleNamespace
from typing import Any, NamedTuple

import grpc
import grpc.aio
from msgspec.structs import replace

from generated.studio import messages as m
from generated.studio.system import SYSTEM as GENERATED
from runtime.call import Call, Invoke
from runtime.call.endpoint import Endpoint
from runtime.call.identity import Authenticator
from runtime.model.system import CallPolicy, Keepalive, Method, System
from runtime.observe.log import Log
from runtime.observe.metrics import Metrics
from runtime.transport.grpc.carrier import CARRIERS, ServerCarrier, make_server
from runtime.transport.grpc.channel import GrpcChannel
from runtime.transport.tls import Credentials
from runtime.world import RealWorld
from tests.runtime.hand_world import Lines

PATIENCE_S = 60.0
"""After which a test has failed that waits for something; far more than anything takes on a busy machine."""
GROWING_S = (0.05, 0.5, 5.0, 30.0)
"""Deadlines to be tried in turn, where a call has to be in flight before its deadline expires."""
WORLD = RealWorld()
SYSTEM: System = replace(
    GENERATED,
    keepalive=replace(
        GENERATED.keepalive,
        ping_every_ms=60_000,
        ping_timeout_ms=60_000,
        connection_age_ms=3_600_000,
    ),
)
"""A system whose pings no busy machine is too slow for."""
METHOD: Method = replace(
    next(
        method
        for service in GENERATED.services.values()
        for method in service.methods
        if method.name == "GetPrint"
    ),
    check=None,
    max_request_bytes=None,
    policy=CallPolicy(deadline_ms=int(PATIENCE_S * 1000), idempotency="always"),
)
"""A method that takes any message, and whose callers do not retry."""
PRINCIPAL, COMPONENT = "desk", "archive"
Handle = Callable[[m.GetPrintRequest, Call], Awaitable[m.GetPrintResponse]]
Options = Sequence[tuple[str, Any]]


class Sides(NamedTuple):
    """The carriers of the two sides of a connection."""

    server: str
    client: str

    def __str__(self) -> str:
        return f"{self.server}-server-{self.client}-client"


ALL_SIDES = [Sides(server, client) for server in CARRIERS for client in CARRIERS]


async def echo(request: m.GetPrintRequest, _call: Call) -> m.GetPrintResponse:
    """Answer at once, with the id that was asked for."""
    return m.GetPrintResponse(found=True, film_id=request.film_id)


class Gate:
    """A handler whose calls wait until it is opened, and which counts them."""

    def __init__(self) -> None:
        self.calls: list[Call] = []
        self.cancelled = 0
        self.ended = 0
        self._opened = asyncio.Event()

    @property
    def begun(self) -> int:
        return len(self.calls)

    def open(self) -> None:
        self._opened.set()

    async def __call__(self, request: m.GetPrintRequest, call: Call) -> m.GetPrintResponse:
        self.calls.append(call)
        try:
            await self._opened.wait()
        except asyncio.CancelledError:
            self.cancelled += 1
            raise
        self.ended += 1
        return await echo(request, call)


class Served(NamedTuple):
    """A server that listens."""

    port: int
    server: ServerCarrier
    lines: Lines
    metrics: Metrics
    endpoint: Endpoint

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"


@asynccontextmanager
async def start_server(
    carrier: str,
    handle: Handle = echo,
    *,
    system: System = SYSTEM,
    method: Method = METHOD,
    tls: Credentials | None = None,
    anonymous: str | None = PRINCIPAL,
    open_to_anyone: bool = False,
    tokens: Mapping[str, bytes] | None = None,
    port: int = 0,
    is_started: bool = True,
    is_ready: bool = True,
) -> AsyncIterator[Served]:
    """A server with one method, whose callers are `anonymous` without proof."""
    lines, metrics = Lines(), Metrics()
    log = Log("test", "INFO", WORLD, lines)
    endpoint = Endpoint(system, method, SimpleNamespace(**{method.attribute: handle}), WORLD, log, metrics)
    authenticator = Authenticator(system, tokens, anonymous, has_certificates=tls is not None)
    server = make_server(
        carrier,
        system,
        {method.path: endpoint},
        authenticator,
        WORLD,
        log,
        tls=tls,
        open_to_anyone=open_to_anyone,
    )
    bound = await server.start("127.0.0.1", port) if is_started else 0
    if is_started and is_ready:
        await server.ready()
    try:
        yield Served(bound, server, lines, metrics, endpoint)
    finally:
        await server.stop(0)
        async with asyncio.timeout(PATIENCE_S):
            await endpoint.drain()


class Caller:
    """Calls the method through a channel of a carrier."""

    def __init__(self, channel: GrpcChannel, method: Method) -> None:
        self.channel = channel
        self._invoke: Invoke[m.GetPrintRequest, m.GetPrintResponse] = channel.bind(
            method, m.GetPrintRequest, m.GetPrintResponse
        )

    async def __call__(
        self,
        film_id: str = "x",
        *,
        seconds: float | None = None,
        request_id: str | None = None,
        trace: str | None = None,
    ) -> m.GetPrintResponse:
        deadline = None if seconds is None else WORLD.monotonic() + seconds
        log = Log("client", "ERROR", WORLD, Lines())
        call = Call(WORLD, log, PRINCIPAL, deadline=deadline, request_id=request_id, trace=trace)
        return await self._invoke(m.GetPrintRequest(film_id=film_id), call)


@asynccontextmanager
async def open_client(
    carrier: str,
    address: str,
    *,
    system: System = SYSTEM,
    method: Method = METHOD,
    tls: Credentials | None = None,
    token: str | None = None,
    wait_for_ready: bool = False,
) -> AsyncIterator[Caller]:
    """A client of a carrier."""
    channel = GrpcChannel(
        system,
        address,
        PRINCIPAL,
        COMPONENT,
        token=token,
        tls=tls,
        carrier=carrier,
        wait_for_ready=wait_for_ready,
    )
    try:
        yield Caller(channel, method)
    finally:
        await channel.close()


@asynccontextmanager
async def open_both(
    sides: Sides,
    handle: Handle = echo,
    *,
    system: System = SYSTEM,
    method: Method = METHOD,
    client_method: Method = METHOD,
) -> AsyncIterator[tuple[Served, Caller]]:
    """A server and a client of it."""
    async with (
        start_server(sides.server, handle, system=system, method=method) as served,
        open_client(sides.client, served.address, system=system, method=client_method) as caller,
    ):
        yield served, caller


@asynccontextmanager
async def plain_channel(address: str, options: Options = (), **more: Any) -> AsyncIterator[Any]:
    """A client of gRPC's own library."""
    said = [("grpc.use_local_subchannel_pool", 1), *options]
    async with grpc.aio.insecure_channel(address, said, **more) as channel:
        yield channel


@asynccontextmanager
async def plain_server(
    handle: Callable[[bytes, Any], Awaitable[bytes]], address: str = "127.0.0.1:0", **more: Any
) -> AsyncIterator[tuple[int, grpc.aio.Server]]:
    """A server of gRPC's own library, with the same method."""
    server = grpc.aio.server(options=[("grpc.so_reuseport", 0)], **more)
    methods: Any = {METHOD.name: grpc.unary_unary_rpc_method_handler(handle)}
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(METHOD.service, methods),))
    port = server.add_insecure_port(address)
    await server.start()
    try:
        yield port, server
    finally:
        await server.stop(0)


def plain_method(channel: Any) -> Any:
    """The method, for a client of gRPC's own library."""
    return channel.unary_unary(
        METHOD.path,
        request_serializer=m.GetPrintRequest.SerializeToString,
        response_deserializer=m.GetPrintResponse.FromString,
    )


async def plain_code(call: Any) -> str:
    """The name of the status that a call of gRPC's own library ends with."""
    try:
        await call
    except grpc.aio.AioRpcError as error:
        return error.code().name
    return "OK"


def with_limits(**changed: Any) -> System:
    """The system with other limits."""
    return replace(SYSTEM, **changed)


def with_keepalive(**changed: Any) -> System:
    """The system with other settings of its connections."""
    keepalive: Keepalive = replace(SYSTEM.keepalive, **changed)
    return replace(SYSTEM, keepalive=keepalive)


@contextmanager
def reserve_port() -> Iterator[int]:
    """Reserve a port without a listener until a server of the test has it."""
    with socket.socket() as reserved:
        # A server that sets the same may bind beside a socket that does not listen; no other socket can.
        reserved.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        reserved.bind(("127.0.0.1", 0))
        yield reserved.getsockname()[1]


class Relay:
    """A TCP relay that counts its bytes, and can fall silent."""

    def __init__(self, port: int) -> None:
        self._to = port
        self.port = 0
        self.connections = 0
        self.closed = 0
        self.up = 0
        """Bytes from clients."""
        self.down = 0
        """Bytes from the server."""
        self.is_silent = False
        self._tasks: set[asyncio.Task[None]] = set()

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"

    async def connect(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        try:
            there, back = await asyncio.open_connection("127.0.0.1", self._to)
            try:
                await asyncio.gather(self._pass_on(reader, back, "up"), self._pass_on(there, writer, "down"))
            finally:
                back.close()
        except (OSError, asyncio.CancelledError):
            # Either side has gone, or the test is over; this task is not awaited.
            pass
        finally:
            self.closed += 1
            self._tasks.discard(task)
            writer.close()

    async def _pass_on(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, counter: str
    ) -> None:
        try:
            while data := await reader.read(2**16):
                setattr(self, counter, getattr(self, counter) + len(data))
                if not self.is_silent:
                    writer.write(data)
                    await writer.drain()
        finally:
            # Only this direction ends: a socket that is closed while its peer writes loses received bytes.
            if writer.can_write_eof() and not writer.is_closing():
                writer.write_eof()

    def lead_to(self, port: int) -> None:
        """Pass new connections on to another port."""
        self._to = port

    def end(self) -> None:
        for task in self._tasks:
            task.cancel()


@asynccontextmanager
async def open_relay(port: int) -> AsyncIterator[Relay]:
    """A relay to a port of this machine."""
    relay = Relay(port)
    server = await asyncio.start_server(relay.connect, "127.0.0.1", 0)
    relay.port = server.sockets[0].getsockname()[1]
    try:
        yield relay
    finally:
        server.close()
        relay.end()
        await server.wait_closed()
