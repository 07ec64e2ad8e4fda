"""Connections: a silent peer is noticed, an impatient one is sent away, and an old connection is replaced."""

from __future__ import annotations

import asyncio
import struct
from collections.abc import Awaitable, Callable
from typing import Any

import h2.config
import h2.connection
import h2.events
import pytest

from generated.studio import messages as m
from runtime.call.conditions import Failure
from runtime.model.system import System
from tests.runtime.transport.grpc.contract.support.carriers import (
    PATIENCE_S,
    Gate,
    Sides,
    open_client,
    open_relay,
    plain_channel,
    plain_code,
    plain_method,
    start_server,
    with_keepalive,
)
from tests.support.eventually import eventually

GROWING_MS = (200, 2_000, 10_000)
"""How long a ping may take: the first does, unless the process stands still before its call has begun."""
CALLERS = 10
Lose = Callable[[Sides, int], Awaitable[bool]]


def with_frequent_pings(timeout_ms: int) -> System:
    """The system with connections that are asked soon and often."""
    return with_keepalive(ping_every_ms=50, ping_timeout_ms=timeout_ms, shortest_ping_accepted_ms=1)


async def lose_the_server(sides: Sides, timeout_ms: int) -> bool:
    """Have a client lose its server in the middle of a call; whether the call had begun."""
    gate = Gate()
    async with (
        start_server(sides.server, gate, system=with_keepalive(shortest_ping_accepted_ms=1)) as served,
        open_relay(served.port) as relay,
        open_client(sides.client, relay.address, system=with_frequent_pings(timeout_ms)) as call,
    ):
        in_flight = asyncio.ensure_future(call())
        await eventually(lambda: gate.begun or in_flight.done())
        relay.is_silent = True
        with pytest.raises(Failure) as caught:
            await in_flight
        assert caught.value.grpc == "UNAVAILABLE"
    return gate.begun > 0


async def lose_the_client(sides: Sides, timeout_ms: int) -> bool:
    """Have a server lose its client in the middle of a call; whether the call had begun."""
    gate = Gate()
    async with (
        start_server(sides.server, gate, system=with_frequent_pings(timeout_ms)) as served,
        open_relay(served.port) as relay,
        open_client(sides.client, relay.address) as call,
    ):
        in_flight = asyncio.ensure_future(call())
        await eventually(lambda: gate.begun or in_flight.done())
        relay.is_silent = True
        await eventually(lambda: gate.cancelled == gate.begun)
        in_flight.cancel()
        await asyncio.wait([in_flight])
    return gate.begun > 0


@pytest.mark.parametrize("lose", [lose_the_server, lose_the_client])
async def test_a_side_that_is_silent_is_given_up(sides: Sides, lose: Lose) -> None:
    """When its pings are not answered a call fails, or a handler is cancelled, long before its deadline."""
    for timeout_ms in GROWING_MS:
        if await lose(sides, timeout_ms):
            return
    raise AssertionError("no call has begun before its connection was given up")


async def test_pings_keep_a_connection_on_which_a_handler_takes_its_time(sides: Sides) -> None:
    """A call that is answered after pings have passed is answered, on the connection that it was made on."""
    gate = Gate()
    system = with_keepalive(ping_every_ms=20, shortest_ping_accepted_ms=1)
    async with (
        start_server(sides.server, gate, system=system) as served,
        open_relay(served.port) as relay,
        open_client(sides.client, relay.address, system=system) as call,
    ):
        in_flight = asyncio.ensure_future(call())
        await eventually(lambda: gate.begun)
        up, down = relay.up, relay.down
        # A ping and its answer have 17 bytes each.
        await eventually(lambda: relay.up >= up + 17 and relay.down >= down + 17)
        gate.open()
        assert (await in_flight).found
        assert relay.connections == 1


async def test_a_client_that_pings_too_often_is_sent_away(carrier: str) -> None:
    """It gets a GOAWAY that says so; other clients go on."""
    system = with_keepalive(shortest_ping_accepted_ms=60_000)
    async with start_server(carrier, system=system) as served, open_client(carrier, served.address) as call:
        await call()
        goaway = await ping_until_goaway(served.port)
        await call()
    assert (goaway.error_code, goaway.additional_data) == (11, b"too_many_pings")


async def ping_until_goaway(port: int) -> Any:
    """Send pings without a call until the server ends the connection, and return how it does."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    connection = h2.connection.H2Connection(h2.config.H2Configuration(client_side=True))
    connection.initiate_connection()
    try:
        async with asyncio.timeout(PATIENCE_S):
            while True:
                connection.ping(b"too soon")
                writer.write(connection.data_to_send())
                for event in connection.receive_data(await reader.read(2**16)):
                    if isinstance(event, h2.events.ConnectionTerminated):
                        return event
    finally:
        writer.transport.abort()


YOUNG = with_keepalive(connection_age_ms=200)


@pytest.mark.parametrize("client", ["grpcio", "direct", "plain"])
async def test_a_connection_is_replaced_when_it_is_old(carrier: str, client: str) -> None:
    """Calls are made all the while, none fails, and the connections before are closed."""
    failed: list[str] = []
    async with start_server(carrier, system=YOUNG) as served, open_relay(served.port) as relay:

        async def call_on(call: Any) -> None:
            while relay.closed < 3 and not failed:
                if (status := await call()) != "OK":
                    failed.append(status)

        async with asyncio.timeout(PATIENCE_S):
            if client == "plain":
                async with plain_channel(relay.address) as channel:
                    method = plain_method(channel)
                    request = m.GetPrintRequest(film_id="x")
                    await asyncio.gather(
                        *(call_on(lambda: plain_code(method(request))) for _ in range(CALLERS))
                    )
            else:
                async with open_client(client, relay.address) as send:
                    await asyncio.gather(*(call_on(lambda: status_of(send)) for _ in range(CALLERS)))
    assert failed == []


async def status_of(call: Any) -> str:
    try:
        await call()
    except Failure as failure:
        return f"{failure.grpc}: {failure.message}"
    return "OK"


async def test_a_call_outlives_the_age_of_its_connection(sides: Sides) -> None:
    """It is answered on the connection that it was made on, while others are made on the next."""
    gate = Gate()
    async with (
        start_server(sides.server, gate, system=YOUNG) as served,
        open_relay(served.port) as relay,
        open_client(sides.client, relay.address) as call,
    ):
        calls = [asyncio.ensure_future(call("first"))]
        await eventually(lambda: gate.begun == 1)

        def has_reconnected() -> bool:
            calls.append(asyncio.ensure_future(call("other")))
            return relay.connections >= 2

        await eventually(has_reconnected)
        assert not calls[0].done()
        gate.open()
        assert [each.found for each in await asyncio.gather(*calls)] == [True] * len(calls)


class CountingServer:
    """An HTTP/2 peer that answers every call with a large message, piece by piece, and counts pings."""

    def __init__(self, answer: bytes) -> None:
        self.pings = self.connections = 0
        self._answer = answer

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer the calls of one connection until its client ends it."""
        self.connections += 1
        try:
            await self._answer_calls(reader, writer)
        finally:
            self.connections -= 1
            writer.close()

    async def _answer_calls(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connection = h2.connection.H2Connection(h2.config.H2Configuration(client_side=False))
        connection.initiate_connection()
        waiting: dict[int, bytes] = {}
        writer.write(connection.data_to_send())
        while data := await reader.read(2**16):
            for event in connection.receive_data(data):
                if isinstance(event, h2.events.PingReceived):
                    self.pings += 1
                elif isinstance(event, h2.events.RequestReceived):
                    headers = [(":status", "200"), ("content-type", "application/grpc")]
                    connection.send_headers(event.stream_id, headers)
                elif isinstance(event, h2.events.StreamEnded):
                    waiting[event.stream_id] = self._answer
            for stream, message in list(waiting.items()):
                rest = message
                while rest and (room := connection.local_flow_control_window(stream)):
                    size = min(room, connection.max_outbound_frame_size)
                    connection.send_data(stream, rest[:size])
                    rest = rest[size:]
                waiting[stream] = rest
                if not rest:
                    connection.send_headers(stream, [("grpc-status", "0")], end_stream=True)
                    del waiting[stream]
            writer.write(connection.data_to_send())


async def test_a_busy_client_sends_no_pings_but_those_of_its_keepalive(carrier: str) -> None:
    """A server with a limit for pings takes others for too many, and sends the client away."""
    message = m.GetPrintResponse(found=True, caption="x" * 2**20).SerializeToString()
    peer = CountingServer(struct.pack(">BI", 0, len(message)) + message)
    server = await asyncio.start_server(peer.serve, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    async with server, open_client(carrier, f"127.0.0.1:{port}") as call:
        for _ in range(5):
            assert (await call()).found
    await eventually(lambda: not peer.connections)
    assert peer.pings == 0
